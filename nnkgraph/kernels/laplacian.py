"""Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.kernels import Plain
from nnkgraph.kernels._bandwidth import (
    check_sigma,
    fitted_sigma,
    mean_sigma,
    sigma_of_nodes,
)

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Laplacian(Plain):
    """exp(-L1 distance(x, y) / sigma); candidates and sigma by L1 distance."""

    base: ClassVar[str] = "l1-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "exponential"

    sigma: float | str = "auto"
    """A bandwidth in the unit of L1 distances, or the rule that finds one."""

    def __post_init__(self) -> None:
        check_sigma(self.sigma)

    def fit(self, candidates: Candidates, /) -> Kernel:
        """Return the kernel with its bandwidth rule turned into a number."""
        return replace(self, sigma=fitted_sigma(self.sigma, candidates))

    def bandwidth(self, candidates: Candidates, /) -> float | None:
        """Return sigma, or the mean of the local ones."""
        return mean_sigma(self.sigma, candidates)

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return -1 / sigma for every node."""
        sigma = sigma_of_nodes(self.sigma, distance)
        return np.column_stack([-1.0 / sigma, np.zeros(len(sigma))])


plugin: type[Kernel] = Laplacian
