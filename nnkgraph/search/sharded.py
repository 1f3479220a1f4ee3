"""Approximate search in parts, for more rows than one index has room for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import blocks, registry
from nnkgraph.errors import ParameterError
from nnkgraph.search import index_dtype
from nnkgraph.search._combine import best_of
from nnkgraph.search._descent import Frame, check_base, mended
from nnkgraph.search._part import Parted, answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.search import Search, Wanted

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
        return mended(wanted, index, score, registry.spec(resolved), self.threads)

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

    def task(self, wanted: Wanted) -> Parted:
        """Return what a worker needs to know about any part."""
        return Parted(
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

    task: Parted
    first: int
    answers: _Lists | None
    """None where workers cannot write to them; then they return them."""


def _run(
    wanted: Wanted,
    task: Parted,
    first: int,
    answers: _Lists,
    count: int,
    told: Callable[[int], None],
) -> None:
    with blocks.unhurried(wanted.pool):  # a part may take hours
        blocks.run(
            wanted.pool,
            _ask,
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


def _ask(round_: _Round, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
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
        answer(task, round_.first + at, index[at - start], score[at - start])
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
