"""Approximate search in parts, for more rows than one index has room for."""

from __future__ import annotations

import dataclasses
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import blocks, registry
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import Wanted, index_dtype, ranked
from nnkgraph.search._descent import (
    Frame,
    build_index,
    check_base,
    completed,
    warm_start,
)
from nnkgraph.search.exact import nearest_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.runtime.executors import Shared

    Near = Callable[[FloatArray, IndexArray, IndexArray], IndexArray]
    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.runtime.executors import Pool
    from nnkgraph.search import Search


@compiled
def _merge_rows(
    index: Any, score: Any, other: Any, others: Any, best: Any, value: Any
) -> None:
    """Merge two lists in order, row by row, and keep as many as there is room for."""
    for i in range(best.shape[0]):
        a = b = 0
        for t in range(best.shape[1]):
            left, right = a < index.shape[1], b < other.shape[1]
            if left and right:
                x, y = score[i, a], others[i, b]
                left = x < y or (x == y and index[i, a] < other[i, b])
            if left:
                best[i, t], value[i, t] = index[i, a], score[i, a]
                a += 1
            elif right:
                best[i, t], value[i, t] = other[i, b], others[i, b]
                b += 1
            else:
                best[i, t], value[i, t] = -1, np.inf


def best_of(
    lists: Sequence[tuple[IndexArray, FloatArray]], k: int
) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of every row, from lists that share none.

    Neither the order of the lists nor how candidates are spread over them matters:
    the best have the lowest scores, and the lowest row numbers among equals.

    Parameters
    ----------
    lists : sequence of pairs
        (n, m) row numbers, -1 where one is missing, and their scores, inf there; in
        the order of score and row number. Every list may have its own m.
    """
    n = len(lists[0][0])
    dtype = lists[0][0].dtype
    best, value = np.empty((n, 0), dtype), np.empty((n, 0))
    for index, score in lists:
        merged, scores = np.empty((n, k), dtype), np.empty((n, k))
        _merge_rows(
            frozen(best), frozen(value), frozen(index), frozen(score), merged, scores
        )
        best, value = merged, scores
    return best, value


_PART_ROWS = 4096
"""Rows that ask at once: a constant, because answers depend on it."""

_BEAM = 15
"""Candidates that an index is asked for at least: with fewer it looks too narrowly."""

_FEW = 1000
"""A part of fewer rows is searched exactly: that is faster."""

_ALONE = threading.Lock()
"""pynndescent is not made for several threads of one process."""


@dataclass(frozen=True)
class PartSearch:
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


def search_part(
    task: PartSearch, part: int, index: IndexArray, score: FloatArray
) -> None:
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
        near = (
            _search_exactly(task, data)
            if len(own) < _FEW
            else _search_approximately(task, data)
        )
        for start in range(0, len(x), _PART_ROWS):
            rows = slice(start, min(start + _PART_ROWS, len(x)))
            first, last = np.searchsorted(own, [rows.start, rows.stop])
            mine = np.arange(first, last)
            local = near(x[rows], own[mine] - start, mine)
            local, value = ranked(data, x[rows], local, task.base)
            width = min(task.width, local.shape[1])
            index[rows], score[rows] = -1, np.inf
            found = local[:, :width]
            index[rows, :width] = np.where(found < 0, -1, own[found])
            score[rows, :width] = value[:, :width]


def _search_approximately(task: PartSearch, data: FloatArray) -> Near:
    """Return what answers by an index, approximately."""
    asked = min(max(task.width, _BEAM), len(data))
    with warm_start():
        index = build_index(
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


def _search_exactly(task: PartSearch, data: FloatArray) -> Near:
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


_ROWS = 1_000_000
"""Rows of a part, where nobody says how many parts there are."""

_LISTED = 1 << 20
"""Candidates that are combined at once."""


@dataclass(frozen=True)
class Sharded:
    """Approximate, a pynndescent index for each part; a worker needs room for one."""

    parts: int = 0
    """How many, each a task for a worker; 0 makes parts of at most a million rows."""

    threads: int = 1
    """Threads of a task, which influence the result."""

    n_trees: int = 0
    """Random projection trees of a part; 0 leaves it to pynndescent."""

    n_iters: int = 0
    """Rounds of descent in a part; 0 leaves it to pynndescent."""

    epsilon: float = 0.2
    """How much farther than the best found a query goes on looking."""

    def __post_init__(self) -> None:
        if min(self.parts, self.n_trees, self.n_iters) < 0 or self.threads < 1:
            raise ParameterError(
                "search 'sharded': threads must be at least 1, and other parameters "
                "must not be negative"
            )
        if not 0.0 <= self.epsilon <= 1.0:
            raise ParameterError("search 'sharded': epsilon must be between 0 and 1")

    def parts_of(self, n: int) -> int:
        """Return how many parts n rows are dealt out to."""
        return self.parts or -(-n // _ROWS)

    def find(self, wanted: Wanted, /) -> Candidates:
        """Ask every part about every row, and keep the best.

        Parts are asked in rounds of as many as there are workers, so that the answers
        that wait to be combined are few.
        """
        check_base(wanted, "sharded")
        n, k = len(wanted.x), wanted.k
        resolved = dataclasses.replace(self, parts=self.parts_of(n))
        task = resolved.task(wanted)
        # A checkpoint keeps the answers of all parts, and so they are asked at once.
        some = task.parts if wanted.checkpoint else min(task.parts, wanted.pool.workers)
        answers = _Lists.new(wanted, (some, n, task.width))
        best, spare = (_Lists.new(wanted, (n, k)) for _ in range(2))
        for first in range(0, task.parts, some):
            count = min(some, task.parts - first)
            told = _in_rows(wanted, task.parts, first)
            _run(wanted, task, first, answers, count, told)
            given = answers, count, best if first else None, k
            _run_combine(wanted.pool, given, spare.outputs, n)
            best, spare = spare, best
        index, score = (np.array(one.open()) for one in best.outputs)
        return completed(wanted, index, score, registry.spec(resolved), self.threads)

    def find_part(self, wanted: Wanted, part: int) -> tuple[IndexArray, FloatArray]:
        """Return the best candidates of every row among those of one part.

        ``best_of`` the lists of all parts, mended, is what ``find`` returns.
        """
        check_base(wanted, "sharded")
        task = self.task(wanted)
        answers = _Lists.new(wanted, (1, len(wanted.x), task.width))
        _run(wanted, task, part, answers, 1, _in_rows(wanted, 1, 0))
        index, score = (np.array(one.open()[0]) for one in answers.outputs)
        return index, score

    def task(self, wanted: Wanted) -> PartSearch:
        """Return what a worker needs to know about any part."""
        return PartSearch(
            wanted.pool.share(wanted.x),
            Frame.of(wanted.x),
            self.parts,
            wanted.k,
            wanted.base,
            wanted.seed,
            self.threads,
            self.n_trees,
            self.n_iters,
            self.epsilon,
        )


@dataclass(frozen=True)
class _Lists:
    """Lists of candidates that every worker can open."""

    index: Shared
    score: Shared

    @classmethod
    def new(cls, wanted: Wanted, shape: tuple[int, ...]) -> _Lists:
        dtype = index_dtype(len(wanted.x))
        return cls(wanted.pool.output(shape, dtype), wanted.pool.output(shape, float))

    @property
    def outputs(self) -> tuple[Shared, Shared]:
        return self.index, self.score


@dataclass(frozen=True)
class _Round:
    """Parts that are asked at the same time, and where their answers go."""

    task: PartSearch
    first: int
    answers: _Lists | None
    """None where workers cannot write to them; then they return them."""


def _run(
    wanted: Wanted,
    task: PartSearch,
    first: int,
    answers: _Lists,
    count: int,
    told: Callable[[int], None],
) -> None:
    with blocks.without_timeout(wanted.pool):  # a part may take hours
        blocks.run(
            wanted.pool,
            _search_parts,
            _Round(task, first, answers if wanted.pool.in_place else None),
            answers.outputs,
            rows=count,
            block=1,
            on_rows=told,
            kept=blocks.kept_in(wanted.checkpoint, "search"),
        )


def _run_combine(
    pool: Pool, given: _Given, outputs: tuple[Shared, Shared], n: int
) -> None:
    block = max(1, _LISTED // given[-1])
    if pool.in_place:
        blocks.run(pool, _combine, given, outputs, rows=n, block=block)
        return
    # Workers on other machines would not see what was written here.
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        found = _combine(given, rows.start, rows.stop)
        for output, result in zip(outputs, found, strict=True):
            output.open()[rows] = result


_Given = tuple[_Lists, int, _Lists | None, int]
"""Answers, of how many parts, the best of the parts before, and how many to keep."""


def _search_parts(
    round_: _Round, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    # Answers are written where they belong block by block, because all of them may be
    # more than a worker has room for.
    task, answers = round_.task, round_.answers
    if answers is None:
        n = len(task.x.open())
        shape = (stop - start, n, task.width)
        index, score = np.empty(shape, index_dtype(n)), np.empty(shape)
    else:
        index, score = (one.open()[start:stop] for one in answers.outputs)
    for at in range(start, stop):
        search_part(task, round_.first + at, index[at - start], score[at - start])
    return index, score


def _combine(given: _Given, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    """Return the best of some rows, of this round and those before."""
    answers, count, best, k = given
    rows = slice(start, stop)
    index, score = (one.open() for one in answers.outputs)
    lists = [(index[at, rows], score[at, rows]) for at in range(count)]
    if best is not None:
        lists.append((best.index.open()[rows], best.score.open()[rows]))
    return best_of(lists, k)


def _in_rows(wanted: Wanted, parts: int, done: int) -> Callable[[int], None]:
    """Return what hears of finished parts and tells of as many rows."""
    n = len(wanted.x)

    def hear(count: int) -> None:
        nonlocal done
        wanted.on_rows(n * (done + count) // parts - n * done // parts)
        done += count

    return hear


plugin: type[Search] = Sharded
