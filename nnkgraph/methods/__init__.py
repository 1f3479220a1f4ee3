"""Methods: which weight every candidate edge gets. One file each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from nnkgraph import pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray, Neighborhoods
    from nnkgraph.kernels import Kernel

_SMALLEST = 1e-250
"""Similarities below this are scaled up before they are put to use."""


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

    def cross(self) -> tuple[FloatArray, FloatArray]:
        """Return the similarities of nodes and candidates, and their scales.

        Returns
        -------
        (b, m) array
            Similarities divided by the node's scale; zero where there is no candidate.
        (b,) array
            The scales: 1, except where all similarities of a node are so small that
            they would lose their digits.
        """
        values = pairs.cross_values(self.x, self.queries, self.index, self.kernel.base)
        scale = np.ones(len(values))
        if self.kernel.exponential and values.size:
            nearest = values.min(axis=1, keepdims=True)
            nearest[~np.isfinite(nearest)] = 0.0
            factor = self.kernel(nearest.copy(), self.distance)[:, 0]
            tiny = factor < _SMALLEST
            values -= np.where(tiny[:, np.newaxis], nearest, 0.0)
            scale[tiny] = factor[tiny]
        similar = self.kernel(values, self.distance)
        similar[~self.present] = 0.0
        return similar, scale

    def among(self) -> FloatArray:
        """Return similarities among candidates, packed as ``qp.solve`` wants them."""
        values = pairs.among_values(self.x, self.index, self.kernel.base)
        return self.kernel(values, self.distance)

    def own(self) -> FloatArray:
        """Return the (b,) similarities of the nodes with themselves."""
        values = pairs.cross_values(
            self.queries,
            self.queries,
            np.arange(len(self.queries))[:, np.newaxis],
            self.kernel.base,
        )
        own: FloatArray = self.kernel(values, self.distance)[:, 0]
        return own


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
