"""Cosine kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from nnkgraph.scaling import unit_rows

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Cosine:
    """(1 + cos(x, y)) / 2, between 0 and 1; candidates are searched by angle."""

    # For rows u, v of unit length |u - v|^2 = 2 - 2 cos: the kernel is a map of the
    # squared distance, and the nearest rows are those of the smallest angle.
    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "affine"

    def prepare(self, x: FloatArray, name: str, /) -> FloatArray:
        """Scale all rows to unit length."""
        return unit_rows(x, name)

    def fit(self, _candidates: Candidates, /) -> Self:
        """Return itself: there is nothing to fit."""
        return self

    def bandwidth(self, _candidates: Candidates, /) -> None:
        """Return None: there is no bandwidth."""
        return

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return what turns a squared distance of unit rows into a similarity."""
        return np.tile([-0.25, 1.0], (len(distance), 1))


plugin: type[Kernel] = Cosine
