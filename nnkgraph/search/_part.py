"""One part of the rows: which they are, and its answers to all rows."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import registry
from nnkgraph.search import Wanted, index_dtype, ranked
from nnkgraph.search._descent import Frame, descended
from nnkgraph.search._warm_start import warm_start
from nnkgraph.search.exact import nearest_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Shared

    # From some rows, which of them are the part's own, and which rows of it those are.
    Near = Callable[[FloatArray, IndexArray, IndexArray], IndexArray]

_ROWS = 4096
"""Rows that ask at once: a constant, because answers depend on it."""

_BEAM = 15
"""Candidates that an index is asked for at least: with fewer it looks too narrowly."""

_FEW = 1000
"""A part of fewer rows is searched exactly: that is faster."""

_ALONE = threading.Lock()
"""pynndescent is not made for several threads of one process."""


@dataclass(frozen=True)
class Parted:
    """Rows in parts; small, because it travels to the workers."""

    x: Shared
    frame: Frame
    parts: int
    k: int
    base: str
    seed: int
    threads: int
    n_trees: int
    n_iters: int
    epsilon: float

    @property
    def width(self) -> int:
        """How many candidates a part returns for a row."""
        return width_of(self.k, self.parts)


def width_of(k: int, parts: int) -> int:
    """Return how many candidates of a row a part has to know.

    Rows are dealt out at random, so that a part holds a binomial number of the k best:
    more than this in one of ten thousand cases.
    """
    share = k / parts
    more = 4.0 * math.sqrt(share * (1.0 - 1.0 / parts))
    return min(k, math.ceil(share + more))


def rows_of_part(n: int, parts: int, part: int, seed: int) -> IndexArray:
    """Return the rows of a part, in order.

    They are dealt out by a hash of their number, and not in one piece: parts are then
    alike however the rows are sorted. A query that is far from all rows of a part
    would look at all of them, and one whose neighbors are all in one part would need
    k answers of each.
    """
    found = []
    for start in range(0, n, 1 << 20):
        z = np.arange(start, min(n, start + (1 << 20)), dtype=np.uint64)
        z = (z + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        found.append(np.flatnonzero(z % np.uint64(parts) == part) + start)
    return np.concatenate(found).astype(index_dtype(n))


def answer(task: Parted, part: int, index: IndexArray, score: FloatArray) -> None:
    """Write a part's best candidates of all rows, never the row itself.

    Parameters
    ----------
    index, score : (n, width) arrays
        Row numbers and scores, in order; -1 and inf where there is none.
    """
    x = task.x.open()
    own = rows_of_part(len(x), task.parts, part, task.seed)
    if not len(own):
        index[:], score[:] = -1, np.inf
        return
    data = np.ascontiguousarray(x[own])
    with _ALONE:
        near = _exactly(task, data) if len(own) < _FEW else _by_descent(task, data)
        for start in range(0, len(x), _ROWS):
            rows = slice(start, min(start + _ROWS, len(x)))
            first, last = np.searchsorted(own, [rows.start, rows.stop])
            mine = np.arange(first, last)
            local = near(x[rows], own[mine] - start, mine)
            local, value = ranked(data, x[rows], local, task.base)
            width = min(task.width, local.shape[1])
            index[rows], score[rows] = -1, np.inf
            found = local[:, :width]
            index[rows, :width] = np.where(found < 0, -1, own[found])
            score[rows, :width] = value[:, :width]


def _by_descent(task: Parted, data: FloatArray) -> Near:
    """Return what answers by an index, approximately."""
    asked = min(max(task.width, _BEAM), len(data))
    with warm_start():
        index = descended(
            task.frame(data),
            min(task.k, len(data) - 1) + 1,
            task.base,
            threads=task.threads,
            n_trees=task.n_trees,
            n_iters=task.n_iters,
            seed=task.seed,
        )
        # What it knows of its own rows, each of which comes first in its own list.
        graph = np.asarray(index.neighbor_graph[0])[:, : asked + 1]
        index.prepare()

    def near(rows: FloatArray, which: IndexArray, mine: IndexArray) -> IndexArray:
        found = np.full((len(rows), asked + 1), -1, np.int32)
        other = np.ones(len(rows), bool)
        other[which] = False
        if other.any():
            queries = task.frame(rows[other])
            found[other, :asked] = index.query(queries, asked, task.epsilon)[0]
        found[which, : graph.shape[1]] = _without(graph[mine], mine)
        return found

    return near


def _exactly(task: Parted, data: FloatArray) -> Near:
    """Return what answers by looking at all rows."""
    serial = registry.create("executors", "serial")

    def near(rows: FloatArray, which: IndexArray, mine: IndexArray) -> IndexArray:
        with serial.open(1) as pool:
            wanted = Wanted(data, min(task.width + 1, len(data)), task.base, pool)
            found = nearest_to(wanted, rows).index
        found[which] = _without(found[which], mine)
        return found

    return near


def _without(index: IndexArray, mine: IndexArray) -> IndexArray:
    return np.where(index == mine[:, np.newaxis], -1, index)
