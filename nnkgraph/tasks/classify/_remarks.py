"""What the user should know about a classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.tasks.classify._case import Case
    from nnkgraph.tasks.classify._part import Found
    from nnkgraph.tasks.classify._trials import Trial


def notes(case: Case, count: int, *, chosen_folds: bool) -> list[str]:
    """Say what was decided without being asked."""
    found = []
    if chosen_folds:
        found.append(f"cross-validation with {count} folds: --cv sets their number")
    least = int(np.bincount(case.codes).min())
    if count > least:
        name = case.classes[int(np.bincount(case.codes).argmin())]
        found.append(f"class {name!r} has only {least} training rows for {count} folds")
    return found


def warnings(
    case: Case, trials: list[Trial], lines: list[dict[str, Any]], found: Found | None
) -> list[str]:
    """Say what is not as it should be."""
    said = []
    if case.truth is not None and case.test is not None:
        strange = int((case.truth >= case.learned).sum())
        if strange:
            names = ", ".join(map(repr, case.classes[case.learned :][:5]))
            said.append(
                f"{strange} test rows are of classes that no training row has, and "
                f"count as wrong: {names}"
            )
        unknown = int((case.truth < 0).sum())
        if unknown:
            said.append(f"{unknown} test rows have no label and do not count")
    for at, (trial, line) in enumerate(zip(trials, lines, strict=True)):
        if line.get("without_neighbors"):
            said.append(
                f"{trial.name}: {line['without_neighbors']} test rows have no neighbor "
                "of any weight: the nearest row decides"
            )
        proof = line.get("certificate")
        if proof and proof["nodes_failed"]:
            said.append(
                f"{trial.name}: {proof['nodes_failed']} test rows miss the optimum"
            )
        if trial.lc is not None and found is not None and trial.k < len(case.codes):
            full = int((found.neighbors[:, at] >= trial.k).sum())
            if full:
                said.append(
                    f"{trial.name}: {full} test rows took all {trial.k} candidates and "
                    "may want more: use a larger k or a larger lc"
                )
    return said
