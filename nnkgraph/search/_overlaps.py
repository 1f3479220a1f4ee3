"""Exact search by Jaccard distance: by columns, or by bits where rows are sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data.overlaps import apart, packed_bits, row_sums
from nnkgraph.data.pairs import TILE
from nnkgraph.data.sparse import share_rows
from nnkgraph.data.sums import parts
from nnkgraph.runtime.jit import compiled, frozen, inner
from nnkgraph.search import index_dtype, insert

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import HeldRows, SharedRows
    from nnkgraph.runtime.executors import Shared
    from nnkgraph.search import Wanted

_WORD = 0.2
"""What 64 columns of two rows take as bits, beside an entry that two rows share."""


@dataclass(frozen=True)
class OverlapInputs:
    """What a block of queries needs; small, because it travels to the workers."""

    n: int
    """How many rows are searched; below them are the points that ask, if any."""

    k: int
    sums: Shared
    x: SharedRows | HeldRows | None = None
    """All rows, where they are searched by columns."""

    columns: SharedRows | HeldRows | None = None
    """Those that are searched, column by column."""

    bits: Shared | None = None
    """All rows, where they are searched by bits."""


def overlap_inputs(wanted: Wanted, points: Any = None) -> OverlapInputs:
    """Share the rows of a search in the form that is compared faster."""
    pool, x = wanted.pool, wanted.x
    known, n = (x if points is None else x.stacked(points)), len(x)
    sums = pool.share(row_sums(known))
    if (known.data == 1.0).all():
        stored = np.bincount(x.indices) / n
        words = -(-x.columns // 64)
        if _WORD * words < float((stored * stored).sum()):
            bits = pool.share(packed_bits(known))
            return OverlapInputs(n, wanted.k, sums, bits=bits)
    shared: Any = share_rows(pool, known)
    columns: Any = share_rows(pool, x.transposed())
    return OverlapInputs(n, wanted.k, sums, shared, columns)


@inner
def _offer(
    one: float,
    other: float,
    shared: float,
    j: int,
    row: int,
    score: Any,
    index: Any,
    q: int,
) -> None:
    """Enter a row where it is better than the last; most are not, by a product."""
    either, last = one + other - shared, score[q, score.shape[1] - 1]
    if not either - shared > last * either * (1.0 + 1e-15) and j != row:
        value = apart(one, other, shared)
        if value < last:
            insert(value, j, score, index, q)


@compiled
def _by_columns(
    x: Any, columns: Any, sums: Any, rows: Any, n: int, score: Any, index: Any
) -> None:
    shared = np.empty(n)
    for q in range(len(rows)):
        row = rows[q]
        shared[:] = 0.0
        for s in range(x[0][row], x[0][row + 1]):
            column, value = x[1][s], x[2][s]
            for t in range(columns[0][column], columns[0][column + 1]):
                shared[columns[1][t]] += min(value, columns[2][t])
        for j in range(n):
            _offer(sums[row], sums[j], shared[j], j, row, score, index, q)


@inner
def _count(word: Any) -> Any:
    """Return how many bits are set."""
    u = np.uint64
    word -= (word >> u(1)) & u(0x5555555555555555)
    word = (word & u(0x3333333333333333)) + ((word >> u(2)) & u(0x3333333333333333))
    word = (word + (word >> u(4))) & u(0x0F0F0F0F0F0F0F0F)
    return (word * u(0x0101010101010101)) >> u(56)


@compiled
def _by_bits(bits: Any, sums: Any, rows: Any, n: int, score: Any, index: Any) -> None:
    for first in range(0, n, TILE):
        for q in range(len(rows)):
            row = rows[q]
            for j in range(first, min(first + TILE, n)):
                shared = np.uint64(0)
                for w in range(bits.shape[1]):
                    shared += _count(bits[row, w] & bits[j, w])
                both = np.float64(shared)
                _offer(sums[row], sums[j], both, j, row, score, index, q)


def select_overlaps(
    inputs: OverlapInputs, rows: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Return the k nearest rows of some, and their distances; ties go to the lower."""
    score = np.full((len(rows), inputs.k), np.inf)
    index = np.full(score.shape, -1, index_dtype(inputs.n))
    rows, sums = frozen(np.ascontiguousarray(rows)), frozen(inputs.sums.open())
    if inputs.bits is not None:
        _by_bits(frozen(inputs.bits.open()), sums, rows, inputs.n, score, index)
    elif inputs.x is not None and inputs.columns is not None:
        both = parts(inputs.x.open()), parts(inputs.columns.open())
        _by_columns(*both, sums, rows, inputs.n, score, index)
    return index, score


def select_overlaps_block(
    inputs: OverlapInputs, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Return candidates of a block of rows."""
    return select_overlaps(inputs, np.arange(start, stop))
