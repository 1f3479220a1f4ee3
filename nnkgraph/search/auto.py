"""The choice of a search."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.runtime import registry
from nnkgraph.search import Plain, check_by_rows

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.search import Search, Wanted

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
        n, d = x.shape
        if isinstance(x, SparseRows):
            name, why = choose_sparse(x, k, base)
        else:
            name, why = choose(n, d, k, base)
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
        name, (n, d) = "exact", wanted.x.shape
        if wanted.base in DISTANCES and not isinstance(wanted.x, SparseRows):
            pairs = 2.0 * len(points) / n
            by_products = wanted.base == "squared-distance"
            every = exact_seconds(n, d) if by_products else direct_seconds(n, d)
            if pairs * every > 2.0 * partition_seconds(n, d, wanted.k, wanted.base):
                name = "partition"
        search: Search = registry.create("search", name)
        return search.query(wanted, points)


LOW_RECALL = 0.98
"""Below this an approximate search is warned of: an edge needs both of its ends."""

_GOOD_RECALL = 0.99
"""What a search is to find where nobody asks for more or less."""


def judged(found: Candidates, wanted: Wanted, search: Search) -> Candidates:
    """Add what can be done about it where a search has missed too much."""
    recall, target = found.recall, getattr(search, "recall", _GOOD_RECALL)
    if found.exact or recall is None or recall >= max(target, LOW_RECALL):
        return found
    (n, d), by_products = wanted.x.shape, wanted.base == "squared-distance"
    seconds = exact_seconds(n, d) if by_products else direct_seconds(n, d)
    if isinstance(wanted.x, SparseRows):
        seconds = sparse_seconds(wanted.x, wanted.k)[0]
    text = (
        f"an estimated share of {recall:.3f} of the nearest neighbors was found, and "
        "an edge needs both of its ends; `search='exact'` finds all and takes "
        f"{_rough(seconds)}"
    )
    if recall < LOW_RECALL:
        return dataclasses.replace(found, warnings=(*found.warnings, text))
    return dataclasses.replace(found, notes=(*found.notes, f"search: {text}"))


def choose(n: int, d: int, k: int, base: str) -> tuple[str, str]:
    """Return the name of a search and the reason for it.

    Neither the number of processors nor the values play a part, so that they cannot
    change the graph.
    """
    if base not in DISTANCES:
        return "exact", "only it ranks by similarity"
    by_products = base == "squared-distance"
    seconds = {
        "exact": exact_seconds(n, d) if by_products else direct_seconds(n, d),
        "kdtree": kdtree_seconds(n, d),
        "partition": partition_seconds(n, d, k, base),
    }
    best = min(("exact", "kdtree"), key=lambda name: seconds[name])
    return _better(best, seconds, _WORTH_IT)


def choose_sparse(x: SparseRows, k: int, base: str) -> tuple[str, str]:
    """Return the same for sparse rows: it depends on the columns that they store."""
    if base not in DISTANCES:
        return "exact", "only it ranks by similarity"
    exact, partition = sparse_seconds(x, k)
    seconds = {"exact": exact, "partition": partition}
    return _better("exact", seconds, _SPARSE_WORTH_IT)


def sparse_seconds(x: SparseRows, k: int) -> tuple[float, float]:
    """Return what an exact search of sparse rows takes, and one in groups."""
    from nnkgraph.search._pilot import Costs

    costs = Costs.of(x, k, "squared-distance")
    return 0.5e-9 * costs.exact, 0.5e-9 * costs.typical


def _better(best: str, seconds: dict[str, float], factor: float) -> tuple[str, str]:
    """Return a search that finds all, or partition where it is faster by a factor."""
    other = "partition"
    if seconds[best] > factor * seconds[other]:
        best, other = other, best
    if seconds[best] < 1:
        return best, "less than a second"
    kind = "approximate, " if best == "partition" else ""
    return best, (
        f"{kind}{_rough(seconds[best])}; {other} would take {_rough(seconds[other])}"
    )


# Seconds on two cores of 2020's make, measured with compiled code in the cache, by
# ``python -m bench auto``. Only their order counts.
def exact_seconds(n: int, d: int) -> float:
    """Return what comparing all pairs takes, by matrix products."""
    return 5.6e-6 * n + n * n * (1.45e-10 + 7.5e-12 * d)


def direct_seconds(n: int, d: int) -> float:
    """Return what looking at all pairs takes, one by one."""
    return n * n * (2.5e-9 + 7e-11 * d)


def kdtree_seconds(n: int, d: int) -> float:
    """Return what importing a k-d tree and its search take.

    That is for rows that fill all their dimensions.

    Rows near a surface of few dimensions are found faster, but how much faster does
    not follow from its dimension: with 64 columns and 4 dimensions the tree was ten
    times slower than the products, with 16 and 4 it was as fast.
    """
    exponent = d * (0.18 + 0.085 * (math.log10(n) - 4.0))
    return 0.2 + n * 1.2e-6 * math.pow(10.0, min(exponent, 9.0))


def partition_seconds(n: int, d: int, k: int, base: str) -> float:
    """Return what a search in groups takes for rows that are neither easy nor hard."""
    pairs = 1.0 if base == "squared-distance" else 5.0
    return 1.0 + n * (4e-5 + 6e-7 * d) * pairs * max(0.5, k / 30.0)


def _rough(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    if seconds < 90:
        return f"about {round(seconds)} s"
    return f"about {round(seconds / 60)} min"


plugin: type[Search] = Auto
