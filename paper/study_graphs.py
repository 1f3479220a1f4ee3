"""The graphs of the study: NNK in all its variants, and what others build."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import nnkgraph
from nnkgraph.data import Candidates
from nnkgraph.kernels.gaussian import Gaussian
from nnkgraph.tasks.columns import column_facts
from paper.data import Set

K = 30
MULTIPLES = (1 / 6, 1 / 3, 1 / 2, 2 / 3, 1.0, 1.5, 2.0, 3.0)
"""Bandwidths, in units of the mean distance to the k-th neighbor."""

LOCAL = {"local": 1 / 3, "local 1/2": 1 / 2, "local 2/3": 2 / 3, "local 1": 1.0}
"""Shares of the node's own distance to its k-th neighbor."""

_LEAST = 1e-8
"""No weight is less: similarities of far rows would be no numbers to solve with."""

_FRACTIONS = {1 / 6: "1/6", 1 / 3: "1/3", 1 / 2: "1/2", 2 / 3: "2/3"}


@dataclass(frozen=True)
class Local(Gaussian):
    """A Gaussian with a share of the node's own k-th distance as its bandwidth."""

    sigma: float | str = "local"
    share: float = 1 / 3

    def sigma_of_nodes(self, distance: Any) -> Any:
        """Return the bandwidths of a block of nodes."""
        return 3 * self.share * super().sigma_of_nodes(distance)


@dataclass(frozen=True)
class Kind:
    """A way to build a graph; the defaults are the paper's."""

    method: str = "nnk"
    k: int = K
    kernel: str = "gaussian"
    """Or ``unit``: a Gaussian of rows of unit length."""
    sigma: float | str = 1 / 3
    rule: str = "error"
    min_degree: int = 0
    weights: str = "regression"

    @property
    def name(self) -> str:
        """Return what differs from the paper's graph."""
        said = [self.method] if self.k == K else [f"{self.method} k={self.k}"]
        if self.kernel != "gaussian":
            said.append(self.kernel)
        bandwidth = self.method.startswith(("nnk", "l1")) and self.kernel != "cosine"
        if bandwidth:
            said.append(f"sigma {_FRACTIONS.get(self.sigma, self.sigma)}")  # type: ignore[arg-type]
        if self.rule != "error":
            said.append(self.rule)
        if self.min_degree:
            said.append(f"degree {self.min_degree}")
        if self.weights != "regression":
            said.append(f"weights {self.weights}")
        return ", ".join(said)


PAPER = Kind().name


def kinds(*, quick: bool = False) -> list[Kind]:
    """Return the graphs: one factor at a time, pairs where they interact."""
    main = [Kind(sigma=one, min_degree=3) for one in MULTIPLES]
    few = (1 / 3, 2 / 3, 1.0)
    if quick:
        main = [Kind(sigma=one, min_degree=3) for one in few]
    found = [
        Kind(),
        *main,
        *(Kind(sigma=one, min_degree=least) for one in few for least in (0, 1)),
        *(
            Kind(sigma=one, min_degree=3, weights=kind)
            for kind in ("one", "kernel")
            for one in (few if quick else (*few, 1.5))
        ),
        *(Kind(sigma=one, min_degree=3) for one in LOCAL),
        *(Kind("knn", k, rule=rule) for rule in ("max", "mutual") for k in (10, K)),
    ]
    if quick:
        return _distinct(found)
    found += [
        *(
            Kind(sigma=one, rule=rule)
            for rule in ("error-union", "max", "mean", "mutual")
            for one in (1 / 3, 1.0)
        ),
        *(
            Kind(sigma=one, rule="mean", weights=kind)
            for one in ("local", 1.0)
            for kind in ("regression", "kernel", "one")
        ),
        Kind(sigma=1.0, rule="error-union", weights="one"),
        *(Kind(sigma=one, min_degree=3, weights="kernel") for one in LOCAL),
        *(Kind(sigma=one, min_degree=1) for one in LOCAL),
        Kind(sigma="local"),
        Kind(sigma="local", rule="error-union"),
        *(
            Kind(kernel="unit", sigma=one, min_degree=3, weights=kind)
            for one in few
            for kind in ("regression", "one")
        ),
        *(
            Kind(kernel="cosine", min_degree=3, weights=kind)
            for kind in ("regression", "one")
        ),
        *(Kind(kernel="laplacian", sigma=one, min_degree=3) for one in few),
        *(
            Kind(f"l1:eta={eta}", sigma=one, min_degree=3)
            for one in (1.0, 2.0)
            for eta in (0.05, 0.2)
        ),
        *(Kind("knn", k, rule=rule) for rule in ("max", "mutual") for k in (5, 15)),
        Kind("knn", K, rule="mutual", min_degree=3),
        Kind("knn", K, rule="max", weights="kernel"),
        Kind("knn", 10, kernel="unit", rule="max"),
        Kind("umap", 15),
        Kind("scanpy", 15),
    ]
    return _distinct(found)


def _distinct(some: list[Kind]) -> list[Kind]:
    return list({kind.name: kind for kind in some}.values())


@dataclass(frozen=True, eq=False)
class Prepared:
    """Distinct rows of a set with their classes."""

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    found: dict[str, Candidates] = field(default_factory=dict)

    @classmethod
    def of(cls, whole: Set, rows: int) -> Prepared:
        """Draw rows; where columns are of different kinds, standardize them."""
        draw = np.random.default_rng(0)
        taken = np.sort(draw.permutation(len(whole.x))[:rows])
        x, y = whole.x[taken].astype(np.float64), whole.y[taken]
        first = np.sort(np.unique(x, axis=0, return_index=True)[1])
        x, y = x[first], y[first]
        facts = column_facts(x)
        if facts["scale_apart"] and not facts["principal"]:
            spread = x.std(axis=0)
            x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return cls(np.ascontiguousarray(x), np.unique(y, return_inverse=True)[1])

    @cached_property
    def unit(self) -> NDArray[np.float64]:
        """Rows of unit length."""
        length = np.linalg.norm(self.x, axis=1, keepdims=True)
        return self.x / np.where(length > 0, length, 1.0)

    @cached_property
    def sample(self) -> NDArray[np.int64]:
        """Rows whose neighbors are compared before and after embedding."""
        draw = np.random.default_rng(1)
        return np.sort(draw.permutation(len(self.x))[:400])

    def rows(self, kernel: str) -> NDArray[np.float64]:
        """Return the rows as a kernel of the study sees them."""
        return self.unit if kernel in {"unit", "cosine"} else self.x

    def candidates(self, kernel: str) -> Candidates:
        """Return the nearest rows of all rows."""
        name = {"unit": "gaussian"}.get(kernel, kernel)
        if kernel not in self.found:
            self.found[kernel] = nnkgraph.find_candidates(
                self.rows(kernel), k=K, kernel=name
            )
        return self.found[kernel]


def graph_of(ready: Prepared, kind: Kind) -> tuple[Any, Any, float | None]:
    """Return the adjacency, the directed weights that vote, and the bandwidth."""
    if kind.method in {"umap", "scanpy"}:
        graph = (_umap if kind.method == "umap" else _scanpy)(ready, kind.k)
        return graph, graph, None
    found, x = ready.candidates(kind.kernel), ready.rows(kind.kernel)
    kth = float(found.distance[:, -1].mean())
    sigma: Any = kind.sigma if isinstance(kind.sigma, str) else kind.sigma * kth
    if kind.method == "knn":
        near = found.index[:, : kind.k], found.distance[:, : kind.k]
        values = np.ones(near[1].shape)
        if kind.weights == "kernel":
            values = np.maximum(np.exp(-0.5 * (near[1] / sigma) ** 2), _LEAST)
        directed = _matrix(near[0], values)
        return _joined(directed, kind.rule, kind.min_degree), directed, None
    how: dict[str, Any] = {
        "k": K,
        "method": kind.method,
        "kernel": "gaussian" if kind.kernel == "unit" else kind.kernel,
        "candidates": found,
        "preset": "paper",
    }
    if kind.sigma in LOCAL:
        how["kernel"] = Local(share=LOCAL[str(kind.sigma)])
    elif kind.kernel != "cosine":
        how["sigma"] = sigma
    directed = nnkgraph.build_graph(x, symmetrize="none", min_weight=0, **how)
    graph = nnkgraph.build_graph(
        x, symmetrize=kind.rule, min_degree=kind.min_degree, **how
    )
    adjacency = graph.adjacency
    if kind.weights != "regression":
        adjacency = adjacency.copy()
        adjacency.data = _edge_weights(ready, kind, adjacency, sigma)
    used = None if isinstance(sigma, str) or kind.kernel == "cosine" else sigma
    return adjacency, directed.adjacency, used


def _edge_weights(ready: Prepared, kind: Kind, edges: Any, sigma: Any) -> Any:
    """Return ones, or the similarities of the ends of all edges."""
    if kind.weights == "one":
        return np.ones(edges.nnz)
    x, pairs = ready.rows(kind.kernel), edges.tocoo()
    gap = x[pairs.row] - x[pairs.col]
    square = np.einsum("ij,ij->i", gap, gap)
    if kind.sigma in LOCAL:  # the larger of the two directions
        own = LOCAL[str(kind.sigma)] * ready.candidates(kind.kernel).distance[:, -1]
        sigma = np.maximum(own[pairs.row], own[pairs.col])
    return np.maximum(np.exp(-0.5 * square / sigma**2), _LEAST)


def _matrix(index: Any, values: Any) -> Any:
    n, k = index.shape
    start = np.arange(0, n * k + 1, k)
    return sparse.csr_array(
        (values.ravel(), index.ravel().astype(np.int64), start), (n, n)
    )


def _joined(directed: Any, rule: str, least: int) -> Any:
    """Join the directions: the larger weight, or only pairs with both."""
    other = directed.T.tocsr()
    union = directed.maximum(other)
    if rule == "max":
        return union
    both = directed.minimum(other)
    if least:  # each node's own nearest stay
        n, k = directed.shape[0], int(directed.indptr[1])
        index = directed.indices.reshape(n, k)[:, :least]
        own = _matrix(index, directed.data.reshape(n, k)[:, :least])
        both = both.maximum(own.maximum(own.T.tocsr()))
    both.eliminate_zeros()
    return both.tocsr()


def _umap(ready: Prepared, k: int) -> Any:
    """Return UMAP's fuzzy union of k neighbors, from its definition.

    Memberships exp(-(d - rho) / sigma) with rho the nearest distance add up to
    log2(k) for every node, which counts itself among its neighbors; a and b join to
    a + b - a b.
    """
    found = ready.candidates("gaussian")
    index, distance = found.index[:, : k - 1], found.distance[:, : k - 1]
    above = np.maximum(distance - distance[:, :1], 0.0)
    low, high = np.zeros(len(index)), np.full(len(index), 2 * distance.max() + 1e-12)
    for _ in range(64):
        middle = (low + high) / 2
        total = np.exp(-above / middle[:, np.newaxis]).sum(axis=1)
        wide = total > np.log2(k)
        high, low = np.where(wide, middle, high), np.where(wide, low, middle)
    directed = _matrix(index, np.exp(-above / ((low + high) / 2)[:, np.newaxis]))
    other = directed.T.tocsr()
    return (directed + other - directed * other).tocsr()


def _scanpy(ready: Prepared, k: int) -> Any:
    """Return scanpy's Gaussian graph, from its definition.

    Every node's bandwidth is the median distance to its neighbors; a pair has
    sqrt(2 s_i s_j / (s_i^2 + s_j^2)) exp(-d^2 / (s_i^2 + s_j^2)), with squared
    bandwidths of half the squared median.
    """
    found = ready.candidates("gaussian")
    index, distance = found.index[:, : k - 1], found.distance[:, : k - 1]
    square = np.median(distance, axis=1) ** 2 / 2
    own, other = square[:, np.newaxis], square[index]
    total = own + other
    values = np.sqrt(2 * np.sqrt(own * other) / total) * np.exp(-(distance**2) / total)
    directed = _matrix(index, values)
    return directed.maximum(directed.T.tocsr())
