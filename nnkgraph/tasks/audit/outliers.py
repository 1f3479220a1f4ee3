"""Outliers: rows that are farther from their neighbors than rows usually are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.arrays import row_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Candidates, FloatArray, IndexArray

_FENCE = 3.0
"""Tukey's outer fence, here of logarithms: so many interquartile ranges beyond the
upper quartile."""

_LEAST = 1.2
"""A lower score is no finding, however alike all others are, as on a grid."""


@dataclass(frozen=True, eq=False)
class Outliers:
    """How unusual rows are; 1 is usual. Rows are those that were searched."""

    score: FloatArray
    """(n,) the geometric mean of the two that follow."""

    far: FloatArray
    """(n,) the mean distance to the candidates, over its median of all rows."""

    lof: FloatArray
    """(n,) the local outlier factor of Breunig et al."""

    limit: float
    """Scores above are findings."""

    def found(self) -> IndexArray:
        """Return the rows that are findings, most unusual first."""
        rows = np.flatnonzero(self.score > self.limit)
        return rows[np.lexsort((rows, -self.score[rows]))]


def score_outliers(candidates: Candidates, floor: float) -> Outliers:
    """Score all rows by the distances to their candidates.

    No row counts as denser than if its last candidate were at the floor, the usual
    distance to the nearest row: else rows beside a clump of near-duplicates, whose
    density is without limit, would all be unusual.
    """
    n, k = candidates.distance.shape
    ones = np.ones(n)
    if k == 0:
        return Outliers(ones, ones, ones, np.inf)
    mean, last, density = np.empty(n), np.empty(n), np.empty(n)
    for some, _, distance, there in _blocks(candidates):
        count = np.maximum(there.sum(axis=1), 1)
        near = np.where(there, distance, 0.0)
        mean[some] = near.sum(axis=1) / count
        last[some] = np.maximum(near.max(axis=1), floor)
    for some, index, distance, there in _blocks(candidates):
        reach = np.where(there, np.maximum(distance, last[index]), 0.0)
        total, count = reach.sum(axis=1), there.sum(axis=1)
        density[some] = np.divide(
            count, total, out=np.zeros(len(total)), where=total > 0
        )
    lof = np.ones(n)
    for some, index, _, there in _blocks(candidates):
        around = np.where(there, density[index], 0.0).sum(axis=1)
        own = density[some] * np.maximum(there.sum(axis=1), 1)
        lof[some] = np.divide(around, own, out=np.ones(len(own)), where=own > 0)
    usual = float(np.median(mean))
    far = mean / usual if usual > 0 else ones
    score = np.sqrt(lof * far)
    low, high = np.quantile(
        np.log(np.maximum(score, np.finfo(float).tiny)), [0.25, 0.75]
    )
    limit = max(_LEAST, float(np.exp(high + _FENCE * (high - low))))
    return Outliers(score, far, lof, limit)


def _blocks(candidates: Candidates) -> Iterator[tuple[slice, Any, Any, Any]]:
    """Yield rows with their candidates, and which of them there are."""
    for some in row_slices(len(candidates.index), 40 * candidates.index.shape[1]):
        index, distance = candidates.index[some], candidates.distance[some]
        there = index >= 0
        yield some, np.maximum(index, 0), distance, there
