"""Local classifiers: the weights of a point's neighbors are votes for their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.executors import open_pool
from nnkgraph.neighborhoods import row_seconds
from nnkgraph.prepare import DEFAULT_K, warm_up
from nnkgraph.search.auto import exact_seconds
from nnkgraph.stages import Stages
from nnkgraph.tasks.classify._case import folds_of, make_case
from nnkgraph.tasks.classify._part import make_part, run_part
from nnkgraph.tasks.classify._remarks import notes, warnings
from nnkgraph.tasks.classify._result import (
    Classified,
    Predictions,
    confusion,
    line_of,
    tested,
    validated,
)
from nnkgraph.tasks.classify._trials import chosen, make_trials

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import ArrayLike

    from nnkgraph.executors import Pool
    from nnkgraph.labels import Labels
    from nnkgraph.tasks.classify._case import Case
    from nnkgraph.tasks.classify._part import Found
    from nnkgraph.tasks.classify._trials import Trial

__all__ = ["Classified", "Predictions", "classify"]

METHODS = ("knn", "kstar", "nnk")
FOLDS = 5


@dataclass(frozen=True)
class _Run:
    """What stays the same from part to part."""

    case: Case
    scale: str
    seed: int
    workers: int | str
    executor: str
    stages: Stages

    def pool(self, trials: list[Trial], points: int) -> AbstractContextManager[Pool]:
        n, d = self.case.train.x.shape
        each = sum(row_seconds(trial.k, d) for trial in trials)
        seconds = exact_seconds(n, d) + points * each
        return open_pool(self.executor, self.workers, seconds=seconds)

    def warm(self, pool: Pool, trials: list[Trial]) -> None:
        with self.stages("start"):
            tiny = np.zeros((1, 1))
            for plan in {trial.name: trial.plan for trial in trials}.values():
                warm_up(pool, tiny, plan.kernel, plan.method)


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
    shared = {"kernel": kernel, "search": search, "scale": scale, "executor": executor}
    n = len(case.train.x)
    trials = make_trials(
        case.train,
        methods,
        _listed(k) if k is not None else [min(DEFAULT_K, n)],
        None if sigma is None else _listed(sigma),
        None if lc is None else _listed(lc),
        shared,
    )
    several = len(trials) > len(methods)
    count = cv or (FOLDS if several or case.test is None else 0)
    _check(case, trials, count, default_k=k is None)
    run = _Run(case, scale, seed, workers, executor, stages or Stages())
    best, lines = _validated(run, trials, count)
    found = None
    if case.test is not None:
        found = _tested(run, best)
        for at, (trial, line) in enumerate(zip(best, lines, strict=True)):
            line |= line_of(trial, found.sigma[at])
            proof = trial.plan.method.has_certificate
            line |= tested(case, found, at, has_proof=proof)
    least = min(line.get("cv_error", 0.0) for line in lines)
    return Classified(
        lines,
        [line for line in lines if line.get("cv_error", 0.0) == least][-1],
        case.classes,
        _about(case, count, kernel, scale, seed),
        None if found is None else _predictions(case, best, found),
        notes(case, count, chosen_folds=cv is None and count > 0),
        warnings(case, best, lines, found),
    )


def _validated(
    run: _Run, trials: list[Trial], count: int
) -> tuple[list[Trial], list[dict[str, Any]]]:
    """Choose a trial for every method, and say how it did in cross-validation."""
    if not count:
        return trials, [{} for _ in trials]
    case, n = run.case, len(run.case.codes)
    fold = folds_of(case.codes, count, run.seed)
    predicted = np.empty((n, len(trials)), np.int32)
    sigma: list[list[float | None]] = []
    with run.pool(trials, n) as pool:
        run.warm(pool, trials)
        with run.stages("validate", n) as on_rows:
            for one in range(count):
                out = fold == one
                part = make_part(
                    case.train.x[~out],
                    case.codes[~out],
                    len(case.classes),
                    case.train.x[out],
                    kernel=trials[0].plan.kernel,
                    scale=run.scale,
                    names=(case.train.name,) * 2,
                )
                found = run_part(part, trials, pool, seed=run.seed, on_rows=on_rows)
                predicted[out] = found.predicted
                sigma.append(found.sigma)
    wrong = (predicted != case.codes[:, np.newaxis]).sum(axis=0).tolist()
    best, lines = chosen(trials, wrong), []
    for name, place in best.items():
        values = [one for row in sigma if (one := row[place]) is not None]
        line = line_of(trials[place], float(np.mean(values)) if values else None)
        line |= validated(trials, wrong, n, name)
        if case.test is None:
            table = confusion(case.codes, predicted[:, place], len(case.classes))
            line["error"], line["confusion"] = line["cv_error"], table.tolist()
            line |= {"wrong": wrong[place], "tested": n}
        lines.append(line)
    return [trials[place] for place in best.values()], lines


def _tested(run: _Run, trials: list[Trial]) -> Found:
    """Learn from all training rows and classify the test rows."""
    case = run.case
    assert case.test is not None  # noqa: S101 - the caller has looked
    with run.pool(trials, len(case.test.x)) as pool:
        run.warm(pool, trials)
        with run.stages("test", len(case.test.x)) as on_rows:
            part = make_part(
                case.train.x,
                case.codes,
                case.learned,
                case.test.x,
                kernel=trials[0].plan.kernel,
                scale=run.scale,
                names=(case.train.name, case.test.name),
            )
            return run_part(
                part, trials, pool, seed=run.seed, full=True, on_rows=on_rows
            )


def _check(case: Case, trials: list[Trial], count: int, *, default_k: bool) -> None:
    """Refuse more folds or candidates than there are rows."""
    n, k = len(case.codes), max(trial.k for trial in trials)
    if count == 1 or count < 0:
        raise ParameterError(f"cv must be at least 2, not {count}")
    if count > n:
        raise InputError(f"{case.train.name}: {n} rows cannot be {count} folds")
    least = n - -(-n // count) if count else n
    if k > least and not default_k:
        raise InputError(
            f"{case.train.name}: k is {k}, but there are only {least} training rows"
            f"{' in a fold' if count else ''}: use a smaller k"
        )


def _predictions(case: Case, trials: list[Trial], found: Found) -> Predictions:
    assert case.test is not None  # noqa: S101 - the caller has looked
    return Predictions(
        tuple(trial.name for trial in trials),
        np.arange(len(found.predicted)) if case.rows is None else case.rows,
        case.test.ids,
        case.truth,
        found.predicted,
        np.empty((0, 0, 0)) if found.weights is None else found.weights,
        np.empty((0, 0)) if found.errors is None else found.errors,
        found.neighbors,
    )


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


def _listed(values: Any) -> list[Any]:
    one = isinstance(values, (str, int, float, np.number))
    return [values] if one else list(values)
