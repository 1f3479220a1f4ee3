"""The best of several lists of candidates, each found among other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import FloatArray, IndexArray


@compiled
def _merge_rows(
    index: Any, score: Any, other: Any, others: Any, best: Any, value: Any
) -> None:
    """Merge two lists in order, row by row, and keep as many as there is room for."""
    for i in range(best.shape[0]):
        a = b = 0
        for t in range(best.shape[1]):
            left, right = a < index.shape[1], b < other.shape[1]
            if left and right:
                x, y = score[i, a], others[i, b]
                left = x < y or (x == y and index[i, a] < other[i, b])
            if left:
                best[i, t], value[i, t] = index[i, a], score[i, a]
                a += 1
            elif right:
                best[i, t], value[i, t] = other[i, b], others[i, b]
                b += 1
            else:
                best[i, t], value[i, t] = -1, np.inf


def best_of(
    lists: Sequence[tuple[IndexArray, FloatArray]], k: int
) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of every row, from lists that share none.

    Neither the order of the lists nor how candidates are spread over them matters:
    the best have the lowest scores, and the lowest row numbers among equals.

    Parameters
    ----------
    lists : sequence of pairs
        (n, m) row numbers, -1 where one is missing, and their scores, inf there; in
        the order of score and row number. Every list may have its own m.
    """
    n = len(lists[0][0])
    dtype = lists[0][0].dtype
    best, value = np.empty((n, 0), dtype), np.empty((n, 0))
    for index, score in lists:
        merged, scores = np.empty((n, k), dtype), np.empty((n, k))
        _merge_rows(
            frozen(best), frozen(value), frozen(index), frozen(score), merged, scores
        )
        best, value = merged, scores
    return best, value
