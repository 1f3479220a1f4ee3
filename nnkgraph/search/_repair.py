"""Make up for edges that an approximate search has missed on one side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray


@compiled
def _enters(index: Any, score: Any, i: int, t: int) -> bool:
    """Return whether row i belongs into the list of its t-th candidate."""
    j, last = index[i, t], index.shape[1] - 1
    if j < 0:
        return False
    value, worst = score[i, t], score[j, last]
    if value > worst or (value == worst and i > index[j, last]):
        return False
    known = False
    for s in range(index.shape[1]):
        known |= index[j, s] == i
    return not known


@compiled
def _count_entries(index: Any, score: Any, start: Any) -> None:
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if _enters(index, score, i, t):
                start[index[i, t] + 1] += 1


@compiled
def _collect_entries(
    index: Any, score: Any, place: Any, rows: Any, values: Any
) -> None:
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if _enters(index, score, i, t):
                j = index[i, t]
                rows[place[j]], values[place[j]] = i, score[i, t]
                place[j] += 1


@compiled
def _insert_entries(start: Any, rows: Any, values: Any, index: Any, score: Any) -> None:
    k = index.shape[1]
    for j in range(index.shape[0]):
        for e in range(start[j], start[j + 1]):
            row, value = rows[e], values[e]
            t = k
            while t > 0 and (
                score[j, t - 1] > value
                or (score[j, t - 1] == value and index[j, t - 1] > row)
            ):
                if t < k:
                    score[j, t], index[j, t] = score[j, t - 1], index[j, t - 1]
                t -= 1
            if t < k:
                score[j, t], index[j, t] = value, row


def repair(index: IndexArray, score: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Let i enter j's list where j is in i's list and i is nearer than j's last.

    An approximate search that misses an edge on one side would otherwise lose it in
    rules that ask both sides. All lists are looked at as they were found, so that the
    result does not depend on the order of the rows.

    Parameters
    ----------
    index, score : (n, k) arrays
        Candidates in the order of score and row number, -1 and inf where one is
        missing.
    """
    start = np.zeros(len(index) + 1, np.int64)
    _count_entries(index, score, start)
    np.cumsum(start, out=start)
    rows, values = np.empty(start[-1], index.dtype), np.empty(start[-1])
    _collect_entries(index, score, start[:-1].copy(), rows, values)
    mended, scores = index.copy(), score.copy()
    _insert_entries(start, rows, values, mended, scores)
    return mended, scores
