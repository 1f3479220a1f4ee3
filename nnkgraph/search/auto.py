"""The choice of a search."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.runtime import registry
from nnkgraph.search import Plain, check_by_rows
from nnkgraph.search.costs import Costs, seconds

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
        name, why = "exact", "only it ranks by similarity"
        if base in DISTANCES:
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
        if wanted.base in DISTANCES and not isinstance(wanted.x, SparseRows):
            costs = Costs.of(wanted.x, wanted.k, wanted.base)
            if len(points) / costs.n * costs.exact > costs.partition:
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
    text = (
        f"an estimated share of {recall:.3f} of the nearest neighbors was found, and "
        "an edge needs both of its ends; `search='exact'` finds all and takes "
        f"{_rough(Costs.of(wanted.x, wanted.k, wanted.base).exact)}"
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
