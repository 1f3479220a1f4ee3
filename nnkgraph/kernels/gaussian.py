"""Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.kernels import Kernel

RULES = ("auto", "kth-max", "local", "matlab")
_SMALLEST, _LARGEST = 1e-150, 1e150
"""Beyond these the square of a bandwidth leaves the range of float64."""


@dataclass(frozen=True)
class Gaussian:
    """exp(-distance(x, y)^2 / (2 sigma^2)), the paper's default."""

    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "exponential"

    sigma: float | str = "auto"
    """A bandwidth in the features' unit, or the rule that finds one."""

    def __post_init__(self) -> None:
        if isinstance(self.sigma, str):
            if self.sigma not in RULES:
                raise ParameterError(
                    f"sigma {self.sigma!r} is neither a number nor one of "
                    f"{', '.join(RULES)}"
                )
        elif not _SMALLEST <= self.sigma <= _LARGEST:
            raise ParameterError(
                f"sigma must be a positive number from {_SMALLEST:g} to {_LARGEST:g}, "
                f"not {self.sigma:g}"
            )

    def prepare(self, x: FloatArray, _name: str, /) -> FloatArray:
        """Return the rows as they are."""
        return x

    def fit(self, candidates: Candidates, /) -> Kernel:
        """Return the kernel with its bandwidth rule turned into a number."""
        if not isinstance(self.sigma, str) or self.sigma == "local":
            return self
        if self.sigma == "matlab" and candidates.index.shape[1] < 2:
            raise ParameterError("sigma 'matlab' needs k >= 2")
        farthest = _kth_distance(candidates.distance, before=self.sigma == "matlab")
        farthest = farthest[np.isfinite(farthest)]
        if self.sigma == "kth-max":
            distance = float(farthest.max(initial=0.0))
        else:
            # fsum is exact, so the bandwidth does not depend on the order of the rows
            distance = math.fsum(farthest) / max(1, len(farthest))
        # Only candidates identical to their nodes leave no scale; any will do then.
        return replace(self, sigma=distance / 3 if distance > 0 else 1.0)

    def bandwidth(self, candidates: Candidates, /) -> float | None:
        """Return sigma, or the mean of the local ones."""
        if isinstance(self.sigma, str):
            return math.fsum(_local(candidates.distance)[:, 0]) / len(candidates.index)
        return self.sigma

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return -1 / (2 sigma^2) for every node."""
        local = isinstance(self.sigma, str)
        sigma = _local(distance) if local else np.full((len(distance), 1), self.sigma)
        narrow = np.maximum(sigma, _SMALLEST)
        return np.concatenate([-0.5 / narrow**2, np.zeros_like(narrow)], axis=1)


def _kth_distance(distance: FloatArray, *, before: bool = False) -> FloatArray:
    """Return the distance to the last candidate there is (or the one before it)."""
    if not distance.shape[1]:
        return np.full(len(distance), np.inf)
    last = np.isfinite(distance).sum(axis=1) - 1 - before
    kth: FloatArray = distance[np.arange(len(distance)), np.maximum(last, 0)]
    return kth


def _local(distance: FloatArray) -> FloatArray:
    kth = _kth_distance(distance)
    usable = np.isfinite(kth) & (kth > 0)
    return np.where(usable, kth / 3, 1.0)[:, np.newaxis]


plugin: type[Kernel] = Gaussian
