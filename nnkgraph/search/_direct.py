"""Exact search where no matrix product helps: every pair is valued in float64.

For L1 distances, products without their sign, and similarities from a matrix or from a
function. Rows are looked at in order, so that ties go to the lower row number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import sparse_pairs
from nnkgraph.compiled import borrowed, compiled, frozen
from nnkgraph.data import SparseGram
from nnkgraph.pairs import BASES, DISTANCES, any_value
from nnkgraph.search import index_dtype
from nnkgraph.shared_rows import share_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Shared
    from nnkgraph.search import Wanted
    from nnkgraph.shared_rows import SharedGram

GRAIN = 64
"""Rows that a function is asked about at once: always the same ones, since the rounding
of a matrix product depends on its shape."""

_COLUMNS = 1024


@dataclass(frozen=True)
class DirectPart:
    """What a block of queries needs; small, because it travels to the workers."""

    x: Shared | SharedGram
    base: str
    k: int
    similarity: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    points: Shared | None = None
    """New points that ask; None where the rows do."""


def direct_part(wanted: Wanted) -> DirectPart:
    """Share the rows of a search."""
    x: Any = share_rows(wanted.pool, wanted.x)
    return DirectPart(x, wanted.base, wanted.k, wanted.similarity)


@compiled
def _insert(value: float, j: int, score: Any, index: Any, q: int) -> None:
    """Put a candidate in its place in a sorted line; the last one falls out."""
    t = score.shape[1] - 1
    while t > 0 and score[q, t - 1] > value:
        score[q, t], index[q, t] = score[q, t - 1], index[q, t - 1]
        t -= 1
    score[q, t], index[q, t] = value, j


@compiled
def _select_pairs(
    x: Any, queries: Any, own: Any, base: int, sign: float, score: Any, index: Any
) -> None:
    x, queries = borrowed(x), borrowed(queries)
    score, index = borrowed(score), borrowed(index)
    last = score.shape[1] - 1
    # Columns outside, a few at a time: they stay in the cache for all queries.
    for first in range(0, x.shape[0], 256):
        for q in range(queries.shape[0]):
            for j in range(first, min(first + 256, x.shape[0])):
                value = sign * any_value(queries, q, x, j, base)
                if value < score[q, last] and j != own[q]:
                    _insert(value, j, score, index, q)


@compiled
def _select_values(values: Any, first: int, own: Any, score: Any, index: Any) -> None:
    last = score.shape[1] - 1
    for q in range(values.shape[0]):
        for j in range(values.shape[1]):
            if -values[q, j] < score[q, last] and first + j != own[q]:
                _insert(-values[q, j], first + j, score, index, q)


def select(
    part: DirectPart, queries: Any, own: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Return the k best rows for some queries, and their scores: the lower the better.

    Parameters
    ----------
    part : DirectPart
        All rows.
    queries : (b, d) array
        Ignored where ``part`` is a sparse matrix, which knows its rows by number.
    own : (b,) array of int
        A row that each query must not find, -1 for none.
    """
    x = part.x.open()
    b = len(own)
    score = np.full((b, part.k), np.inf)
    index = np.full((b, part.k), -1, index_dtype(len(x)))
    if isinstance(x, SparseGram):
        sparse_pairs.most_similar(x, own, index, score)
    elif part.similarity is not None:
        for first in range(0, len(x), _COLUMNS):
            rows = np.asarray(x[first : first + _COLUMNS], np.float64)
            values = part.similarity(np.asarray(queries, np.float64), rows)
            _select_values(values, first, own, score, index)
    else:
        sign = 1.0 if part.base in DISTANCES else -1.0
        task = frozen(x), frozen(queries), own, BASES.index(part.base), sign
        _select_pairs(*task, score, index)
    return index, score


def select_block(
    part: DirectPart, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Return candidates of a block of rows; a function sees fixed parts of it."""
    x = part.x.open()
    if part.similarity is None:
        return _select_rows(part, x, start, stop)
    parts = [
        _select_rows(part, x, at, min(at + GRAIN, stop))
        for at in range(start, stop, GRAIN)
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _select_rows(
    part: DirectPart, x: Any, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    if part.points is not None:
        return select(part, part.points.open()[start:stop], np.full(stop - start, -1))
    queries = None if isinstance(x, SparseGram) else x[start:stop]
    return select(part, queries, np.arange(start, stop))
