"""Non-negative kernel regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.methods import Plain, qp

if TYPE_CHECKING:
    from nnkgraph.kernels import Problem
    from nnkgraph.methods import Method


def regressed(problem: Problem, *, l1_penalty: float = 0.0) -> Neighborhoods:
    """Solve min J(theta) + l1_penalty * sum(theta), theta >= 0, for every node.

    Returns
    -------
    Neighborhoods
        With J, without the penalty, and the certificate of the penalized problem.
    """
    if problem.fused:
        own = problem.own()
        theta, certificate, gain, scale = qp.regress(
            problem.x,
            problem.queries,
            problem.index,
            problem.diagonal(),
            base=problem.kernel.base,
            form=problem.kernel.form,
            coefficients=problem.kernel.coefficients(problem.distance),
            l1_penalty=l1_penalty,
        )
    else:
        local = problem.local()
        own, cross = local.own, local.cross
        scale = np.broadcast_to(local.scale, len(problem.index))
        if l1_penalty > 0:  # beside what was scaled up it is beyond all measure
            cross = np.where((scale < 1.0)[:, np.newaxis], -1.0, cross - l1_penalty)
        theta, certificate, gain = qp.solve(local.gram, cross, problem.present)
    errors = 0.5 * own - scale**2 * gain
    theta *= scale[:, np.newaxis]
    if l1_penalty > 0:
        errors -= l1_penalty * theta.sum(axis=1)
    return Neighborhoods(theta, np.maximum(errors, 0.0), certificate)


@dataclass(frozen=True)
class Nnk(Plain):
    """Non-negative kernel regression, solved exactly (the paper's Algorithm 1)."""

    rule: ClassVar[str] = "error"
    has_error: ClassVar[bool] = True
    has_certificate: ClassVar[bool] = True

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the solution, J and the certificate of every node."""
        return regressed(problem)


plugin: type[Method] = Nnk
