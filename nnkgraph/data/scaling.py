"""Scalings of the features, applied before anything else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import cross_values
from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import new_array, row_slices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnkgraph.data import FloatArray

SCALES = ("none", "standard", "minmax", "unit")


@dataclass(frozen=True)
class Scaling:
    """What was learned from some rows, to be applied to them or to others."""

    how: str
    low: FloatArray | None = None
    width: FloatArray | None = None

    @classmethod
    def of(cls, x: FloatArray, how: str) -> Scaling:
        """Learn a scaling.

        ``standard`` gives every column mean 0 and variance 1, ``minmax`` the range 0
        to 1, ``unit`` every row length 1. Constant columns become zero.
        """
        if how in {"none", "unit"}:
            return cls(how)
        if how == "standard":
            low = x.mean(axis=0, dtype=np.float64)
            total = np.zeros(x.shape[1])
            for rows in row_slices(len(x), 8 * x.shape[1], fixed=True):
                away = np.subtract(x[rows], low, dtype=np.float64)
                total += np.square(away, out=away).sum(axis=0)
            width = np.sqrt(total / len(x))
        else:
            low = x.min(axis=0).astype(np.float64)
            width = x.max(axis=0) - low
        # The computed spread of a constant column may be a rounding error, not 0.
        width[x.max(axis=0) == x.min(axis=0)] = 0.0
        return cls(how, low, width)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Scaling | None:
        """Return the numbers that a graph stores; None where it says only how."""
        known = stored.get("scaling")
        if known is None:
            return None
        low, width = (np.array(known[name], np.float64) for name in ("low", "width"))
        return cls(stored["scale"], low, width)

    def stored(self) -> dict[str, Any]:
        """Return the numbers as graphs store them; nothing where there are none."""
        if self.low is None or self.width is None:
            return {}
        return {"scaling": {"low": self.low.tolist(), "width": self.width.tolist()}}

    def applied(self, x: FloatArray, name: str) -> FloatArray:
        """Return rows scaled in float64, or themselves where there is nothing to do."""
        if self.how == "unit":
            unit: FloatArray = unit_rows(x, name)
            return unit
        if self.low is None or self.width is None:
            return x
        there = self.width > 0
        width, result = np.where(there, self.width, 1), new_array(x.shape, np.float64)
        for rows in row_slices(len(x), 32 * x.shape[1]):
            result[rows] = np.where(there, (x[rows] - self.low) / width, 0)
        return result


def scaled(x: FloatArray, how: str, name: str) -> FloatArray:
    """Return features scaled by what they say themselves."""
    return Scaling.of(x, how).applied(x, name)


def unit_rows(x: Any, name: str) -> Any:
    """Return the rows scaled to length 1; a row of zeros is refused."""
    if isinstance(x, SparseRows):
        most: Any = abs(x.matrix()).max(axis=1)
        largest = np.ravel(most.toarray())
    else:
        largest = np.maximum(x.max(axis=1), -x.min(axis=1)).astype(np.float64)
    zero = np.flatnonzero(largest == 0)
    if len(zero):
        raise InputError(
            f"{name}: row {zero[0]} (counted from 0) is all zeros and has no "
            f"direction; {len(zero)} such rows in all: remove them, or use another "
            "kernel or scale"
        )
    # Dividing by a power of two first is exact, and keeps the squares in range.
    power = np.exp2(np.floor(np.log2(largest)))
    if isinstance(x, SparseRows):
        return _of_length_one(x, power)
    unit: FloatArray = new_array(x.shape, np.float64)
    for rows in row_slices(len(x), 32 * x.shape[1]):
        unit[rows] = _of_length_one(x[rows], power[rows])
    return unit


def _of_length_one(x: Any, power: FloatArray) -> Any:
    """Return rows divided by their powers of two, then by their lengths."""
    part = _divided(x, power)
    every = np.arange(len(part))[:, np.newaxis]
    squares = cross_values(part, part, every, "inner-product")[:, 0]
    return _divided(part, np.sqrt(squares))


def _divided(x: Any, by: FloatArray) -> Any:
    """Return rows divided by a number each."""
    if isinstance(x, SparseRows):
        return replace(x, data=x.data / np.repeat(by, np.diff(x.indptr)))
    return x / by[:, np.newaxis]
