"""Sums over features in sixteen fixed lanes: as fast as the machine, always the same.

A compiler may only use vector instructions for a sum when it is allowed to reorder
it, and then the result depends on what it chose. Here the order is written down
instead: lane ``l`` adds up the features ``l, l + 16, l + 32, ...``, then the lanes are
added pairwise. Every number that nnkgraph stores is derived from these two functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from nnkgraph.compiled import compiled

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


def _lane_intrinsic(term: Any) -> Any:
    """Make a compiled sum of ``term(a, b)`` over all whole groups of sixteen."""

    @intrinsic  # type: ignore[untyped-decorator]
    def lanes(typingctx: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            left, right = (
                context.make_array(kind)(context, builder, value)
                for kind, value in zip(signature.args, args, strict=True)
            )
            length = cgutils.unpack_tuple(builder, left.shape)[0]
            size = length.type
            total = cgutils.alloca_once_value(
                builder, ir.Constant(_VECTOR, [0.0] * LANES)
            )
            with cgutils.for_range_slice(
                builder,
                ir.Constant(size, 0),
                builder.and_(length, ir.Constant(size, -LANES)),
                ir.Constant(size, LANES),
                intp=size,
            ) as (at, _):
                value = term(
                    builder,
                    _load(builder, left.data, at, signature.args[0].dtype),
                    _load(builder, right.data, at, signature.args[1].dtype),
                )
                builder.store(builder.fadd(builder.load(total), value), total)
            return _lane_sum(builder, builder.load(total))

        return types.float64(a, b), codegen

    return lanes


def _square_of_difference(builder: Any, a: Any, b: Any) -> Any:
    difference = builder.fsub(a, b)
    return builder.fmul(difference, difference)


def _product(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b)


_lane_squares = _lane_intrinsic(_square_of_difference)
_lane_products = _lane_intrinsic(_product)


@compiled
def squared_distance(a: Any, b: Any) -> Any:
    """Return the squared Euclidean distance of two rows in float64."""
    whole = a.shape[0] - a.shape[0] % LANES
    total = _lane_squares(a, b) if whole > 0 else 0.0
    for t in range(whole, a.shape[0]):
        difference = np.float64(a[t]) - np.float64(b[t])
        total += difference * difference
    return total


@compiled
def inner_product(a: Any, b: Any) -> Any:
    """Return the inner product of two rows in float64."""
    whole = a.shape[0] - a.shape[0] % LANES
    total = _lane_products(a, b) if whole > 0 else 0.0
    for t in range(whole, a.shape[0]):
        total += np.float64(a[t]) * np.float64(b[t])
    return total
