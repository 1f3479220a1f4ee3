"""Non-negative kernel orthogonal matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.methods import Plain
from nnkgraph.methods._pursuit import pursue, violations

if TYPE_CHECKING:
    from nnkgraph.kernels import Problem
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Omp(Plain):
    """Orthogonal matching pursuit: all weights are found again after each step."""

    rule: ClassVar[str] = "error"
    has_error: ClassVar[bool] = True
    has_certificate: ClassVar[bool] = True

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the weights, J and the certificate: the one that nnk has."""
        local = problem.local()
        theta, gain = pursue(local.gram, local.cross, problem.present, again=True)
        proof = violations(local.gram, local.cross, problem.present, theta)
        scale = np.broadcast_to(local.scale, len(theta))
        errors = 0.5 * local.own - scale**2 * gain
        weights = theta * scale[:, np.newaxis]
        return Neighborhoods(weights, np.maximum(errors, 0.0), proof)


plugin: type[Method] = Omp
