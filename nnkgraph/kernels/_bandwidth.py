"""Bandwidths: a number, or a rule that finds one from the candidates' distances."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from nnkgraph.blockwise import row_slices
from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Plain

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray

RULES = ("auto", "kth-max", "local", "matlab")

SMALLEST, LARGEST = 1e-150, 1e150
"""Beyond these the square of a bandwidth leaves the range of float64."""


@dataclass(frozen=True)
class WithBandwidth(Plain):
    """What kernels with a bandwidth share."""

    sigma: float | str = "auto"
    """A bandwidth in the unit of the distances, or the rule that finds one."""

    def __post_init__(self) -> None:
        if isinstance(self.sigma, str):
            if self.sigma not in RULES:
                raise ParameterError(
                    f"sigma {self.sigma!r} is neither a number nor one of "
                    f"{', '.join(RULES)}"
                )
        elif not SMALLEST <= self.sigma <= LARGEST:
            raise ParameterError(
                f"sigma must be a positive number from {SMALLEST:g} to {LARGEST:g}, "
                f"not {self.sigma:g}"
            )

    def fit(self, candidates: Candidates, /) -> Self:
        """Return the kernel with its rule turned into a number, unless it is local."""
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

    @property
    def needs_all_rows(self) -> bool:
        """Return whether a rule makes one bandwidth of the distances of all rows."""
        return isinstance(self.sigma, str) and self.sigma != "local"

    def bandwidth(self, candidates: Candidates, /) -> float | None:
        """Return sigma, or the mean of the local ones."""
        if not isinstance(self.sigma, str):
            return self.sigma
        return mean_bandwidth(self.sigma_of_nodes(candidates.distance))

    def sigma_of_nodes(self, distance: FloatArray) -> FloatArray:
        """Return the (b,) bandwidths of a block of nodes."""
        if not isinstance(self.sigma, str):
            return np.full(len(distance), self.sigma)
        kth = _kth_distance(distance)
        usable = np.isfinite(kth) & (kth > 0)
        return np.maximum(np.where(usable, kth / 3, 1.0), SMALLEST)


def mean_bandwidth(own: FloatArray) -> float:
    """Return the mean of the bandwidths of nodes, whatever their order."""
    return math.fsum(own) / len(own)


def _kth_distance(distance: FloatArray, *, before: bool = False) -> FloatArray:
    """Return the distance to the last candidate there is (or the one before it)."""
    if not distance.shape[1]:
        return np.full(len(distance), np.inf)
    kth = np.empty(len(distance))
    for rows in row_slices(len(distance), 16 * distance.shape[1]):
        known = distance[rows]
        last = np.isfinite(known).sum(axis=1) - 1 - before
        kth[rows] = known[np.arange(len(known)), np.maximum(last, 0)]
    return kth
