"""Non-negative kernel regression with an l1 penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain
from nnkgraph.methods.nnk import regressed

if TYPE_CHECKING:
    from nnkgraph.data import Neighborhoods
    from nnkgraph.kernels import Problem
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class L1(Plain):
    """Kernel regression with a penalty on the sum of weights: fewer, lighter edges."""

    rule: ClassVar[str] = "error"
    has_error: ClassVar[bool] = True
    has_certificate: ClassVar[bool] = True

    eta: float = 0.1
    """The penalty, in units of the kernel; 0 gives nnk."""

    def __post_init__(self) -> None:
        if not 0 <= self.eta < math.inf:
            raise ParameterError(
                f"method 'l1': eta must be a number of at least 0, not {self.eta:g}"
            )

    @property
    def l1_penalty(self) -> float:
        """Return eta."""
        return self.eta

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the solution, J without the penalty, and the certificate."""
        return regressed(problem, l1_penalty=self.eta)


plugin: type[Method] = L1
