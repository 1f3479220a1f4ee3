"""Methods: which weight every candidate edge gets. One file each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from nnkgraph import pairs
from nnkgraph.similarity import similarities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray, Neighborhoods
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Problem:
    """A block of nodes with their candidates: what a method sees."""

    x: FloatArray
    """All rows, as the kernel sees them."""

    queries: FloatArray
    """(b, d) the block's own rows."""

    index: IndexArray
    """(b, m) candidates, -1 where there is none."""

    distance: FloatArray
    """(b, m) their distances, inf where there is none."""

    kernel: Kernel
    """A fitted kernel."""

    @property
    def present(self) -> NDArray[np.bool_]:
        """(b, m) where there is a candidate."""
        present: NDArray[np.bool_] = self.index >= 0
        return present

    def cross(self) -> FloatArray:
        """Return (b, m) similarities of nodes and candidates, 0 where there is none."""
        values = pairs.cross_values(self.x, self.queries, self.index, self.kernel.base)
        similar = self._similarities(values)
        similar[~self.present] = 0.0
        return similar

    def own(self) -> FloatArray:
        """Return the (b,) similarities of the nodes with themselves."""
        rows = np.arange(len(self.queries))[:, np.newaxis]
        values = pairs.cross_values(self.queries, self.queries, rows, self.kernel.base)
        own: FloatArray = self._similarities(values)[:, 0]
        return own

    def _similarities(self, values: FloatArray) -> FloatArray:
        coefficients = self.kernel.coefficients(self.distance)
        similar: FloatArray = similarities(self.kernel.form, coefficients, values)
        return similar


class Method(Protocol):
    """Answers which weight each candidate edge has."""

    local: ClassVar[bool]
    """Whether blocks of rows are independent; otherwise it gets all rows at once."""

    rule: ClassVar[str]
    """The symmetrization that suits it."""

    has_error: ClassVar[bool]
    """Whether it yields J, which the rules ``error`` and ``error-union`` need."""

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return (b, m) weights: zero means no edge."""
        ...
