"""The figures of a diagnosis: counts and shares, plain JSON values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import report, solve
from nnkgraph.build.grow import outside_bounds
from nnkgraph.build.settings import kernel_of
from nnkgraph.build.symmetrize import symmetrize as symmetrized
from nnkgraph.data import Graph
from nnkgraph.data.duplicates import with_copies
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.build.run import Run
    from nnkgraph.build.settings import Settings
    from nnkgraph.data import Candidates, FloatArray, IndexArray, Neighborhoods
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method


MIN_WEIGHT = 1e-8  # lighter edges are dropped, as ``build_graph`` does by default


@dataclass(frozen=True)
class SearchedRows:
    """Rows with their candidates; graphs are those that ``build_graph`` would make."""

    run: Run
    candidates: Candidates
    kernel: Kernel
    _solved: dict[tuple[str, bool], Neighborhoods] = field(default_factory=dict)
    _facts: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> SearchedRows:
        """Search the candidates of all rows."""
        return cls(run, *run.find_and_fit())

    @property
    def rows(self) -> Rows:
        """The rows as the kernel sees them."""
        return self.run.rows

    @property
    def settings(self) -> Settings:
        """What the graphs are made with."""
        return self.run.settings

    @property
    def k(self) -> int:
        """Candidates of a node; fewer than asked for where rows are few."""
        return int(self.candidates.index.shape[1])

    @property
    def has_sigma(self) -> bool:
        """Whether another bandwidth could be tried."""
        return "sigma" in registry.parameter_types(type(self.kernel))

    @property
    def is_local(self) -> bool:
        """Whether every node has a bandwidth of its own already."""
        return getattr(self.kernel, "sigma", None) == "local"

    def solved(self, method: str = "nnk", *, local: bool = False) -> Neighborhoods:
        """Return the weights by a method; each is solved once.

        With ``local`` every node has a bandwidth of its own.
        """
        key = method, local and not self.is_local
        if key not in self._solved:
            x = self.rows.x
            with self.run.progress("solve", len(x)) as on_rows:
                self._solved[key] = solve.solve(
                    self.run.pool,
                    x,
                    self.candidates,
                    kernel=self._kernel(local=local),
                    method=registry.create("methods", method),
                    k=self.settings.k,
                    on_rows=on_rows,
                )
        return self._solved[key]

    def graph(
        self,
        *,
        method: str = "nnk",
        symmetrize: str | None = None,
        min_degree: int = 0,
        sigma: str | None = None,
    ) -> Graph:
        """Build a graph; the parameters are those of ``build_graph``.

        ``sigma`` is "local", or left out for the one of these rows.
        """
        local = sigma == "local"
        found, weigher = self.solved(method, local=local), self._method(method)
        kernel = self._kernel(local=local)
        own = report.own_similarity(self.rows.x, self.candidates, kernel, weigher)
        with self.run.progress("symmetrize"):
            adjacency, _ = symmetrized(
                self.candidates,
                found,
                rule=symmetrize or weigher.rule,
                min_weight=MIN_WEIGHT,
                min_degree=min_degree,
                own=own,
            )
        return with_copies(Graph(adjacency, errors=found.errors), self.rows)

    def facts(
        self,
        *,
        method: str = "nnk",
        symmetrize: str | None = None,
        min_degree: int = 0,
        sigma: str | None = None,
    ) -> dict[str, Any]:
        """Describe a graph; each is built once."""
        rule = symmetrize or self._method(method).rule
        key = method, rule, min_degree, sigma == "local" and not self.is_local
        if key not in self._facts:
            graph = self.graph(
                method=method, symmetrize=rule, min_degree=min_degree, sigma=sigma
            )
            self._facts[key] = report.facts(graph)
        return self._facts[key]

    def failed(self, method: str, sigma: str | None = None) -> int:
        """Return how many nodes have no proof, for which ``build`` would fail."""
        found = self.solved(method, local=sigma == "local")
        proof = report.certificate(found, self.rows.origin)
        return proof.nodes_failed if proof else 0

    def kth_distance(self) -> FloatArray:
        """Return every node's distance to its last candidate."""
        there = np.isfinite(self.candidates.distance).sum(axis=1)
        last = np.maximum(there - 1, 0)[:, np.newaxis]
        kth = np.take_along_axis(self.candidates.distance, last, axis=1)[:, 0]
        finite: FloatArray = kth[there > 0]
        return finite

    def input_row(self, node: int) -> int:
        """Return the row of the input that a node of the search is."""
        origin = self.rows.origin
        return node if origin is None else int(origin[node])

    def _kernel(self, *, local: bool) -> Kernel:
        if not local or self.is_local:
            return self.kernel
        name = registry.spec(self.settings.kernel).partition(":")[0]
        return kernel_of(name, "local").fit(self.candidates)

    @staticmethod
    def _method(name: str) -> Method:
        method: Method = registry.create("methods", name)
        return method


def edge_overlap(one: Graph, other: Graph) -> dict[str, float]:
    """Return the Jaccard index of two edge sets, and what one has of the other.

    Both are 1 where there are no edges.
    """
    a: Any = one.adjacency.astype(bool)
    b: Any = other.adjacency.astype(bool)
    both = a.multiply(b).nnz
    either = a.nnz + b.nnz - both
    return {
        "jaccard": both / either if either else 1.0,
        "covered": both / b.nnz if b.nnz else 1.0,
    }


SATURATED = 0.85  # kept / k above this: NNK prunes little
ENOUGH = 0.01  # more that a point outside could explain means a small k
NEAR = 1e-3  # share of the median nearest distance that near-duplicates are below

GRAPHS: tuple[dict[str, Any], ...] = (
    {"method": "nnk", "symmetrize": "error", "min_degree": 0},
    {"method": "nnk", "symmetrize": "error", "min_degree": 3},
    {"method": "nnk", "symmetrize": "error-union", "min_degree": 0},
    {"method": "nnk", "symmetrize": "max", "min_degree": 0},
    {"method": "nnk", "symmetrize": "mutual", "min_degree": 0},
    {"method": "knn", "symmetrize": "mutual", "min_degree": 0},
    {"method": "knn", "symmetrize": "max", "min_degree": 0},
)
"""What is put side by side; the first is the default of ``build``."""


def row_facts(searched: SearchedRows) -> dict[str, Any]:
    """Count identical rows, and those that are nearly so."""
    rows = searched.rows
    facts: dict[str, Any] = {"distinct": len(rows.x), "copies": rows.copies}
    facts["largest_group"] = 1
    if rows.first is not None:
        facts["largest_group"] = int(np.bincount(rows.first).max())
    if searched.settings.kernel.nearness in DISTANCES and searched.k:
        nearest = searched.candidates.distance[:, 0]
        limit = NEAR * float(np.median(nearest))
        facts["near_duplicates"] = int((nearest < limit).sum())
    return facts


def support_facts(searched: SearchedRows) -> dict[str, Any]:
    """Say how many candidates NNK keeps."""
    there = (searched.candidates.index >= 0).sum(axis=1)
    size = (searched.solved().weights > 0).sum(axis=1)
    kept = float(size.sum() / there.sum()) if there.sum() else 0.0
    return {
        "k": searched.k,
        "mean": float(size.mean()),
        "min": int(size.min()),
        "max": int(size.max()),
        "kept_over_k": kept,
        "saturated": kept > SATURATED,
        "histogram": _histogram(size, _even_steps(searched.k)),
    }


def graph_facts(searched: SearchedRows) -> list[dict[str, Any]]:
    """Describe the graph of every rule."""
    names = ("edges", "edges_per_node", "components", "isolated")
    return [
        {**settings, **{name: searched.facts(**settings)[name] for name in names}}
        for settings in GRAPHS
    ]


def overlap_facts(searched: SearchedRows, sigma: str | None = None) -> dict[str, float]:
    """Say how much NNK and mutual kNN have in common.

    Their edges are those that ``build`` writes: with edges to copies of rows.
    ``jaccard`` is the share of all edges that both have, ``covered`` the share of the
    edges of mutual kNN that NNK has.
    """
    mutual = searched.graph(method="knn", symmetrize="mutual", sigma=sigma)
    return edge_overlap(searched.graph(sigma=sigma), mutual)


def hub_facts(searched: SearchedRows, ids: tuple[str, ...] | None) -> dict[str, Any]:
    """Say how unevenly nodes are chosen as candidates; `ids` are those of all rows."""
    index = searched.candidates.index
    n, k = len(index), searched.k
    degree = np.bincount(index[index >= 0], minlength=n)
    largest = int(degree.argmax())
    most, row = int(degree[largest]), searched.input_row(largest)
    steps = sorted({most, *(s for s in (0, k // 2, k, 2 * k, 4 * k) if s < most)})
    unchosen = int((degree == 0).sum()) if k else 0
    return {
        "largest": most,
        "largest_row": row,
        "largest_id": None if ids is None else ids[row],
        "largest_over_k": most / k if k else 0.0,
        "unchosen": unchosen,
        "unchosen_share": unchosen / n,
        "histogram": _histogram(degree, steps),
    }


def outside_facts(searched: SearchedRows) -> dict[str, Any] | None:
    """Bound what points outside the candidates could explain, where that is possible.

    None for kernels whose similarity need not fall with distance.
    """
    kernel = searched.kernel
    if not (kernel.form and kernel.nearness in DISTANCES and searched.k):
        return None
    bound = outside_bounds(searched.rows.x, searched.candidates, kernel)
    above = int((bound > ENOUGH).sum())
    last = searched.solved().weights[:, -1] > 0
    return {
        "limit": ENOUGH,
        "nodes_above": above,
        "share_above": above / len(bound),
        "median": float(np.median(bound)),
        "max": float(bound.max()),
        "last_kept_share": float(last.mean()),
    }


def distance_facts(searched: SearchedRows) -> dict[str, Any] | None:
    """Set the bandwidth against the distances it is meant for; None without them."""
    if searched.settings.kernel.nearness not in DISTANCES or not searched.k:
        return None
    nearest, kth = searched.candidates.distance[:, 0], searched.kth_distance()
    names = ("min", "q05", "median", "q95", "max")
    spread = np.percentile(kth, [0, 5, 50, 95, 100])
    low, high = float(spread[1]), float(spread[3])
    sigma = searched.kernel.bandwidth(searched.candidates)
    return {
        "sigma": sigma,
        "nearest_median": float(np.median(nearest)),
        "kth": {name: float(value) for name, value in zip(names, spread, strict=True)},
        "kth_spread": high / low if low > 0 else None,
        "warnings": report.bandwidth_warnings(sigma, report.reach(searched.candidates)),
    }


def _even_steps(most: int) -> list[int]:
    """Return the upper ends of at most ten steps from 0 to ``most``."""
    width = max(1, -(-most // 10))
    return sorted({*range(0, most, width), most})


def _histogram(values: IndexArray, tops: list[int]) -> list[dict[str, int]]:
    """Count whole numbers from above each of ``tops`` up to the next."""
    count = np.bincount(np.searchsorted(tops, values), minlength=len(tops))
    bottoms = [0, *(top + 1 for top in tops[:-1])]
    return [
        {"from": bottom, "to": top, "count": int(many)}
        for bottom, top, many in zip(bottoms, tops, count, strict=True)
    ]
