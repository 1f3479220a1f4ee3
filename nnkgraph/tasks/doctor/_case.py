"""One search, and every graph that can be made of what it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import neighborhoods, registry, report
from nnkgraph.data import Graph
from nnkgraph.duplicates import with_copies
from nnkgraph.find import Run, find_and_fit
from nnkgraph.prepare import create_kernel, warm_up
from nnkgraph.symmetrize import symmetrize as symmetrized

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray, Neighborhoods
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.prepare import Plan
    from nnkgraph.stages import Stages

MIN_WEIGHT = 1e-8
"""Lighter edges are dropped, as ``build_graph`` does by default."""


@dataclass(frozen=True)
class Case:
    """Rows with their candidates; graphs are those that ``build_graph`` would make."""

    plan: Plan
    rows: Rows
    candidates: Candidates
    kernel: Kernel
    pool: Pool
    stages: Stages
    _solved: dict[tuple[str, bool], Neighborhoods] = field(default_factory=dict)
    _facts: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, rows: Rows, pool: Pool, seed: int, stages: Stages) -> Case:
        """Search the candidates of all rows."""
        with stages("start"):
            for name in ("nnk", "knn"):
                method: Method = registry.create("methods", name)
                warm_up(pool, rows.x, plan.kernel, method)
        candidates, kernel = find_and_fit(Run(plan, rows, pool, seed), stages)
        return cls(plan, rows, candidates, kernel, pool, stages)

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
            with self.stages("solve", len(x)) as on_rows:
                self._solved[key] = neighborhoods.solve(
                    self.pool,
                    x,
                    self.candidates,
                    kernel=self._kernel(local=local),
                    method=registry.create("methods", method),
                    k=self.plan.k,
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

        ``sigma`` is "local", or left out for the one of the case.
        """
        local = sigma == "local"
        found, weigher = self.solved(method, local=local), self._method(method)
        kernel = self._kernel(local=local)
        own = report.own_similarity(self.rows.x, self.candidates, kernel, weigher)
        with self.stages("symmetrize"):
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
        return proof["nodes_failed"] if proof else 0

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
        name = registry.spec(self.plan.kernel).partition(":")[0]
        return create_kernel(name, "local").fit(self.candidates)

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
