"""Compiled look-ups in a sparse matrix of similarities: what is not stored is zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled, frozen

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray, SparseGram


@compiled
def _value(indptr: Any, indices: Any, data: Any, i: int, j: int) -> float:
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    found = low < indptr[i + 1] and indices[low] == j
    return data[low] if found else 0.0


@compiled
def _within(indptr: Any, indices: Any, data: Any, index: Any, out: Any) -> None:
    for q in range(index.shape[0]):
        place = 0
        for i in range(index.shape[1]):
            for j in range(i + 1):
                a, b = index[q, i], index[q, j]
                if a >= 0 and b >= 0:
                    out[q, place] = _value(indptr, indices, data, a, b)
                place += 1


@compiled
def _cross(
    indptr: Any, indices: Any, data: Any, rows: Any, index: Any, out: Any
) -> None:
    for q in range(index.shape[0]):
        for i in range(index.shape[1]):
            if index[q, i] >= 0:
                out[q, i] = _value(indptr, indices, data, rows[q], index[q, i])


@compiled
def _best(
    indptr: Any, indices: Any, data: Any, rows: Any, index: Any, score: Any
) -> None:
    k = index.shape[1]
    for q in range(rows.shape[0]):
        for e in range(indptr[rows[q]], indptr[rows[q] + 1]):
            j, value = indices[e], -data[e]
            if j == rows[q] or data[e] == 0.0 or (k > 0 and value >= score[q, k - 1]):
                continue
            t = k - 1
            while t > 0 and score[q, t - 1] > value:
                score[q, t], index[q, t] = score[q, t - 1], index[q, t - 1]
                t -= 1
            score[q, t], index[q, t] = value, j


def within_values(gram: SparseGram, index: IndexArray) -> FloatArray:
    """Return the similarities of every two candidates, as packed triangles."""
    b, m = index.shape
    out = np.zeros((b, m * (m + 1) // 2))
    _within(*_arrays(gram), frozen(np.ascontiguousarray(index)), out)
    return out


def cross_values(gram: SparseGram, rows: IndexArray, index: IndexArray) -> FloatArray:
    """Return the similarities of rows and their candidates; inf where there is none."""
    out = np.where(index >= 0, 0.0, np.inf)
    _cross(*_arrays(gram), rows, frozen(np.ascontiguousarray(index)), out)
    return out


def most_similar(
    gram: SparseGram, rows: IndexArray, index: IndexArray, score: FloatArray
) -> None:
    """Fill rows of -1 and inf with the largest similarities there are, negated."""
    _best(*_arrays(gram), rows, index, score)


def _arrays(gram: SparseGram) -> tuple[Any, Any, Any]:
    return frozen(gram.indptr), frozen(gram.indices), frozen(gram.data)
