"""Compiled loops over pairs of rows: what kernels and searches are made from.

``base`` says what a pair's value is: a name of ``BASES``.
All functions write into arrays they are given and never depend on the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import overlaps, sums
from nnkgraph.data.sparse import SparseRows
from nnkgraph.data.sums import LANES, copy_columns, copy_point, value_row
from nnkgraph.runtime.jit import compiled, frozen, inner

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray, SparseGram


@inner
def squared(distance: float) -> float:
    """Return the square of a given distance; rounding may have made it negative."""
    there = max(np.float64(distance), 0.0)
    return there * there


@compiled
def _gram_value(
    indptr: Any, indices: Any, data: Any, i: int, j: int, base: int
) -> float:
    if base == 5 and i == j:
        return 0.0
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    found = low < indptr[i + 1] and indices[low] == j
    if base == 5:
        return squared(data[low]) if found else np.inf
    return data[low] if found else 0.0


@compiled
def _gram_within(
    indptr: Any, indices: Any, data: Any, index: Any, base: int, out: Any
) -> None:
    for q in range(index.shape[0]):
        place = 0
        for i in range(index.shape[1]):
            for j in range(i + 1):
                a, b = index[q, i], index[q, j]
                if a >= 0 and b >= 0:
                    out[q, place] = _gram_value(indptr, indices, data, a, b, base)
                place += 1


@compiled
def _gram_cross(
    indptr: Any, indices: Any, data: Any, rows: Any, index: Any, base: int, out: Any
) -> None:
    for q in range(index.shape[0]):
        for i in range(index.shape[1]):
            a, b = rows[q], index[q, i]
            if b >= 0:
                out[q, i] = _gram_value(indptr, indices, data, a, b, base)


@compiled
def _gram_best(
    indptr: Any, indices: Any, data: Any, rows: Any, index: Any, base: int, score: Any
) -> None:
    k = index.shape[1]
    for q in range(rows.shape[0]):
        for e in range(indptr[rows[q]], indptr[rows[q] + 1]):
            j, value = indices[e], squared(data[e]) if base == 5 else -data[e]
            none = base != 5 and data[e] == 0.0
            if j == rows[q] or none or (k > 0 and value >= score[q, k - 1]):
                continue
            t = k - 1
            while t > 0 and score[q, t - 1] > value:
                score[q, t], index[q, t] = score[q, t - 1], index[q, t - 1]
                t -= 1
            score[q, t], index[q, t] = value, j


def gram_within_values(gram: SparseGram, index: IndexArray, base: str) -> FloatArray:
    """Return the values of every two candidates, as packed triangles."""
    b, m = index.shape
    out = np.zeros((b, m * (m + 1) // 2))
    asked = frozen(np.ascontiguousarray(index)), BASES.index(base)
    _gram_within(*_gram_arrays(gram), *asked, out)
    return out


def gram_cross_values(
    gram: SparseGram, rows: IndexArray, index: IndexArray, base: str
) -> FloatArray:
    """Return the values of rows and their candidates; inf where there is none."""
    out = np.where(index >= 0, 0.0, np.inf)
    asked = rows, frozen(np.ascontiguousarray(index)), BASES.index(base)
    _gram_cross(*_gram_arrays(gram), *asked, out)
    return out


def most_similar(
    gram: SparseGram, rows: IndexArray, index: IndexArray, base: str, score: FloatArray
) -> None:
    """Fill rows of -1 and inf with the best values there are: the lower the better."""
    _gram_best(*_gram_arrays(gram), rows, index, BASES.index(base), score)


def _gram_arrays(gram: SparseGram) -> tuple[Any, Any, Any]:
    return frozen(gram.indptr), frozen(gram.indices), frozen(gram.data)


BASES = (
    "squared-distance",
    "inner-product",
    "absolute-product",
    "l1-distance",
    "gram",
    "distance-matrix",
    "jaccard-distance",
)
"""Values of two rows.

For ``gram`` they stand in a matrix: row i, column j. For ``distance-matrix`` they are
the squares of what stands there, infinite where nothing does. ``jaccard-distance`` is
of sparse rows only.
"""

MATRICES = {"gram", "distance-matrix"}
"""Bases of (n, n) matrices in the place of features."""

DISTANCES = {
    "squared-distance": "euclidean",
    "l1-distance": "manhattan",
    "distance-matrix": "precomputed",
    "jaccard-distance": "jaccard",
}
"""Bases that say how far apart rows are, and their metrics; others: how similar."""

GEOMETRIC = {"squared-distance", "l1-distance"}
"""Distances of points, which trees and groups can search."""

SQUARED = {"squared-distance", "distance-matrix"}
"""Bases that are the squares of distances."""


@inner
def matrix_value(x: Any, i: int, j: int, base: int, other: float) -> float:
    """Return the value that a matrix has for two rows, or another without a matrix."""
    if base < 4:
        return other
    there: float = x[i, j]
    if base == 4:
        return there
    return squared(there) if i != j else 0.0


TILE = 64
"""Rows that are compared with all queries before the next ones, and stay in the cache.
"""


@compiled
def tile_values(
    x: Any, first: int, last: int, points: Any, q: int, base: int, room: Any
) -> Any:
    """Return the values of point q with the rows of a tile, which `copy_tile` took."""
    columns, point, line = room
    if base == 4:
        for j in range(first, last):
            line[0, j - first] = points[q, j]
    elif base == 5:
        for j in range(first, last):
            line[0, j - first] = squared(points[q, j])
    else:
        copy_point(points, q, point)
        value_row(columns, x.shape[1], point, 0, base, line, 0, columns.shape[1])
    return line


@compiled
def copy_tile(x: Any, first: int, last: int, base: int, room: Any) -> None:
    """Copy some rows to the columns of `tile_room`."""
    if base < 4:
        for t in range(x.shape[1]):
            for j in range(first, last):
                room[0][t, j - first] = x[j, t]


def tile_room(d: int) -> tuple[Any, Any, Any]:
    """Return the memory that `copy_tile` and `tile_values` work in."""
    return np.zeros((d, TILE)), np.empty((1, d)), np.empty((1, TILE))


@compiled
def _squared_distances(x: Any, queries: Any, index: Any, out: Any) -> None:
    """Four rows at a time, none of them copied: sums that need not wait."""
    for i in range(index.shape[0]):
        for j in range(0, index.shape[1], 4):
            a, b, c, d = index[i, j], index[i, j + 1], index[i, j + 2], index[i, j + 3]
            r = s = u = v = 0.0
            for t in range(x.shape[1]):
                value = np.float64(queries[i, t])
                e, f, g, h = x[a, t], x[b, t], x[c, t], x[d, t]
                r += (e - value) * (e - value)
                s += (f - value) * (f - value)
                u += (g - value) * (g - value)
                v += (h - value) * (h - value)
            out[i, j], out[i, j + 1], out[i, j + 2], out[i, j + 3] = r, s, u, v


@compiled
def _cross(x: Any, queries: Any, index: Any, base: int, room: Any, out: Any) -> None:
    (columns, point, line), d = room, x.shape[1]
    for i in range(index.shape[0]):
        copy_point(queries, i, point)
        for first in range(0, index.shape[1], LANES):
            copy_columns(x, index, i, first, LANES, columns)
            value_row(columns, d, point, 0, base, line, 0, LANES)
            for j in range(LANES):
                out[i, first + j] = line[0, j]


def cross_values(x: Any, queries: Any, index: Any, base: str) -> Any:
    """Return the value of every query with each of its candidates.

    Parameters
    ----------
    x : (n, d) array
        All rows.
    queries : (b, d) array
        One row per line of ``index``, of the same dtype as ``x``.
    index : (b, m) array of int
        Candidates; -1 gives inf.
    base : str
        What is computed: a name of ``BASES``.

    Returns
    -------
    (b, m) array of float64
    """
    if base == "jaccard-distance":
        return overlaps.cross_values(x, queries, index)
    if isinstance(x, SparseRows):
        return sums.cross_values(x, queries, index, base)
    if base == "gram":
        out = np.take_along_axis(queries, np.maximum(index, 0), axis=1)
        return np.where(index >= 0, out, np.inf)
    if base == "distance-matrix":
        known = np.take_along_axis(queries, np.maximum(index, 0), axis=1)
        known = np.maximum(known.astype(np.float64), 0.0)
        return np.where(index >= 0, known * known, np.inf)
    # Rows that are missing, or that only fill a line, are replaced by any other.
    lanes = 4 if base == "squared-distance" else LANES
    (b, m), d = index.shape, x.shape[1]
    every = np.zeros((b, -(-m // lanes) * lanes), np.int64)
    np.maximum(index, 0, out=every[:, :m])
    out, task = np.empty(every.shape), (frozen(x), frozen(queries), frozen(every))
    if base == "squared-distance":
        _squared_distances(*task, out)
    else:
        room = np.zeros((d, lanes)), np.empty((1, d)), np.empty((1, lanes))
        _cross(*task, BASES.index(base), room, out)
    return np.where(index >= 0, out[:, :m], np.inf)


@compiled
def _within(  # noqa: C901 - one loop over one kind of pairs
    x: Any, queries: Any, index: Any, base: int, out: Any
) -> None:
    m, d = index.shape[1], x.shape[1]
    width = -(-m // LANES) * LANES
    columns, point, line = np.zeros((d, width)), np.empty((1, d)), np.empty((1, width))
    for q in range(index.shape[0]):
        place = 0
        if base < 4:
            copy_columns(x, index, q, 0, m, columns)
        if queries.shape[0] > 0:
            for t in range(d):
                for i in range(m):
                    columns[t, i] -= queries[q, t]
        for i in range(m):
            if base < 4:
                for t in range(d):
                    point[0, t] = columns[t, i]
                value_row(columns, d, point, 0, base, line, 0, width)
            for j in range(i + 1):
                a, b = index[q, i], index[q, j]
                if a < 0 or b < 0:
                    out[q, place] = 0.0
                else:
                    out[q, place] = matrix_value(x, a, b, base, line[0, j])
                place += 1


def within_values(x: Any, index: Any, base: str, *, seen_from: Any = None) -> Any:
    """Return the value of every two candidates of a query, as packed triangles.

    With ``seen_from``, a row per query, it is taken off the candidates first.

    Returns
    -------
    (b, m(m+1)/2) array of float64
        Lower triangles row by row, diagonals included; 0 where one is missing.
    """
    if base == "jaccard-distance":
        return overlaps.within_values(x, index)
    if isinstance(x, SparseRows):
        return sums.within_values(x, index, base)
    b, m = index.shape
    out = np.empty((b, m * (m + 1) // 2))
    queries = x[:0] if seen_from is None else seen_from
    index = frozen(np.ascontiguousarray(index, np.int64))
    _within(frozen(x), frozen(queries), index, BASES.index(base), out)
    return out


def first_equal_rows(x: Any) -> Any:
    """Return, for every row, the lowest row number with the same values."""
    hashes = np.empty(len(x), np.uint64)
    step = max(1, (1 << 18) // x.shape[1])
    factors = _mixed(np.arange(1, x.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    for start in range(0, len(x), step):
        hashes[start : start + step] = _bits(x[start : start + step]) @ factors
    order = np.argsort(hashes, kind="stable")
    repeated = np.concatenate([[False], np.diff(hashes[order]) == 0])
    first = np.arange(len(x))
    if not repeated.any():
        return first
    # The first of every run of equal hashes, for all that follow it in the run.
    begins = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(x))))
    later, leader = order[repeated], order[begins[repeated]]
    for start in range(0, len(later), step):
        some = slice(start, start + step)
        same = (x[later[some]] == x[leader[some]]).all(axis=1)
        first[later[some]] = np.where(same, leader[some], later[some])
    for run in np.unique(leader[first[later] == later]):  # other rows, the same hash
        known: dict[bytes, int] = {}
        for i in (run, *later[leader == run]):
            first[i] = known.setdefault((x[i] + 0.0).tobytes(), i)
    return first


def _bits(rows: Any) -> Any:
    """Return the bits of numbers, those above the others mixed into the lowest."""
    single = rows.dtype == np.float32
    # A sum with zero has no sign where it is zero.
    bits = (rows + 0.0).view(np.uint32 if single else np.uint64).astype(np.uint64)
    return bits ^ (bits >> np.uint64(16 if single else 32))


def _mixed(value: Any) -> Any:
    """Return numbers that look as if drawn at random (the finish of splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return value ^ (value >> np.uint64(31))
