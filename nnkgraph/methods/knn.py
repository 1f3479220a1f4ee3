"""k nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods

if TYPE_CHECKING:
    from nnkgraph.methods import Method, Problem


@dataclass(frozen=True)
class Knn:
    """Every candidate is a neighbor, weighted by its kernel similarity."""

    local: ClassVar[bool] = True
    rule: ClassVar[str] = "max"
    has_error: ClassVar[bool] = False

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the similarities."""
        return Neighborhoods(np.maximum(problem.cross(), 0.0))


plugin: type[Method] = Knn
