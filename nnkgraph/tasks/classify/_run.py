"""The two runs over the rows: cross-validation, and the test part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.executors import open_pool
from nnkgraph.neighborhoods import row_seconds
from nnkgraph.prepare import warm_up
from nnkgraph.search.auto import exact_seconds
from nnkgraph.tasks.classify._case import folds_of
from nnkgraph.tasks.classify._part import make_part, run_part
from nnkgraph.tasks.classify._result import confusion, line_of, validated
from nnkgraph.tasks.classify._trials import chosen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from nnkgraph.data import Features
    from nnkgraph.executors import Pool
    from nnkgraph.stages import Stages
    from nnkgraph.tasks.classify._case import Case
    from nnkgraph.tasks.classify._part import Found
    from nnkgraph.tasks.classify._trials import Trial

_LARGE = 1 << 25
"""Values of a matrix whose parts are not kept beside each other for the workers."""


@dataclass(frozen=True)
class Run:
    """What stays the same from part to part."""

    case: Case
    scale: str
    seed: int
    workers: int | str
    executor: str
    stages: Stages

    def pool(self, trials: list[Trial], points: int) -> AbstractContextManager[Pool]:
        """Open workers for so many points."""
        n, d = self.case.train.x.shape
        each = sum(row_seconds(trial.k, d) for trial in trials)
        seconds = exact_seconds(n, d) + points * each
        return open_pool(self.executor, self.workers, seconds=seconds)

    def warm(self, pool: Pool, trials: list[Trial]) -> None:
        """Have everything compiled and every worker ready."""
        tiny = np.zeros((1, 1), np.float32 if self._single else np.float64)
        with self.stages("start"):
            for plan in {trial.name: trial.plan for trial in trials}.values():
                warm_up(pool, tiny, plan.kernel, plan.method)

    @property
    def _single(self) -> bool:
        return bool(self.scale == "none" and self.case.train.x.dtype == np.float32)


def validate(
    run: Run, trials: list[Trial], count: int
) -> tuple[list[Trial], list[dict[str, Any]]]:
    """Choose a trial for every method, and say how it did in cross-validation."""
    case, n = run.case, len(run.case.codes)
    predicted = np.empty((n, len(trials)), np.int32)
    sigma = []
    for out, found in _folds(run, trials, count):
        predicted[out] = found.predicted
        sigma.append(found.sigma)
    wrong: list[int] = (predicted != case.codes[:, np.newaxis]).sum(axis=0).tolist()
    best, lines = chosen(trials, wrong), []
    for name, place in best.items():
        values = [value for one in sigma if (value := one[place]) is not None]
        line = line_of(trials[place], float(np.mean(values)) if values else None)
        line |= validated(trials, wrong, n, name)
        if case.test is None:
            table = confusion(case.codes, predicted[:, place], len(case.classes))
            line |= {"error": line["cv_error"], "wrong": wrong[place], "tested": n}
            line["confusion"] = table.tolist()
        lines.append(line)
    return [trials[place] for place in best.values()], lines


def _folds(
    run: Run, trials: list[Trial], count: int
) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.bool_]], Found]]:
    """Classify every fold by what the others teach."""
    case = run.case
    x = case.train.x
    fold = folds_of(case.codes, count, run.seed)
    # Files for the workers stay until a pool closes: large ones get a pool each.
    whole = [list(range(count))]
    groups = whole if x.size < _LARGE else [[one] for one in range(count)]
    for group in groups:
        size = int(np.isin(fold, group).sum())
        with run.pool(trials, size) as pool:
            run.warm(pool, trials)
            with run.stages("validate", size) as on_rows:
                for one in group:
                    out = fold == one
                    part = make_part(
                        x[~out],
                        case.codes[~out],
                        case.learned,
                        x[out],
                        kernel=trials[0].plan.kernel,
                        scale=run.scale,
                        names=(case.train.name,) * 2,
                    )
                    found = run_part(part, trials, pool, seed=run.seed, on_rows=on_rows)
                    yield out, found


def classify_rows(run: Run, test: Features, trials: list[Trial]) -> Found:
    """Learn from all training rows and classify the test rows."""
    case = run.case
    with run.pool(trials, len(test.x)) as pool:
        run.warm(pool, trials)
        with run.stages("test", len(test.x)) as on_rows:
            part = make_part(
                case.train.x,
                case.codes,
                case.learned,
                test.x,
                kernel=trials[0].plan.kernel,
                scale=run.scale,
                names=(case.train.name, test.name),
            )
            return run_part(
                part, trials, pool, seed=run.seed, full=True, on_rows=on_rows
            )
