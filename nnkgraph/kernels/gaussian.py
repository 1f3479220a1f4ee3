"""Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.kernels import WithBandwidth

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Gaussian(WithBandwidth):
    """exp(-distance(x, y)^2 / (2 sigma^2)), the paper's default."""

    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    dense: ClassVar[bool] = False
    form: ClassVar[str] = "exponential"

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return the factor of a pair's value, for every node."""
        sigma = self.sigma_of_nodes(distance)
        return np.column_stack([-0.5 / sigma**2, np.zeros(len(sigma))])


plugin: type[Kernel] = Gaussian
