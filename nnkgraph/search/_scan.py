"""Compiled heart of the exact search: keep the smallest of a stream of bounds.

Every query has a reservoir. A value enters it if it is below the query's limit; when
the reservoir is full, a lower limit is found that still leaves enough values below it,
and the rest are forgotten. Most values are turned away thirty-two at a time by one
vector comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from nnkgraph.compiled import compiled

WIDTH = 32
"""Values that are compared at once: as many as there are bits in a mask."""


@intrinsic  # type: ignore[untyped-decorator]
def _below(typingctx: Any, row: Any, start: Any, limit: Any) -> Any:
    """Return a mask of which of the 32 values from ``row[start]`` are below a limit."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = signature.args[0].dtype == types.float32
        vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), WIDTH)
        lanes = ir.VectorType(ir.IntType(32), WIDTH)
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(array.data, [args[1]])
        values = builder.load(builder.bitcast(address, vector.as_pointer()))
        values.align = 4 if single else 8
        one = builder.insert_element(
            ir.Constant(vector, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0)
        )
        limits = builder.shuffle_vector(one, one, ir.Constant(lanes, [0] * WIDTH))
        smaller = builder.fcmp_ordered("<", values, limits)
        return builder.bitcast(smaller, ir.IntType(WIDTH))

    return types.uint32(row, types.intp, row.dtype), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _lowest_bit(typingctx: Any, mask: Any) -> Any:
    """Return the place of the lowest bit that is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), ir.IntType(1)])
        count = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i32")
        place = builder.call(count, [args[0], ir.Constant(ir.IntType(1), 1)])
        return builder.zext(place, ir.IntType(64))

    return types.intp(types.uint32), codegen


@compiled
def _keep_smallest(value: Any, index: Any, filled: int, keep: int) -> Any:
    """Bring the smallest to the front by quickselect; return the largest of them."""
    low, high = 0, filled - 1
    while low < high:
        pivot = value[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while value[i] < pivot:
                i += 1
            while value[j] > pivot:
                j -= 1
            if i <= j:
                value[i], value[j] = value[j], value[i]
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if keep - 1 <= j:
            high = j
        elif keep - 1 >= i:
            low = i
        else:
            break
    largest = value[0]
    for t in range(1, keep):
        largest = max(largest, value[t])
    return largest


@compiled
def _tighten(value: Any, index: Any, filled: int, limit: Any, keep: int) -> Any:
    """Lower the limit so that at least ``keep`` values stay, and forget the others.

    The limit is found by bisection, which needs counting only and so no sorting; where
    ties leave no room between values, quickselect decides.
    """
    low, high = value[0], value[0]
    for t in range(filled):
        low = min(low, value[t])
        high = max(high, value[t])
    high = min(limit, np.nextafter(high, value.dtype.type(np.inf)))
    most = value.shape[0] - WIDTH
    inside = filled  # how many are below high
    for _ in range(30):
        middle = value.dtype.type(0.5) * (low + high)
        below = np.int32(0)
        for t in range(filled):
            below += np.int32(value[t] < middle)
        if below < keep:
            low = middle
        else:
            high, inside = middle, int(below)
            if below <= (keep + most) // 2:
                break
    if inside > most:
        return keep, _keep_smallest(value, index, filled, keep)
    kept = 0
    for t in range(filled):
        value[kept] = value[t]
        index[kept] = index[t]
        kept += value[t] < high
    return kept, high


@compiled
def settle(value: Any, index: Any, filled: Any, limit: Any, keep: int) -> None:
    """Leave exactly the smallest in every reservoir, and the limit they stay below."""
    for i in range(value.shape[0]):
        if filled[i] > keep:
            limit[i] = _keep_smallest(value[i], index[i], filled[i], keep)
            filled[i] = keep


@compiled
def scan(
    bounds: Any,
    column: int,
    rows: Any,
    value: Any,
    index: Any,
    filled: Any,
    limit: Any,
    keep: int,
) -> None:
    """Take a block of bounds into the reservoirs.

    Parameters
    ----------
    bounds : (b, c) array of float32 or float64
        Bounds of b queries with the rows ``column ... column + c - 1``; the queries'
        own are overwritten.
    rows : (b,) array of int
        The queries' own row numbers, which are passed over.
    value, index : (b, m) arrays
        The reservoirs; m is at least ``keep + 2 * WIDTH``.
    filled, limit : (b,) arrays
        How many values each has, and what a new one must stay below.
    keep : int
        How many of the smallest must stay.
    """
    count = bounds.shape[1]
    whole = count - count % WIDTH
    for i in range(bounds.shape[0]):
        row, values, indices = bounds[i], value[i], index[i]
        top, size = limit[i], filled[i]
        own = rows[i] - column
        if 0 <= own < count:
            row[own] = np.inf
        for start in range(0, whole, WIDTH):
            mask = _below(row, start, top)
            if mask != 0:
                if size > values.shape[0] - WIDTH:
                    size, top = _tighten(values, indices, size, top, keep)
                    mask = _below(row, start, top)
                while mask != 0:
                    j = start + _lowest_bit(mask)
                    mask &= mask - np.uint32(1)
                    values[size] = row[j]
                    indices[size] = column + j
                    size += 1
        if size > values.shape[0] - WIDTH:
            size, top = _tighten(values, indices, size, top, keep)
        for j in range(whole, count):
            if row[j] < top:
                values[size] = row[j]
                indices[size] = column + j
                size += 1
        limit[i], filled[i] = top, size
