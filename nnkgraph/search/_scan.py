"""Compiled heart of the exact search: take blocks of products into reservoirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import borrowed, compiled, inlined
from nnkgraph.search._masks import WIDTH, below, lowest_bit
from nnkgraph.search._reservoir import first_limit, take, tighten


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
    product, offset = borrowed(product), borrowed(offset)
    value, index = borrowed(value), borrowed(index)
    count = product.shape[1]
    for i in range(product.shape[0]):
        row, values, indices = product[i], value[i], index[i]
        top = limit[i]
        own = rows[i] - column
        if 0 <= own < count:
            row[own] = np.inf
        if top == np.inf and count > 2 * values.shape[0]:
            top = first_limit(row, offset, values.shape[0], keep)
        limit[i], filled[i] = take(
            row, offset, column, values, indices, top, filled[i], keep
        )


@inlined
def _offer(
    bound: Any,
    row: int,
    value: Any,
    index: Any,
    filled: Any,
    limit: Any,
    j: int,
    keep: int,
) -> None:
    """Take one value into the reservoir of row j, making room for it if need be."""
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
    product, your_offset = borrowed(product), borrowed(your_offset)
    my_value, my_index = borrowed(my_value), borrowed(my_index)
    your_value, your_index = borrowed(your_value), borrowed(your_index)
    your_filled, your_limit = borrowed(your_filled), borrowed(your_limit)
    count = product.shape[1]
    whole = count - count % WIDTH
    for i in range(product.shape[0]):
        row, values, indices = product[i], my_value[i], my_index[i]
        top, size = take(
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
                _offer(
                    row[j] + mine,
                    my_first + i,
                    your_value,
                    your_index,
                    your_filled,
                    your_limit,
                    j,
                    keep,
                )
        for j in range(whole, count):
            if row[j] + mine < your_limit[j]:
                _offer(
                    row[j] + mine,
                    my_first + i,
                    your_value,
                    your_index,
                    your_filled,
                    your_limit,
                    j,
                    keep,
                )
