"""The choice of a search, and what searches cost: formulas, never a clock."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import GEOMETRIC
from nnkgraph.runtime import registry
from nnkgraph.search import Plain, check_by_rows

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.search import Search, Wanted

SAMPLE = 1000
"""Rows that steer a search in groups at most, and as many that recall is judged on."""

_DENSE_PLAN, _SPARSE_PLAN = (128, 8, 1, 12_000.0), (64, 3, 2, 1600.0)
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
        sample = 2.0 * SAMPLE * self.exact / self.n + (0.0 if sparse else 2e9)
        return sample + self.plan(plan) + self.refine(1.0) + self.refine(0.1)


_WORTH_IT = 1.15
"""An approximate search has to be faster by this factor to be taken."""

_SPARSE_WORTH_IT = 1.8
"""The same for sparse rows: where it is less, the search itself may turn to exact."""


@dataclass(frozen=True)
class Auto(Plain):
    """The search that should be fastest, by rows, columns, k and kernel alone."""

    by_rows: ClassVar[bool] = True
    answers_queries: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True

    def chosen(self, x: Any, k: int, base: str, /) -> tuple[Search, str]:
        """Choose by shape and kernel; of sparse rows, by what columns they share."""
        name, why = "exact", "only it suits this kernel"
        if base in GEOMETRIC:
            name, why = choose(Costs.of(x, k, base))
        return registry.create("search", name), why

    def find(self, wanted: Wanted, /) -> Candidates:
        """Choose, search, and say what was chosen and why."""
        search, why = self.chosen(wanted.x, wanted.k, wanted.base)
        if wanted.span is not None:
            check_by_rows(search)
        n, d = wanted.x.shape
        note = f"search: {registry.spec(search)} was chosen for {n} x {d} ({why})"
        wanted.say(note)
        found = search.find(wanted)
        return dataclasses.replace(found, notes=(note, *found.notes))

    def query(self, wanted: Wanted, points: FloatArray, /) -> Candidates:
        """Search exactly, or in groups where there are many queries as well."""
        name = "exact"
        if wanted.base in GEOMETRIC and not isinstance(wanted.x, SparseRows):
            costs = Costs.of(wanted.x, wanted.k, wanted.base)
            if len(points) / costs.n * costs.exact > costs.partition:
                name = "partition"
        search: Search = registry.create("search", name)
        return search.query(wanted, points)


LOW_RECALL = 0.98
"""Below this an approximate search is warned of: an edge needs both of its ends."""

_GOOD_RECALL = 0.99
"""What a search is to find where nobody asks for more or less."""


def judged(
    found: Candidates, wanted: Wanted, search: Search, *, queries: bool = False
) -> Candidates:
    """Add what can be done about it where a search has missed too much."""
    recall, target = found.recall, getattr(search, "recall", _GOOD_RECALL)
    if found.exact or recall is None or recall >= max(target, LOW_RECALL):
        return found
    costs = Costs.of(wanted.x, wanted.k, wanted.base)
    # Rows are compared once for both; queries ask all rows.
    asked = 2.0 * len(found.index) / costs.n if queries else 1.0
    text = (
        f"an estimated share of {recall:.3f} of the nearest neighbors was found, and "
        "an edge needs both of its ends; `search='exact'` finds all and takes "
        f"{_rough(asked * costs.exact)}"
    )
    if recall < LOW_RECALL:
        return dataclasses.replace(found, warnings=(*found.warnings, text))
    return dataclasses.replace(found, notes=(*found.notes, f"search: {text}"))


def choose(costs: Costs) -> tuple[str, str]:
    """Return the name of a search and the reason for it.

    Neither the number of processors nor what the values are plays a part, so that they
    cannot change the graph; of sparse rows it counts which values are stored.
    """
    best, other, worth_it = "exact", "partition", _SPARSE_WORTH_IT
    takes = {"exact": costs.exact, "partition": costs.partition}
    if costs.base != "sparse":
        takes["kdtree"], worth_it = costs.kdtree, _WORTH_IT
        best = min(("exact", "kdtree"), key=lambda name: takes[name])
    if takes[best] > worth_it * takes[other]:
        best, other = other, best
    if seconds(takes[best]) < 1:
        return best, "less than a second"
    kind = "approximate, " if best == "partition" else ""
    return (
        best,
        f"{kind}{_rough(takes[best])}; {other} would take {_rough(takes[other])}",
    )


def _rough(cost: float) -> str:
    """Say how long something takes on two processors."""
    time = seconds(cost)
    if time < 1:
        return "less than a second"
    return f"about {round(time)} s" if time < 90 else f"about {round(time / 60)} min"


plugin: type[Search] = Auto
