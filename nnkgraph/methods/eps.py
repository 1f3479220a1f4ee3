"""All nodes within a radius."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain, need_distances
from nnkgraph.radius import within_radius

if TYPE_CHECKING:
    from nnkgraph.data import Candidates
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.problem import Problem
    from nnkgraph.search import Wanted


@dataclass(frozen=True)
class Eps(Plain):
    """Every node within a radius is a neighbor, weighted by its kernel similarity."""

    dense: ClassVar[bool] = True

    radius: float = 0.0
    """The radius in the features' unit; 0 takes 3 sigma."""

    def __post_init__(self) -> None:
        if not 0 <= self.radius < math.inf:
            raise ParameterError(
                f"method 'eps': radius must be a number of at least 0, not "
                f"{self.radius:g}"
            )

    def check(self, kernel: Kernel, /) -> None:
        """Refuse kernels without distances, and a radius that nothing sets."""
        need_distances("eps", kernel)
        if getattr(kernel, "sigma", None) == "local":
            raise ParameterError(
                "method 'eps' needs one sigma for all nodes: use another than 'local'"
            )
        if not self.radius and not hasattr(kernel, "sigma"):
            raise ParameterError(
                "method 'eps' needs radius=R: this kernel has no sigma to take it from"
            )

    def gather(
        self, wanted: Wanted, candidates: Candidates, kernel: Kernel, /
    ) -> Candidates:
        """Search again, by radius."""
        radius = self.radius or 3.0 * (kernel.bandwidth(candidates) or 0.0)
        found = within_radius(wanted, radius)
        note = f"eps: radius {radius:.6g}"
        return replace(found, notes=(*candidates.notes, note))

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the similarities."""
        return Neighborhoods(np.maximum(problem.cross(), 0.0))


plugin: type[Method] = Eps
