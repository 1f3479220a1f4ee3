"""The middle stage: weights of all candidate edges, block by block on a pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Candidates, Neighborhoods, SparseGram
from nnkgraph.data.sparse import share_rows, work_columns
from nnkgraph.kernels import Kernel, Problem
from nnkgraph.runtime import blocks, executors

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.methods import Method
    from nnkgraph.runtime.checkpoint import Checkpoint


_BLOCK_SECONDS = 0.1
"""What a block should take: progress is seen, Ctrl-C is heard, little can be lost."""


@dataclass(frozen=True)
class _Task:
    """What every block needs; small, because it travels to the workers."""

    x: Any
    points: Any
    index: executors.Shared
    distance: executors.Shared
    first: executors.Shared | None
    kernel: Kernel
    method: Method
    start: int
    """Which of all rows has the first of the candidates."""

    rows: executors.Shared | None = None
    """Which rows have the candidates, where they do not follow each other."""


def solve(
    pool: executors.Pool,
    x: Any,
    candidates: Candidates,
    *,
    kernel: Kernel,
    method: Method,
    first: IndexArray | None = None,
    points: Any = None,
    start: int = 0,
    rows: IndexArray | None = None,
    k: int = 0,
    block: int = 0,
    on_rows: Callable[[int], object] = lambda _: None,
    checkpoint: Checkpoint | None = None,
) -> Neighborhoods:
    """Weigh every candidate edge, with a fitted kernel.

    The (n, m) candidates are those of the rows from ``start`` on, of some ``rows``, or
    of new ``points``.
    ``first`` has the lowest row with the same values, where there may be identical
    rows, and ``k`` is what was asked for, where a method looks at more candidates. The
    result does not depend on ``block``, the rows that are sent to a worker at once. A
    method that looks at all nodes at once keeps nothing in the checkpoint.
    """
    if not method.local:
        known = candidates.index, candidates.distance, kernel, np.arange(len(x))
        return method.weigh(Problem(x, x, *known, k=k, on_step=on_rows))
    n, m = candidates.index.shape
    task = _Task(
        share_rows(pool, x),
        None if points is None else share_rows(pool, points),
        pool.share(candidates.index),
        pool.share(candidates.distance),
        None if first is None else pool.share(first),
        kernel,
        method,
        start,
        None if rows is None else pool.share(rows),
    )
    weights = pool.output((n, m), np.float64)
    others = [
        pool.output((n,), np.float64) if wanted else None
        for wanted in (method.has_error, method.has_certificate)
    ]
    blocks.run(
        pool,
        _weigh_block,
        task,
        (weights, *others),
        rows=n,
        first=start,
        block=block or _block_rows(n, m, work_columns(x), pool.workers, checkpoint),
        on_rows=on_rows,
        kept=blocks.kept_in(checkpoint, "solve"),
    )
    errors, certificate = (
        None if one is None else np.array(one.open()) for one in others
    )
    return Neighborhoods(weights.open(), errors, certificate)


def row_seconds(m: int, d: int) -> float:
    """Return what a node with m candidates of d features takes, roughly."""
    return 1e-7 + m * m * (5e-10 + 7e-11 * d)


def _block_rows(
    n: int, m: int, d: int, workers: int, checkpoint: Checkpoint | None
) -> int:
    """Return a block size that gives every worker equally many blocks."""
    most = max(16, min(4096, round(_BLOCK_SECONDS / row_seconds(m, d))))
    if checkpoint:
        return most  # whatever the number of workers
    rounds = max(1, -(-n // (most * workers)))
    return max(1, -(-n // (rounds * workers)))


def _weigh_block(
    task: _Task, start: int, stop: int
) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    x = task.x.open()
    rows: slice | IndexArray = slice(start, stop)
    part = slice(start - task.start, stop - task.start)
    known = task.index.open()[part], task.distance.open()[part], task.kernel
    if task.points is not None:
        problem = Problem(x, task.points.open()[part], *known)
    elif task.rows is not None:
        rows = np.array(task.rows.open()[part])
        problem = Problem(x, x[rows], *known, rows)
    else:
        queries = None if isinstance(x, SparseGram) else x[rows]
        problem = Problem(x, queries, *known, np.arange(start, stop))
    if task.first is None or not task.method.has_error:
        found = task.method.weigh(problem)
    else:
        found = weigh_with_copies(task.method, problem, task.first.open(), rows)
    return found.weights, found.errors, found.certificate


def weigh_with_copies(
    method: Method, problem: Problem, first: IndexArray, rows: slice | IndexArray
) -> Neighborhoods:
    """Weigh with identical candidates counted as one: the one of lowest index.

    A candidate identical to the node itself explains it perfectly: it gets weight 1,
    and the error is zero.
    """
    index = problem.index
    same_as = np.where(
        index >= 0, first[np.maximum(index, 0)], -1 - np.arange(index.shape[1])
    )
    order = np.argsort(same_as, axis=1, kind="stable")
    ordered = np.take_along_axis(same_as, order, axis=1)
    again = np.zeros(index.shape, np.bool_)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    repeated = np.zeros(index.shape, np.bool_)
    np.put_along_axis(repeated, order, again, axis=1)

    found = method.weigh(replace(problem, index=np.where(repeated, -1, index)))
    twin = (same_as == first[rows][:, np.newaxis]) & ~repeated
    copied = twin.any(axis=1)
    found.weights[copied] = twin[copied]
    for values in (found.errors, found.certificate):
        if values is not None:
            values[copied] = 0.0
    return found
