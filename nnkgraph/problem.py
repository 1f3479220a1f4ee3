"""A block of nodes with their candidates: what kernels compute and methods see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import pairs, sparse_pairs
from nnkgraph.data import SparseGram, SparseRows
from nnkgraph.similarity import similarities

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.kernel import Kernel

_FUSED = {"squared-distance", "inner-product"}
"""Bases that ``qp.regress`` computes itself, only what it needs of them."""

_SMALLEST = 1e-250
"""Where all similarities are below this, they are scaled up before they are used."""


def packed_diagonal(m: int) -> IndexArray:
    """Return the places of the diagonal in a packed triangle."""
    return np.arange(1, m + 1).cumsum() - 1


@dataclass(frozen=True)
class Local:
    """The similarities that a block of nodes and their candidates have."""

    gram: FloatArray
    """(b, m(m+1)/2) of every two candidates: packed lower triangles, row by row."""

    cross: FloatArray
    """(b, m) of node and candidate, 0 where there is none."""

    own: FloatArray
    """(b,) of the nodes with themselves."""

    scale: FloatArray | float = 1.0
    """(b,) what ``cross`` has to be multiplied by where all of it would vanish."""


@dataclass(frozen=True)
class Problem:
    """A block of nodes with their candidates."""

    x: Any
    """All rows, as the kernel sees them."""

    queries: Any
    """(b, d) the block's own rows."""

    index: IndexArray
    """(b, m) candidates, -1 where there is none."""

    distance: FloatArray
    """(b, m) their distances, inf where there is none."""

    kernel: Kernel
    """A fitted kernel."""

    rows: IndexArray | None = None
    """(b,) which of all rows these are; None for new points."""

    k: int = 0
    """Neighbors that were asked for, where a method chooses among more candidates."""

    on_step: Callable[[int], object] = lambda _: None
    """Hears of every iteration of a method that looks at all rows at once."""

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """(b, m) where there is a candidate."""
        present: NDArray[np.bool_] = self.index >= 0
        return present

    @property
    def fused(self) -> bool:
        """Whether the solver may compute similarities from features itself."""
        dense = not isinstance(self.x, SparseRows)
        return dense and bool(self.kernel.form) and self.kernel.base in _FUSED

    def cross(self) -> FloatArray:
        """Return (b, m) similarities of nodes and candidates, 0 where there is none."""
        if not self.kernel.form:
            return self.local().cross
        similar = self._similar(self._cross_values())
        similar[~self.present] = 0.0
        return similar

    def own(self) -> FloatArray:
        """Return the (b,) similarities of the nodes with themselves."""
        if not self.kernel.form:
            return self.local().own
        own: FloatArray = self._similar(self._own_values()[:, np.newaxis])[:, 0]
        return own

    def local(self) -> Local:
        """Return all similarities, with the kernel's ridge on the diagonal."""
        if self.kernel.form:
            found = self._by_formula()
        else:
            kernel: Any = self.kernel
            found = kernel.local(self)
        if self.kernel.ridge > 0:
            at = packed_diagonal(self.index.shape[1])
            diagonal = found.gram[:, at]
            ridge = self.kernel.ridge * diagonal.max(axis=1, initial=0.0, keepdims=True)
            found.gram[:, at] += np.where(diagonal > 0, ridge, 0.0)
        return found

    def _by_formula(self) -> Local:
        if isinstance(self.x, SparseGram):
            values = sparse_pairs.within_values(self.x, self.index)
        else:
            values = pairs.within_values(self.x, self.index, self.kernel.base)
        gram = self._similar(values)
        cross, scale = self._cross_values(), np.ones(len(self.index))
        if self.kernel.form == "exponential" and cross.shape[1]:
            # Where all would vanish, distances are counted from the nearest one.
            nearest = np.where(self.present, cross, np.inf).min(axis=1, keepdims=True)
            nearest[~np.isfinite(nearest)] = 0.0
            largest = self._similar(nearest.copy())
            far = largest < _SMALLEST
            cross -= np.where(far, nearest, 0.0)
            scale = np.where(far, largest, 1.0)[:, 0]
        cross = self._similar(cross)
        cross[~self.present] = 0.0
        return Local(gram, cross, self.own(), scale)

    def _cross_values(self) -> FloatArray:
        if isinstance(self.x, SparseGram):
            return sparse_pairs.cross_values(self.x, self._known_rows(), self.index)
        values: FloatArray = pairs.cross_values(
            self.x, self.queries, self.index, self.kernel.base
        )
        return values

    def _own_values(self) -> FloatArray:
        if isinstance(self.x, SparseGram):
            return self.x.diagonal()[self._known_rows()]
        if self.kernel.base == "gram":
            rows = self._known_rows()
            return np.asarray(self.x[rows, rows], np.float64)
        every = np.arange(len(self.queries))[:, np.newaxis]
        values: FloatArray = pairs.cross_values(
            self.queries, self.queries, every, self.kernel.base
        )
        return values[:, 0]

    def _known_rows(self) -> IndexArray:
        if self.rows is None:
            raise TypeError("a matrix of similarities knows its own rows only")
        return self.rows

    def _similar(self, values: FloatArray) -> FloatArray:
        coefficients = self.kernel.coefficients(self.distance)
        similar: FloatArray = similarities(self.kernel.form, coefficients, values)
        return similar
