"""Exact search among sparse rows, by the columns that they share.

A query's products with all rows are added up column by column. They say within a bound
on their rounding which rows could be among the k best; only those are valued by the
definition. Every query is settled on its own, so that blocks and workers play no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled, frozen
from nnkgraph.lanes import LANES
from nnkgraph.search import index_dtype
from nnkgraph.shared_rows import share_rows
from nnkgraph.sparse_lanes import parts, sparse_value, squared_lengths

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Shared
    from nnkgraph.search import Wanted
    from nnkgraph.shared_rows import SharedRows

_ROUNDING = 8.0 * 2.0**-53
"""Of a sum of one term; sums of m terms are off by at most m times as much."""


@dataclass(frozen=True)
class SparsePart:
    """What a block of queries needs; small, because it travels to the workers."""

    x: SharedRows
    columns: SharedRows
    """The rows again, column by column."""

    lengths: Shared
    """Squared, of all rows."""

    base: str
    k: int


def sparse_part(wanted: Wanted) -> SparsePart:
    """Share the rows of a search, also by their columns."""
    pool, x = wanted.pool, wanted.x
    shared: Any = share_rows(pool, x)
    columns: Any = share_rows(pool, x.transposed())
    lengths = pool.share(squared_lengths(x))
    return SparsePart(shared, columns, lengths, wanted.base, wanted.k)


@compiled
def _insert(value: float, j: int, score: Any, index: Any) -> None:
    """Put a candidate in its place in a sorted line; the last one falls out."""
    t = len(score) - 1
    while t > 0 and score[t - 1] > value:
        score[t], index[t] = score[t - 1], index[t - 1]
        t -= 1
    score[t], index[t] = value, j


@compiled
def _products(x: Any, columns: Any, row: int, out: Any) -> None:
    """Add up a row's products with all rows, in the order of its columns."""
    out[:] = 0.0
    for s in range(x[0][row], x[0][row + 1]):
        value, column = x[2][s], x[1][s]
        for t in range(columns[0][column], columns[0][column + 1]):
            out[columns[1][t]] += value * columns[2][t]


@compiled
def _select(
    x: Any,
    columns: Any,
    lengths: Any,
    rows: Any,
    product: bool,
    slack: float,
    score: Any,
    index: Any,
) -> None:
    n, k = len(lengths), score.shape[1]
    rough, lanes = np.empty(n), np.zeros(LANES)
    upper, place = np.empty(k), np.empty(k, np.int64)
    for q in range(len(rows)):
        row = rows[q]
        _products(x, columns, row, rough)
        upper[:] = np.inf
        for j in range(n):
            both = lengths[row] + lengths[j]
            rough[j] = -rough[j] if product else both - 2.0 * rough[j]
            most = rough[j] + slack * both + 1e-300
            if most < upper[k - 1] and j != row:
                _insert(most, j, upper, place)
        # Rows are looked at in order: ties go to the lower row number.
        for j in range(n):
            least = rough[j] - slack * (lengths[row] + lengths[j]) - 1e-300
            if least <= upper[k - 1] and j != row:
                value = sparse_value(x, row, x, j, product, lanes)
                value = -value if product else value
                if value < score[q, k - 1]:
                    _insert(value, j, score[q], index[q])


def select_sparse(part: SparsePart, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best rows for some of them, and their scores: the lower the better.

    Scores are squared distances or negative inner products.
    """
    x, columns, lengths = part.x.open(), part.columns.open(), part.lengths.open()
    score = np.full((len(rows), part.k), np.inf)
    index = np.full((len(rows), part.k), -1, index_dtype(len(x)))
    longest = int(np.diff(x.indptr).max(initial=0))
    product = part.base == "inner-product"
    _select(
        parts(x),
        parts(columns),
        frozen(lengths),
        frozen(np.ascontiguousarray(rows)),
        product,
        _ROUNDING * (2 * longest + 16),
        score,
        index,
    )
    return index, score


def select_sparse_block(
    part: SparsePart, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Return candidates of a block of rows."""
    return select_sparse(part, np.arange(start, stop))
