"""Edges to an adjacency matrix that was checked, and back to edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseGram
from nnkgraph.errors import InputError
from nnkgraph.formats._arrays import REAL, index_dtype
from nnkgraph.formats._memory import check_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data import Graph
    from nnkgraph.formats._zip import Archive

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


def from_sparse(archive: Archive) -> csr_array:
    """Build an adjacency matrix from what ``scipy.sparse.save_npz`` wrote."""
    n, rows, cols, data = _sparse_parts(archive)
    return from_edges(
        n,
        rows,
        cols,
        data,
        directed=True,
        name=archive.name,
        where=lambda edge: f"entry {edge}",
    )


def gram_from_sparse(archive: Archive) -> SparseGram:
    """Build a matrix of similarities from what ``scipy.sparse.save_npz`` wrote."""
    from scipy.sparse import coo_array

    n, rows, cols, data = _sparse_parts(archive)
    wrong = (rows < 0) | (rows >= n) | (cols < 0) | (cols >= n) | ~np.isfinite(data)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{archive.name}: entry {at} (row {rows[at]}, column {cols[at]}, value "
            f"{data[at]:g}) is no finite similarity of {n} rows"
        )
    return SparseGram.of(coo_array((data, (rows, cols)), (n, n)))


def _sparse_parts(
    archive: Archive,
) -> tuple[int, IntArray, IntArray, NDArray[np.float64]]:
    """Return the size, rows, columns and values of a sparse matrix."""
    name = archive.name
    if "format" not in archive or "shape" not in archive:
        raise InputError(f"{name}: not a sparse matrix as scipy.sparse.save_npz writes")
    kind = archive.text("format")
    keys = {"coo": ("row", "col")}.get(kind, ("indices", "indptr"))
    if kind not in {"csr", "csc", "coo"}:
        raise InputError(f"{name}: sparse format {kind!r}; save it as csr, csc or coo")
    if any(key not in archive for key in ("data", *keys)):
        raise InputError(f"{name}: the sparse matrix lacks one of data, {keys}")
    n = _square(archive)
    data = archive.read("data")
    if data.ndim != 1 or data.dtype.kind not in REAL:
        raise InputError(f"{name}: the weights are no list of real numbers")
    first, second = _integers(archive, keys[0]), _integers(archive, keys[1])
    if kind == "coo":
        rows, cols = first, second
    else:
        _check_pointers(second, n, len(data), name)
        rows, cols = np.repeat(np.arange(n), np.diff(second)), first
        if kind == "csc":
            rows, cols = cols, rows
    if not len(rows) == len(cols) == len(data):
        raise InputError(f"{name}: the parts of the sparse matrix differ in length")
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # infinity is refused later, with its place
        return n, rows, cols, data.astype(np.float64)


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


def _square(archive: Archive) -> int:
    header = archive.headers["shape"]
    if header.shape != (2,) or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: the matrix has no two extents")
    n, m = archive.read("shape").tolist()
    if n != m:
        raise InputError(
            f"{archive.name}: the matrix has to be square; this one is {n} x {m}"
        )
    check_nodes(n, archive.name)
    return int(n)


def _integers(archive: Archive, key: str) -> IntArray:
    header = archive.headers[key]
    if len(header.shape) != 1 or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: {key!r} is no list of integers")
    return archive.read(key).astype(np.int64)


def _check_pointers(indptr: IntArray, n: int, nnz: int, name: str) -> None:
    if len(indptr) != n + 1 or indptr[0] != 0 or indptr[-1] != nnz:
        raise InputError(f"{name}: 'indptr' does not fit {n} nodes and {nnz} entries")
    if (np.diff(indptr) < 0).any():
        raise InputError(f"{name}: 'indptr' decreases")
