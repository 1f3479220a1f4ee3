"""Compiled heart of the exact search: take blocks of products into reservoirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.runtime.jit import compiled, inner

WIDTH = 32
"""Values that are looked at together: mostly none of them is small enough."""


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
        largest = max(largest, value[t])
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
            low = min(low, value)
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
    for t in range(filled):  # min and max would look for nan, which takes longer
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
    most = values.shape[0] - WIDTH
    for start in range(0, row.shape[0], WIDTH):
        stop, below = min(start + WIDTH, row.shape[0]), np.int32(0)
        for j in range(start, stop):
            below += np.int32(row[j] + offset[j] < top)
        if below == 0:
            continue
        if size > most:
            size, top = tighten(values, indices, size, top, keep)
        for j in range(start, stop):
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
        for start in range(0, count, WIDTH):
            stop, below = min(start + WIDTH, count), np.int32(0)
            for j in range(start, stop):
                below += np.int32(row[j] + mine < your_limit[j])
            if below == 0:
                continue
            for j in range(start, stop):
                bound = row[j] + mine
                if bound < your_limit[j]:
                    if your_filled[j] == your_value.shape[1]:
                        your_filled[j], your_limit[j] = tighten(
                            your_value[j],
                            your_index[j],
                            your_filled[j],
                            your_limit[j],
                            keep,
                        )
                    if bound < your_limit[j]:
                        your_value[j, your_filled[j]] = bound
                        your_index[j, your_filled[j]] = my_first + i
                        your_filled[j] += 1
