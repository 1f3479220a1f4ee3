"""Rows with their candidates, and the graphs that ``build_graph`` makes of them.

Of many rows a sample is searched. Whether two rows have an edge follows from both of
their lists: of the first rows that are drawn, the *nodes*, the lists of all candidates
are found as well, so that every edge from a node to its candidates is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import report, solve
from nnkgraph.build.settings import Settings, kernel_of
from nnkgraph.build.symmetrize import symmetrize
from nnkgraph.data import Candidates, Graph, Neighborhoods
from nnkgraph.data.duplicates import Rows, with_copies
from nnkgraph.data.pairs import MATRICES
from nnkgraph.data.sparse import work_columns
from nnkgraph.kernels import Problem
from nnkgraph.runtime import registry
from nnkgraph.search.auto import Costs, seconds

if TYPE_CHECKING:
    from nnkgraph.build.run import Run
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.search import Search


MIN_WEIGHT = 1e-8  # lighter edges are dropped, as ``build_graph`` does by default
MOST = 20_000  # so many rows are all searched
_NODES = 200, 1000  # at least and at most
_DRAWN = 10  # rows that are drawn for each node
_OF_ROWS = [
    "distances",
    "hubs",
    "outside",
    "rows.near_duplicates",
    "search",
    "similarities",
    "support",
]
_SECONDS = 20.0  # what the search should take, by the measure of ``search.auto``


@dataclass(frozen=True)
class SearchedRows:
    """All rows with their candidates."""

    run: Run
    candidates: Candidates
    kernel: Kernel
    plain: Kernel
    """For methods without an error, which no preset changes."""

    _solved: dict[tuple[str, bool], Neighborhoods] = field(default_factory=dict)
    _facts: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        """All rows as the kernel sees them."""
        return self.run.rows

    @property
    def settings(self) -> Settings:
        """What the graphs are made with."""
        return self.run.settings

    @property
    def usual(self) -> tuple[str, int]:
        """The rule and the ``min_degree`` of NNK."""
        made = self.settings
        return (made.rule, made.min_degree) if made.method.has_error else ("error", 0)

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

    @property
    def sample(self) -> dict[str, Any] | None:
        """How many rows were drawn; None where all rows are here."""
        return None

    @property
    def lists(self) -> Candidates:
        """The candidates that are solved."""
        return self.candidates

    @property
    def points(self) -> Any:
        """The rows whose candidates these are; None for all."""
        return None

    @property
    def origin(self) -> IndexArray | None:
        """Their numbers in the input; None where those are the same."""
        return self.rows.origin

    @property
    def drawn(self) -> IndexArray:
        """Which of ``rows`` have ``candidates``."""
        return np.arange(len(self.rows.x))

    @property
    def asking(self) -> Any:
        """Those rows themselves, without a copy where they are all."""
        return self.rows.x

    def solved(self, method: str = "nnk", sigma: str | None = None) -> Neighborhoods:
        """Return the weights by a method; each is solved once."""
        local = sigma == "local" and not self.is_local
        key = method, local
        if key not in self._solved:
            with self.run.progress("solve", len(self.lists.index)) as on_rows:
                self._solved[key] = solve.solve(
                    self.run.pool,
                    self.rows.x,
                    self.lists,
                    kernel=self._kernel(method, local=local),
                    method=registry.create("methods", method),
                    points=self.points,
                    k=self.settings.k,
                    on_rows=on_rows,
                )
        return self._solved[key]

    def weights(self) -> FloatArray:
        """Return the weights of ``candidates`` by NNK."""
        return self.solved().weights[: len(self.candidates.index)]

    def graph(
        self, method: str, rule: str, min_degree: int, sigma: str | None
    ) -> Graph:
        """Build a graph; ``sigma`` is "local", or None for the one of these rows."""
        lists, found, own = self._directed(method, sigma)
        with self.run.progress("symmetrize"):
            joined = symmetrize(
                lists,
                found,
                rule=rule,
                min_weight=MIN_WEIGHT,
                min_degree=min_degree,
                own=own,
            )
        graph = Graph(joined.adjacency, errors=found.errors)
        return graph if self.sample else with_copies(graph, self.rows)

    def _directed(
        self, method: str, sigma: str | None
    ) -> tuple[Candidates, Neighborhoods, FloatArray | None]:
        """Return what a graph is made of; the last is what scales the errors."""
        weigher: Method = registry.create("methods", method)
        kernel = self._kernel(method, local=sigma == "local" and not self.is_local)
        own = report.own_similarity(self.rows.x, self.candidates, kernel, weigher)
        return self.candidates, self.solved(method, sigma), own

    def edges(self, adjacency: Any) -> float:
        """Count the edges of a graph."""
        return float(adjacency.nnz / 2)

    def facts(
        self,
        *,
        method: str = "nnk",
        symmetrize: str | None = None,
        min_degree: int | None = None,
        sigma: str | None = None,
    ) -> dict[str, Any]:
        """Describe the graph that ``build_graph`` makes so; each is built once."""
        weigher: Method = registry.create("methods", method)
        usual, least = self.usual
        rule = symmetrize or (usual if weigher.has_error else weigher.rule)
        if min_degree is None:
            min_degree = least if rule.startswith("error") else 0
        key = method, rule, min_degree, None if self.is_local else sigma
        if key not in self._facts:
            self._facts[key] = self._described(self.graph(*key))
        return self._facts[key]

    def _described(self, graph: Graph) -> dict[str, Any]:
        return report.facts(graph)

    def failed(self, method: str, sigma: str | None = None) -> int:
        """Return how many nodes have no proof, for which ``build`` would fail."""
        proof = report.certificate(self.solved(method, sigma), self.origin)
        return proof.nodes_failed if proof else 0

    def _kernel(self, method: str, *, local: bool) -> Kernel:
        if not local:
            weigher: Method = registry.create("methods", method)
            return self.kernel if weigher.has_error else self.plain
        name = registry.spec(self.settings.kernel).partition(":")[0]
        return kernel_of(name, "local").fit(self.candidates)


@dataclass(frozen=True)
class SampledRows(SearchedRows):
    """Some rows with their candidates among all; ``candidates`` are those of the drawn.

    Its graphs have the searched rows as nodes, and k more: see ``_places``.
    """

    searched: Candidates = field(kw_only=True)
    numbers: IndexArray = field(kw_only=True)
    """Which rows were searched: those that were drawn, then candidates of the nodes."""

    nodes: int = field(kw_only=True)

    @property
    def sample(self) -> dict[str, Any]:
        """How many rows were drawn, are nodes, and were searched; what is from them."""
        return {
            "rows": len(self.candidates.index),
            "nodes": self.nodes,
            "searched": len(self.numbers),
            "estimated_from_rows": _OF_ROWS,
            "estimated_from_nodes": ["graphs", "overlap", "suggestion"],
        }

    @property
    def lists(self) -> Candidates:
        """The candidates of all searched rows."""
        return self.searched

    @cached_property
    def points(self) -> Any:
        """The searched rows."""
        return self.rows.x[self.numbers]

    @property
    def origin(self) -> IndexArray:
        """Their numbers in the input."""
        origin = self.rows.origin
        return self.numbers if origin is None else origin[self.numbers]

    @property
    def drawn(self) -> IndexArray:
        """The first of the searched rows."""
        return self.numbers[: len(self.candidates.index)]

    @property
    def asking(self) -> Any:
        """Those rows themselves."""
        return self.points[: len(self.candidates.index)]

    @cached_property
    def _places(self) -> Candidates:
        """The lists by places in ``numbers``.

        Candidates without one become k nodes more, which have no candidates: one for
        each place in a list, so that no list has one twice, and all keep their order.
        """
        index, (q, k) = self.searched.index, self.searched.index.shape
        place = np.full(len(self.rows.x), -1)
        place[self.numbers] = np.arange(q)
        there = place[index]
        there = np.where(there < 0, q + np.arange(k), there).astype(index.dtype)
        there[index < 0] = -1
        more = ((0, k), (0, 0))
        distance = np.pad(self.searched.distance, more, constant_values=np.inf)
        return Candidates(np.pad(there, more, constant_values=-1), distance)

    def _directed(
        self, method: str, sigma: str | None
    ) -> tuple[Candidates, Neighborhoods, FloatArray | None]:
        found, own, k = self.solved(method, sigma), None, self.k
        errors = None if found.errors is None else np.pad(found.errors, (0, k))
        if errors is not None and self.kernel.form:
            known = self.searched.index, self.searched.distance, self.kernel
            own = np.pad(Problem(self.rows.x, self.points, *known).own(), (0, k))
        weights = np.pad(found.weights, ((0, k), (0, 0)))
        return self._places, Neighborhoods(weights, errors), own

    @cached_property
    def _pattern(self) -> Any:
        """Who is a candidate of whom."""
        from scipy.sparse import csr_array

        index = self._places.index
        start = np.concatenate([[0], np.cumsum((index >= 0).sum(axis=1))])
        parts: Any = np.ones(start[-1], np.bool_), index[index >= 0], start
        return csr_array(parts, (len(index), len(index)))

    def _own_edges(self, adjacency: Any) -> Any:
        """Return the edges from the nodes to their candidates."""
        return adjacency[: self.nodes].multiply(self._pattern[: self.nodes]).tocsr()

    def edges(self, adjacency: Any) -> float:
        """Estimate the edges of a graph of all rows, without a bias.

        Every edge counts once for the row that has the other as a candidate, or half
        for both.
        """
        own = self._own_edges(adjacency)
        both = own.multiply(self._pattern[:, : self.nodes].T)
        each = (own.nnz - both.nnz / 2) / self.nodes
        return float(each * len(self.rows.x) + self.rows.copies)

    def _described(self, graph: Graph) -> dict[str, Any]:
        """Estimate what is known; components are not.

        Nodes without an edge to a candidate count as isolated: some may have one from
        elsewhere, under rules that keep such edges.
        """
        total, edges = len(self.run.features.x), self.edges(graph.adjacency)
        alone = np.diff(self._own_edges(graph.adjacency).indptr) == 0
        if self.rows.first is not None:
            alone &= np.bincount(self.rows.first)[self.origin[: self.nodes]] == 1
        return {
            "nodes": total,
            "edges": round(edges),
            "edges_per_node": edges / total,
            "components": None,
            "isolated": round(alone.mean() * len(self.rows.x)),
            "directed": False,
        }


def search(run: Run, plain: Kernel) -> SearchedRows:
    """Search all rows, or a sample of them where they are many.

    The second kernel is for methods without an error.
    """
    kernel, x, k = run.settings.kernel, run.rows.x, run.settings.k
    n = len(x)
    if n <= MOST or kernel.base in MATRICES:
        found, fitted = run.find_and_fit()
        return SearchedRows(run, found, fitted, plain.fit(found))
    each = seconds(Costs(n, work_columns(x), k, kernel.nearness).exact) / n
    nodes = int(np.clip(_SECONDS / (each * (k + _DRAWN)), *_NODES))
    rng = np.random.default_rng(run.settings.seed)
    rows = rng.choice(n, min(n, _DRAWN * nodes), replace=False)
    known = run.find() if run.settings.search.reads else None
    drawn = _lists(run, rows, known)
    more = np.setdiff1d(drawn.index[:nodes], [*rows, -1])
    others = _lists(run, more, known)
    searched = replace(
        drawn,
        index=np.concatenate([drawn.index, others.index]),
        distance=np.concatenate([drawn.distance, others.distance]),
    )
    numbers = np.concatenate([rows, more])
    fitted = kernel.fit(drawn)
    return SampledRows(
        run,
        drawn,
        fitted,
        plain.fit(drawn),
        searched=searched,
        numbers=numbers,
        nodes=nodes,
    )


def _lists(run: Run, rows: IndexArray, known: Candidates | None) -> Candidates:
    """Return the candidates of some rows: exact ones, where none are known."""
    if known is not None:
        return replace(known, index=known.index[rows], distance=known.distance[rows])
    exact: Search = registry.create("search", "exact")
    with run.progress("search", len(rows)) as on_rows:
        wanted = run.wanted(run.settings.k + 1, on_rows)
        found = exact.query(wanted, run.rows.x[rows])
    # A row finds itself, unless more than k others are as near.
    own = found.index == rows[:, np.newaxis]
    own[~own.any(axis=1), -1] = True
    index, distance = (
        values[~own].reshape(len(rows), -1) for values in (found.index, found.distance)
    )
    return replace(found, index=index, distance=distance)
