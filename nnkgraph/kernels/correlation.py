"""Correlation kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data.pairs import cross_values
from nnkgraph.data.scaling import unit_rows
from nnkgraph.errors import InputError
from nnkgraph.kernels import Kernel, Plain
from nnkgraph.runtime.arrays import new_array, row_slices

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray


@dataclass(frozen=True)
class Correlation(Plain):
    """(1 + r(x, y)) / 2 with Pearson's r, between 0 and 1; searched by correlation."""

    # Rows without their means, of unit length: r is the cosine of these. Their r alone
    # is not positive where rows oppose each other, and max(r, 0) is no kernel.
    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "affine"
    terms: ClassVar[tuple[float, float]] = (-0.25, 1.0)

    def prepare(self, x: Any, name: str, /) -> Any:
        """Take its mean off every row, and scale it to unit length."""
        flat = np.flatnonzero(x.max(axis=1) == x.min(axis=1))
        if len(flat):
            raise InputError(
                f"{name}: row {flat[0]} (counted from 0) has the same value in all "
                f"columns and correlates with nothing; {len(flat)} such rows in all: "
                "remove them, or use another kernel"
            )
        centered: FloatArray = new_array(x.shape, np.float64)
        for rows in row_slices(len(x), 32 * x.shape[1]):
            centered[rows] = _centered(x[rows])
        return unit_rows(centered, name)


def _centered(x: FloatArray) -> FloatArray:
    """Return rows without their means, whose sums have the same order everywhere."""
    wide = x.astype(np.float64)
    ones, every = np.ones((1, wide.shape[1])), np.zeros((len(wide), 1), np.int64)
    total: FloatArray = cross_values(ones, wide, every, "inner-product")
    centered: FloatArray = wide - total / wide.shape[1]
    return centered


plugin: type[Kernel] = Correlation
