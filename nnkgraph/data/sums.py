"""Sums over features, in their order: where every stored number comes from.

The value of two rows is added up from the first feature to the last, one rounding after
the other, in float64. A single sum cannot use a processor's vectors without changing
that order; many sums at once can. So rows that are compared with one point stand
as the columns of a small matrix, and `value_row` adds up all of them together. Sparse
rows are summed in the same order: a column that neither stores adds zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.jit import compiled, frozen, inner

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import SparseRows

LANES = 16
"""Columns are padded to a multiple of this, so that vectors have no remainder."""


def padded(m: int) -> int:
    """Return the number of columns for m rows."""
    return max(1, -(-m // LANES)) * LANES


@inner
def copy_columns(
    x: Any, rows: Any, line: int, first: int, count: int, columns: Any
) -> None:
    """Copy the rows of x that part of a line names, as columns; -1 gives any row.

    Four rows at a time, which are read from their beginnings to their ends; columns up
    to the next multiple of four are overwritten as well.
    """
    last = first + count - 1
    for i in range(0, count, 4):
        at = first + i
        a, b = rows[line, at], rows[line, at + 1 if at < last else last]
        c = rows[line, at + 2 if at + 1 < last else last]
        e = rows[line, at + 3 if at + 2 < last else last]
        for t in range(x.shape[1]):
            columns[t, i], columns[t, i + 1] = x[a, t], x[b, t]
            columns[t, i + 2], columns[t, i + 3] = x[c, t], x[e, t]


@inner
def value_row(
    columns: Any, d: int, points: Any, q: int, base: int, out: Any, row: int, stop: int
) -> None:
    """Set a row to the values of point q with the first columns, up to ``stop``.

    ``base`` counts the first four of `nnkgraph.data.pairs.BASES`.
    """
    for i in range(stop):
        out[row, i] = 0.0
    for t in range(d):
        value = points[q, t]
        for i in range(stop):
            u = columns[t, i] - value
            v = columns[t, i] * value
            out[row, i] += u * u if base == 0 else abs(u) if base == 3 else v
    if base == 2:
        for i in range(stop):
            out[row, i] = abs(out[row, i])


@inner
def squared_distances(columns: Any, a: int, b: int, out: Any) -> None:
    """Set rows a and b to the squared distances of those columns from all columns.

    The same numbers as `value_row` gives, in less time: what is read serves two rows
    and four features, which are added in their order.
    """
    d, stop = columns.shape
    for i in range(stop):
        out[a, i] = out[b, i] = 0.0
    for t in range(0, d - 3, 4):
        a0, a1 = columns[t, a], columns[t + 1, a]
        a2, a3 = columns[t + 2, a], columns[t + 3, a]
        b0, b1 = columns[t, b], columns[t + 1, b]
        b2, b3 = columns[t + 2, b], columns[t + 3, b]
        for i in range(stop):
            x0, x1 = columns[t, i], columns[t + 1, i]
            x2, x3 = columns[t + 2, i], columns[t + 3, i]
            u, v, y, z = x0 - a0, x1 - a1, x2 - a2, x3 - a3
            out[a, i] = (((out[a, i] + u * u) + v * v) + y * y) + z * z
            u, v, y, z = x0 - b0, x1 - b1, x2 - b2, x3 - b3
            out[b, i] = (((out[b, i] + u * u) + v * v) + y * y) + z * z
    for t in range(d - d % 4, d):
        e, f = columns[t, a], columns[t, b]
        for i in range(stop):
            u, v = columns[t, i] - e, columns[t, i] - f
            out[a, i] += u * u
            out[b, i] += v * v


@inner
def copy_point(x: Any, row: int, point: Any) -> None:
    """Copy a row of x as the one point that `value_row` is asked about."""
    for t in range(x.shape[1]):
        point[0, t] = x[row, t]


@compiled
def sparse_value(a: Any, i: int, b: Any, j: int, product: bool) -> Any:
    """Return the squared distance or the product of two rows.

    ``a`` and ``b`` are (indptr, indices, data, columns).
    """
    s, s_end = a[0][i], a[0][i + 1]
    t, t_end = b[0][j], b[0][j + 1]
    total = 0.0
    # Both values are always read: a processor cannot guess whose column comes next.
    while s < s_end and t < t_end:
        left, right, u, v = a[1][s], b[1][t], a[2][s], b[2][t]
        u, v = u if left <= right else 0.0, v if right <= left else 0.0
        s += left <= right
        t += right <= left
        total += u * v if product else (u - v) * (u - v)
    if not product:
        for e in range(s, s_end):
            total += a[2][e] * a[2][e]
        for e in range(t, t_end):
            total += b[2][e] * b[2][e]
    return total


@compiled
def _cross(x: Any, queries: Any, index: Any, product: bool, out: Any) -> None:
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            if index[i, j] < 0:
                out[i, j] = np.inf
            else:
                out[i, j] = sparse_value(queries, i, x, index[i, j], product)


@compiled
def _gather(x: Any, rows: Any, place: Any, seen: Any) -> int:
    """Give the columns that some rows store numbers in their order; return how many."""
    count = 0
    for row in rows:
        if row >= 0:
            for s in range(x[0][row], x[0][row + 1]):
                if place[x[1][s]] < 0:
                    place[x[1][s]] = 0
                    seen[count] = x[1][s]
                    count += 1
    seen[:count].sort()
    for t in range(count):
        place[seen[t]] = t
    return count


@compiled
def _within(x: Any, index: Any, product: bool, place: Any, seen: Any, out: Any) -> None:
    """Value pairs of candidates, as dense columns of the features that they have."""
    m = index.shape[1]
    width = -(-m // LANES) * LANES
    line, columns = np.empty((1, width)), np.empty((0, width))
    point = np.empty((1, 0))
    for q in range(index.shape[0]):
        count = _gather(x, index[q], place, seen)
        if columns.shape[0] < count:
            columns, point = np.empty((2 * count, width)), np.empty((1, 2 * count))
        columns[:count] = 0.0
        for i in range(m):
            if index[q, i] >= 0:
                for s in range(x[0][index[q, i]], x[0][index[q, i] + 1]):
                    columns[place[x[1][s]], i] = x[2][s]
        for t in range(count):
            place[seen[t]] = -1
        at = 0
        for i in range(m):
            for t in range(count):
                point[0, t] = columns[t, i]
            value_row(columns, count, point, 0, int(product), line, 0, width)
            for j in range(i + 1):
                there = index[q, i] >= 0 and index[q, j] >= 0
                out[q, at] = line[0, j] if there else 0.0
                at += 1


def parts(x: SparseRows) -> tuple[Any, Any, Any, int]:
    """Return what compiled code takes for sparse rows."""
    return frozen(x.indptr), frozen(x.indices), frozen(x.data), x.columns


def cross_values(
    x: SparseRows, queries: SparseRows, index: IndexArray, base: str
) -> FloatArray:
    """Return the value of every query with each of its candidates; inf for none."""
    out = np.empty(index.shape)
    index = frozen(np.ascontiguousarray(index))
    _cross(parts(x), parts(queries), index, _is_product(base), out)
    return out


def within_values(x: SparseRows, index: IndexArray, base: str) -> FloatArray:
    """Return the value of every two candidates of a query, as packed triangles."""
    b, m = index.shape
    out = np.empty((b, m * (m + 1) // 2))
    index = frozen(np.ascontiguousarray(index))
    place = np.full(x.columns, -1, np.int64)
    most = m * int(np.diff(x.indptr).max(initial=0))
    seen = np.empty(min(x.columns, most), np.int64)
    _within(parts(x), index, _is_product(base), place, seen, out)
    return out


def squared_lengths(x: SparseRows) -> FloatArray:
    """Return every row's product with itself."""
    every = np.arange(len(x))[:, np.newaxis]
    return cross_values(x, x, every, "inner-product")[:, 0]


def _is_product(base: str) -> bool:
    if base not in {"squared-distance", "inner-product"}:
        raise TypeError(f"sparse rows have no {base}")
    return base == "inner-product"
