"""Clusters of graphs beside those of kNN graphs as scanpy makes them, for docs/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import nnkgraph
from nnkgraph import Graph, Labels

SETS = {
    "mnist": 20_000,
    "isolet": 0,
    "letter": 0,
    "optdigits": 0,
    "pendigits": 0,
    "satimage": 0,
    "usps_libsvm_uint8": 0,
    "deb_minilm_4k": 0,
}
"""Files of the folder, and how many rows of the first are taken; 0 for all."""

BY_ANGLE = {"deb_minilm_4k"}  # embeddings: rows of length 1 for everybody
SEEDS = range(5)
K = 15


def fuzzy(index: np.ndarray, distance: np.ndarray) -> csr_array:
    """Return UMAP's weights, as scanpy's connectivities; k counts the node itself.

    A neighbor weighs exp(-(d - nearest) / sigma), where sigma makes a node's weights
    log2(k) in all; an edge weighs a + b - a b.
    """
    n, m = distance.shape
    positive = np.where(distance > 0, distance, np.inf)
    nearest = positive.min(axis=1, keepdims=True)
    nearest = np.where(np.isinf(nearest), 0.0, nearest)
    beyond = np.maximum(distance - nearest, 0.0)
    low, high = np.zeros((n, 1)), np.full((n, 1), np.inf)
    sigma, wanted = np.ones((n, 1)), np.log2(m + 1)
    for _ in range(64):
        total = np.exp(-beyond / sigma).sum(axis=1, keepdims=True)
        high = np.where(total > wanted, sigma, high)
        low = np.where(total > wanted, low, sigma)
        middle = np.where(np.isinf(high), 2 * sigma, (low + high) / 2)
        sigma = np.maximum(middle, 1e-300)
    least = 1e-3 * distance.mean(axis=1, keepdims=True)  # as UMAP has it
    weights = np.exp(-beyond / np.maximum(sigma, least))
    flat = weights.ravel(), index.ravel(), np.arange(0, n * m + 1, m)
    one = csr_array(flat, shape=(n, n))
    return csr_array(one + one.T - one.multiply(one.T))


def graphs(x: np.ndarray, scale: str) -> Iterator[tuple[str, Graph]]:
    """Yield graphs of the same rows, with their names."""
    yield "default", nnkgraph.build_graph(x, scale=scale, workers=2)
    yield (
        "preset cluster",
        nnkgraph.build_graph(x, scale=scale, preset="cluster", workers=2),
    )
    found = nnkgraph.find_candidates(
        x, k=K - 1, scale=scale, search="exact", duplicates="keep", workers=2
    )
    yield "kNN, UMAP's weights", _graph(fuzzy(found.index, found.distance))
    n, m = found.index.shape
    ones = np.ones(n * m), found.index.ravel(), np.arange(0, n * m + 1, m)
    one = csr_array(ones, shape=(n, n))
    yield "kNN, union", _graph(one.maximum(one.T))


def _graph(weights: Any) -> Graph:
    weights = csr_array(weights)
    weights = csr_array((weights + weights.T) / 2)
    weights.eliminate_zeros()
    weights.sort_indices()
    return Graph(weights)


def page(folder: Path) -> None:
    """Print AMI, clusters and edges a node of every graph, as a table."""
    means: dict[str, list[float]] = {}
    for name, rows in SETS.items():
        with np.load(folder / f"{name}.npz") as file:
            x, y = file["X"][: rows or None], file["y"][: rows or None]
        labels = Labels.of(y)
        cells = []
        for kind, graph in graphs(x, "unit" if name in BY_ANGLE else "none"):
            ami, counts = [], []
            for seed in SEEDS:
                (found,) = nnkgraph.cluster(graph, labels, seed=seed).partitions
                ami.append(found.facts["ami"])
                counts.append(len(found.sizes))
            means.setdefault(kind, []).append(float(np.mean(ami)))
            cells.append(
                f"{np.mean(ami):.3f} ({min(ami):.3f}-{max(ami):.3f}), "
                f"{np.mean(counts):.0f}, {graph.n_edges / len(x):.1f}"
            )
        print(
            f"| {name} | {len(x)} | {len(labels.classes)} |",
            " | ".join(cells),
            "|",
            flush=True,
        )
    mean = " | ".join(f"{kind}: {np.mean(all_):.3f}" for kind, all_ in means.items())
    print(f"| mean | {mean} |", flush=True)
