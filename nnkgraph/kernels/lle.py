"""The kernel of locally linear embedding."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnkgraph.data.pairs import within_values
from nnkgraph.kernels import Kernel, Local, Plain, Problem, packed_diagonal


@dataclass(frozen=True)
class Lle(Plain):
    """(1 + cos of the angle that a node sees two candidates at) / 2 (equation 7)."""

    # Seen from its node, a candidate is (1, u) / sqrt(2) with its direction u, and the
    # node itself is (sqrt(2), 0): their product is 1, the node's own is 2.
    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 1e-8
    form: ClassVar[str] = ""

    def local(self, problem: Problem, /) -> Local:
        """Return the similarities of directions; one without a direction drops out."""
        gram = within_values(
            problem.x, problem.index, "inner-product", seen_from=problem.queries
        )
        b, m = problem.index.shape
        length = np.sqrt(gram[:, packed_diagonal(m)])
        row, column = np.tril_indices(m)
        both = length[:, row] * length[:, column]
        known = both > 0
        gram /= np.where(known, both, 1.0)
        gram[:, packed_diagonal(m)] = np.where(length > 0, 1.0, 0.0)
        gram = np.where(known, 0.5 + 0.5 * gram, 0.0)
        cross = np.where(problem.present, 1.0, 0.0)
        return Local(gram, cross, np.full(b, 2.0))


plugin: type[Kernel] = Lle
