"""What searches cost: formulas, never a clock, so that a choice is always the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnkgraph.data import SparseRows

SAMPLE = 1000
"""Rows that steer a search in groups at most, and as many that recall is judged on."""

_DENSE_PLAN, _SPARSE_PLAN = (128, 9, 2, 10_000.0), (64, 3, 2, 1600.0)
"""Rows for each leader, groups of a row, rounds, and pairs of each row in a round, for
rows that are neither easy nor hard."""

_PAIR = {
    "squared-distance": (0.6, 0.026),
    "inner-product": (0.6, 0.026),
    "l1-distance": (10.0, 0.28),
    "sparse": (7.0, 3.0),
}
"""What comparing two rows costs, and for each column, or each that sparse rows share.
"""


def seconds(cost: float) -> float:
    """Return what a cost takes on two processors."""
    return 0.5e-9 * cost


@dataclass(frozen=True)
class Plan:
    """How often leaders are drawn, how many, and how many groups a row is in."""

    leaders: int
    many: int
    rounds: int
    recall: float
    """What groups alone will find."""

    pairs: float
    """How many pairs they compare."""

    refined: float = 0.0
    """What groups will find with what is in many lists."""


@dataclass(frozen=True)
class Costs:
    """Nanoseconds of one processor of 2020's make. Only their ratios count."""

    n: int
    d: int
    """Columns, or stored values of a row."""

    k: int
    base: str
    """That of the search, or ``"sparse"``."""

    shared: float = 0.0
    """Columns that two sparse rows share, on average: all that their products need."""

    @classmethod
    def of(cls, x: Any, k: int, base: str) -> Costs:
        """Return the costs of searching some rows."""
        if isinstance(x, SparseRows):
            n, few = len(x), x.columns <= 4 * len(x.data)
            counted: Any = x.indices
            if not few:  # most columns are empty
                counted = np.unique(counted, return_inverse=True)[1]
            stored = np.bincount(counted) / n
            shared = float((stored * stored).sum())
            return cls(n, -(-len(x.data) // n), k, "sparse", shared)
        n, d = x.shape
        return cls(n, d, k, base)

    @property
    def pair(self) -> float:
        """Of comparing two rows among many, both ways."""
        fixed, column = _PAIR.get(self.base, _PAIR["l1-distance"])
        return fixed + column * (self.shared if self.base == "sparse" else self.d)

    @property
    def exact(self) -> float:
        """Of an exact search."""
        if self.base == "sparse":  # products of whole columns; every pair is seen twice
            every = self.n * (3.7 + 1.1 * self.shared)
            return self.n * (12.0 * self.k * self.d + every)
        return self.n * (5000.0 + 0.5 * self.n * self.pair)

    def leaders(self, count: int) -> float:
        """Of finding the nearest leaders of all rows."""
        pair = 1.0 + self.shared if self.base == "sparse" else self.pair
        return self.n * (500.0 + count * pair)

    def group(self, size: float) -> float:
        """Of comparing the rows of a group."""
        visit = 1500.0 + 12.0 * self.d
        if self.base == "sparse":  # what is near has to be valued entry by entry
            visit = 2000.0 + 8.0 * self.k * self.d
        return size * (visit + 0.5 * size * self.pair)

    def plan(self, plan: Plan) -> float:
        """Of all rounds of a plan."""
        visits = plan.rounds * plan.many * self.n * self.group(1.0)
        return (
            plan.rounds * self.leaders(plan.leaders) + visits + plan.pairs * self.pair
        )

    def groups(self, edges: list[tuple[int, int]]) -> float:
        """Of comparing the rows of some groups, given by where they begin and end."""
        return sum(self.group(stop - start) for start, stop in edges)

    def refine(self, new: float) -> float:
        """Of comparing neighbors of neighbors, where such a share of them is new."""
        m = 1.5 * self.k + 1.0
        full = 2.0 * m * self.d + m * m * (8.0 + 0.06 * self.d)
        if self.base == "sparse":  # every entry is listed by its column
            full = m * (30.0 * self.d + 10.0 * m)
        return self.n * (1000.0 + full * min(1.0, 0.25 + 2.0 * new))

    @property
    def kdtree(self) -> float:
        """Of importing a k-d tree and its search, for rows that fill all dimensions.

        Rows near a surface of few dimensions are found faster, but how much faster does
        not follow from its dimension: with 64 columns and 4 dimensions the tree was ten
        times slower than the products, with 16 and 4 it was as fast.
        """
        exponent = self.d * (0.18 + 0.085 * (math.log10(self.n) - 4.0))
        return 0.4e9 + self.n * 2400.0 * math.pow(10.0, min(exponent, 9.0))

    @property
    def partition(self) -> float:
        """Of a search in groups, for rows that are neither easy nor hard."""
        sparse = self.base == "sparse"
        per, many, rounds, pairs = _SPARSE_PLAN if sparse else _DENSE_PLAN
        plan = Plan(self.n // per, many, rounds, 0.0, rounds * pairs * self.n)
        sample = 2e9 + 2.0 * SAMPLE * self.exact / self.n
        return sample + self.plan(plan) + self.refine(1.0) + self.refine(0.1)
