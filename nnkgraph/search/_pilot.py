"""What a partition has to be like: planned on a sample before anything is searched.

A true neighbor is found where it shares a group with its row. So a few rows, their true
neighbors and the leaders nearest to these say what recall groups will have; some more
rows say how large groups will be. Costs are formulas, never a clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.search import ranked
from nnkgraph.search._leaders import drawn, nearest_leaders
from nnkgraph.search.exact import nearest

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Wanted

_SAMPLE = 1000
"""Rows that steer at most, and as many others that recall is estimated on."""

_PLANNED = 256
"""Rows that a plan is made with."""

_SIZED = 8192
"""Rows that say how large groups will be."""

_LEADERS = 4096
"""Leaders at most: every row is compared with all of them."""

_PER_LEADER = (64, 128, 256, 512)
"""Rows for each leader that are tried."""

_MOST_GROUPS = 16
"""Groups at most that a row is in, for each time that leaders are drawn."""

_MOST_ROUNDS = 4

_LEFT = (1.0, 0.46, 0.36)
"""What passes of refinement leave of what was not found, by their number: measured on
word vectors, which are harder than most."""

_SAMPLED, _SIZES = 101, 102
"""What hashes of samples begin with, where those of leaders have a round."""


@dataclass(frozen=True)
class Costs:
    """Nanoseconds of one processor of 2020's make. Only their ratios count."""

    n: int
    d: int
    k: int
    base: str

    @property
    def pair(self) -> float:
        """Of comparing two rows among many."""
        if self.base == "squared-distance":
            return 0.6 + 0.026 * self.d
        return 2.5 + 0.14 * self.d

    @property
    def exact(self) -> float:
        """Of an exact search."""
        return self.n * (5000.0 + 0.5 * self.n * self.pair)

    def leaders(self, count: int) -> float:
        """Of finding the nearest leaders of all rows."""
        return self.n * (500.0 + count * self.pair)

    def group(self, size: float) -> float:
        """Of comparing the rows of a group."""
        return size * (1500.0 + 12.0 * self.d + 0.5 * size * self.pair)

    def groups(self, edges: list[tuple[int, int]]) -> float:
        """Of comparing the rows of some groups, given by where they begin and end."""
        return sum(self.group(stop - start) for start, stop in edges)

    def refine(self, new: float) -> float:
        """Of comparing the neighbors of neighbors, where such a share of them is new."""
        m = 1.5 * self.k + 1.0
        full = m * self.d + m * m * (5.0 + 0.045 * self.d)
        return self.n * (1000.0 + full * min(1.0, 0.1 + 3.0 * new))


@dataclass(frozen=True)
class Plan:
    """How often leaders are drawn, how many, and how many groups a row is in."""

    leaders: int
    many: int
    rounds: int
    recall: float
    """What groups alone will find."""

    cost: float


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
        many = 2 * min(_SAMPLE, n // 64)
        rows = drawn(many, np.arange(n), wanted.seed, _SAMPLED)
        index = nearest(wanted, rows)
        score = ranked(wanted.x, wanted.x[rows], index, wanted.base)[1][:, -1]
        # Every other row: hashes made the sample, its order is that of the rows.
        return cls(rows[::2], index[::2], score[::2], rows[1::2], score[1::2])

    def steering(self, score: FloatArray) -> float:
        """Return the share of the neighbors of the steering sample that is found."""
        return float((score[self.rows] <= self.last[:, np.newaxis]).mean())

    def estimate(self, score: FloatArray) -> tuple[float, float, float]:
        """Return the share that is found, and a 95 % interval of it over rows.

        A hit is a distance that is not above the true k-th.
        """
        hits = (score[self.judging] <= self.judged[:, np.newaxis]).mean(axis=1)
        return interval(hits)


def interval(hits: FloatArray) -> tuple[float, float, float]:
    """Return the mean of shares and its 95 % interval.

    Rows are what is sampled. Where all or nearly all have the same share the spread says
    little; the interval is at least Wilson's for rows that are found whole or not.
    """
    m, mean = len(hits), math.fsum(hits) / len(hits)
    spread = math.fsum((one - mean) ** 2 for one in hits.tolist()) / max(1, m - 1)
    half = 1.96 * math.sqrt(spread / m)
    least = 3.0 / (m * 10.0)  # none of m is seen of what happens once in m / 3 rows
    return mean, max(0.0, mean - max(half, least)), min(1.0, mean + half)


def plan_of(wanted: Wanted, truth: Truth, costs: Costs, target: float) -> Plan | None:
    """Return the cheapest plan that should reach a recall; None where exact is."""
    n, s = len(wanted.x), min(_PLANNED, len(truth.rows))
    rows = drawn(s, np.arange(len(truth.rows)), wanted.seed, _SAMPLED)
    neighbors = truth.index[rows]
    sized = drawn(_SIZED, np.arange(n), wanted.seed, _SIZES)
    asked = np.concatenate([truth.rows[rows], neighbors.ravel(), sized])
    best: Plan | None = None
    for per in _PER_LEADER:
        count = n // per
        if not 2 * _MOST_GROUPS <= count <= max(_LEADERS, n // _PER_LEADER[-1]):
            continue
        met = np.zeros((_MOST_GROUPS, *neighbors.shape), np.bool_)
        cost = np.zeros(_MOST_GROUPS)
        for at in range(_MOST_ROUNDS):
            words = (wanted.seed, at)
            leaders = drawn(count, np.arange(n), *words)
            found = nearest_leaders(wanted, leaders, _MOST_GROUPS, words, asked)
            near = found[s : s + neighbors.size].reshape(*neighbors.shape, -1)
            met |= _shared(found[:s], near)
            cost += _round_costs(found[s + neighbors.size :], count, costs)
            for many in range(1, _MOST_GROUPS + 1):
                recall = float(met[many - 1].mean())
                plan = Plan(count, many, at + 1, recall, float(cost[many - 1]))
                whole = _whole_cost(plan, costs, target)
                if whole < (_whole_cost(best, costs, target) if best else costs.exact):
                    best = plan
            if best is not None and float(cost[0]) > _whole_cost(best, costs, target):
                break
    return best


def _whole_cost(plan: Plan, costs: Costs, target: float) -> float:
    """Return the cost of a plan with the refinement that it needs; inf for too much."""
    for passes, left in enumerate(_LEFT):
        if (1.0 - plan.recall) * left <= 1.0 - target:
            again = costs.refine(0.1) * max(0, passes - 1)
            return plan.cost + costs.refine(1.0) * min(1, passes) + again
    return math.inf


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


def _round_costs(found: Any, count: int, costs: Costs) -> FloatArray:
    """Return the costs of a round where rows are in 1, 2, ... groups.

    Two rows of the sample that share a group tell how large groups are: large ones are
    met more often.
    """
    m, f = found.shape
    result = np.empty(f)
    for many in range(1, f + 1):
        sizes = np.bincount(found[:, :many].ravel(), minlength=count).astype(float)
        pairs = float((sizes * (sizes - 1.0)).sum()) / (m * (m - 1.0)) * costs.n**2
        visits = costs.group(1.0) * costs.n * many
        result[many - 1] = costs.leaders(count) + visits + 0.5 * pairs * costs.pair
    return result
