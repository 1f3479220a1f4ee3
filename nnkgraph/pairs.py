"""Compiled loops over pairs of rows: what kernels and searches are made from.

``base`` says what a pair's value is: ``"squared-distance"`` or ``"inner-product"``.
All functions write into arrays they are given and never depend on the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled, frozen, inlined
from nnkgraph.lanes import inner_product, squared_distance

BASES = ("squared-distance", "inner-product")


@inlined
def pair_value(a: Any, i: int, b: Any, j: int, base: int) -> Any:
    """Return the value of ``a[i]`` and ``b[j]``; ``base`` is a place in ``BASES``."""
    if base == 1:
        return inner_product(a, i, b, j)
    return squared_distance(a, i, b, j)


@compiled
def _cross(x: Any, queries: Any, index: Any, base: int, out: Any) -> None:
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            if index[i, j] < 0:
                out[i, j] = np.inf
            else:
                out[i, j] = pair_value(queries, i, x, index[i, j], base)


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
    base : {"squared-distance", "inner-product"}
        What is computed.

    Returns
    -------
    (b, m) array of float64
    """
    out = np.empty(index.shape)
    _cross(frozen(x), frozen(queries), frozen(index), BASES.index(base), out)
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
                if out[order[j]] == order[j] and np.all(x[order[i]] == x[order[j]]):
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
