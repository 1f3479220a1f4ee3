"""k*-nearest neighbors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain, need_distances

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.kernels import Kernel, Problem
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Kstar(Plain):
    """The k that balances bias and variance of each node; weights sum to 1."""

    uses_kernel: ClassVar[bool] = False

    lc: float = 1.0
    """L / C, what a unit of distance costs; it suits standardized features."""

    def __post_init__(self) -> None:
        if not 0 < self.lc < math.inf:
            raise ParameterError(
                f"method 'kstar': lc must be a number above 0, not {self.lc:g}"
            )

    def check(self, kernel: Kernel, /) -> None:
        """Refuse kernels without distances."""
        need_distances("kstar", kernel)

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the weights of min |a| + a . beta over weights that sum to 1."""
        beta = np.where(problem.present, self.lc * problem.distance, np.inf)
        # Counted from the nearest one: what is taken from large distances keeps its
        # digits.
        nearest = beta.min(axis=1, keepdims=True, initial=np.inf)
        beta = beta - np.where(np.isfinite(nearest), nearest, 0.0)
        weights = np.maximum(_level(beta)[:, np.newaxis] - beta, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        return Neighborhoods(weights / np.where(total > 0, total, 1.0))

    def remarks(self, candidates: Candidates, found: Neighborhoods, /) -> list[str]:
        """Say how many nodes would have taken more candidates."""
        n, m = candidates.index.shape
        full = int(((found.weights > 0).sum(axis=1) == m).sum()) if m < n - 1 else 0
        if not full:
            return []
        message = (
            f"kstar: {full} of {n} nodes took all {m} candidates and may want more: "
            "use a larger k or a larger lc"
        )
        return [message]


def _level(beta: FloatArray) -> FloatArray:
    """Return the level below which candidates count; the nearest ones are at 0."""
    order = np.sort(beta, axis=1)
    level = np.ones(len(order))
    total, squares = np.zeros(len(order)), np.zeros(len(order))
    going = np.ones(len(order), bool)
    for k in range(1, order.shape[1] + 1):
        going = going & (level > order[:, k - 1])
        if not going.any():
            break
        step = np.where(going, order[:, k - 1], 0.0)
        total, squares = total + step, squares + step**2
        root = np.sqrt(np.maximum(0.0, k + total**2 - k * squares))
        level = np.where(going, (total + root) / k, level)
    return level


plugin: type[Method] = Kstar
