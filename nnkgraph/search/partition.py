"""Approximate search made of exact searches in overlapping groups of rows.

Rows gather around leaders; inside a group every pair is compared. A sample of rows
whose neighbors are known says beforehand how many groups a row has to be in, and
afterwards whether the neighbors of neighbors, or other leaders, have to be looked at as
well. All of it follows from the values, k, the recall that is wanted, and the seed.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import Candidates, SparseRows
from nnkgraph.data.pairs import GEOMETRIC
from nnkgraph.data.sparse import share_rows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.checkpoint import Block
from nnkgraph.runtime.jit import frozen
from nnkgraph.search import Memory, Plain, distance_of, index_dtype, ranked
from nnkgraph.search._groups import (
    GroupInputs,
    QueryInputs,
    answer_queries,
    search_groups,
)
from nnkgraph.search._leaders import cut_groups, drawn, groups_of, nearest_leaders
from nnkgraph.search._lists import Findings, Lists, Runner
from nnkgraph.search._pilot import (
    Truth,
    aim_of,
    enough_of,
    plan_of,
    query_price,
    whole_price,
)
from nnkgraph.search._products import reservoir_size, scale_exponent
from nnkgraph.search._refine import mark_new, refine_rows, share_pass, turned
from nnkgraph.search.auto import Costs, Plan
from nnkgraph.search.exact import Exact, interval, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted

MOST = 6000
"""Rows in a group at most."""

_ONE_GROUP = 4096
"""So many rows are one group: an exact search."""

_ROWS = 1024
"""Rows whose neighbors' neighbors are a task."""

_ROUND, _PASS = "r", "p"
"""Leaders and their groups; neighbors of neighbors."""

_WORTH_IT = 0.3
"""Passes go on while they find more than this of what is missing."""

_CHEAPER = 0.6
"""Groups have to cost less than this part of an exact search: samples cost as well."""

_PARTS = 16
"""Parts of a step after which a checkpoint may be written."""

_EVERY = 20.0
"""Seconds between two times that a checkpoint is written, at least."""


@dataclass(frozen=True)
class Partition(Plain):
    """Approximate, by exact searches in overlapping groups, to a recall that is wanted.

    The same bytes wherever and however it is computed; recall is estimated and said.
    """

    by_groups: ClassVar[bool] = True
    answers_queries: ClassVar[bool] = True
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
        """Return what lists of a pass of refinement take, and a copy of the rows."""
        del some, base
        return Memory(files=n * k * 9 + n * d * 4 + n * 80)

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search in groups, refine, and estimate what was found."""
        work, why = self._planned(wanted)
        if work is None:
            return _exactly(wanted, why)
        return self._finished(work)

    def find_part(
        self, wanted: Wanted, number: int, count: int, /
    ) -> tuple[IndexArray, IndexArray, FloatArray] | None:
        """Search a part of the groups that are planned, counted from 0.

        Returns the rows of these groups, and lists and scores of what they found; or
        None where an exact search costs less than any groups.
        """
        work, _ = self._planned(wanted)
        if work is None:
            return None
        while work.steps.count(_ROUND) < work.plan.rounds:
            work.do_round(number, count)
            work.end_step(_ROUND)
        index, score = work.lists.open()
        rows = np.flatnonzero(index[:, 0] >= 0)
        return rows.astype(index.dtype), index[rows], score[rows]

    def finish(
        self,
        wanted: Wanted,
        parts: Iterable[tuple[IndexArray, IndexArray, FloatArray]],
        /,
    ) -> Candidates:
        """Return what `find` returns, once all parts of the groups are searched."""
        work, why = self._planned(replace(wanted, checkpoint=None))
        if work is None:
            return _exactly(wanted, why)
        for rows, index, score in parts:
            known = index >= 0
            every = np.broadcast_to(rows[:, np.newaxis], index.shape)
            found = Findings(every[known], index[known], score[known])
            work.lists.enter(found, len(found.rows))
        work.steps = _ROUND * work.plan.rounds
        work.recalls = [work.recall] * work.plan.rounds
        work.spent = work.costs.plan(work.plan)
        return self._finished(work)

    def _planned(self, wanted: Wanted) -> tuple[_Work | None, str]:
        """Return what is to be done; or None where exact is better, and why it is."""
        _check_base(wanted)
        n, d = wanted.x.shape
        if n <= _ONE_GROUP:
            return None, "all rows are one group"
        if self.recall == 1.0:
            return None, "all neighbors are wanted"
        costs, truth = Costs.of(wanted.x, wanted.k, wanted.base), Truth.of(wanted)
        price = whole_price(costs, aim_of(self.recall))
        plan = plan_of(wanted, truth, price, _CHEAPER * costs.exact)
        if plan is None:
            return None, f"for {n} x {d} it costs less than groups"
        return _Work(wanted, truth, plan, costs), ""

    def _finished(self, work: _Work) -> Candidates:
        """Do what is left to do, and estimate what was found."""
        work.run(enough_of(self.recall))
        index, score = work.lists.open()
        _complete(work.wanted, index, score)
        known = work.truth.estimate(score)
        return Candidates(
            index,
            distance_of(score, work.wanted.base),
            backend=registry.spec(self),
            exact=False,
            **known,
            notes=(work.note,),
        )

    def query(self, wanted: Wanted, points: Any, /) -> Candidates:
        """Search the groups of the leaders that are nearest to new points."""
        _check_base(wanted)
        n, m = len(wanted.x), len(points)
        costs = Costs.of(wanted.x, wanted.k, wanted.base)
        most = m * n * costs.pair
        if n <= _ONE_GROUP or self.recall == 1.0 or wanted.k >= n:
            return Exact().query(wanted, points)
        aim, plan = aim_of(self.recall), None
        if most > 4.0 * n * _SAMPLED * costs.pair:  # else it costs as much to plan
            truth = Truth.of(wanted)
            plan = plan_of(wanted, truth, query_price(costs, m, aim), most)
        if plan is None:
            return Exact().query(wanted, points)
        lists, rounds = Lists.empty(wanted.pool, m, wanted.k), 0
        truth = Truth.of_points(wanted, points)
        index, score = lists.open()
        runner = Runner(wanted.pool, lists, MOST * wanted.k)
        price = query_price(costs, m, 0.0)(plan) / plan.rounds
        while rounds < plan.rounds or (
            truth.steering(score) < enough_of(self.recall) and rounds * price < most
        ):
            _query_round(wanted, points, plan, runner, rounds)
            rounds += 1
            share = min(1.0, rounds / plan.rounds) * m
            wanted.on_rows(int(share) - int(min(1.0, (rounds - 1) / plan.rounds) * m))
        short = np.flatnonzero(index[:, -1] < 0)
        if len(short):
            silent = replace(wanted, on_rows=lambda _: None)
            found = Exact().query(silent, points[short]).index
            index[short], score[short] = ranked(
                wanted.x, points[short], found, wanted.base
            )
        known = truth.estimate(score)
        return Candidates(
            index,
            distance_of(score, wanted.base),
            backend=registry.spec(self),
            exact=False,
            **known,
        )


_SAMPLED = 2000
"""Rows that are searched exactly before anything is planned."""


def _query_round(
    wanted: Wanted, points: Any, plan: Plan, runner: Runner, number: int
) -> None:
    """Let points meet the groups of leaders that are nearest to them."""
    pool, n, words = wanted.pool, len(wanted.x), (wanted.seed, number)
    leaders = drawn(plan.leaders, np.arange(n), *words)
    member = nearest_leaders(wanted, leaders, plan.many, words)
    rows, edges = groups_of(member, plan.many, len(leaders))
    asking = nearest_leaders(wanted, leaders, plan.many, words, points=points)
    askers, ends = groups_of(asking, plan.many, len(leaders))
    inputs = QueryInputs(
        share_rows(pool, wanted.x),
        share_rows(pool, points),
        pool.share(rows),
        pool.share(askers),
        runner.lists.seen(pool),
        wanted.base,
        wanted.k,
    )
    tasks = [
        (first, min(first + MOST, int(ends[c + 1])), start, min(start + MOST, stop))
        for c in range(len(leaders))
        for first in range(int(ends[c]), int(ends[c + 1]), MOST)
        for stop in [int(edges[c + 1])]
        for start in range(int(edges[c]), stop, MOST)
    ]
    runner.run(answer_queries, inputs, tasks)


def _check_base(wanted: Wanted) -> None:
    if wanted.base not in GEOMETRIC:
        raise ParameterError(
            "search 'partition' knows distances between points only; this kernel "
            "needs search 'exact'"
        )


def estimated_again(wanted: Wanted, index: Any) -> dict[str, Any]:
    """Estimate what share of the true neighbors lists hold, for `Candidates`."""
    truth = Truth.of(wanted)
    rows, near = truth.judging, np.array(index[truth.judging])
    score = ranked(wanted.x, wanted.x[rows], near, wanted.base)[1]
    return interval((score <= truth.judged[:, np.newaxis]).mean(axis=1))


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
    """The rounds and passes of one search, and what a checkpoint keeps of them."""

    def __init__(self, wanted: Wanted, truth: Truth, plan: Plan, costs: Costs) -> None:
        self.wanted, self.truth, self.plan, self.costs = wanted, truth, plan, costs
        n, k, pool = len(wanted.x), wanted.k, wanted.pool
        keep, _ = reservoir_size(MOST, k)
        self.lists = Lists.empty(pool, n, k)
        self.runner = Runner(pool, self.lists, MOST * keep)
        self.x: Any = share_rows(pool, wanted.x)
        self._order: Any = None
        self.begun: Any = None
        """The lists when the last pass began."""
        self.new: Any = None
        """Which candidates were new in them."""
        self.who: Any = None
        self.steps = ""
        """A letter for every round and every pass that is done."""
        self.recalls: list[float] = []
        """What share of the sample's neighbors was found after each of them."""
        self.spent = 0.0
        self.tasks_done = 0
        """Tasks that are done of the step that has begun."""
        self.told = 0
        self.saved = time.monotonic()
        self._load()

    @property
    def recall(self) -> float:
        """The share of the sample's neighbors that were found."""
        return self.truth.steering(self.lists.open()[1])

    @property
    def note(self) -> str:
        """What was done."""
        plan = self.plan
        rounds, passes = self.steps.count(_ROUND), self.steps.count(_PASS)
        more = f"; {passes} x neighbors of neighbors" if passes else ""
        return (
            f"search: {rounds} x {plan.leaders} leaders, every row in the groups of "
            f"the {plan.many} nearest{more}"
        )

    def next_step(self, target: float) -> str:
        """Return what is to be done next to reach a recall; nothing at the end."""
        if self.steps.count(_ROUND) < self.plan.rounds:
            return _ROUND
        if self.recalls[-1] >= target or self.spent >= self.costs.exact:
            return ""
        if self.steps[-1] == _PASS:
            before, now = self.recalls[-2:]
            return _PASS if now - before > _WORTH_IT * (1.0 - before) else _ROUND
        return _PASS

    def run(self, target: float) -> None:
        """Do what was planned, and then what else is needed to reach a recall."""
        while step := self.next_step(target):
            planned = self.steps.count(_ROUND) < self.plan.rounds
            cost = self.do_round() if step == _ROUND else self.do_pass()
            if planned:  # the same, whoever searches the groups
                cost = self.costs.plan(self.plan) / self.plan.rounds
            self.spent += cost
            self.end_step(step)
        self.wanted.on_rows(len(self.wanted.x) - self.told)

    def end_step(self, step: str) -> None:
        """Note that a step is done, and keep what it found."""
        self.steps += step
        self.recalls.append(self.recall)
        self.tasks_done = 0
        self._keep()

    def do_round(self, part: int = 0, parts: int = 1) -> float:
        """Search the groups of the next leaders, or some; return what that costs."""
        wanted, plan, number = self.wanted, self.plan, self.steps.count(_ROUND)
        leading = self.costs.leaders(plan.leaders)
        rows, edges = self._groups(number, leading)
        inputs = GroupInputs(
            self.x,
            wanted.pool.share(rows),
            self.lists.seen(wanted.pool),
            wanted.base,
            wanted.k,
        )
        tasks = _tasks(edges)[part::parts]
        cost = math.fsum(self.costs.groups(task) for task in tasks)
        self._run(search_groups, inputs, tasks, cost, leading)
        return leading + cost

    def _groups(self, number: int, cost: float) -> tuple[IndexArray, IndexArray]:
        """Return the groups of one of the rounds, whose leaders cost something."""
        wanted, plan, n = self.wanted, self.plan, len(self.wanted.x)
        words = wanted.seed, number
        # What the plan left is little: half as many groups may find it.
        many = plan.many if number < plan.rounds else -(-plan.many // 2)
        leaders, led = drawn(plan.leaders, np.arange(n), *words), 0

        def on_rows(count: int) -> None:
            nonlocal led
            led += count
            self._tell(cost * led / n)

        member = nearest_leaders(wanted, leaders, many, words, on_rows=on_rows)
        if number == 0:
            self._order = _by_leader(member)
        rows, edges = groups_of(member, many, len(leaders))
        return cut_groups(wanted, rows, edges, MOST, words)

    @property
    def order(self) -> Any:
        """The rows in an order in which neighbors are near each other."""
        if self._order is None:  # another run did the first round
            n, words = len(self.wanted.x), (self.wanted.seed, 0)
            leaders = drawn(self.plan.leaders, np.arange(n), *words)
            self._order = _by_leader(nearest_leaders(self.wanted, leaders, 1, words))
        return self._order

    def do_pass(self) -> float:
        """Compare the neighbors of neighbors that are new; return what that costs."""
        wanted, pool, n = self.wanted, self.wanted.pool, len(self.wanted.x)
        x, sparse = wanted.x, isinstance(wanted.x, SparseRows)
        if self.begun is None:
            self._make_room()
        if self.tasks_done == 0:
            index = self.lists.open()[0]
            mark_new(frozen(self.begun), index, np.asarray(self.new))
            self.begun[:] = index
        inputs = share_pass(
            pool,
            self.x,
            self.order,
            (self.begun, self.new),
            turned(self.begun, self.new, self.who),
            self.lists,
            wanted.base,
            0 if sparse else scale_exponent(x, np.array(x[0], np.float64)),
        )
        tasks = [(at, min(at + _ROWS, n), 0) for at in range(0, n, _ROWS)]
        cost = self.costs.refine(float(np.count_nonzero(self.new)) / self.new.size)
        self._run(refine_rows, inputs, tasks, cost)
        return cost

    def _make_room(self) -> None:
        """Make the arrays that passes begin with; they are used again and again."""
        pool, (n, k) = self.wanted.pool, self.lists.open()[0].shape
        self.begun = pool.output((n, k), index_dtype(n)).open()
        self.new = pool.output((n, k), np.bool_).open()
        self.who = pool.output((n * k,), index_dtype(2 * n)).open()
        self.begun[:], self.new[:] = -1, False

    def _run(
        self,
        function: Any,
        inputs: Any,
        tasks: list[Any],
        cost: float,
        before: float = 0.0,
    ) -> None:
        """Do the tasks of a step; a checkpoint keeps how far it is."""
        share, count = cost / max(1, len(tasks)), self.tasks_done

        def on_task(_: Any) -> None:
            nonlocal count
            count += 1
            self._tell(before + min(count, len(tasks)) * share)

        some = -(-len(tasks) // _PARTS) if self.wanted.checkpoint else len(tasks)
        while self.tasks_done < len(tasks):
            part = tasks[self.tasks_done : self.tasks_done + some]
            self.runner.run(function, inputs, part, on_task)
            self.tasks_done += len(part)
            if time.monotonic() - self.saved >= _EVERY:
                self._keep()

    def _tell(self, cost: float) -> None:
        """Report what the step has cost, as a part of all work, in rows."""
        whole = self.costs.plan(self.plan) + self.costs.refine(1.0)
        share = min(0.99, (self.spent + cost) / whole)
        rows = int(len(self.wanted.x) * share)
        self.wanted.on_rows(max(0, rows - self.told))
        self.told = max(self.told, rows)

    def _arrays(self) -> dict[str, Any]:
        index, score = self.lists.open()
        begun = np.full_like(index, -1) if self.begun is None else self.begun
        new = np.zeros(index.shape, np.bool_) if self.new is None else self.new
        return {"index": index, "score": score, "begun": begun, "new": new}

    def _keep(self) -> None:
        """Keep how far the search is, where there is a checkpoint."""
        if self.wanted.checkpoint is None:
            return
        about = {
            "steps": self.steps,
            "recalls": self.recalls,
            "spent": self.spent,
            "tasks": self.tasks_done,
            "passing": self.begun is not None,
        }
        every = range(len(self.wanted.x))
        self.wanted.checkpoint.save(Block("search", every, self._arrays(), about))
        self.saved = time.monotonic()

    def _load(self) -> None:
        """Go on where a checkpoint ends."""
        if self.wanted.checkpoint is None:
            return
        every, like = range(len(self.wanted.x)), self._arrays()
        block = self.wanted.checkpoint.load("search", every, like, _check_kept)
        if block is None:
            return
        index, score = self.lists.open()
        index[:], score[:] = block.arrays["index"], block.arrays["score"]
        about = block.about
        self.steps, self.recalls = about["steps"], about["recalls"]
        self.spent, self.tasks_done = about["spent"], about["tasks"]
        if about["passing"]:
            self._make_room()
            self.begun[:], self.new[:] = block.arrays["begun"], block.arrays["new"]


_ABOUT = {"steps": str, "recalls": list, "spent": float, "tasks": int, "passing": bool}


def _check_kept(block: Block) -> None:
    """Refuse what no search has kept: compiled code takes row numbers as they are."""
    about, n = block.about, len(block.rows)
    sane = about.keys() == _ABOUT.keys() and all(
        isinstance(about[name], kind) for name, kind in _ABOUT.items()
    )
    sane = sane and set(about["steps"]) <= {_ROUND, _PASS} and about["tasks"] >= 0
    sane = sane and [type(one) for one in about["recalls"]] == [float] * len(
        about["steps"]
    )
    for name in ("index", "begun"):
        rows = block.arrays[name]
        sane = sane and bool(((rows >= -1) & (rows < n)).all())
    if not sane:
        raise InputError(f"{block.name}: its lists are damaged")


def _by_leader(member: Any) -> Any:
    """Return the rows in the order of their nearest leaders."""
    order = np.argsort(member[:, 0], kind="stable")
    return order.astype(index_dtype(len(order)))


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


def rehearse(wanted: Wanted) -> None:
    """Do every kind of step once, among few rows: all that a search needs compiled."""
    costs = Costs.of(wanted.x, wanted.k, wanted.base)
    plan = Plan(len(wanted.x) // 16, 3, 1, 0.5, 0.0)
    work = _Work(wanted, Truth.of(wanted), plan, costs)
    work.do_round()
    work.end_step(_ROUND)
    work.do_pass()
    points = wanted.x[: len(wanted.x) // 4]
    lists = Lists.empty(wanted.pool, len(points), wanted.k)
    _query_round(wanted, points, plan, Runner(wanted.pool, lists, MOST * wanted.k), 0)


plugin: type[Search] = Partition
