"""What the study does with a graph: classify, propagate, cluster, embed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from nnkgraph.data import Graph
from nnkgraph.tasks.propagate import errors, sample
from paper.inverse import InversePropagator
from paper.results import Row
from paper.study_graphs import Prepared

SHARES = (0.01, 0.05, 0.1)
_SIGNS = {"combinatorial": "L", "normalized": "Lsym"}
TASKS = (
    "loo",
    *(f"propagate_{sign}" for sign in _SIGNS.values()),
    *(f"{sign}_{round(100 * one)}" for sign in _SIGNS.values() for one in SHARES),
    "leiden",
    "spectral",
    "trustworthiness",
    "continuity",
)
"""Errors as shares from 0 to 1; for clusterings and embeddings larger is better."""

_DRAWS = 5
_SEEDS = 3
_DIMENSIONS = 10
_NEAR = 15


def judged(ready: Prepared, adjacency: Any, directed: Any, sigma: float | None) -> Row:
    """Return all figures of a graph."""
    n = len(ready.y)
    count, component = sparse.csgraph.connected_components(adjacency, directed=False)
    inverse = InversePropagator(Graph(adjacency))
    vectors = _eigenvectors(inverse, component, int(ready.y.max()) + 1)
    return {
        "sigma": sigma,
        "edges_per_node": round(adjacency.nnz / 2 / n, 4),
        "isolated": round(float((np.diff(adjacency.indptr) == 0).mean()), 5),
        "components": count,
        "loo": _left_out(directed, ready.y),
        **_propagated(inverse, ready.y),
        "leiden": _leiden(adjacency, ready.y),
        "spectral": _spectral(vectors, component, ready.y),
        **_kept_near(ready, vectors, component),
    }


def _left_out(directed: Any, y: Any) -> float:
    """Return the error of votes by the neighborhood's weights."""
    votes = directed @ np.eye(int(y.max()) + 1)[y]
    return round(float((votes.argmax(axis=1) != y).mean()), 5)


def _propagated(inverse: InversePropagator, y: Any) -> Row:
    """Return mean errors of label propagation; what is not reached is wrong."""
    classes, everywhere, found = int(y.max()) + 1, np.ones(len(y), np.bool_), {}
    for laplacian, sign in _SIGNS.items():
        for share in SHARES:
            tried = []
            for draw in range(_DRAWS):
                labels = sample(y, share, seed=draw)
                answer = inverse(labels, classes, laplacian=laplacian)
                tried.append(errors(answer, y, everywhere))
            error = float(np.mean([one["of_all"] for one in tried if one]))
            found[f"{sign}_{round(100 * share)}"] = round(error, 5)
        own = [found[f"{sign}_{round(100 * share)}"] for share in SHARES]
        found[f"propagate_{sign}"] = round(float(np.mean(own)), 5)
    return found


def _leiden(adjacency: Any, y: Any) -> float:
    """Return the agreement of communities (modularity, resolution 1) with classes."""
    import igraph
    from sklearn.metrics import adjusted_mutual_info_score

    upper = sparse.triu(adjacency, 1).tocoo()
    ends = np.column_stack([upper.row, upper.col]).tolist()
    graph, found = igraph.Graph(len(y), ends), []
    for seed in range(_SEEDS):
        igraph.set_random_number_generator(random.Random(seed))  # noqa: S311
        groups = graph.community_leiden(
            objective_function="modularity", weights=upper.data.tolist(), n_iterations=5
        )
        found.append(adjusted_mutual_info_score(y, groups.membership))
    return round(float(np.mean(found)), 5)


def _eigenvectors(inverse: InversePropagator, component: Any, classes: int) -> Any:
    """Return the smoothest functions on the largest component, the constant left out.

    They belong to the largest eigenvalues of the inverse of its Laplacian.
    """
    inside = component == np.bincount(component).argmax()
    rows = np.flatnonzero(inside)
    part = inverse.inverted[np.ix_(rows, rows)]
    root = inverse.root[rows]
    constant = root / np.linalg.norm(root)
    part = part - np.outer(constant, constant)  # which has the value 1 there
    count = min(max(classes - 1, _DIMENSIONS), len(rows) - 2)
    if count < 1:
        return np.zeros((len(rows), 1))
    start = np.random.default_rng(0).normal(size=len(rows))
    values, vectors = eigsh(part, k=count, which="LA", v0=start)
    return vectors[:, np.argsort(-values)]


def _spectral(vectors: Any, component: Any, y: Any) -> float:
    """Return the agreement of k-means of eigenvectors with classes.

    Nodes outside of the largest component are groups by component.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_mutual_info_score

    classes = int(y.max()) + 1
    inside = component == np.bincount(component).argmax()
    own = vectors[:, : classes - 1]
    length = np.linalg.norm(own, axis=1, keepdims=True)
    own = own / np.where(length > 0, length, 1.0) if classes > 2 else own
    groups = component + classes
    model = KMeans(min(classes, len(own)), n_init=4, random_state=0)
    groups[inside] = model.fit_predict(own)
    return round(float(adjusted_mutual_info_score(y, groups)), 5)


def _kept_near(ready: Prepared, vectors: Any, component: Any) -> Row:
    """Return trustworthiness and continuity of eigenmaps, on a sample of rows."""
    inside = np.flatnonzero(component == np.bincount(component).argmax())
    asked = np.flatnonzero(np.isin(inside, ready.sample))
    before = _ranks(ready.x[inside], asked)
    after = _ranks(vectors[:, :_DIMENSIONS], asked)
    n, k = len(inside), _NEAR
    if not len(asked) or 2 * n <= 3 * k + 1 or vectors.shape[1] < _DIMENSIONS:
        return {"trustworthiness": None, "continuity": None}  # hardly a graph
    scale = 2.0 / (len(asked) * k * (2 * n - 3 * k - 1))
    intruders = np.where(after < k, np.maximum(before - k + 1, 0), 0).sum()
    lost = np.where(before < k, np.maximum(after - k + 1, 0), 0).sum()
    return {
        "trustworthiness": round(float(1 - scale * intruders), 5),
        "continuity": round(float(1 - scale * lost), 5),
    }


def _ranks(x: Any, asked: Any) -> Any:
    """Return for some rows which place every row has among their neighbors, from 0."""
    square = np.einsum("ij,ij->i", x, x) - 2.0 * (x[asked] @ x.T)
    square[np.arange(len(asked)), asked] = np.inf
    order = np.argsort(square, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(x))[np.newaxis], axis=1)
    return ranks
