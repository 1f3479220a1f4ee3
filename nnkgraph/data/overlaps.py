"""Jaccard distances of sparse rows: how little of what either has do both have.

The distance is ``1 - sum(min(x, y)) / sum(max(x, y))``, of sums in the order of the
columns. What is made of whole numbers is exact but for one division, so that equal
shares are ties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data.sums import parts
from nnkgraph.runtime.jit import compiled, frozen, inner

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import SparseRows


@inner
def apart(one: float, other: float, shared: float) -> float:
    """Return the distance of two rows by their sums and that of their minima."""
    either = one + other - shared
    if either == 0.0:  # two rows of zeros
        return 0.0
    return (either - shared) / either


@inner
def _spread(x: Any, row: int, room: Any) -> float:
    """Write a row into a line of zeros; return its sum."""
    total = 0.0
    for s in range(x[0][row], x[0][row + 1]):
        room[x[1][s]] = x[2][s]
        total += x[2][s]
    return total


@inner
def _cleared(x: Any, row: int, room: Any) -> None:
    for s in range(x[0][row], x[0][row + 1]):
        room[x[1][s]] = 0.0


@inner
def _from_spread(total: float, room: Any, x: Any, row: int) -> float:
    """Return the distance of a row from the one that was spread."""
    shared = other = 0.0
    for s in range(x[0][row], x[0][row + 1]):
        value = x[2][s]
        shared += min(value, room[x[1][s]])
        other += value
    found: float = apart(total, other, shared)
    return found


@compiled
def _cross(x: Any, queries: Any, index: Any, room: Any, out: Any) -> None:
    for q in range(index.shape[0]):
        total = _spread(queries, q, room)
        for j in range(index.shape[1]):
            row = index[q, j]
            out[q, j] = np.inf if row < 0 else _from_spread(total, room, x, row)
        _cleared(queries, q, room)


@compiled
def _within(x: Any, index: Any, room: Any, out: Any) -> None:
    for q in range(index.shape[0]):
        place = 0
        for i in range(index.shape[1]):
            row = index[q, i]
            total = _spread(x, row, room) if row >= 0 else 0.0
            for j in range(i + 1):
                other = index[q, j]
                there = row >= 0 and other >= 0
                out[q, place] = _from_spread(total, room, x, other) if there else 0.0
                place += 1
            if row >= 0:
                _cleared(x, row, room)


def cross_values(x: SparseRows, queries: SparseRows, index: IndexArray) -> FloatArray:
    """Return the distance of every query from each of its candidates; inf for none."""
    out = np.empty(index.shape)
    index = frozen(np.ascontiguousarray(index))
    _cross(parts(x), parts(queries), index, np.zeros(x.columns), out)
    return out


def within_values(x: SparseRows, index: IndexArray) -> FloatArray:
    """Return the distance of every two candidates of a query, as packed triangles."""
    b, m = index.shape
    out = np.empty((b, m * (m + 1) // 2))
    index = frozen(np.ascontiguousarray(index))
    _within(parts(x), index, np.zeros(x.columns), out)
    return out


@compiled
def _sums(x: Any, out: Any) -> None:
    for i in range(len(out)):
        for s in range(x[0][i], x[0][i + 1]):
            out[i] += x[2][s]


def row_sums(x: SparseRows) -> FloatArray:
    """Return the sum of every row, in the order of its columns."""
    out = np.zeros(len(x))
    _sums(parts(x), out)
    return out


@compiled
def _pack(x: Any, out: Any) -> None:
    one = np.uint64(1)
    for i in range(out.shape[0]):
        for s in range(x[0][i], x[0][i + 1]):
            column = np.uint64(x[1][s])
            out[i, column >> np.uint64(6)] |= one << (column & np.uint64(63))


def packed_bits(x: SparseRows) -> Any:
    """Return which columns the rows store, as the bits of (n, d / 64) numbers."""
    out = np.zeros((len(x), -(-x.columns // 64)), np.uint64)
    _pack(parts(x), out)
    return out
