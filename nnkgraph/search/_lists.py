"""Lists of the best candidates of all rows, and the tasks whose findings enter them.

Workers find candidates; only this process writes them down. So a worker may be lost, or
do a task twice, and nothing is seen of it. Workers read lists while they change: they
use them for what a candidate has to be better than, which only gets less.
"""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ResourceError
from nnkgraph.runtime.blocks import TRIES, next_done
from nnkgraph.runtime.executors import Here
from nnkgraph.runtime.jit import compiled, frozen, inner
from nnkgraph.search import index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from nnkgraph.runtime.executors import Pool, Shared


@inner
def is_listed(index: Any, row: int, other: int) -> bool:
    """Return whether a row has another one in its list."""
    found, same = False, index.dtype.type(other)
    for t in range(index.shape[1]):
        found |= index[row, t] == same
    return found


@compiled
def enter(
    rows: Any, others: Any, scores: Any, count: int, index: Any, score: Any
) -> None:
    """Enter findings into sorted lists, each candidate once; the last ones fall out.

    Scores of a pair are always the same number, so that a candidate that is known
    stands where it would be entered.
    """
    last = index.shape[1] - 1
    for e in range(count):
        i, j, s = rows[e], others[e], scores[e]
        if s > score[i, last] or (s == score[i, last] and j >= index[i, last] >= 0):
            continue
        t = last + 1
        while t > 0 and (
            score[i, t - 1] > s or (score[i, t - 1] == s and index[i, t - 1] > j)
        ):
            t -= 1
        if t > 0 and score[i, t - 1] == s and index[i, t - 1] == j:
            continue
        for u in range(last, t, -1):
            score[i, u], index[i, u] = score[i, u - 1], index[i, u - 1]
        score[i, t], index[i, t] = s, j


@dataclass(frozen=True)
class Findings:
    """Candidates that may be better than what their rows have."""

    rows: Any
    others: Any
    scores: Any

    @classmethod
    def room(cls, size: int, kind: Any) -> Findings:
        """Return room for so many."""
        return cls(np.empty(size, kind), np.empty(size, kind), np.empty(size))

    def first(self, count: int) -> Findings:
        """Return the first of them."""
        return Findings(self.rows[:count], self.others[:count], self.scores[:count])

    def copy(self) -> Findings:
        """Return them in memory of their own."""
        return Findings(self.rows.copy(), self.others.copy(), self.scores.copy())


@dataclass(frozen=True)
class Slot:
    """Where a worker leaves findings; empty where it has to return them."""

    rows: Shared
    others: Shared
    scores: Shared

    @classmethod
    def of(cls, pool: Pool, size: int, kind: Any) -> Slot:
        """Return a slot for so many."""
        if pool.returns:
            nothing = Here(np.empty(0))
            return cls(nothing, nothing, nothing)
        return cls(
            pool.output((size,), kind),
            pool.output((size,), kind),
            pool.output((size,), np.float64),
        )

    def open(self) -> Findings:
        """Return what is in it."""
        return Findings(
            np.asarray(self.rows.open()),
            np.asarray(self.others.open()),
            np.asarray(self.scores.open()),
        )


@dataclass(frozen=True)
class Lists:
    """Every row's best k candidates among those it was compared with."""

    index: Shared
    """(n, k) sorted by score, then by row number; -1 where there are none yet."""

    score: Shared
    """(n, k) squared distances or distances; inf where there are none yet."""

    @classmethod
    def empty(cls, pool: Pool, n: int, k: int) -> Lists:
        """Return lists without candidates."""
        index = pool.output((n, k), index_dtype(n))
        score = pool.output((n, k), np.float64)
        index.open()[:] = -1
        score.open()[:] = np.inf
        return cls(index, score)

    def open(self) -> tuple[Any, Any]:
        """Return the arrays: for this process to write, for others to look at."""
        return np.asarray(self.index.open()), np.asarray(self.score.open())

    def seen(self, pool: Pool) -> Lists:
        """Return what workers look at: the lists, or a copy where they see none."""
        if pool.in_place:
            return self
        index, score = (np.array(one) for one in self.open())
        return Lists(pool.share(index), pool.share(score))

    def enter(self, found: Findings, count: int) -> None:
        """Take the first findings."""
        index, score = self.open()
        columns = found.rows, found.others, found.scores
        enter(*map(frozen, columns), count, index, score)


@dataclass(frozen=True)
class Outcome:
    """What a task found, and what is left of it where the room did not suffice."""

    count: int
    rest: Any = None
    found: Findings | None = None
    """The findings, where they are not in the slot of the task."""


class Runner:
    """Does tasks on a pool and enters what they find."""

    def __init__(self, pool: Pool, lists: Lists, room: int) -> None:
        self.pool, self.lists, self.room = pool, lists, room
        self._kind = lists.index.open().dtype
        self._slots = [Slot.of(pool, room, self._kind) for _ in range(2 * pool.workers)]

    def run(
        self,
        function: Callable[..., tuple[int, Any]],
        arguments: Any,
        tasks: Iterable[Any],
        on_task: Callable[[Any], object] = lambda _: None,
    ) -> None:
        """Enter the findings of all tasks, in whatever order they come.

        ``function(arguments, task, findings)`` fills findings, for as many as there is
        room; it returns how many, and the task that is left or None.
        """
        pool, lists, room, kind = self.pool, self.lists, self.room, self._kind
        slots = list(self._slots)
        waiting, deaths = list(tasks)[::-1], 0
        running: dict[Future[Any], tuple[Any, Slot]] = {}
        while waiting or running:
            try:
                while waiting and slots:
                    task = (function, arguments, waiting[-1], slots[-1], room, kind)
                    future = pool.submit(_do, *task)
                    running[future] = waiting.pop(), slots.pop()
                for future in next_done(pool, running):
                    outcome: Outcome = future.result()
                    task, slot = running.pop(future)
                    lists.enter(outcome.found or slot.open(), outcome.count)
                    slots.append(slot)
                    if outcome.rest is not None:
                        waiting.append(outcome.rest)
                    on_task(task)
            except BrokenExecutor as error:
                deaths += 1
                if deaths > TRIES:
                    raise ResourceError(
                        f"workers died {deaths} times; they may have run out of "
                        "memory: use fewer `workers`"
                    ) from error
                for task, slot in running.values():
                    waiting.append(task)
                    slots.append(slot)
                running.clear()
                pool.revive()


def _do(
    function: Any, arguments: Any, task: Any, slot: Slot, room: int, kind: Any
) -> Outcome:
    found = slot.open()
    returned = len(found.rows) == 0
    if returned:
        found = Findings.room(room, kind)
    count, rest = function(arguments, task, found)
    return Outcome(count, rest, found.first(count).copy() if returned else None)
