"""Linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Linear:
    """x . y; candidates are searched by inner product, largest first."""

    base: ClassVar[str] = "inner-product"
    ridge: ClassVar[float] = 1e-8
    form: ClassVar[str] = "affine"

    def prepare(self, x: FloatArray, _name: str, /) -> FloatArray:
        """Return the rows as they are."""
        return x

    def fit(self, _candidates: Candidates, /) -> Self:
        """Return itself: there is nothing to fit."""
        return self

    def bandwidth(self, _candidates: Candidates, /) -> None:
        """Return None: there is no bandwidth."""
        return

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return what leaves an inner product as it is."""
        return np.tile([1.0, 0.0], (len(distance), 1))


plugin: type[Kernel] = Linear
