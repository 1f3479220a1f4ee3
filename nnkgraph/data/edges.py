"""The edges of a graph: its components, and more edges for it, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.arrays import new_array, row_slices
from nnkgraph.runtime.jit import compiled, frozen, inner

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, IndexArray


@inner
def _root(parent: Any, i: int) -> int:
    """Return the lowest node known to be in a node's component; shorten the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def _join(indptr: Any, indices: Any, parent: Any) -> int:
    """Give every node its component's number; return how many there are."""
    n = parent.shape[0]
    for i in range(n):
        parent[i] = i
    for i in range(n):
        for t in range(indptr[i], indptr[i + 1]):
            here, there = _root(parent, i), _root(parent, np.int64(indices[t]))
            # The lower one leads: numbers then go up with the first nodes.
            if here < there:
                parent[there] = here
            else:
                parent[here] = there
    count = 0
    for i in range(n):
        if parent[i] == i:
            parent[i] = count
            count += 1
        else:
            parent[i] = parent[parent[i]]  # a lower node, which has its number
    return count


def component_labels(adjacency: csr_array) -> tuple[int, IndexArray]:
    """Return how many components there are, and the number of every node's.

    Directions do not count.
    """
    label = new_array(adjacency.shape[0], np.int64)
    parts = frozen(adjacency.indptr), frozen(adjacency.indices)
    return int(_join(*parts, np.asarray(label))), label


def with_edges(
    a: csr_array,
    row: IndexArray,
    column: IndexArray,
    weight: FloatArray,
    origin: IndexArray | None = None,
    total: int = 0,
    lengths: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[csr_array, FloatArray | None]:
    """Return a matrix with entries that it did not have, and how long all are.

    Parameters
    ----------
    row, column, weight : arrays
        The entries, in any order.
    lengths : two arrays, optional
        How long the matrix's own entries are, and the others.
    origin, total : array of int and int, optional
        What row and column each of its own is in the end, in order, and of how many.
    """
    from scipy.sparse import csr_array, get_index_dtype

    if origin is None:
        origin, total = np.arange(len(a.indptr) - 1), len(a.indptr) - 1
    order = np.argsort(row, kind="stable")
    row, column = row[order], column[order]
    values = [(a.data, weight[order])]
    if lengths is not None:
        values.append((lengths[0], lengths[1][order]))
    indptr = np.zeros(total + 1, np.int64)
    indptr[origin + 1] = np.diff(a.indptr)
    np.add.at(indptr, row + 1, 1)
    np.cumsum(indptr, out=indptr)
    edges = int(indptr[-1])
    indices = new_array(edges, get_index_dtype(maxval=max(total, edges)))
    made = [new_array(edges, np.float64) for _ in values]
    for rows in row_slices(total, 64 * (1 + edges // total)):
        known = slice(*np.searchsorted(origin, [rows.start, rows.stop]))
        more = slice(*np.searchsorted(row, [rows.start, rows.stop]))
        inside = slice(a.indptr[known.start], a.indptr[known.stop])
        degree = np.diff(a.indptr[known.start : known.stop + 1])
        at = np.concatenate([np.repeat(origin[known], degree), row[more]])
        to = np.concatenate([origin[a.indices[inside]], column[more]])
        sort = np.lexsort((to, at))
        place = slice(indptr[rows.start], indptr[rows.stop])
        indices[place] = to[sort]
        for one, (old, new) in zip(made, values, strict=True):
            one[place] = np.concatenate([old[inside], new[more]])[sort]
    data, *distances = made
    parts: Any = (data, indices, indptr.astype(indices.dtype))
    matrix = csr_array(parts, (total, total))
    matrix.has_canonical_format = True
    return matrix, distances[0] if distances else None
