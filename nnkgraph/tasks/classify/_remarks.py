"""What the user should know about a classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.tasks.classify._case import Case
    from nnkgraph.tasks.classify._part import Found
    from nnkgraph.tasks.classify._trials import Trial


def notes(
    case: Case,
    trials: list[Trial],
    found: Found | None,
    count: int,
    *,
    chosen_folds: bool,
) -> list[str]:
    """Say what was decided without being asked, and what could be better."""
    said = []
    if chosen_folds:
        said.append(f"cross-validation with {count} folds: --cv sets their number")
    sizes = np.bincount(case.codes)
    if count > sizes.min():
        rare, name = int((sizes < count).sum()), case.classes[int(sizes.argmin())]
        said.append(
            f"{rare} classes have fewer training rows than the {count} folds, "
            f"{name!r} only {sizes.min()}"
        )
    for at, trial in enumerate(trials if found is not None else []):
        if trial.lc is None or found is None or trial.k >= len(case.codes):
            continue
        full = int((found.neighbors[:, at] >= trial.k).sum())
        if full:
            said.append(
                f"{trial.name}: {full} test rows took all {trial.k} candidates and may "
                "want more: use a larger k or a larger lc"
            )
    return said


def warnings(case: Case, lines: list[dict[str, Any]]) -> list[str]:
    """Say what is not as it should be."""
    said = []
    if case.truth is not None:
        strange = int((case.truth >= case.learned).sum())
        if strange:
            names = ", ".join(map(repr, case.classes[case.learned :][:5]))
            more = ", ..." * (len(case.classes) - case.learned > 5)
            said.append(
                f"{strange} test rows are of classes that no training row has, and "
                f"count as wrong: {names}{more}"
            )
        unknown = int((case.truth < 0).sum())
        if unknown:
            said.append(f"{unknown} test rows have no label and do not count")
    for line in lines:
        if line.get("without_neighbors"):
            said.append(
                f"{line['method']}: {line['without_neighbors']} test rows have no "
                "neighbor of any weight: the nearest row decides"
            )
        proof = line.get("certificate")
        if proof and proof["nodes_failed"]:
            said.append(
                f"{line['method']}: {proof['nodes_failed']} test rows miss the optimum"
            )
    return said
