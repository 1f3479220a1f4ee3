"""What a partition has to be like: planned on a sample before anything is searched.

A true neighbor is found where it shares a group with its row. So a few rows, their true
neighbors and the leaders nearest to these say what recall groups will have; some more
rows say how large groups will be. Costs are formulas, never a clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.search import ranked
from nnkgraph.search._leaders import drawn, nearest_leaders
from nnkgraph.search.auto import SAMPLE, Costs, Plan
from nnkgraph.search.exact import Exact, interval, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Wanted

_PLANNED, _NEAR = 512, 10
"""Rows that a plan is made with, and how many neighbors of each, near and far."""

_SIZED = 4096
"""Rows that say how large groups will be."""

_PER_LEADER = (64, 128, 256, 512, 1024, 2048)
"""Rows for each leader that are tried."""

_MOST_GROUPS = 16
"""Groups at most that a row is in, for each time that leaders are drawn."""

_MOST_ROUNDS = 4

_LEFT = (1.05, 0.5, 0.4)
"""What passes of refinement leave of what was not found, by their number: measured on
word vectors, which are harder than most. A plan may find a little less than its sample
says."""

_SPARSE_LEFT = (1.05, 0.4, 0.2, 0.15)
"""The same, measured on counts of words, as they are and as rows of length 1; after the
second pass of what is not in many lists."""

_OFTEN = 5
"""In so many lists of the sample is what two passes find in whatever groups it is: with
counts, short rows are in most lists."""

_SAMPLED, _SIZES = 101, 102
"""What hashes of samples begin with, where those of leaders have a round."""


@dataclass(frozen=True)
class Truth:
    """Rows whose true neighbors are known: some that steer, and others to judge by."""

    rows: IndexArray
    index: IndexArray
    """The true neighbors of the rows that steer."""

    last: FloatArray
    """The scores of the true k-th neighbors."""

    judging: IndexArray
    judged: FloatArray

    @classmethod
    def of(cls, wanted: Wanted) -> Truth:
        """Search the neighbors of both samples."""
        n = len(wanted.x)
        many = 2 * min(SAMPLE, max(32, n // 128))
        rows = drawn(many, np.arange(n), wanted.seed, _SAMPLED)
        index = nearest(wanted, rows)
        score = ranked(wanted.x, wanted.x[rows], index, wanted.base)[1][:, -1]
        # Every other row: hashes made the sample, its order is that of the rows.
        return cls(rows[::2], index[::2], score[::2], rows[1::2], score[1::2])

    @classmethod
    def of_points(cls, wanted: Wanted, points: Any) -> Truth:
        """Search the neighbors of samples of new points."""
        many = 2 * min(SAMPLE, max(1, len(points) // 64))
        rows = drawn(many, np.arange(len(points)), wanted.seed, _SAMPLED)
        silent = replace(wanted, on_rows=lambda _: None)
        index = Exact().query(silent, points[rows]).index
        score = ranked(wanted.x, points[rows], index, wanted.base)[1][:, -1]
        return cls(rows[::2], index[::2], score[::2], rows[1::2], score[1::2])

    def steering(self, score: FloatArray) -> float:
        """Return the share of the neighbors of the steering sample that is found."""
        return float((score[self.rows] <= self.last[:, np.newaxis]).mean())

    def estimate(self, score: FloatArray) -> dict[str, Any]:
        """Return the share that is found, and where it may be, for `Candidates`."""
        hits = (score[self.judging] <= self.judged[:, np.newaxis]).mean(axis=1)
        return interval(hits)


def aim_of(target: float) -> float:
    """Return what share a plan has to promise, so that a recall is surely reached."""
    return target + 0.2 * (1.0 - target)


def enough_of(target: float) -> float:
    """Return what share the steering sample has to find, so that all rows reach it.

    Less than was planned for: a plan that falls a little short needs no further step.
    """
    return target + 0.1 * (1.0 - target)


def plan_of(
    wanted: Wanted, truth: Truth, price: Callable[[Plan], float], most: float
) -> Plan | None:
    """Return the plan with the lowest price; None where none is below ``most``."""
    n, s = len(wanted.x), min(_PLANNED, len(truth.rows))
    rows = drawn(s, np.arange(len(truth.rows)), wanted.seed, _SAMPLED)
    neighbors = truth.index[rows][:, :: max(1, wanted.k // _NEAR)]
    sized = drawn(_SIZED, np.arange(n), wanted.seed, _SIZES)
    often = np.bincount(truth.index.ravel(), minlength=n)[neighbors] >= _OFTEN
    asked = np.concatenate([truth.rows[rows], neighbors.ravel(), sized])
    best: Plan | None = None
    for per in _PER_LEADER:
        count = n // per
        if not 2 * _MOST_GROUPS <= count <= 8.0 * math.sqrt(n):
            continue  # too few to choose from, or too many to compare rows with
        met = np.zeros((_MOST_GROUPS, *neighbors.shape), np.bool_)
        pairs = np.zeros(_MOST_GROUPS)
        for rounds in range(1, _MOST_ROUNDS + 1):
            if price(Plan(count, 1, rounds, 1.0, float(pairs[0]))) >= most:
                break
            words = (wanted.seed, rounds - 1)
            leaders = drawn(count, np.arange(n), *words)
            found = nearest_leaders(wanted, leaders, _MOST_GROUPS, words, asked)
            near = found[s : s + neighbors.size].reshape(*neighbors.shape, -1)
            met |= _shared(found[:s], near)
            pairs += _pairs(found[s + neighbors.size :], count) * n**2
            for many in range(1, _MOST_GROUPS + 1):
                shares = met[many - 1], pairs[many - 1], met[many - 1] | often
                plan = Plan(count, many, rounds, *(float(one.mean()) for one in shares))
                if price(plan) < most:
                    best, most = plan, price(plan)
    return best


def whole_price(costs: Costs, target: float) -> Callable[[Plan], float]:
    """Return what a plan costs with the refinement that it needs to reach a recall."""

    def price(plan: Plan) -> float:
        lefts = _SPARSE_LEFT if costs.base == "sparse" else _LEFT
        for passes, left in enumerate(lefts):
            early = passes < 2 or costs.base != "sparse"
            found = plan.recall if early else max(plan.recall, plan.refined)
            if (1.0 - found) * left <= 1.0 - target:
                again = costs.refine(0.1) * max(0, passes - 1)
                return costs.plan(plan) + costs.refine(1.0) * min(1, passes) + again
        return math.inf

    return price


def query_price(costs: Costs, queries: int, target: float) -> Callable[[Plan], float]:
    """Return what a plan costs for queries, whose neighbors' neighbors nobody knows."""

    def price(plan: Plan) -> float:
        if plan.recall < target:
            return math.inf
        leading = plan.rounds * costs.leaders(plan.leaders) * (1 + queries / costs.n)
        asked = 2.0 * plan.pairs / costs.n * costs.pair
        return leading + queries * (plan.rounds * plan.many * costs.group(1.0) + asked)

    return price


def _shared(own: Any, near: Any) -> Any:
    """Return whether rows share one of their first 1, 2, ... leaders with neighbors.

    Parameters
    ----------
    own : (s, f) array of int
        The nearest leaders of some rows, the nearest first.
    near : (s, k, f) array of int
        Those of their neighbors.
    """
    same = own[:, np.newaxis, :, np.newaxis] == near[:, :, np.newaxis, :]
    f = own.shape[1]
    return np.stack([same[:, :, :m, :m].any(axis=(2, 3)) for m in range(1, f + 1)])


def _pairs(found: Any, count: int) -> FloatArray:
    """Return the share of all pairs that groups compare; rows are in 1, 2, ... of them.

    Two rows of the sample that share a group tell how large groups are: large ones are
    met more often.
    """
    m, f = found.shape
    shares = np.empty(f)
    for many in range(1, f + 1):
        sizes = np.bincount(found[:, :many].ravel(), minlength=count).astype(float)
        shares[many - 1] = 0.5 * (sizes * (sizes - 1.0)).sum() / (m * (m - 1.0))
    return shares
