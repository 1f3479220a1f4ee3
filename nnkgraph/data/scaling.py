"""Scalings of the features, and their components, applied before anything else."""

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
    from nnkgraph.data.pca import Projection

SCALES = ("none", "standard", "minmax", "unit")


@dataclass(frozen=True)
class Scaling:
    """What was learned from some rows, to be applied to them or to others."""

    how: str
    low: FloatArray | None = None
    width: FloatArray | None = None
    projection: Projection | None = None
    """On principal components of the scaled rows, which are centered by it."""

    @classmethod
    def of(cls, x: Any, how: str, pca: int | None = None, name: str = "x") -> Scaling:
        """Learn a scaling, and then so many principal components.

        ``standard`` gives every column mean 0 and variance 1, ``minmax`` the range 0
        to 1, ``unit`` every row length 1. Constant columns become zero.
        """
        made = cls(how, *_ends(x, how))
        if pca is None:
            return made
        from nnkgraph.data.pca import Projection, check_count

        check_count(pca, x.shape, name)  # before any work
        seen, shift = made._seen(x, name), made._shift(x)
        return replace(made, projection=Projection.of(seen, pca, name, shift))

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Scaling | None:
        """Return the numbers that a graph stores; None where it says only how.

        Raises
        ------
        ValueError
            Where they are damaged.
        """
        known, low, width, projection = stored.get("scaling"), None, None, None
        if known is not None:
            low, width = (np.array(known[one], np.float64) for one in ("low", "width"))
        if stored.get("pca") is not None:
            from nnkgraph.data.pca import Projection

            projection = Projection.read(stored)
        if known is None and projection is None:
            return None
        return cls(stored["scale"], low, width, projection)

    @property
    def columns(self) -> int | None:
        """How many columns rows must have, where that is known."""
        if self.projection is not None:
            return len(self.projection.center)
        return None if self.low is None else len(self.low)

    def stored(self) -> dict[str, Any]:
        """Return the numbers as graphs store them; nothing where there are none."""
        values: dict[str, Any] = {}
        if self.low is not None and self.width is not None:
            ends = {"low": self.low.tolist(), "width": self.width.tolist()}
            values["scaling"] = ends
        return values | (self.projection.stored() if self.projection else {})

    def applied(self, x: Any, name: str) -> Any:
        """Return rows scaled in float64, or themselves where there is nothing to do."""
        x, shift = self._seen(x, name), self._shift(x)
        return x if self.projection is None else self.projection.applied(x, shift)

    def _seen(self, x: Any, name: str) -> Any:
        """Return scaled rows; sparse ones less what would fill their zeros."""
        if self.how == "unit":
            return unit_rows(x, name)
        if self.low is None or self.width is None:
            return x
        there = self.width > 0
        width = np.where(there, self.width, 1)
        if isinstance(x, SparseRows):
            data = np.where(there[x.indices], x.data / width[x.indices], 0.0)
            return replace(x, data=data)
        result = new_array(x.shape, np.float64)
        for rows in row_slices(len(x), 32 * x.shape[1]):
            result[rows] = np.where(there, (x[rows] - self.low) / width, 0)
        return result

    def _shift(self, x: Any) -> Any:
        """Return what is still to be taken from sparse rows."""
        if self.low is None or self.width is None or not isinstance(x, SparseRows):
            return 0.0
        there = self.width > 0
        return np.where(there, self.low / np.where(there, self.width, 1), 0.0)


def _ends(x: Any, how: str) -> tuple[Any, Any]:
    """Return what is taken from every column, and what it is divided by."""
    if how in {"none", "unit"}:
        return None, None
    if isinstance(x, SparseRows):
        mean, low, high, total = x.moments()
    else:
        low, high = x.min(axis=0), x.max(axis=0)
    constant = low == high
    if how == "minmax":
        low = low.astype(np.float64)
        width = high - low
    else:
        if not isinstance(x, SparseRows):
            mean = x.mean(axis=0, dtype=np.float64)
            total = np.zeros(x.shape[1])
            for rows in row_slices(len(x), 8 * x.shape[1], fixed=True):
                away = np.subtract(x[rows], mean, dtype=np.float64)
                total += np.square(away, out=away).sum(axis=0)
        low, width = mean, np.sqrt(total / len(x))
    # The computed spread of a constant column may be a rounding error, not 0.
    width[constant] = 0.0
    return low, width


def scaled(x: Any, how: str, name: str) -> Any:
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
