"""The choice of a search."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnkgraph import registry

if TYPE_CHECKING:
    from nnkgraph.data import Candidates
    from nnkgraph.search import Search, Wanted

_TREE_DIMENSIONS = 8
_COMPILE_SECONDS = 40.0


@dataclass(frozen=True)
class Auto:
    """The search that should be fastest, judged by rows, columns and kernel alone."""

    def find(self, wanted: Wanted, /) -> Candidates:
        """Choose, search, and say what was chosen and why."""
        n, d = wanted.x.shape
        name, why = choose(n, d, wanted.base)
        found: Candidates = registry.create("search", name).find(wanted)
        note = f"search: {name} was chosen for {n} x {d} ({why})"
        return dataclasses.replace(found, notes=(note, *found.notes))


def choose(n: int, d: int, base: str) -> tuple[str, str]:
    """Return the name of a search and the reason for it.

    The number of processors plays no part, so that it cannot change the graph.
    """
    if base != "squared-distance":
        return "exact", "only it ranks inner products"
    if d <= _TREE_DIMENSIONS:
        return "kdtree", f"{d} dimensions"
    # Seconds on two cores: so much for a pair of rows, so much for one row.
    exact = n * n * (3.1e-9 + 1.2e-11 * d)
    approximate = _COMPILE_SECONDS + 1.4e-4 * n
    if exact <= approximate:
        return "exact", "as fast as an approximate search"
    return "pynndescent", f"approximate; exact would take about {exact / 60:.0f} min"


plugin: type[Search] = Auto
