"""Non-negative kernel regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph import qp
from nnkgraph.data import Neighborhoods

if TYPE_CHECKING:
    from nnkgraph.methods import Method, Problem


@dataclass(frozen=True)
class Nnk:
    """Non-negative kernel regression, solved exactly (the paper's Algorithm 1)."""

    local: ClassVar[bool] = True
    rule: ClassVar[str] = "error"
    has_error: ClassVar[bool] = True

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the solution, J and the certificate of every node."""
        kernel = problem.kernel
        theta, certificate, gain, scale, own = qp.regress(
            problem.x,
            problem.queries,
            problem.index,
            base=kernel.base,
            form=kernel.form,
            coefficients=kernel.coefficients(problem.distance),
            ridge=kernel.ridge,
        )
        errors = 0.5 * own - scale**2 * gain
        theta *= scale[:, np.newaxis]
        return Neighborhoods(theta, np.maximum(errors, 0.0), certificate)


plugin: type[Method] = Nnk
