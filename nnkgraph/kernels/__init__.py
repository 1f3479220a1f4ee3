"""Kernels: how similar two nodes are. One file each.

Here is what is asked of a kernel, what most kernels share, the rules for bandwidths,
and the local problem: a block of nodes with their candidates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from nnkgraph.data import SparseGram, SparseRows, pairs, similarity
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import row_slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import Candidates, FloatArray, IndexArray


class Kernel(Protocol):
    """A positive-definite similarity of two rows."""

    dense: ClassVar[bool]
    """Whether ``prepare`` or ``local`` need all values; others take sparse rows too."""

    @property
    def base(self) -> str:
        """The number that a pair's similarity is made from: see ``pairs.BASES``."""
        ...

    @property
    def nearness(self) -> str:
        """What candidates are searched by: a base, or ``"similarity"`` itself."""
        ...

    @property
    def ridge(self) -> float:
        """Share of the largest diagonal entry that is added to local matrices.

        Above zero only for kernels of finite rank, whose solutions would not be unique
        otherwise.
        """
        ...

    indefinite: ClassVar[bool]
    """Whether local matrices may have negative eigenvalues, and get a ridge for it."""

    @property
    def form(self) -> str:
        """How a similarity follows from that number: a name of ``similarity.FORMS``.

        Empty for kernels that have no such number: those have a method ``local`` that
        takes a ``Problem`` and returns its ``Local`` similarities.
        """
        ...

    def prepare(self, x: Any, name: str, /) -> Any:
        """Return the rows as this kernel sees them, for instance with unit length."""
        ...

    def fit(self, candidates: Candidates, /) -> Kernel:
        """Return the kernel with its open parameters taken from the candidates."""
        ...

    @property
    def needs_all_rows(self) -> bool:
        """Whether ``fit`` has to see the candidates of all rows, not of a part."""
        ...

    def bandwidth(self, candidates: Candidates, /) -> float | None:
        """Return the (mean) bandwidth that was used, where there is one."""
        ...

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return the (b, 2) coefficients of the form for a block of nodes.

        Parameters
        ----------
        distance : (b, m) array
            The nodes' distances to their candidates, for local bandwidths.
        """
        ...


class Plain:
    """What most kernels share: candidates by their base, rows as they are, no sigma."""

    dense: ClassVar[bool] = True
    indefinite: ClassVar[bool] = False
    terms: ClassVar[tuple[float, float]] = (1.0, 0.0)
    """The coefficients of every node; these leave values as they are (``affine``)."""

    @property
    def nearness(self) -> str:
        """Return the base."""
        base: str = self.base  # type: ignore[attr-defined]
        return base

    def prepare(self, x: Any, _name: str, /) -> Any:
        """Return the rows as they are."""
        return x

    def fit(self, _candidates: Candidates, /) -> Any:
        """Return itself: there is nothing to fit."""
        return self

    @property
    def needs_all_rows(self) -> bool:
        """Return False: there is nothing to fit."""
        return False

    def bandwidth(self, _candidates: Candidates, /) -> float | None:
        """Return None: there is no bandwidth."""
        return None

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return the same for every node."""
        return np.tile(self.terms, (len(distance), 1))


RULES = ("auto", "kth-max", "kth-mean", "local", "matlab")

SMALLEST, LARGEST = 1e-150, 1e150
"""Beyond these the square of a bandwidth leaves the range of float64."""


@dataclass(frozen=True)
class WithBandwidth(Plain):
    """What kernels with a bandwidth share."""

    sigma: float | str = "auto"
    """A bandwidth in the unit of the distances, or the rule that finds one."""

    def __post_init__(self) -> None:
        if isinstance(self.sigma, str):
            if self.sigma not in RULES:
                raise ParameterError(
                    f"sigma {self.sigma!r} is neither a number nor one of "
                    f"{', '.join(RULES)}"
                )
        elif not SMALLEST <= self.sigma <= LARGEST:
            raise ParameterError(
                f"sigma must be a positive number from {SMALLEST:g} to {LARGEST:g}, "
                f"not {self.sigma:g}"
            )

    def fit(self, candidates: Candidates, /) -> Self:
        """Return the kernel with its rule turned into a number, unless it is local."""
        if not isinstance(self.sigma, str) or self.sigma == "local":
            return self
        if self.sigma == "matlab" and candidates.index.shape[1] < 2:
            raise ParameterError("sigma 'matlab' needs k >= 2")
        farthest = _kth_distance(candidates.distance, before=self.sigma == "matlab")
        farthest = farthest[np.isfinite(farthest)]
        if self.sigma == "kth-max":
            distance = float(farthest.max(initial=0.0))
        else:
            # fsum is exact, so the bandwidth does not depend on the order of the rows
            distance = math.fsum(farthest) / max(1, len(farthest))
        # Only candidates identical to their nodes leave no scale; any will do then.
        distance /= 1 if self.sigma == "kth-mean" else 3
        return replace(self, sigma=distance if distance > 0 else 1.0)

    @property
    def needs_all_rows(self) -> bool:
        """Return whether a rule makes one bandwidth of the distances of all rows."""
        return isinstance(self.sigma, str) and self.sigma != "local"

    def bandwidth(self, candidates: Candidates, /) -> float | None:
        """Return sigma, or the mean of the local ones."""
        if not isinstance(self.sigma, str):
            return self.sigma
        return mean_bandwidth(self.sigma_of_nodes(candidates.distance))

    def rate(self, sigma: Any) -> Any:
        """Return the factors of values in the exponent, for bandwidths."""
        raise NotImplementedError

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return the factor of a pair's value in the exponent, for every node."""
        rate = self.rate(self.sigma_of_nodes(distance))
        return np.column_stack([rate, np.zeros(len(rate))])

    def sigma_of_nodes(self, distance: FloatArray) -> FloatArray:
        """Return the (b,) bandwidths of a block of nodes."""
        if not isinstance(self.sigma, str):
            return np.full(len(distance), self.sigma)
        kth = _kth_distance(distance)
        usable = np.isfinite(kth) & (kth > 0)
        return np.maximum(np.where(usable, kth / 3, 1.0), SMALLEST)


def mean_bandwidth(own: FloatArray) -> float:
    """Return the mean of the bandwidths of nodes, whatever their order."""
    return math.fsum(own) / len(own)


def _kth_distance(distance: FloatArray, *, before: bool = False) -> FloatArray:
    """Return the distance to the last candidate there is (or the one before it)."""
    if not distance.shape[1]:
        return np.full(len(distance), np.inf)
    kth = np.empty(len(distance))
    for rows in row_slices(len(distance), 16 * distance.shape[1]):
        known = distance[rows]
        last = np.isfinite(known).sum(axis=1) - 1 - before
        kth[rows] = known[np.arange(len(known)), np.maximum(last, 0)]
    return kth


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
        if isinstance(self.x, SparseRows) or self.kernel.indefinite:
            return False
        return bool(self.kernel.form) and self.kernel.base != "gram"

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
        at = packed_diagonal(self.index.shape[1])
        found.gram[:, at] = self._with_ridge(found.gram[:, at])
        if self.kernel.indefinite:
            from nnkgraph.kernels._definite import ridges

            known = (
                found.gram,
                found.cross * np.reshape(found.scale, (-1, 1)),
                found.own,
            )
            found.gram[:, at] += ridges(*known, self.present)[:, np.newaxis]
        return found

    def _by_formula(self) -> Local:
        if isinstance(self.x, SparseGram):
            values = pairs.gram_within_values(self.x, self.index, self.kernel.base)
        else:
            values = pairs.within_values(self.x, self.index, self.kernel.base)
        cross, scale = self._scaled_cross()
        return Local(self._similar(values), cross, self.own(), scale)

    def _scaled_cross(self) -> tuple[FloatArray, FloatArray]:
        """Return ``cross()``, and what it has to be multiplied by in the end.

        That is 1, except where all similarities of a node are so small that they would
        lose their digits: distances are then counted from the nearest candidate.
        """
        cross, scale = self._cross_values(), np.ones(len(self.index))
        if self.kernel.form == "exponential" and cross.shape[1]:
            nearest = np.where(self.present, cross, np.inf).min(axis=1, keepdims=True)
            nearest[~np.isfinite(nearest)] = 0.0
            largest = self._similar(nearest.copy())
            far = largest < similarity.SMALLEST
            cross -= np.where(far, nearest, 0.0)
            scale = np.where(far, largest, 1.0)[:, 0]
        cross = self._similar(cross)
        cross[~self.present] = 0.0
        return cross, scale

    def diagonal(self) -> FloatArray:
        """Return (b, m) similarities of candidates with themselves, with the ridge."""
        values: FloatArray = np.zeros(self.index.shape)
        if self.kernel.base not in pairs.DISTANCES:  # that of a row to itself is zero
            rows, place = np.unique(np.maximum(self.index, 0), return_inverse=True)
            own = pairs.cross_values(
                self.x, self.x[rows], rows[:, np.newaxis], self.kernel.base
            )
            values = own[:, 0][place.reshape(self.index.shape)]
        values = self._similar(values)
        values[~self.present] = 0.0
        return self._with_ridge(values)

    def _with_ridge(self, diagonal: FloatArray) -> FloatArray:
        if self.kernel.ridge == 0:
            return diagonal
        ridge = self.kernel.ridge * diagonal.max(axis=1, initial=0.0, keepdims=True)
        return diagonal + np.where(diagonal > 0, ridge, 0.0)

    def _cross_values(self) -> FloatArray:
        if isinstance(self.x, SparseGram):
            known = self._known_rows(), self.index
            return pairs.gram_cross_values(self.x, *known, self.kernel.base)
        values: FloatArray = pairs.cross_values(
            self.x, self.queries, self.index, self.kernel.base
        )
        return values

    def _own_values(self) -> FloatArray:
        if self.kernel.base in pairs.DISTANCES:  # that of a row to itself
            return np.zeros(len(self.index))
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
        similar: FloatArray = similarity.similarities(
            self.kernel.form, coefficients, values
        )
        return similar


def __getattr__(name: str) -> Any:
    """Return the class of a plug-in by its name, as in ``kernels.Gaussian``."""
    if name.lower() not in registry.names("kernels"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return registry.load("kernels", name.lower())
