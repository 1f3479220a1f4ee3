"""Edges to an adjacency matrix that was checked, and back to edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._arrays import index_dtype
from nnkgraph.formats._memory import check_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data import Graph

    IntArray = NDArray[np.int64]
    Edges = tuple[list[int], list[int], list[float]]

_BLOCK = 1 << 16
_LONELY, _LONELY_SHARE = 4_000_000, 100
"""So many nodes need no edges; beyond that, so many to an edge are believed."""


def from_edges(
    n: int,
    source: IntArray,
    target: IntArray,
    weights: NDArray[np.float64],
    *,
    directed: bool,
    name: str,
    where: Callable[[int], str],
) -> csr_array:
    """Build an adjacency matrix from a list of edges, each given once.

    Parameters
    ----------
    where
        Says for the number of an edge where it stands in the file.

    Raises
    ------
    InputError
        For nodes that do not exist, loops, repeated edges, and weights that are zero
        or not finite.
    """
    check_nodes(n, name, len(weights))

    def refuse(bad: NDArray[np.bool_], what: str) -> None:
        if bad.any():
            first = int(bad.argmax())
            edge = f"{source[first]} to {target[first]}"
            raise InputError(f"{name}: {where(first)}: the edge from {edge} {what}")

    low, high = np.minimum(source, target), np.maximum(source, target)
    refuse((low < 0) | (high >= n), f"names a node that does not exist; there are {n}")
    refuse(low == high, "is a loop; nodes are not their own neighbors")
    refuse(~np.isfinite(weights), "has a weight that is no finite number")
    refuse(weights == 0, "has the weight zero; leave it out")
    key = source * n + target if directed else low * n + high
    order = np.argsort(key, kind="stable")
    again = np.zeros(len(key), np.bool_)
    again[order[1:]] = key[order[1:]] == key[order[:-1]]
    refuse(again, "stands in the file more than once")
    if not directed:
        source, target = np.concatenate([low, high]), np.concatenate([high, low])
        weights = np.concatenate([weights, weights])
        order = np.argsort(source * n + target, kind="stable")
    return _compressed(n, source[order], target[order], weights[order])


def is_symmetric(a: csr_array) -> bool:
    """Return whether a canonical matrix equals its transpose to the bit."""
    t = a.T.tocsr()
    return bool(
        np.array_equal(a.indptr, t.indptr)
        and np.array_equal(a.indices, t.indices)
        and np.array_equal(a.data, t.data)
    )


def is_directed(a: csr_array, told: bool | None, name: str) -> bool:
    """Return whether a matrix is that of a directed graph: as told, or as it looks."""
    symmetric = is_symmetric(a)
    if told is False and not symmetric:
        raise InputError(
            f"{name}: the graph is undirected, but its matrix not symmetric"
        )
    return not symmetric if told is None else told


def edge_arrays(graph: Graph, block: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield sources, targets and weights; an undirected edge from its lower node."""
    a = graph.adjacency
    for start in range(0, a.nnz, block):
        stop = min(start + block, a.nnz)
        rows = np.searchsorted(a.indptr, np.arange(start, stop), side="right") - 1
        cols, weights = a.indices[start:stop], a.data[start:stop]
        if not graph.directed:
            keep = rows < cols
            rows, cols, weights = rows[keep], cols[keep], weights[keep]
        if len(rows):
            yield rows, cols, weights


def edge_blocks(graph: Graph) -> Iterator[Edges]:
    """Yield the same as lists."""
    for rows, cols, weights in edge_arrays(graph, _BLOCK):
        yield rows.tolist(), cols.tolist(), weights.tolist()


def check_nodes(n: int, name: str, edges: int | None = None) -> None:
    """Refuse a number of nodes that is none, or that no memory can hold.

    Nodes without edges cost nothing in some files: where the number of edges is known,
    there may not be many more nodes.
    """
    if n < 1:
        raise InputError(f"{name}: the graph has no nodes")
    check_fits(16 * n, name, f"a graph of {n:,} nodes")
    if edges is not None and n > max(_LONELY, _LONELY_SHARE * edges):
        raise InputError(
            f"{name}: {n:,} nodes and {edges:,} edges; that so few have any is not "
            "believed: leave out nodes without edges"
        )


def _compressed(
    n: int, rows: IntArray, cols: IntArray, weights: NDArray[np.float64]
) -> csr_array:
    from scipy.sparse import csr_array

    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    dtype = index_dtype(n, len(cols))
    parts: Any = (weights, cols.astype(dtype), indptr.astype(dtype))
    a = csr_array(parts, shape=(n, n))
    a.check_format(full_check=True)
    return a
