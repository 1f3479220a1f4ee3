"""One part of the rows learns, another is classified: one search for all trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import blocks
from nnkgraph.duplicates import distinct_rows
from nnkgraph.errors import InputError
from nnkgraph.find import wanted_of
from nnkgraph.neighborhoods import row_seconds
from nnkgraph.problem import Problem
from nnkgraph.query import twins, with_twins
from nnkgraph.scaling import Scaling
from nnkgraph.search.auto import Auto
from nnkgraph.search.exact import nearest_to
from nnkgraph.tasks.classify._votes import class_weights, shares_of_classes, winners

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.kernels import Kernel
    from nnkgraph.tasks.classify._trials import Trial

_BLOCK_SECONDS = 0.2


@dataclass(frozen=True)
class Part:
    """Rows that learn and rows that are classified, as the kernel sees them."""

    rows: Rows
    shares: Any
    """(n, classes) csr: which share of the copies of a row has which class."""

    points: FloatArray
    twin: IndexArray


@dataclass(frozen=True)
class Found:
    """What every trial says about every point: (points, trials) arrays."""

    predicted: IndexArray
    neighbors: IndexArray
    """How many rows have a weight; the nearest one decides where there are none."""

    sigma: list[float | None]
    """The bandwidth of every trial."""

    weights: FloatArray | None = None
    """(points, trials, classes) shares of the classes, which sum to 1."""

    errors: FloatArray | None = None
    """J, NaN where a method has none."""

    certificate: FloatArray | None = None


@dataclass(frozen=True)
class _Task:
    """What every block needs; small, because it travels to the workers."""

    x: Shared
    points: Shared
    index: Shared
    distance: Shared
    twin: Shared
    shares: tuple[Shared, ...]
    classes: int
    trials: tuple[Trial, ...]
    full: bool


def make_part(
    x: Any,
    codes: IndexArray,
    classes: int,
    points: Any,
    *,
    kernel: Kernel,
    scale: str,
    names: tuple[str, str],
) -> Part:
    """Scale by the rows that learn, and put their copies together."""
    scaling = Scaling.of(x, scale)
    x = kernel.prepare(scaling.applied(x, names[0]), names[0])
    points = kernel.prepare(scaling.applied(points, names[1]), names[1])
    dtype = np.result_type(x, points)
    x, points = x.astype(dtype, copy=False), points.astype(dtype, copy=False)
    rows = distinct_rows(x, "merge", names[0])
    shares = shares_of_classes(rows, codes, classes)
    return Part(rows, shares, points, twins(rows.x, points))


def run_part(
    part: Part,
    trials: list[Trial],
    pool: Pool,
    *,
    seed: int,
    full: bool = False,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Found:
    """Search once with the largest k, then classify every point by every trial."""
    # Shared once: what is a map of a file already is not written again.
    part = replace(part, rows=replace(part.rows, x=pool.share(part.rows.x).open()))
    plan, x = trials[0].plan, part.rows.x
    width = min(max(trial.k for trial in trials), len(x))
    found = nearest_to(wanted_of(plan, part.rows, width, pool, seed), part.points)
    fitted = _fitted(part.rows, trials, width, pool, seed)
    n, t, c = len(part.points), len(trials), part.shares.shape[1]
    task = _Task(
        pool.share(x),
        pool.share(part.points),
        pool.share(found.index),
        pool.share(found.distance),
        pool.share(part.twin),
        tuple(
            pool.share(one)
            for one in (part.shares.data, part.shares.indices, part.shares.indptr)
        ),
        c,
        tuple(fitted),
        full,
    )
    outputs = [pool.output((n, t), np.int32), pool.output((n, t), np.int32)]
    if full:
        shapes = ((n, t, c), (n, t), (n, t))
        outputs += [pool.output(shape, np.float64) for shape in shapes]
    seconds = sum(row_seconds(trial.k, x.shape[1]) for trial in trials)
    block = int(np.clip(_BLOCK_SECONDS / seconds, 16, 1024))
    blocks.run(pool, _block, task, tuple(outputs), rows=n, block=block, on_rows=on_rows)
    sigma = [
        trial.plan.kernel.bandwidth(_cut(found, trial.k))
        if trial.plan.method.uses_kernel
        else None
        for trial in fitted
    ]
    predicted, neighbors, *more = (np.array(one.open()) for one in outputs)
    return Found(predicted, neighbors, sigma, *more)


def _fitted(
    rows: Rows, trials: list[Trial], width: int, pool: Pool, seed: int
) -> list[Trial]:
    """Apply rules for the bandwidth to the distances among the rows that learn."""
    plan, width = trials[0].plan, min(width, len(rows.x) - 1)
    kernels: dict[tuple[Any, int], Kernel] = {}
    own: Candidates | None = None
    for trial in trials:
        kernel = trial.plan.kernel
        rule = getattr(kernel, "sigma", None)
        idle = not trial.plan.method.uses_kernel
        if idle or not isinstance(rule, str) or rule == "local":
            kernels[kernel, trial.k] = kernel
            continue
        if own is None:
            if not width:
                raise InputError(
                    "only one training row is distinct: it has no distances to take "
                    "sigma from: give one"
                )
            own = Auto().find(wanted_of(plan, rows, width, pool, seed))
        if (kernel, trial.k) not in kernels:
            kernels[kernel, trial.k] = kernel.fit(_cut(own, trial.k))
    return [
        replace(trial, plan=replace(trial.plan, kernel=kernels[trial.plan.kernel, k]))
        for trial in trials
        for k in (trial.k,)
    ]


def _cut(found: Candidates, k: int) -> Candidates:
    """Return the k best of all candidates."""
    return replace(found, index=found.index[:, :k], distance=found.distance[:, :k])


def _block(task: _Task, start: int, stop: int) -> tuple[Any, ...]:
    """Classify some points by every trial."""
    rows, n, t = slice(start, stop), stop - start, len(task.trials)
    x, points = task.x.open(), task.points.open()[rows]
    twin = np.asarray(task.twin.open()[rows])
    shares = tuple(np.asarray(one.open()) for one in task.shares)
    predicted, neighbors = np.empty((2, n, t), np.int32)
    weights = np.empty((n, t, task.classes)) if task.full else None
    errors, certificate = np.full((2, n, t), np.nan)
    for at, trial in enumerate(task.trials):
        method, kernel = trial.plan.method, trial.plan.kernel
        index, distance = (
            np.ascontiguousarray(one.open()[rows, : trial.k])
            for one in (task.index, task.distance)
        )
        found = method.weigh(Problem(x, points, index, distance, kernel))
        found = with_twins(found, index, twin, has_error=method.has_error)
        votes = class_weights(found.weights, index, shares, task.classes)
        predicted[:, at] = winners(votes)
        neighbors[:, at] = (found.weights > 0).sum(axis=1)
        if weights is not None:
            weights[:, at] = votes
        if found.errors is not None:
            errors[:, at] = found.errors
        if found.certificate is not None:
            certificate[:, at] = found.certificate
    result = predicted, neighbors
    return (*result, weights, errors, certificate) if task.full else result
