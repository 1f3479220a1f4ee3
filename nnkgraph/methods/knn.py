"""k nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.methods import Plain

if TYPE_CHECKING:
    from nnkgraph.kernels import Problem
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Knn(Plain):
    """Every candidate is a neighbor, weighted by its kernel similarity."""

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the similarities."""
        return Neighborhoods(np.maximum(problem.cross(), 0.0))


plugin: type[Method] = Knn
