"""What came out: a line for every method, and the predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import report
from nnkgraph.data import Neighborhoods

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.methods import Method
    from nnkgraph.tasks.classify._case import Case
    from nnkgraph.tasks.classify._part import Found
    from nnkgraph.tasks.classify._trials import Trial


@dataclass(frozen=True)
class Predictions:
    """What every method says about every test row."""

    methods: tuple[str, ...]
    rows: IndexArray
    """(q,) row numbers in the file of the test rows."""

    ids: tuple[str, ...] | None
    truth: IndexArray | None
    """(q,) places in the classes, -1 where none is known."""

    predicted: IndexArray
    """(q, methods) places in the classes."""

    weights: FloatArray
    """(q, methods, classes) shares of the neighbors' weights."""

    errors: FloatArray
    """(q, methods) J, NaN where a method has none."""

    neighbors: IndexArray
    """(q, methods) how many rows have a weight; with 0 the nearest one decides."""


@dataclass(frozen=True)
class Classified:
    """One line per method, and what they are about."""

    lines: list[dict[str, Any]]
    best: dict[str, Any]
    """The line with the least error in cross-validation, else the last one."""

    classes: tuple[str, ...]
    """Classes of the training rows, then those that only test rows have."""

    about: dict[str, Any]
    predictions: Predictions | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything but the predictions, as plain JSON values."""
        return {
            "schema": 1,
            **self.best,
            **self.about,
            "classes": list(self.classes),
            "methods": self.lines,
        }


def confusion(truth: IndexArray, predicted: IndexArray, classes: int) -> IndexArray:
    """Count predictions: a row for every true class, a column for every predicted."""
    known = truth >= 0
    place = truth[known] * classes + predicted[known]
    return np.bincount(place, minlength=classes**2).reshape(classes, classes)


def line_of(trial: Trial, sigma: float | None) -> dict[str, Any]:
    """Return what was chosen."""
    line: dict[str, Any] = {"method": trial.name, "k": trial.k}
    if trial.lc is not None:
        return {**line, "lc": trial.lc}
    rule = trial.sigma if isinstance(trial.sigma, str) else None
    return {**line, "sigma": sigma, **({"rule": rule} if rule else {})}


def validated(
    trials: list[Trial], wrong: list[int], n: int, name: str
) -> dict[str, Any]:
    """Return the error of a method's trials in cross-validation."""
    tried = []
    for trial, count in zip(trials, wrong, strict=True):
        if trial.name == name:
            own: dict[str, Any] = {"k": trial.k}
            own |= {"sigma": trial.sigma} if trial.sigma is not None else {}
            own |= {"lc": trial.lc} if trial.lc is not None else {}
            tried.append({**own, "error": count / n})
    return {"cv_error": min(one["error"] for one in tried), "tried": tried}


def predictions(case: Case, trials: list[Trial], found: Found) -> Predictions | None:
    """Return what the trials say about the test rows, where there are any."""
    if case.test is None or case.rows is None or found.weights is None:
        return None
    return Predictions(
        tuple(trial.name for trial in trials),
        case.rows,
        case.test.ids,
        case.truth,
        found.predicted,
        found.weights,
        np.empty((0, 0)) if found.errors is None else found.errors,
        found.neighbors,
    )


def tested(case: Case, found: Found, at: int, method: Method) -> dict[str, Any]:
    """Return what a method got right and wrong among the test rows."""
    facts: dict[str, Any] = {"error": None}
    if case.truth is not None and (case.truth >= 0).any():
        table = confusion(case.truth, found.predicted[:, at], len(case.classes))
        total, right = int(table.sum()), int(np.trace(table))
        facts = {
            "error": (total - right) / total,
            "wrong": total - right,
            "tested": total,
            "confusion": table.tolist(),
        }
    counts = found.neighbors[:, at]
    facts["neighbors"] = float(counts.mean())
    facts["without_neighbors"] = int((counts == 0).sum())
    if method.has_certificate and found.certificate is not None:
        proof = Neighborhoods(np.empty((0, 0)), None, found.certificate[:, at])
        facts["certificate"] = report.certificate(proof, None)
    if method.has_error and found.errors is not None:
        facts["mean_J"] = float(found.errors[:, at].mean())
    return facts
