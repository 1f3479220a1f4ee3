"""Non-negative locally linear embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.data.pairs import within_values
from nnkgraph.errors import ParameterError
from nnkgraph.kernels import packed_diagonal
from nnkgraph.methods import Plain, need_features, qp

if TYPE_CHECKING:
    from nnkgraph.kernels import Kernel, Problem
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Lle(Plain):
    """Weights that sum to 1 and rebuild the node from its candidates best."""

    has_certificate: ClassVar[bool] = True
    dense: ClassVar[bool] = True
    uses_kernel: ClassVar[bool] = False

    ridge: float = 1e-3
    """Share of the trace that is added to the diagonal, above 0."""

    def __post_init__(self) -> None:
        if not 0 < self.ridge <= 1:
            raise ParameterError(
                f"method 'lle': ridge must be above 0 and at most 1, not {self.ridge:g}"
            )

    def check(self, kernel: Kernel, /) -> None:
        """Refuse a kernel without features."""
        need_features("lle", kernel)

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Solve min u' G u / 2 - sum(u) without a sum to keep, then divide by the sum.

        That gives the same weights as the problem with the sum of 1.
        """
        present = problem.present
        gram = within_values(
            problem.x, problem.index, "inner-product", seen_from=problem.queries
        )
        at = packed_diagonal(present.shape[1])
        trace = gram[:, at].sum(axis=1, keepdims=True)
        # In units of the trace: tiny and huge features then look alike.
        flat = trace[:, 0] <= 0
        gram /= np.where(trace > 0, trace, 1.0)
        gram[:, at] += np.where(present, np.where(trace > 0, self.ridge, 1.0), 0.0)
        cross = present.astype(np.float64)
        weights, certificate, _ = qp.solve(gram, cross, present)
        weights[flat] = cross[flat]
        total = weights.sum(axis=1, keepdims=True)
        weights /= np.where(total > 0, total, 1.0)
        return Neighborhoods(weights, None, certificate)


plugin: type[Method] = Lle
