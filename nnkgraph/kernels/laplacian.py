"""Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.kernels import WithBandwidth

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Laplacian(WithBandwidth):
    """exp(-L1 distance(x, y) / sigma); candidates and sigma by L1 distance."""

    base: ClassVar[str] = "l1-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "exponential"

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return the factor of a pair's value, for every node."""
        sigma = self.sigma_of_nodes(distance)
        return np.column_stack([-1.0 / sigma, np.zeros(len(sigma))])


plugin: type[Kernel] = Laplacian
