"""Adaptive edge weighting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain
from nnkgraph.methods._adaptive import Reconstruction
from nnkgraph.methods._descent import descend

if TYPE_CHECKING:
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.methods._descent import Descent
    from nnkgraph.problem import Problem


@dataclass(frozen=True)
class Aew(Plain):
    """Gaussian weights whose feature scales rebuild nodes from their neighbors best."""

    local: ClassVar[bool] = False
    dense: ClassVar[bool] = True

    iterations: int = 100
    """The most steps to take, at least 1."""

    tolerance: float = 1e-4
    """Stop when five steps together lower the error by less than this share of it."""

    def __post_init__(self) -> None:
        if self.iterations < 1:
            what = f"at least 1, not {self.iterations}"
            raise ParameterError(f"method 'aew': iterations must be {what}")
        if not 0 < self.tolerance < math.inf:
            what = f"a number above 0, not {self.tolerance:g}"
            raise ParameterError(f"method 'aew': tolerance must be {what}")

    def check(self, kernel: Kernel, /) -> None:
        """Refuse all but a Gaussian kernel with one bandwidth for all nodes."""
        name = type(kernel).__module__.rpartition(".")[2]
        if name != "gaussian":
            raise ParameterError(
                f"method 'aew' weighs by a Gaussian of its own scales and cannot use "
                f"kernel {name!r}: use kernel gaussian"
            )
        if getattr(kernel, "sigma", None) == "local":
            raise ParameterError(
                "method 'aew' needs one sigma for all nodes, or the two directions of "
                "an edge would differ: use another sigma than 'local'"
            )

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the weights at the scales where the error has settled."""
        sigma: float = problem.kernel.sigma  # type: ignore[attr-defined]
        error = Reconstruction.of(problem.x, problem.index, problem.distance, sigma)
        found = descend(
            error,
            np.ones(problem.x.shape[1]),
            iterations=self.iterations,
            tolerance=self.tolerance,
            on_step=problem.on_step,
        )
        first, last = found.norms[0], found.norms[-1]
        facts = {
            "iterations": len(found.trace) - 1,
            "gradient_norm": last * error.unit**2,
            "gradient_norm_relative": last / first if first > 0 else 0.0,
            "objective": [found.trace[at] * error.unit**2 for at in (0, -1)],
        }
        weights = error.weights(found.point)
        return Neighborhoods(weights, facts=facts, failure=self._failure(found))

    def _failure(self, found: Descent) -> str:
        if found.converged:
            return ""
        return (
            f"aew did not converge: after {self.iterations} iterations the last ones "
            f"still lowered its error by {found.fall:.2g} of it (tolerance "
            f"{self.tolerance:g}): use more iterations or a larger tolerance"
        )


plugin: type[Method] = Aew
