"""Sums over features in sixteen fixed lanes: as fast as the machine, always the same.

A compiler may only use vector instructions for a sum when it is allowed to reorder
it, and then the result depends on what it chose. Here the order is written down
instead: lane ``l`` adds up the features ``l, l + 16, l + 32, ...``, then the lanes are
added pairwise. Every number that nnkgraph stores is derived from these functions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

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
