"""Bandwidths: a number, or a rule that finds one from the candidates' distances."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray

RULES = ("auto", "kth-max", "local", "matlab")

SMALLEST, LARGEST = 1e-150, 1e150
"""Beyond these the square of a bandwidth leaves the range of float64."""


def check_sigma(sigma: float | str) -> None:
    """Refuse what is neither a rule nor a usable number."""
    if isinstance(sigma, str):
        if sigma not in RULES:
            raise ParameterError(
                f"sigma {sigma!r} is neither a number nor one of {', '.join(RULES)}"
            )
    elif not SMALLEST <= sigma <= LARGEST:
        raise ParameterError(
            f"sigma must be a positive number from {SMALLEST:g} to {LARGEST:g}, "
            f"not {sigma:g}"
        )


def fitted_sigma(sigma: float | str, candidates: Candidates) -> float | str:
    """Turn a rule into a number, unless every node has its own."""
    if not isinstance(sigma, str) or sigma == "local":
        return sigma
    if sigma == "matlab" and candidates.index.shape[1] < 2:
        raise ParameterError("sigma 'matlab' needs k >= 2")
    farthest = _kth_distance(candidates.distance, before=sigma == "matlab")
    farthest = farthest[np.isfinite(farthest)]
    if sigma == "kth-max":
        distance = float(farthest.max(initial=0.0))
    else:
        # fsum is exact, so the bandwidth does not depend on the order of the rows
        distance = math.fsum(farthest) / max(1, len(farthest))
    # Only candidates identical to their nodes leave no scale; any will do then.
    return distance / 3 if distance > 0 else 1.0


def mean_sigma(sigma: float | str, candidates: Candidates) -> float:
    """Return sigma, or the mean of the nodes' own."""
    if isinstance(sigma, str):
        own = sigma_of_nodes(sigma, candidates.distance)
        return math.fsum(own) / len(own)
    return sigma


def sigma_of_nodes(sigma: float | str, distance: FloatArray) -> FloatArray:
    """Return the (b,) bandwidths of a block of nodes."""
    if not isinstance(sigma, str):
        return np.full(len(distance), sigma)
    kth = _kth_distance(distance)
    usable = np.isfinite(kth) & (kth > 0)
    return np.maximum(np.where(usable, kth / 3, 1.0), SMALLEST)


def _kth_distance(distance: FloatArray, *, before: bool = False) -> FloatArray:
    """Return the distance to the last candidate there is (or the one before it)."""
    if not distance.shape[1]:
        return np.full(len(distance), np.inf)
    last = np.isfinite(distance).sum(axis=1) - 1 - before
    kth: FloatArray = distance[np.arange(len(distance)), np.maximum(last, 0)]
    return kth
