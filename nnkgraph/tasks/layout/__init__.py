"""Where the nodes of a graph are drawn, where nobody has said it.

A graph that fits into the plane is laid out with places as far from each other as nodes
are along the edges: of every pair of neighbors, and of every node and some pivots (the
sparse stress model of Ortmann, Klimenta and Brandes). In most graphs all nodes are a
few edges from each other, and no such places show their groups: there forces pull
neighbors together and push others away. Components lie beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks.laplacian import one_thread, pieces
from nnkgraph.tasks.layout._forces import levels_of, pulled_apart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nnkgraph.data import Graph, IndexArray

    Places = NDArray[np.float64]

_PIVOTS = 50  # nodes that all others keep their distance to
_SWEEPS = 30  # more change little
_APART = 0.1  # nodes with the same neighbors are moved by about this share of an edge
_THIN = 4  # of boxes thinner than this, the room is not spent on length
_FITS = 0.95  # correlation of distances from which on the plane holds a graph
_GAP = 1.0  # room between components: about that between two nodes


def lay_out(graph: Graph, *, progress: Stages | None = None) -> Places:
    """Return a place for every node, in the square from -1/2 to 1/2.

    Weights and directions of edges do not count. Equal graphs have equal places.
    """
    parts = sorted(pieces(graph.adjacency), key=len, reverse=True)
    boxes, progress = [], progress or Stages()
    with progress("layout", graph.n_nodes) as on_rows, one_thread():
        for part, joined in zip(parts, _joined(graph, parts), strict=True):
            boxes.append(_box(joined))
            on_rows(len(part))
    return _framed(_packed(parts, boxes, graph.n_nodes))


def _joined(graph: Graph, parts: list[IndexArray]) -> Iterator[csr_array]:
    """Yield the edges inside each part, in both directions, all of weight 1."""
    order = np.concatenate(parts)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    edges = graph.adjacency.tocoo()
    apart = edges.row != edges.col
    row, column = place[edges.row[apart]], place[edges.col[apart]]
    ends = (np.append(row, column), np.append(column, row))
    whole = csr_array((np.ones(2 * len(row)), ends), graph.adjacency.shape)
    whole.sum_duplicates()
    begin = 0
    for part in parts:
        n, (start, stop) = len(part), whole.indptr[[begin, begin + len(part)]]
        starts = whole.indptr[begin : begin + n + 1] - start
        inside = whole.indices[start:stop] - begin
        yield csr_array((np.ones(len(inside)), inside, starts), (n, n))
        begin += n


def _box(joined: csr_array) -> Places:
    """Return a component's places, in a box with about as much room as nodes."""
    n = joined.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    levels = levels_of(joined)
    at, alike = _as_far(levels[-1][0])
    if alike < _FITS:
        at = _turned(pulled_apart(levels, at))
    elif len(levels) > 1:
        at = _as_far(joined)[0]
    at -= at.min(axis=0)
    long, short = at.max(), at.max(axis=0).min()
    at *= np.sqrt(n / (long * max(short, long / _THIN)))
    return at


def _as_far(joined: csr_array) -> tuple[Places, float]:
    """Return places that are as far apart as nodes are, and how well that succeeds.

    The number is the correlation of distances on paper and along edges.
    """
    pivots, hops = _distances(joined)
    at = _refined(joined, pivots, hops, _overview(hops))
    apart = np.sqrt(((at - at[pivots][:, np.newaxis]) ** 2).sum(axis=2))
    wanted, found = hops - hops.mean(), apart - apart.mean()
    size = np.sqrt((wanted**2).sum() * (found**2).sum())
    return at, float((wanted * found).sum() / size) if size > 0 else 1.0


def _turned(at: Places) -> Places:
    """Turn places so that they reach farthest from left to right."""
    at = at - at.mean(axis=0)
    x, y = at.T
    angle = np.arctan2(2 * (x * y).sum(), (x * x - y * y).sum()) / 2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned: Places = at[:, :1] * turn[0] + at[:, 1:] * turn[1]
    return turned


def _distances(joined: csr_array) -> tuple[IndexArray, NDArray[np.float32]]:
    """Return pivots, each far from those before it, and the edges to every node."""
    n = joined.shape[0]
    count = min(_PIVOTS, n)
    pivots = np.zeros(count, np.int64)
    hops = np.empty((count, n), np.float32)
    nearest = np.full(n, np.inf, np.float32)
    for at in range(count):
        hops[at] = dijkstra(joined, indices=pivots[at], unweighted=True)
        nearest = np.minimum(nearest, hops[at])
        if at + 1 < count:
            pivots[at + 1] = nearest.argmax()
    return pivots, hops


def _overview(hops: NDArray[np.float32]) -> Places:
    """Return the plane of classical scaling, from distances to pivots alone."""
    square = hops.astype(np.float64) ** 2
    square -= square.mean(axis=0)
    square -= square.mean(axis=1, keepdims=True)
    axes = np.linalg.eigh(square @ square.T)[1][:, :-3:-1]
    at: Places = square.T @ axes
    largest = np.abs(at).argmax(axis=0)
    return at * np.where(at[largest, [0, 1]] < 0, -1, 1)


def _refined(
    joined: csr_array, pivots: IndexArray, hops: NDArray[np.float32], at: Places
) -> Places:
    """Move every node, again and again, to the mean of where others want it."""
    n = len(at)
    edges = joined.tocoo()
    row, column = edges.row, edges.col
    # A pivot speaks for the nodes around it; near ones matter more.
    share = n / len(pivots) / np.maximum(hops, 1) ** 2 * (hops > 1)
    total = (np.bincount(row, minlength=n) + share.sum(axis=0))[:, np.newaxis]
    spread = np.linalg.norm(at, axis=1).mean()
    at = at * (float(hops.mean()) / spread if spread > 0 else 0.0)
    at += np.random.default_rng(0).normal(0, _APART, at.shape)
    for _ in range(_SWEEPS):
        step = at[row] - at[column]
        wanted = at[column] + step / _length(step)
        moved = np.stack([np.bincount(row, wanted[:, i], n) for i in (0, 1)], axis=1)
        for pivot, far, weight in zip(pivots, hops, share, strict=True):
            step = at - at[pivot]
            far_away = step * (far[:, np.newaxis] / _length(step))
            moved += weight[:, np.newaxis] * (at[pivot] + far_away)
        at = moved / total
    return at


def _length(steps: Places) -> Places:
    length: Places = np.sqrt((steps**2).sum(axis=1, keepdims=True))
    return np.maximum(length, 1e-9)


def _packed(parts: list[IndexArray], boxes: list[Places], n: int) -> Places:
    """Put components into rows, largest first, of the length that fits best."""
    sizes = np.array([box.max(axis=0) for box in boxes]) + _GAP
    widest, whole = sizes[:, 0].max(), sizes[:, 0].sum()
    lengths = np.geomspace(widest, min(whole, 4 * widest + np.sqrt(n)), 24)
    tried = (_rows(sizes, one) for one in lengths)
    corners = min(tried, key=lambda at: _extent(at, sizes))
    places = np.empty((n, 2))
    for part, box, corner in zip(parts, boxes, corners, strict=True):
        places[part] = box + corner
    return places


def _rows(sizes: Places, length: float) -> Places:
    """Return the lower left corners of boxes in rows of a length, from the top."""
    corners = np.empty_like(sizes)
    x = y = below = 0.0
    for at, (width, height) in enumerate(sizes.tolist()):
        if x + width > length * (1 + 1e-9):
            x, y, below = 0.0, y - below, 0.0
        corners[at] = x, y - height
        x, below = x + width, max(below, height)
    return corners


def _extent(corners: Places, sizes: Places) -> float:
    """Return the longer side of all boxes together."""
    return float(((corners + sizes).max(axis=0) - corners.min(axis=0)).max())


def _framed(at: Places) -> Places:
    """Move and shrink places into the square from -1/2 to 1/2."""
    low, high = at.min(axis=0), at.max(axis=0)
    width = float(np.max(high - low))
    framed: Places = (at - (low + high) / 2) / (width or 1.0)
    return framed
