"""Distances from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nnkgraph.data import SparseGram
from nnkgraph.errors import InputError
from nnkgraph.kernels import Kernel, WithBandwidth
from nnkgraph.kernels.precomputed import TOLERANCE, asymmetric, check_square
from nnkgraph.runtime.arrays import row_slices


@dataclass(frozen=True)
class Distance(WithBandwidth):
    """exp(-d^2 / (2 sigma^2)) of N x N distances d, which are the input itself."""

    base: ClassVar[str] = "distance-matrix"
    ridge: ClassVar[float] = 0.0
    indefinite: ClassVar[bool] = True
    form: ClassVar[str] = "exponential"

    def rate(self, sigma: Any) -> Any:
        """Return the factor of a squared distance in the exponent."""
        return -0.5 / sigma**2

    def prepare(self, x: Any, name: str, /) -> Any:
        """Check that the matrix can be one of distances; know sparse ones both ways."""
        check_square(x, name, "distances")
        sparse = isinstance(x, SparseGram)
        largest = float(x.data.max(initial=0.0)) if sparse else _largest(x)
        _check_signs(x, name, TOLERANCE * largest)
        own = x.diagonal() if sparse else np.diagonal(x)
        away = np.flatnonzero(own > TOLERANCE * largest)
        if len(away):
            raise InputError(
                f"{name}: the distance of row {away[0]} from itself is "
                f"{own[away[0]]:g}; it must be 0: is this a matrix of similarities?"
            )
        both = _both_ways(x) if sparse else x
        wrong = _differing(both, largest) if sparse else asymmetric(x, largest)
        if wrong is not None:
            i, j, there, back = wrong
            raise InputError(
                f"{name}: distances are not symmetric: row {i}, column {j} is "
                f"{there:g}, but row {j}, column {i} is {back:g}"
            )
        return both


def _largest(x: Any) -> float:
    return max(float(x[rows].max()) for rows in row_slices(len(x), 8 * len(x)))


def _check_signs(x: Any, name: str, slack: float) -> None:
    """Refuse distances below 0 by more than rounding."""
    parts = [slice(0, len(x))]
    if not isinstance(x, SparseGram):
        parts = list(row_slices(len(x), 16 * len(x)))
    for rows in parts:
        values = x.data if isinstance(x, SparseGram) else x[rows]
        if values.size and values.min() < -slack:
            where = np.argwhere(values < -slack)[0]
            row, column = int(where[0]) + rows.start, int(where[-1])
            if isinstance(x, SparseGram):
                row = int(np.searchsorted(x.indptr, where[0], side="right")) - 1
                column = int(x.indices[where[0]])
            raise InputError(
                f"{name}: the distance at row {row}, column {column} (counted from 0) "
                f"is {values[tuple(where)]:g}; it cannot be negative"
            )


def _both_ways(x: SparseGram) -> SparseGram:
    """Return distances that are known from both sides, where one side stores them.

    Lists of nearest neighbors are such: a row may be near another whose own nearest are
    others.
    """
    n, count = len(x), len(x.data)
    row = np.repeat(np.arange(n), np.diff(x.indptr))
    ends = np.concatenate([row, x.indices]), np.concatenate([x.indices, row])
    order = np.lexsort((np.arange(2 * count) >= count, ends[1], ends[0]))
    row, column = ends[0][order], ends[1][order]
    first = np.ones(2 * count, np.bool_)  # what a row says itself comes first
    first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    indptr = np.append(0, np.bincount(row[first], minlength=n).cumsum())
    indices = column[first].astype(x.indices.dtype)
    return SparseGram(indptr, indices, x.data[order[first] % max(1, count)])


def _differing(
    both: SparseGram, largest: float
) -> tuple[int, int, float, float] | None:
    """Return the first stored distance that the other side stores differently."""
    turned = both.matrix().T.tocsr()
    turned.sort_indices()  # the same entries, with what the other side says
    apart = np.abs(turned.data - both.data) > TOLERANCE * largest
    if not apart.any():
        return None
    at = int(apart.argmax())
    row = int(np.searchsorted(both.indptr, at, side="right")) - 1
    column = int(both.indices[at])
    return row, column, float(both.data[at]), float(turned.data[at])


plugin: type[Kernel] = Distance
