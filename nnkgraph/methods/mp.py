"""Non-negative kernel matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.methods import Plain
from nnkgraph.methods._pursuit import pursue

if TYPE_CHECKING:
    from nnkgraph.kernels import Problem
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Mp(Plain):
    """Matching pursuit: the best candidate of each step gets its weight for good."""

    rule: ClassVar[str] = "error"
    has_error: ClassVar[bool] = True

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the weights and J at them."""
        local = problem.local()
        theta, gain = pursue(local.gram, local.cross, problem.present, again=False)
        scale = np.broadcast_to(local.scale, len(theta))
        errors = 0.5 * local.own - scale**2 * gain
        return Neighborhoods(theta * scale[:, np.newaxis], np.maximum(errors, 0.0))


plugin: type[Method] = Mp
