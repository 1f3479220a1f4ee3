"""Local classifiers: the weights of a point's neighbors are votes for their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.prepare import DEFAULT_K
from nnkgraph.stages import Stages
from nnkgraph.tasks.classify._case import make_case
from nnkgraph.tasks.classify._remarks import notes, warnings
from nnkgraph.tasks.classify._result import (
    Classified,
    Predictions,
    line_of,
    predictions,
    tested,
)
from nnkgraph.tasks.classify._run import Run, classify_rows, validate
from nnkgraph.tasks.classify._trials import make_trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nnkgraph.labels import Labels
    from nnkgraph.tasks.classify._case import Case

__all__ = ["Classified", "Predictions", "classify"]

METHODS = ("knn", "kstar", "nnk")
FOLDS = 5


def classify(
    train: Features | ArrayLike,
    labels: Labels | ArrayLike,
    test: Features | ArrayLike | None = None,
    test_labels: Labels | ArrayLike | None = None,
    /,
    *,
    split: Labels | ArrayLike | None = None,
    test_size: float | None = None,
    methods: Sequence[str] = METHODS,
    k: int | Sequence[int] | None = None,
    sigma: str | float | Sequence[str | float] | None = None,
    lc: float | Sequence[float] | None = None,
    cv: int | None = None,
    kernel: str = "gaussian",
    search: str = "auto",
    scale: str = "none",
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    stages: Stages | None = None,
) -> Classified:
    """Classify test rows by their neighbors among training rows.

    A class has the weight of the neighbors that belong to it; the heaviest wins, the
    first of equals. Scaling and rules for the bandwidth look at training rows only,
    also within cross-validation, where one search serves all values. Copies of a
    training row count as one row, whose label is the mean of theirs.

    Parameters
    ----------
    split : labels, optional
        0 for training rows and 1 for test rows.
    test_size : float, optional
        Share of the rows that is drawn as test part, every class alike.
    k, sigma, lc : value or sequence
        Of several values, cross-validation chooses for every method: the fewest
        mistakes, then the smallest k, then the smallest sigma or L/C.
    cv : int, optional
        Folds of the cross-validation. By default 5 where several values are given or
        there is no test part, else none.
    """
    data, points = _features(train, "train"), None
    if test is not None:
        points = _features(test, "test")
    case = make_case(data, labels, points, test_labels, split, test_size, seed)
    several = any(len(_listed(one) or ()) > 1 for one in (k, sigma, lc))
    count = cv or (FOLDS if several or case.test is None else 0)
    trials = make_trials(
        case.train,
        methods,
        _numbers(case, k, count),
        _listed(sigma),
        _listed(lc),
        {"kernel": kernel, "search": search, "scale": scale, "executor": executor},
    )
    run = Run(case, scale, seed, workers, executor, stages or Stages())
    best, found = trials, None
    lines: list[dict[str, Any]] = [{} for _ in trials]
    if count:
        best, lines = validate(run, trials, count)
    if case.test is not None:
        found = classify_rows(run, case.test, best)
        for at, line in enumerate(lines):
            line.update(line_of(best[at], found.sigma[at]))
            line.update(tested(case, found, at, best[at].plan.method))
    least = min(line.get("cv_error", 0.0) for line in lines)
    return Classified(
        lines,
        [line for line in lines if line.get("cv_error", 0.0) == least][-1],
        case.classes,
        _about(case, count, kernel, scale, seed),
        None if found is None else predictions(case, best, found),
        notes(case, best, found, count, chosen_folds=cv is None and count > 0),
        warnings(case, lines),
    )


def _numbers(case: Case, k: int | Sequence[int] | None, count: int) -> list[int]:
    """Return the values of k; refuse more folds or candidates than there are rows."""
    n, numbers = len(case.codes), _listed(k)
    if count == 1 or count < 0:
        raise ParameterError(f"cv must be at least 2, not {count}")
    if count > n:
        raise InputError(f"{case.train.name}: {n} rows cannot be {count} folds")
    least = n - -(-n // count) if count else n
    if numbers is None:
        return [min(DEFAULT_K, least)]
    if not numbers or min(numbers) < 1:
        raise ParameterError("k must be at least 1")
    if max(numbers) > least:
        raise InputError(
            f"{case.train.name}: k is {max(numbers)}, but there are only {least} "
            f"training rows{' beside a fold' if count else ''}: use a smaller k"
        )
    return numbers


def _about(
    case: Case, count: int, kernel: str, scale: str, seed: int
) -> dict[str, Any]:
    return {
        "rows": len(case.train.x),
        "test_rows": None if case.test is None else len(case.test.x),
        "features": int(case.train.x.shape[1]),
        "cv": count or None,
        "kernel": kernel,
        "scale": scale,
        "seed": seed,
    }


def _features(x: Features | ArrayLike, name: str) -> Features:
    return x if isinstance(x, Features) else Features.of(x, name=name)


def _listed(values: Any) -> list[Any] | None:
    if values is None:
        return None
    one = isinstance(values, (str, int, float, np.number))
    return [values] if one else list(values)
