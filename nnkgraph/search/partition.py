"""Approximate search made of exact searches in overlapping groups of rows.

Rows gather around leaders; inside a group every pair is compared. A sample of rows whose
neighbors are known says beforehand how many groups a row has to be in, and afterwards
whether the neighbors of neighbors, or other leaders, have to be looked at as well. All
of it follows from the values, k, the recall that is wanted, and the seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import Candidates, SparseRows
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.data.sparse import share_rows, work_columns
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.search import Memory, Plain, distance_of, index_dtype, ranked
from nnkgraph.search import _lists as lists_of
from nnkgraph.search._groups import GroupInputs, search_groups
from nnkgraph.search._leaders import cut_groups, drawn, groups_of, nearest_leaders
from nnkgraph.search._lists import Lists
from nnkgraph.search._pilot import Costs, Plan, Truth, plan_of
from nnkgraph.search._products import reservoir_size, scale_exponent
from nnkgraph.search._refine import mark_new, refine_rows, share_pass
from nnkgraph.search.exact import Exact, nearest

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted

MOST = 6000
"""Rows in a group at most."""

_ONE_GROUP = 4096
"""So many rows are one group: an exact search."""

_ROWS = 1024
"""Rows whose neighbors' neighbors are a task."""

_ROOM = 1 << 18
"""Findings that a task of refinement has room for, at least."""


@dataclass(frozen=True)
class Partition(Plain):
    """Approximate, by exact searches in overlapping groups, to a recall that is wanted.

    The same bytes wherever and however it is computed; recall is estimated and said.
    """

    takes_sparse: ClassVar[bool] = True

    recall: float = 0.99
    """The share of the true neighbors that is to be found."""

    def __post_init__(self) -> None:
        if not 0.0 < self.recall <= 1.0:
            raise ParameterError(
                f"search 'partition': recall must be above 0 and at most 1, not "
                f"{self.recall}"
            )

    def memory(self, n: int, d: int, k: int, base: str, /, *, some: bool) -> Memory:
        """Return what the lists of a pass of refinement take, and a copy of the rows."""
        del some, base
        return Memory(files=n * k * 9 + n * d * 4)

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search in groups, refine, and estimate what was found."""
        if wanted.base not in DISTANCES:
            raise ParameterError(
                "search 'partition' finds nearest rows only; a kernel without "
                "distances needs search 'exact'"
            )
        n, d = wanted.x.shape
        costs = Costs(n, work_columns(wanted.x), wanted.k, wanted.base)
        if n <= _ONE_GROUP or self.recall == 1.0:
            return _exactly(wanted, "all rows are one group")
        truth = Truth.of(wanted)
        plan = plan_of(wanted, truth, costs, self.recall)
        if plan is None:
            return _exactly(wanted, f"for {n} x {d} it costs less than groups")
        work = _Work(wanted, truth, plan, costs)
        work.run(self.recall)
        index, score = work.lists.open()
        _complete(wanted, index, score)
        recall, low, high = truth.estimate(score)
        return Candidates(
            index,
            distance_of(score, wanted.base),
            backend=registry.spec(self),
            exact=False,
            recall=recall,
            recall_interval=(low, high),
            notes=(work.note,),
        )


def _exactly(wanted: Wanted, why: str) -> Candidates:
    found = Exact().find(wanted)
    note = f"search: exact was taken instead of partition ({why})"
    return replace(found, notes=(note, *found.notes))


def _complete(wanted: Wanted, index: IndexArray, score: FloatArray) -> None:
    """Search rows exactly that met too few others."""
    short = np.flatnonzero(index[:, -1] < 0)
    for start in range(0, len(short), wanted.block):
        rows = short[start : start + wanted.block]
        found = nearest(wanted, rows)
        index[rows], score[rows] = ranked(wanted.x, wanted.x[rows], found, wanted.base)


class _Work:
    """The rounds and passes of one search."""

    def __init__(self, wanted: Wanted, truth: Truth, plan: Plan, costs: Costs) -> None:
        self.wanted, self.truth, self.plan, self.costs = wanted, truth, plan, costs
        n, k, pool = len(wanted.x), wanted.k, wanted.pool
        self.lists = Lists.empty(pool, n, k)
        self.x: Any = share_rows(pool, wanted.x)
        self.order: Any = np.arange(n, dtype=index_dtype(n))
        self.before: Any = None
        self.rounds = self.passes = 0
        self.spent = 0.0
        self.told = 0

    @property
    def recall(self) -> float:
        """The share of the sample's neighbors that were found."""
        return self.truth.steering(self.lists.open()[1])

    @property
    def note(self) -> str:
        """What was done."""
        plan = self.plan
        return (
            f"search: every row in {plan.many} groups of {plan.leaders} leaders, "
            f"{self.rounds} times; neighbors of neighbors {self.passes} times"
        )

    def run(self, target: float) -> None:
        """Do what was planned, and then what else is needed to reach a recall."""
        for _ in range(self.plan.rounds):
            self.do_round()
        gain = 1.0
        recall = self.recall
        while recall < target and self.spent < self.costs.exact:
            # Neighbors of neighbors are worth it while they find a third of the rest.
            if gain > 0.3 and not isinstance(self.wanted.x, SparseRows):
                self.do_pass()
            else:
                self.do_round()
            now = self.recall
            gain = 1.0 if gain <= 0.3 else (now - recall) / (1.0 - recall)
            recall = now
        self.tell(1.0)

    def tell(self, share: float) -> None:
        """Report how much of all work is done, in rows."""
        n = len(self.wanted.x)
        rows = min(n, int(n * share))
        self.wanted.on_rows(max(0, rows - self.told))
        self.told = max(self.told, rows)

    def _on_cost(self, cost: float) -> None:
        self.spent += cost
        self.tell(min(0.99, self.spent / (self.plan.cost + self.costs.refine(1.0))))

    def do_round(self) -> None:
        """Search the groups of the next leaders."""
        wanted, plan = self.wanted, self.plan
        pool, n, words = wanted.pool, len(wanted.x), (wanted.seed, self.rounds)
        leaders = drawn(plan.leaders, np.arange(n), *words)
        member = nearest_leaders(wanted, leaders, plan.many, words)
        if self.rounds == 0:
            self.order = np.argsort(member[:, 0], kind="stable").astype(self.order.dtype)
        self._on_cost(self.costs.leaders(plan.leaders))
        rows, edges = groups_of(member, plan.many, len(leaders))
        rows, edges = cut_groups(wanted, rows, edges, MOST, words)
        inputs = GroupInputs(
            self.x, pool.share(rows), self.lists.seen(pool), wanted.base, wanted.k
        )
        tasks = _tasks(edges)
        keep, _ = reservoir_size(MOST, wanted.k)
        lists_of.run(
            pool,
            search_groups,
            inputs,
            tasks,
            self.lists,
            room=MOST * keep,
            on_task=lambda task: self._on_cost(self.costs.groups(task)),
        )
        self.rounds += 1

    def do_pass(self) -> None:
        """Compare the neighbors of neighbors that are new."""
        wanted, pool, n = self.wanted, self.wanted.pool, len(self.wanted.x)
        index = self.lists.open()[0].copy()
        new = np.empty(index.shape, np.bool_)
        if self.before is None:
            self.before = np.full_like(index, -1)
        count = mark_new(self.before, index, new)
        self.before = index
        exponent = scale_exponent(wanted.x, np.zeros(wanted.x.shape[1]))
        inputs = share_pass(
            pool, self.x, self.order, index, new, self.lists, wanted.base, exponent
        )
        tasks = [(at, min(at + _ROWS, n), 0) for at in range(0, n, _ROWS)]
        cost = self.costs.refine(count / index.size) / len(tasks)
        lists_of.run(
            pool,
            refine_rows,
            inputs,
            tasks,
            self.lists,
            room=max(_ROOM, 16 * (wanted.k + 64)),
            on_task=lambda _: self._on_cost(cost),
        )
        self.passes += 1


def _tasks(edges: IndexArray) -> list[list[tuple[int, int]]]:
    """Return groups, given by where they begin and end, a few rows at a time."""
    tasks: list[list[tuple[int, int]]] = [[]]
    size = 0
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if stop - start < 2:
            continue
        if size + stop - start > MOST:
            tasks.append([])
            size = 0
        tasks[-1].append((start, stop))
        size += stop - start
    return tasks if tasks[0] else []


plugin: type[Search] = Partition
