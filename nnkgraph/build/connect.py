"""Bridges between the components of a graph: the shortest that join them all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Candidates, Graph, SparseGram, SparseRows, pairs
from nnkgraph.data.edges import component_labels, with_edges
from nnkgraph.data.pairs import (
    TILE,
    copy_tile,
    cross_values,
    matrix_value,
    tile_values,
)
from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Kernel, Problem
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import distance_of

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray

WAYS = ("none", "mst")


def check_connect(way: str, kernel: Kernel, rule: str, x: Any) -> None:
    """Refuse what cannot be connected."""
    if way not in WAYS:
        raise ParameterError(f"unknown way {way!r} to connect; choose from none, mst")
    if way == "none":
        return
    if rule == "none":
        raise ParameterError("a directed graph is not connected: use another rule")
    if kernel.nearness not in pairs.BASES:
        raise ParameterError("a kernel function has no distances to connect by")
    if isinstance(x, SparseGram):
        raise ParameterError(
            "a sparse matrix of similarities or distances has no bridges to offer"
        )
    if isinstance(x, SparseRows) or kernel.base == "jaccard-distance":
        raise ParameterError("bridges need a dense matrix of features: leave out mst")


def single(kernel: Kernel, candidates: Candidates) -> Kernel:
    """Return a kernel with one bandwidth for all: the mean of local ones."""
    if getattr(kernel, "sigma", None) != "local":
        return kernel
    known: Any = kernel
    made: Kernel = replace(known, sigma=kernel.bandwidth(candidates))
    return made


def connected(graph: Graph, x: Any, kernel: Kernel, min_weight: float) -> Graph:
    """Return the graph with the shortest bridges between its components.

    The bridges are those of a minimum spanning tree of the components. Each weighs what
    the kernel says, but not less than ``min_weight``.
    """
    bridges = _bridges(graph, x, kernel.nearness)
    if not len(bridges):
        return replace(graph, bridges=bridges)
    weights = np.maximum(_similar(x, kernel, bridges), min_weight)
    row, column = np.concatenate([bridges, bridges[:, ::-1]]).T
    known = None
    if graph.distances is not None:
        ends = x[bridges[:, 0]], bridges[:, 1:]
        score = cross_values(x, *ends, kernel.nearness)[:, 0]
        known = graph.distances, np.tile(distance_of(score, kernel.nearness), 2)
    more = row, column, np.concatenate([weights, weights])
    adjacency, lengths = with_edges(graph.adjacency, *more, lengths=known)
    return replace(graph, adjacency=adjacency, bridges=bridges, distances=lengths)


def _similar(x: Any, kernel: Kernel, bridges: IndexArray) -> FloatArray:
    """Return the similarity of the ends of each bridge, the same from both sides."""
    row, column = bridges.T
    index = column[:, np.newaxis]
    distance = np.full(index.shape, np.inf)
    problem = Problem(x, x[row], index, distance, kernel, rows=row)
    return problem.cross()[:, 0]


def _bridges(graph: Graph, x: Any, base: str) -> IndexArray:
    """Return the ends of the bridges, the lower node first, in order."""
    count, label = component_labels(graph.adjacency)
    found: list[tuple[int, int]] = []
    while count > 1:
        size = np.bincount(label, minlength=count)
        best = _nearest_outside(x, base, label, int(size.argmax()), count)
        count, label = _merged(best, label, found)
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _nearest_outside(
    x: Any, base: str, label: IndexArray, largest: int, count: int
) -> IndexArray:
    """Return, for every component but the largest, its shortest way out."""
    score = np.full(count, np.inf)
    ends = np.full((count, 2), -1, np.int64)
    sign = 1.0 if base in pairs.DISTANCES else -1.0
    rows = np.flatnonzero(label != largest)
    task = frozen(x), rows, label.astype(np.int64), pairs.BASES.index(base), sign
    _look_outside(*task, pairs.tile_room(x.shape[1]), score, ends)
    others: IndexArray = ends[np.arange(count) != largest]
    return others


@compiled
def _look_outside(
    x: Any,
    rows: Any,
    label: Any,
    base: int,
    sign: float,
    room: Any,
    score: Any,
    ends: Any,
) -> None:
    """Find the shortest pair of every component; ties go to the lower node numbers."""
    for first in range(0, x.shape[0], TILE):
        stop = min(first + TILE, x.shape[0])
        copy_tile(x, first, stop, base, room)
        for i in rows:
            own = label[i]
            values = tile_values(x, first, stop, x, i, base, room)
            for j in range(first, stop):
                if label[j] == own:
                    continue
                low, high = min(i, j), max(i, j)
                value = matrix_value(x, low, high, base, values[0, j - first])
                value *= sign
                better = value < score[own]
                if value == score[own]:
                    better = low < ends[own, 0] or (
                        low == ends[own, 0] and high < ends[own, 1]
                    )
                if better:
                    score[own] = value
                    ends[own, 0], ends[own, 1] = low, high


def _merged(
    best: IndexArray, label: IndexArray, found: list[tuple[int, int]]
) -> tuple[int, IndexArray]:
    """Add bridges that join two components; return the components they leave."""
    from scipy.sparse import coo_array, csgraph

    for low, high in np.unique(best, axis=0):
        found.append((int(low), int(high)))
    row, column = label[best[:, 0]], label[best[:, 1]]
    count = int(label.max()) + 1
    joined = coo_array((np.ones(len(row)), (row, column)), (count, count))
    left, names = csgraph.connected_components(joined, directed=False)
    return int(left), names[label]
