"""Sums over features in sixteen fixed lanes: as fast as the machine, always the same.

A compiler may only use vector instructions for a sum when it is allowed to reorder
it, and then the result depends on what it chose. Here the order is written down
instead: lane ``l`` adds up the features ``l, l + 16, l + 32, ...``, then the lanes are
added pairwise. Sparse rows are summed in the same order: a column that neither stores
adds zero, which changes no sum. Every number that nnkgraph
stores is derived from these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.jit import (
    TypingError,
    cgutils,
    compiled,
    frozen,
    intrinsic,
    ir,
    types,
)

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import SparseRows


LANES = 16
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INT = ir.IntType(32)


def _load(builder: Any, pointer: Any, offset: Any, dtype: Any) -> Any:
    """Load sixteen values and widen them to float64."""
    single = dtype == types.float32
    vector = ir.VectorType(ir.FloatType() if single else _DOUBLE, LANES)
    address = builder.bitcast(builder.gep(pointer, [offset]), vector.as_pointer())
    values = builder.load(address)
    values.align = 4 if single else 8
    return builder.fpext(values, _VECTOR) if single else values


def _lane_sum(builder: Any, vector: Any) -> Any:
    """Add the lanes: the upper half to the lower half until one is left."""
    width = LANES
    while width > 1:
        width //= 2
        mask = ir.VectorType(_INT, width)
        low = ir.Constant(mask, list(range(width)))
        high = ir.Constant(mask, list(range(width, 2 * width)))
        vector = builder.fadd(
            builder.shuffle_vector(vector, vector, low),
            builder.shuffle_vector(vector, vector, high),
        )
    return builder.extract_element(vector, ir.Constant(_INT, 0))


def _row_sum(term: Any) -> Any:
    """Return what writes the sum of ``term(a, b)`` over the features of two rows."""

    def typed(a: Any, b: Any) -> Any:
        if not (a.layout == b.layout == "C"):
            raise TypingError("rows must be contiguous")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rows, dtypes = [], []
            for place in (0, 2):
                kind = signature.args[place]
                array = context.make_array(kind)(context, builder, args[place])
                length = cgutils.unpack_tuple(builder, array.shape)[1]
                start = builder.mul(args[place + 1], length)
                rows.append(builder.gep(array.data, [start]))
                dtypes.append(kind.dtype)
            return _sum_of_terms(builder, rows, dtypes, length, term)

        # The kinds of the row numbers are fixed, so that others are converted.
        return types.float64(a, types.intp, b, types.intp), codegen

    return typed


def _sum_of_terms(
    builder: Any, rows: list[Any], dtypes: list[Any], length: Any, term: Any
) -> Any:
    size = length.type
    zero = ir.Constant(_VECTOR, [0.0] * LANES)
    lanes = cgutils.alloca_once_value(builder, zero)
    whole = builder.and_(length, ir.Constant(size, -LANES))
    with cgutils.for_range_slice(
        builder, ir.Constant(size, 0), whole, ir.Constant(size, LANES), intp=size
    ) as (at, _):
        values = [
            _load(builder, row, at, dtype)
            for row, dtype in zip(rows, dtypes, strict=True)
        ]
        total = builder.fadd(builder.load(lanes), term(builder, *values))
        builder.store(total, lanes)
    total = cgutils.alloca_once_value(builder, _lane_sum(builder, builder.load(lanes)))
    with cgutils.for_range_slice(
        builder, whole, length, ir.Constant(size, 1), intp=size
    ) as (at, _):
        values = [
            builder.fpext(value, _DOUBLE) if value.type != _DOUBLE else value
            for value in (builder.load(builder.gep(row, [at])) for row in rows)
        ]
        after = builder.fadd(builder.load(total), term(builder, *values))
        builder.store(after, total)
    return builder.load(total)


def _square_of_difference(builder: Any, a: Any, b: Any) -> Any:
    difference = builder.fsub(a, b)
    return builder.fmul(difference, difference)


def _product(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b)


def _size_of_difference(builder: Any, a: Any, b: Any) -> Any:
    difference = builder.fsub(a, b)
    below = builder.fcmp_ordered("<", difference, difference.type(None))
    return builder.select(below, builder.fneg(difference), difference)


_squares = _row_sum(_square_of_difference)
_sizes = _row_sum(_size_of_difference)
_products = _row_sum(_product)


# Rows are named by matrix and number: a view of a row would be counted by the hundred
# million, at twice the price of the sum itself.
@intrinsic  # type: ignore[untyped-decorator]
def squared_distance(typingctx: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Return the squared Euclidean distance of ``a[i]`` and ``b[j]`` in float64."""
    return _squares(a, b)


@intrinsic  # type: ignore[untyped-decorator]
def inner_product(typingctx: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Return the inner product of ``a[i]`` and ``b[j]`` in float64."""
    return _products(a, b)


@intrinsic  # type: ignore[untyped-decorator]
def l1_distance(typingctx: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Return the sum of absolute differences of ``a[i]`` and ``b[j]`` in float64."""
    return _sizes(a, b)


@compiled
def lane_sum(lanes: Any) -> Any:
    """Add the lanes, the upper half to the lower half until one is left; clear them."""
    width = LANES // 2
    while width > 0:
        for t in range(width):
            lanes[t] += lanes[t + width]
        width //= 2
    total = lanes[0]
    lanes[:] = 0.0
    return total


@compiled
def sparse_value(a: Any, i: int, b: Any, j: int, product: bool, lanes: Any) -> Any:
    """Return the squared distance or the product of two rows.

    ``a`` and ``b`` are (indptr, indices, data, columns); ``lanes`` are zeros.
    """
    s, s_end = a[0][i], a[0][i + 1]
    t, t_end = b[0][j], b[0][j + 1]
    columns = a[3]
    whole = columns & -LANES
    total, begun = 0.0, False
    while s < s_end or t < t_end:
        left = a[1][s] if s < s_end else columns
        right = b[1][t] if t < t_end else columns
        column = min(left, right)
        u = a[2][s] if left == column else 0.0
        v = b[2][t] if right == column else 0.0
        s += left == column
        t += right == column
        term = u * v if product else (u - v) * (u - v)
        if column < whole:
            lanes[column & (LANES - 1)] += term
        else:
            if not begun:
                total, begun = lane_sum(lanes), True
            total += term
    return total if begun else lane_sum(lanes)


@compiled
def _cross(x: Any, queries: Any, index: Any, product: bool, out: Any) -> None:
    lanes = np.zeros(LANES)
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            if index[i, j] < 0:
                out[i, j] = np.inf
            else:
                out[i, j] = sparse_value(queries, i, x, index[i, j], product, lanes)


@compiled
def _gather(x: Any, rows: Any, place: Any, seen: Any) -> Any:
    """Give every column that some rows store a place of its own, lane by lane.

    Returns the number of columns seen and of places. A column keeps its lane, and
    stands in it after those of lower number: sums over places are sums over columns.
    """
    whole, count = x[3] & -LANES, 0
    for row in rows:
        if row >= 0:
            for s in range(x[0][row], x[0][row + 1]):
                if place[x[1][s]] < 0:
                    place[x[1][s]] = 0
                    seen[count] = x[1][s]
                    count += 1
    seen[:count].sort()
    filled = np.zeros(LANES, np.int64)
    for t in range(count):
        column = seen[t]
        if column < whole:
            lane = column & (LANES - 1)
            place[column] = filled[lane] * LANES + lane
            filled[lane] += 1
    length = filled.max() * LANES
    for t in range(count):
        if seen[t] >= whole:  # these follow one by one
            place[seen[t]] = length + seen[t] - whole
    return count, length + x[3] - whole


@compiled
def _copy(x: Any, rows: Any, place: Any, block: Any) -> None:
    """Copy the values of some rows to where their columns have their places."""
    block[:] = 0.0
    for i in range(len(rows)):
        if rows[i] >= 0:
            for s in range(x[0][rows[i]], x[0][rows[i] + 1]):
                block[i, place[x[1][s]]] = x[2][s]


@compiled
def _within(x: Any, index: Any, product: bool, place: Any, seen: Any, out: Any) -> None:
    """Value pairs of candidates, copied to dense rows of the columns that they have."""
    m = index.shape[1]
    room = np.empty(0)
    for q in range(index.shape[0]):
        count, width = _gather(x, index[q], place, seen)
        if len(room) < m * width:
            room = np.empty(2 * m * width)
        block = room[: m * width].reshape(m, width)
        _copy(x, index[q], place, block)
        for t in range(count):
            place[seen[t]] = -1
        at = 0
        for i in range(m):
            for j in range(i + 1):
                if index[q, i] < 0 or index[q, j] < 0:
                    out[q, at] = 0.0
                elif product:
                    out[q, at] = inner_product(block, i, block, j)
                else:
                    out[q, at] = squared_distance(block, i, block, j)
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
