"""Compiled heart of the exact search: keep the best of a stream of products."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled


@compiled
def _sift_down(value: Any, index: Any, v: Any, c: Any) -> None:
    """Replace the root of a max-heap."""
    size, at = value.shape[0], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and value[child + 1] > value[child]:
            child += 1
        if value[child] <= v:
            break
        value[at] = value[child]
        index[at] = index[child]
        at = child
    value[at] = v
    index[at] = c


@compiled
def scan(
    products: Any,
    offset: Any,
    factor: Any,
    column: int,
    rows: Any,
    value: Any,
    index: Any,
) -> None:
    """Keep, in one max-heap per query, the smallest ``offset_j - factor * product``.

    Parameters
    ----------
    products : (b, c) array of float32
        Inner products of b queries with the rows ``column ... column + c - 1``.
    offset : (n,) array of float32
        One number per row.
    factor : float32
        2 for distances, 1 for inner products.
    rows : (b,) array of int
        The queries' own row numbers, which are passed over.
    value, index : (b, m) arrays
        The heaps.
    """
    for i in range(products.shape[0]):
        top, own = value[i, 0], rows[i] - column
        row = products[i]
        for j in range(products.shape[1]):
            v = offset[column + j] - factor * row[j]
            if v < top and j != own:
                _sift_down(value[i], index[i], v, column + j)
                top = value[i, 0]


@compiled
def collect(
    products: Any,
    offset: Any,
    factor: Any,
    column: int,
    own: int,
    limit: Any,
    found: Any,
    count: int,
) -> int:
    """Append all rows of one query whose bound is not above a limit."""
    for j in range(products.shape[0]):
        v = np.float64(offset[column + j]) - np.float64(factor) * products[j]
        if v <= limit and column + j != own:
            found[count] = column + j
            count += 1
    return count
