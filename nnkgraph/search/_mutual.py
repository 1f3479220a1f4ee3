"""All pairs of rows, each multiplied once: a product serves both of its rows.

Rows are cut into groups. A task multiplies two groups and takes the bounds into the
reservoirs of both, so tasks that run at the same time must have no group in common.
What a reservoir holds in the end depends on their order, but what is proven from it
does not: see :mod:`nnkgraph.search.exact`.
"""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.blocks import next_done
from nnkgraph.bounded import worker_share
from nnkgraph.compiled import frozen
from nnkgraph.search import index_dtype
from nnkgraph.search._bounds import COLUMNS, factor_of
from nnkgraph.search._masks import WIDTH
from nnkgraph.search._scan import scan, scan_both

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from nnkgraph.data import FloatArray
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.search._bounds import Part

_GROUPS = 4
"""Groups for each worker: with fewer, workers wait for each other in the end."""

_LARGEST = 65536
"""Rows in a group at most: a pair of groups must be done within a worker's patience."""

_SMALLEST = 2048
"""Rows in a group at least, where there are several."""


_DIAGONAL = 1024
"""Rows that are multiplied with themselves, both ways, to find their first limits."""


@dataclass(frozen=True)
class Reservoirs:
    """The smallest bounds that were seen of every row; see `scan`."""

    value: Shared
    index: Shared
    filled: Shared
    limit: Shared
    keep: int

    def of(self, start: int, stop: int) -> tuple[Any, Any, Any, Any]:
        """Return the arrays of some rows, which can be written."""
        rows = slice(start, stop)
        shared = (self.value, self.index, self.filled, self.limit)
        value, index, filled, limit = (np.asarray(a.open()[rows]) for a in shared)
        return value, index, filled, limit


def kept(most: int, k: int) -> tuple[int, int]:
    """Return how many of ``most`` values a reservoir must keep, and its room."""
    keep = min(most, k + max(8, k // 4))
    return keep, keep + max(keep, 2 * WIDTH)


def empty_reservoirs(pool: Pool, n: int, k: int) -> Reservoirs:
    """Return reservoirs of all rows that every worker can write."""
    keep, room = kept(n - 1, k)
    filled = pool.output((n,), np.int64)
    limit = pool.output((n,), np.float32)
    filled.open()[:] = 0
    limit.open()[:] = np.inf
    value = pool.output((n, room), np.float32)
    index = pool.output((n, room), index_dtype(n))
    return Reservoirs(value, index, filled, limit, keep)


def fill(
    pool: Pool,
    part: Part,
    reservoirs: Reservoirs,
    *,
    block: int,
    on_share: Callable[[float], object],
) -> None:
    """Take the bounds of all pairs into the reservoirs; report the share just done."""
    n = len(part.data.open())
    least = _least_groups(part, reservoirs, worker_share(pool.workers))
    groups = max(
        1, min(max(_GROUPS * pool.workers, least, n // _LARGEST), n // _SMALLEST)
    )
    edges = [n * g // groups for g in range(groups + 1)]
    waiting = [(a, a + step) for step in range(groups) for a in range(groups - step)]
    begun = pool.output((groups, groups), np.bool_)
    begun.open()[:] = False
    running: dict[Future[Any], tuple[int, int]] = {}
    while waiting or running:
        busy = {group for pair in running.values() for group in pair}
        for pair in list(waiting):
            if len(running) >= pool.workers:
                break
            if busy.isdisjoint(pair):
                a, b = pair
                spans = (edges[a], edges[a + 1]), (edges[b], edges[b + 1])
                task = begun, pair, part, reservoirs, *spans, block
                future = pool.submit(_meet_once, *task)
                running[future] = pair
                waiting.remove(pair)
                busy.update(pair)
        for future in next_done(pool, running):
            future.result()
            a, b = running.pop(future)
            on_share((1 if a == b else 2) / groups**2)


def _least_groups(part: Part, reservoirs: Reservoirs, share: int) -> int:
    """Return in how many groups two of them take a half of a worker's memory."""
    parts = (part.data, reservoirs.value, reservoirs.index)
    return -(-4 * sum(one.open().nbytes for one in parts) // share)


def _meet_once(begun: Shared, pair: tuple[int, int], *task: Any) -> None:
    """Multiply two groups, unless somebody has begun to: then all is lost.

    An engine may do a task again, unasked, when the worker that had it is lost. Its
    values would be in the reservoirs twice.
    """
    marks = begun.open()
    if marks[pair]:
        raise BrokenExecutor("a worker was lost")
    marks[pair] = True
    _meet(*task)


def _meet(
    part: Part,
    reservoirs: Reservoirs,
    group: tuple[int, int],
    other: tuple[int, int],
    block: int,
) -> None:
    """Multiply two groups of rows, or one with itself."""
    if group != other:
        _see_each_other(part, reservoirs, group, other, block)
        return
    chunks = _cut(*group, _DIAGONAL)
    for chunk in chunks:
        _see_themselves(part, reservoirs, chunk, block)
    for chunk in chunks[:-1]:
        _see_each_other(part, reservoirs, chunk, (chunk[1], group[1]), block)


def _cut(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    return [(at, min(at + size, stop)) for at in range(start, stop, size)]


def _see_themselves(
    part: Part, reservoirs: Reservoirs, chunk: tuple[int, int], block: int
) -> None:
    """Take rows into each other's reservoirs, both ways at once.

    It costs every product twice, but all of a row's are there at the same time, from
    which it gets a limit to start with.
    """
    data, offset = part.data.open(), frozen(part.offset.open())
    factor = np.float32(factor_of(part.base))
    columns = slice(*chunk)
    for start, stop in _cut(*chunk, block):
        product = (data[start:stop] * factor) @ data[columns].T
        seen = product, offset[columns], chunk[0], np.arange(start, stop)
        scan(*seen, *reservoirs.of(start, stop), reservoirs.keep)


def _see_each_other(
    part: Part,
    reservoirs: Reservoirs,
    group: tuple[int, int],
    other: tuple[int, int],
    block: int,
) -> None:
    """Take rows of two groups into each other's reservoirs."""
    data, offset = part.data.open(), frozen(part.offset.open())
    factor = np.float32(factor_of(part.base))
    buffer = np.empty(block * COLUMNS, np.float32)
    for start, stop in _cut(*group, block):
        queries = data[start:stop] * factor
        mine = reservoirs.of(start, stop)
        for first, last in _cut(*other, COLUMNS):
            product = _multiply(queries, data[first:last], buffer)
            offsets = offset[start:stop], offset[first:last]
            yours = reservoirs.of(first, last)
            scan_both(product, *offsets, start, first, *mine, *yours, reservoirs.keep)


def _multiply(queries: FloatArray, rows: FloatArray, buffer: FloatArray) -> FloatArray:
    shape = len(queries), len(rows)
    out = buffer[: shape[0] * shape[1]].reshape(shape)
    return np.matmul(queries, rows.T, out=out)
