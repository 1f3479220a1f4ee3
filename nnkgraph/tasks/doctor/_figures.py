"""The figures of a diagnosis: counts and shares, plain JSON values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import report, solve
from nnkgraph.build.grow import outside_bounds
from nnkgraph.build.settings import Settings, kernel_of
from nnkgraph.build.symmetrize import symmetrize
from nnkgraph.data import Graph
from nnkgraph.data.duplicates import Rows, with_copies
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.build.run import Run
    from nnkgraph.data import Candidates, IndexArray, Neighborhoods
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

    def solved(self, method: str = "nnk", sigma: str | None = None) -> Neighborhoods:
        """Return the weights by a method; each is solved once."""
        local = sigma == "local" and not self.is_local
        key = method, local
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
        self, method: str, rule: str, min_degree: int, sigma: str | None
    ) -> Graph:
        """Build a graph; ``sigma`` is "local", or None for the one of these rows."""
        found = self.solved(method, sigma)
        weigher: Method = registry.create("methods", method)
        kernel = self._kernel(local=sigma == "local" and not self.is_local)
        own = report.own_similarity(self.rows.x, self.candidates, kernel, weigher)
        with self.run.progress("symmetrize"):
            adjacency, _ = symmetrize(
                self.candidates,
                found,
                rule=rule,
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
        """Describe the graph that ``build_graph`` makes so; each is built once."""
        rule = symmetrize or registry.create("methods", method).rule
        key = method, rule, min_degree, None if self.is_local else sigma
        if key not in self._facts:
            self._facts[key] = report.facts(self.graph(*key))
        return self._facts[key]

    def failed(self, method: str, sigma: str | None = None) -> int:
        """Return how many nodes have no proof, for which ``build`` would fail."""
        proof = report.certificate(self.solved(method, sigma), self.rows.origin)
        return proof.nodes_failed if proof else 0

    def _kernel(self, *, local: bool) -> Kernel:
        if not local:
            return self.kernel
        name = registry.spec(self.settings.kernel).partition(":")[0]
        return kernel_of(name, "local").fit(self.candidates)


SATURATED = 0.85  # kept / k above this: NNK prunes little
ENOUGH = 0.01  # more that a point outside could explain means a small k
NEAR = 1e-3  # share of the median nearest distance that near-duplicates are below

# What is put side by side; the first is the default of ``build``.
GRAPHS = (
    ("nnk", "error", 0),
    ("nnk", "error", 3),
    ("nnk", "error-union", 0),
    ("nnk", "max", 0),
    ("nnk", "mutual", 0),
    ("knn", "mutual", 0),
    ("knn", "max", 0),
)


def row_facts(searched: SearchedRows) -> dict[str, Any]:
    """Count identical rows, and those that are nearly so."""
    rows = searched.rows
    group = 1 if rows.first is None else int(np.bincount(rows.first).max())
    facts: dict[str, Any] = {"distinct": len(rows.x), "copies": rows.copies}
    facts["largest_group"] = group
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
    lines = []
    for method, rule, least in GRAPHS:
        facts = searched.facts(method=method, symmetrize=rule, min_degree=least)
        way = {"method": method, "symmetrize": rule, "min_degree": least}
        lines.append(way | {name: facts[name] for name in names})
    return lines


def overlap_facts(searched: SearchedRows, sigma: str | None = None) -> dict[str, float]:
    """Say how much NNK and mutual kNN have in common.

    Their edges are those that ``build`` writes: with edges to copies of rows.
    ``jaccard`` is the share of all edges that both have, ``covered`` the share of the
    edges of mutual kNN that NNK has; both are 1 where there are no edges.
    """
    nnk, mutual = (
        searched.graph(method, rule, 0, sigma).adjacency.astype(bool)
        for method, rule in (("nnk", "error"), ("knn", "mutual"))
    )
    both = nnk.multiply(mutual).nnz
    either = nnk.nnz + mutual.nnz - both
    return {
        "jaccard": both / either if either else 1.0,
        "covered": both / mutual.nnz if mutual.nnz else 1.0,
    }


def hub_facts(searched: SearchedRows, ids: tuple[str, ...] | None) -> dict[str, Any]:
    """Say how unevenly nodes are chosen as candidates; `ids` are those of all rows."""
    index = searched.candidates.index
    n, k = len(index), searched.k
    degree = np.bincount(index[index >= 0], minlength=n)
    row = largest = int(degree.argmax())
    if searched.rows.origin is not None:
        row = int(searched.rows.origin[largest])
    most = int(degree[largest])
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
    distance = searched.candidates.distance
    nearest, there = distance[:, 0], np.isfinite(distance).sum(axis=1)
    kth = distance[np.arange(len(there)), there - 1][there > 0]
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
