"""Compiled loops over pairs of rows: what kernels and searches are made from.

``base`` says what a pair's value is: a name of ``BASES``.
All functions write into arrays they are given and never depend on the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import sums
from nnkgraph.data.sparse import SparseRows
from nnkgraph.data.sums import LANES, copy_columns, copy_point, distances_to, value_row
from nnkgraph.runtime.jit import compiled, frozen

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray, SparseGram


@compiled
def _gram_value(indptr: Any, indices: Any, data: Any, i: int, j: int) -> float:
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    found = low < indptr[i + 1] and indices[low] == j
    return data[low] if found else 0.0


@compiled
def _gram_within(indptr: Any, indices: Any, data: Any, index: Any, out: Any) -> None:
    for q in range(index.shape[0]):
        place = 0
        for i in range(index.shape[1]):
            for j in range(i + 1):
                a, b = index[q, i], index[q, j]
                if a >= 0 and b >= 0:
                    out[q, place] = _gram_value(indptr, indices, data, a, b)
                place += 1


@compiled
def _gram_cross(
    indptr: Any, indices: Any, data: Any, rows: Any, index: Any, out: Any
) -> None:
    for q in range(index.shape[0]):
        for i in range(index.shape[1]):
            if index[q, i] >= 0:
                out[q, i] = _gram_value(indptr, indices, data, rows[q], index[q, i])


@compiled
def _gram_best(
    indptr: Any, indices: Any, data: Any, rows: Any, index: Any, score: Any
) -> None:
    k = index.shape[1]
    for q in range(rows.shape[0]):
        for e in range(indptr[rows[q]], indptr[rows[q] + 1]):
            j, value = indices[e], -data[e]
            if j == rows[q] or data[e] == 0.0 or (k > 0 and value >= score[q, k - 1]):
                continue
            t = k - 1
            while t > 0 and score[q, t - 1] > value:
                score[q, t], index[q, t] = score[q, t - 1], index[q, t - 1]
                t -= 1
            score[q, t], index[q, t] = value, j


def gram_within_values(gram: SparseGram, index: IndexArray) -> FloatArray:
    """Return the similarities of every two candidates, as packed triangles."""
    b, m = index.shape
    out = np.zeros((b, m * (m + 1) // 2))
    _gram_within(*_gram_arrays(gram), frozen(np.ascontiguousarray(index)), out)
    return out


def gram_cross_values(
    gram: SparseGram, rows: IndexArray, index: IndexArray
) -> FloatArray:
    """Return the similarities of rows and their candidates; inf where there is none."""
    out = np.where(index >= 0, 0.0, np.inf)
    _gram_cross(*_gram_arrays(gram), rows, frozen(np.ascontiguousarray(index)), out)
    return out


def most_similar(
    gram: SparseGram, rows: IndexArray, index: IndexArray, score: FloatArray
) -> None:
    """Fill rows of -1 and inf with the largest similarities there are, negated."""
    _gram_best(*_gram_arrays(gram), rows, index, score)


def _gram_arrays(gram: SparseGram) -> tuple[Any, Any, Any]:
    return frozen(gram.indptr), frozen(gram.indices), frozen(gram.data)


BASES = ("squared-distance", "inner-product", "absolute-product", "l1-distance", "gram")
"""Values of two rows. For ``gram`` they stand in a matrix: row i, column j."""

DISTANCES = {"squared-distance", "l1-distance"}
"""Bases that say how far apart rows are; the others say how similar they are."""


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
    else:
        copy_point(points, q, point)
        value_row(columns, x.shape[1], point, 0, base, line, 0, columns.shape[1])
    return line


@compiled
def copy_tile(x: Any, first: int, last: int, base: int, room: Any) -> None:
    """Copy some rows to the columns of `tile_room`."""
    if base != 4:
        for t in range(x.shape[1]):
            for j in range(first, last):
                room[0][t, j - first] = x[j, t]


def tile_room(d: int) -> tuple[Any, Any, Any]:
    """Return the memory that `copy_tile` and `tile_values` work in."""
    return np.zeros((d, TILE)), np.empty((1, d)), np.empty((1, TILE))


@compiled
def _cross(x: Any, queries: Any, index: Any, base: int, out: Any) -> None:
    m, d = index.shape[1], x.shape[1]
    columns, point, line = np.zeros((d, LANES)), np.empty((1, d)), np.empty((1, LANES))
    for i in range(index.shape[0]):
        if base != 4:
            copy_point(queries, i, point)
        if base == 0:
            distances_to(x, index, i, point, out)
        elif base != 4:
            for first in range(0, m, LANES):
                count = min(LANES, m - first)
                copy_columns(x, index, i, first, count, columns)
                value_row(columns, d, point, 0, base, line, 0, LANES)
                for j in range(count):
                    out[i, first + j] = line[0, j]
        for j in range(m):
            if index[i, j] < 0:
                out[i, j] = np.inf
            elif base == 4:
                out[i, j] = queries[i, index[i, j]]


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
    if isinstance(x, SparseRows):
        return sums.cross_values(x, queries, index, base)
    out = np.empty(index.shape)
    index = frozen(np.ascontiguousarray(index, np.int64))
    _cross(frozen(x), frozen(queries), index, BASES.index(base), out)
    return out


@compiled
def _within(  # noqa: C901 - one loop over one kind of pairs
    x: Any, queries: Any, index: Any, base: int, out: Any
) -> None:
    m, d = index.shape[1], x.shape[1]
    width = -(-m // LANES) * LANES
    columns, point, line = np.zeros((d, width)), np.empty((1, d)), np.empty((1, width))
    for q in range(index.shape[0]):
        place = 0
        if base != 4:
            copy_columns(x, index, q, 0, m, columns)
        if queries.shape[0] > 0:
            for t in range(d):
                for i in range(m):
                    columns[t, i] -= queries[q, t]
        for i in range(m):
            if base != 4:
                for t in range(d):
                    point[0, t] = columns[t, i]
                value_row(columns, d, point, 0, base, line, 0, width)
            for j in range(i + 1):
                a, b = index[q, i], index[q, j]
                if a < 0 or b < 0:
                    out[q, place] = 0.0
                else:
                    out[q, place] = x[a, b] if base == 4 else line[0, j]
                place += 1


def within_values(x: Any, index: Any, base: str, *, seen_from: Any = None) -> Any:
    """Return the value of every two candidates of a query, as packed triangles.

    With ``seen_from``, a row per query, it is taken off the candidates first.

    Returns
    -------
    (b, m(m+1)/2) array of float64
        Lower triangles row by row, diagonals included; 0 where one is missing.
    """
    if isinstance(x, SparseRows):
        return sums.within_values(x, index, base)
    b, m = index.shape
    out = np.empty((b, m * (m + 1) // 2))
    queries = x[:0] if seen_from is None else seen_from
    index = frozen(np.ascontiguousarray(index, np.int64))
    _within(frozen(x), frozen(queries), index, BASES.index(base), out)
    return out


@compiled
def _row_hashes(bits: Any, negative_zero: Any, out: Any) -> None:
    for i in range(bits.shape[0]):
        total = np.uint64(14695981039346656037)
        for t in range(bits.shape[1]):
            value = np.uint64(bits[i, t])
            if value == negative_zero:
                value = np.uint64(0)
            total = (total ^ value) * np.uint64(1099511628211)
            total ^= total >> np.uint64(29)
        out[i] = total


@compiled
def _first_of_equal(x: Any, hashes: Any, order: Any, out: Any) -> None:
    n = order.shape[0]
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and hashes[order[stop]] == hashes[order[start]]:
            stop += 1
        for i in range(start, stop):
            out[order[i]] = order[i]
            for j in range(start, i):
                t = 0
                while t < x.shape[1] and x[order[i], t] == x[order[j], t]:
                    t += 1
                if out[order[j]] == order[j] and t == x.shape[1]:
                    out[order[i]] = order[j]
                    break
        start = stop


def first_equal_rows(x: Any) -> Any:
    """Return, for every row, the lowest row number with the same values."""
    x = frozen(x)
    single = x.dtype == np.float32
    bits = x.view(np.uint32 if single else np.uint64)
    hashes = np.empty(len(x), np.uint64)
    _row_hashes(bits, np.uint64(1 << 31 if single else 1 << 63), hashes)
    first = np.empty(len(x), np.int64)
    _first_of_equal(x, hashes, np.argsort(hashes, kind="stable"), first)
    return first
