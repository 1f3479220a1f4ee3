"""Compiled heart of the exact search: take blocks of products into reservoirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.runtime.jit import cgutils, compiled, inner, intrinsic, ir, types

WIDTH = 32
"""Values that are compared at once: as many as there are bits in a mask."""


@intrinsic  # type: ignore[untyped-decorator]
def below(typingctx: Any, row: Any, start: Any, add: Any, limit: Any) -> Any:
    """Return a mask of ``row[j] + add < limit`` for 32 j from ``start`` on.

    What is added and the limit are either one number or an array that is read at j. A
    plain loop that counts what is below the limit makes a build of 20,000 x 100 take
    1.13 times as long.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = signature.args[0].dtype == types.float32
        vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), WIDTH)
        lanes = ir.VectorType(ir.IntType(32), WIDTH)

        def read(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                address = builder.gep(array.data, [args[1]])
                loaded = builder.load(builder.bitcast(address, vector.as_pointer()))
                loaded.align = 4 if single else 8
                return loaded
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
            )
            return builder.shuffle_vector(one, one, ir.Constant(lanes, [0] * WIDTH))

        kinds = signature.args
        total = builder.fadd(read(kinds[0], args[0]), read(kinds[2], args[2]))
        smaller = builder.fcmp_ordered("<", total, read(kinds[3], args[3]))
        return builder.bitcast(smaller, ir.IntType(WIDTH))

    return types.uint32(row, types.intp, add, limit), codegen


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typingctx: Any, mask: Any) -> Any:
    """Return the place of the lowest bit that is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), ir.IntType(1)])
        count = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i32")
        place = builder.call(count, [args[0], ir.Constant(ir.IntType(1), 1)])
        return builder.zext(place, ir.IntType(64))

    return types.intp(types.uint32), codegen


@inner
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
        largest = value[t] if value[t] > largest else largest
    return largest


@inner
def first_limit(row: Any, offset: Any, room: int, keep: int) -> Any:
    """Return a limit for an empty reservoir that fits what it will see first.

    At least ``keep`` bounds of the row are below it, and hardly more than that. Without
    it most values that ever enter a reservoir would do so in the beginning.
    """
    count = row.shape[0]
    low = high = row[0] + offset[0]
    for j in range(0, count, WIDTH):
        value = row[j] + offset[j]
        if value < np.inf:  # the query's own is passed over
            low = value if value < low else low
            high = value if value > high or high == np.inf else high
    low -= high - low
    found = row.dtype.type(np.inf)
    for _ in range(24):
        middle = row.dtype.type(0.5) * (low + high)
        below = np.int32(0)
        for j in range(count):
            below += np.int32(row[j] + offset[j] < middle)
        if below < keep:
            low = middle
        else:
            high = found = middle
            if below <= room - WIDTH:
                break
    return found


@inner
def tighten(value: Any, index: Any, filled: int, limit: Any, keep: int) -> Any:
    """Lower the limit so that at least ``keep`` values stay, and forget the others.

    The limit is found by bisection, which needs counting only and so no sorting; where
    ties leave no room between values, quickselect decides.
    """
    low, high = value[0], value[0]
    for t in range(filled):
        low = value[t] if value[t] < low else low
        high = value[t] if value[t] > high else high
    high = np.nextafter(high, value.dtype.type(np.inf))
    high = limit if limit < high else high
    most = value.shape[0] - WIDTH
    inside: Any = filled  # how many are below high
    for _ in range(30):
        middle = value.dtype.type(0.5) * (low + high)
        below = np.int32(0)
        for t in range(filled):
            below += np.int32(value[t] < middle)
        if below < keep:
            low = middle
        else:
            high, inside = middle, np.int64(below)
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


@inner
def _take(
    row: Any,
    offset: Any,
    column: int,
    values: Any,
    indices: Any,
    top: Any,
    size: int,
    keep: int,
) -> Any:
    """Take a row of bounds into one reservoir; return its limit and size.

    Parameters
    ----------
    row, offset : (c,) arrays of float32 or float64
        Products with the rows ``column ... column + c - 1``, and what these add to
        make bounds of them.
    values, indices : (m,) arrays
        The reservoir; m is at least ``keep + 2 * WIDTH``.
    top, size : number, int
        What a new value must stay below, and how many values there are.
    keep : int
        How many of the smallest must stay.
    """
    count, most = row.shape[0], values.shape[0] - WIDTH
    whole = count - count % WIDTH
    for start in range(0, whole, WIDTH):
        mask = below(row, start, offset, top)
        if mask != 0:
            if size > most:
                size, top = tighten(values, indices, size, top, keep)
                mask = below(row, start, offset, top)
            while mask != 0:
                j = start + lowest_bit(mask)
                mask &= mask - np.uint32(1)
                values[size] = row[j] + offset[j]
                indices[size] = column + j
                size += 1
    if size > most:
        size, top = tighten(values, indices, size, top, keep)
    for j in range(whole, count):
        if row[j] + offset[j] < top:
            values[size] = row[j] + offset[j]
            indices[size] = column + j
            size += 1
    return top, size


@compiled
def scan(
    product: Any,
    offset: Any,
    column: int,
    rows: Any,
    value: Any,
    index: Any,
    filled: Any,
    limit: Any,
    keep: int,
) -> None:
    """Take products of queries into their reservoirs, passing over their own rows."""
    count = product.shape[1]
    for i in range(product.shape[0]):
        row, values, indices = product[i], value[i], index[i]
        top = limit[i]
        own = rows[i] - column
        if 0 <= own < count:
            row[own] = np.inf
        if top == np.inf and count > 2 * values.shape[0]:
            top = first_limit(row, offset, values.shape[0], keep)
        limit[i], filled[i] = _take(
            row, offset, column, values, indices, top, filled[i], keep
        )


@inner
def _offer(bound: Any, row: int, j: int, reservoirs: Any, keep: int) -> None:
    """Take one value into the reservoir of row j, making room for it if need be."""
    value, index, filled, limit = reservoirs
    size = filled[j]
    if size == value.shape[1]:
        size, limit[j] = tighten(value[j], index[j], size, limit[j], keep)
    if bound < limit[j]:
        value[j, size] = bound
        index[j, size] = row
        size += 1
    filled[j] = size


@compiled
def scan_both(
    product: Any,
    my_offset: Any,
    your_offset: Any,
    my_first: int,
    your_first: int,
    my_value: Any,
    my_index: Any,
    my_filled: Any,
    my_limit: Any,
    your_value: Any,
    your_index: Any,
    your_filled: Any,
    your_limit: Any,
    keep: int,
) -> None:
    """Take a block of products into the reservoirs of its rows and of its columns."""
    count = product.shape[1]
    whole = count - count % WIDTH
    yours = your_value, your_index, your_filled, your_limit
    for i in range(product.shape[0]):
        row, values, indices = product[i], my_value[i], my_index[i]
        top, size = _take(
            row,
            your_offset,
            your_first,
            values,
            indices,
            my_limit[i],
            my_filled[i],
            keep,
        )
        my_limit[i], my_filled[i] = top, size
        mine = my_offset[i]
        for start in range(0, whole, WIDTH):
            mask = below(row, start, mine, your_limit)
            while mask != 0:
                j = start + lowest_bit(mask)
                mask &= mask - np.uint32(1)
                _offer(row[j] + mine, my_first + i, j, yours, keep)
        for j in range(whole, count):
            if row[j] + mine < your_limit[j]:
                _offer(row[j] + mine, my_first + i, j, yours, keep)
