"""Non-negative kernel regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nnkgraph.methods import Plain
from nnkgraph.methods._regression import regressed

if TYPE_CHECKING:
    from nnkgraph.data import Neighborhoods
    from nnkgraph.kernels import Problem
    from nnkgraph.methods import Method


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
