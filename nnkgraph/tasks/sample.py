"""Some nodes that show what all of a large graph look like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.data.labels import Labels
    from nnkgraph.tasks.findings import Findings

MOST = 20_000
"""Nodes that are drawn, where nobody says how many."""

_ALONG = 6  # neighbors that come along with a node
_FEW = 10  # nodes that a group has at least, where there are so many
_ACROSS = 48  # boxes of places beside each other, where there are no groups


@dataclass(frozen=True, eq=False)
class Marks:
    """What belongs to the nodes of a graph, in their order."""

    labels: Labels | None = None
    clusters: Labels | None = None
    findings: Findings | None = None


def drawn(
    graph: Graph, at: FloatArray, marks: Marks, most: int, seed: int
) -> tuple[IndexArray, str]:
    """Return the nodes that are drawn, and the groups that each have a share in them.

    All that have a place, where they are not too many; else of every cluster, class or
    part of the drawing its share, and the first findings of every kind.
    """
    group, what = boxes(at), "part of the drawing"
    for one, name in ((marks.labels, "class"), (marks.clusters, "cluster")):
        if one is not None:
            group, what = one.codes, name
    there = np.flatnonzero(np.isfinite(at[:, 0]))
    if len(there) <= most:
        return there, what
    first = np.zeros(graph.n_nodes, bool)
    if marks.findings is not None:
        first[marks.findings.first(most // 8)] = True
    own = np.flatnonzero(first[there])
    chosen = sampled(subgraph(graph, there), group[there], most, seed=seed, first=own)
    nodes: IndexArray = there[chosen]
    return nodes, what


def sampled(
    graph: Graph,
    group: IndexArray,
    most: int,
    *,
    seed: int = 0,
    first: IndexArray | None = None,
) -> IndexArray:
    """Return at most so many nodes, in order: of every group its share.

    Inside a group nodes are drawn at random, and each brings its heaviest neighbors of
    the same group along, so that edges are drawn and not dots alone. Those named
    `first` are taken before all others. Nodes of a negative group are a group, too.
    """
    if most < 1:
        raise ParameterError(f"{most} nodes cannot be drawn: at least 1 is needed")
    n = graph.n_nodes
    if n <= most:
        return np.arange(n)
    turn = np.random.default_rng(seed).permutation(n)
    edges = graph.adjacency.tocoo()
    order = np.lexsort((-edges.data, edges.row))
    rank = np.arange(len(order)) - graph.adjacency.indptr[edges.row[order]]
    along = order[(rank < _ALONG) & (group[edges.row] == group[edges.col])[order]]
    when = turn.copy()
    np.minimum.at(when, edges.col[along], turn[edges.row[along]])
    if first is not None:
        when[first] = -1
    sizes = np.unique(group, return_inverse=True, return_counts=True)
    quota = _quotas(sizes[2], most)
    own = sizes[1].reshape(-1)
    order = np.lexsort((turn, when, own))
    begin = np.cumsum(sizes[2]) - sizes[2]
    place = np.arange(n) - begin[own[order]]
    chosen: IndexArray = np.sort(order[place < quota[own[order]]])
    return chosen


def _quotas(sizes: IndexArray, most: int) -> IndexArray:
    """Return how many of each group are taken: a few of all, and shares beyond."""
    few = np.minimum(sizes, min(_FEW, most // (2 * len(sizes))))
    rest = sizes - few
    share = rest * ((most - few.sum()) / max(1, rest.sum()))
    quota: IndexArray = few + np.floor(share).astype(np.int64)
    # What rounding left goes to the groups that it took most from.
    left = most - int(quota.sum())
    order = np.argsort(np.floor(share) - share, kind="stable")[: max(0, left)]
    quota[order] += 1
    return quota


def boxes(at: FloatArray) -> IndexArray:
    """Return groups of nodes that are drawn close to each other, -1 without a place."""
    there = np.isfinite(at).all(axis=1)
    group = np.full(len(at), -1)
    low, high = at[there].min(axis=0), at[there].max(axis=0)
    size = float(np.max(high - low)) or 1.0
    cell = np.floor((at[there] - low) / size * (_ACROSS - 1e-9)).astype(np.int64)
    for column in cell.T:
        group[there] = group[there] * (_ACROSS + 1) + column
    return group


def subgraph(graph: Graph, nodes: IndexArray) -> Graph:
    """Return some nodes, in growing order, and the edges between them."""
    if len(nodes) == graph.n_nodes:
        return graph
    whole = graph.adjacency
    number = np.arange(1, whole.nnz + 1)
    marked = csr_array((number, whole.indices, whole.indptr), whole.shape)
    inner = csr_array(marked[nodes][:, nodes])
    inner.sort_indices()
    kept = inner.data - 1
    data = (whole.data[kept], inner.indices, inner.indptr)
    apart = graph.distances
    return replace(
        graph,
        adjacency=csr_array(data, inner.shape),
        distances=None if apart is None else apart[kept],
        ids=None if graph.ids is None else tuple(graph.ids[at] for at in nodes),
        errors=None if graph.errors is None else graph.errors[nodes],
        candidates=None,
        bridges=None,
    )
