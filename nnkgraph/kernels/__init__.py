"""Kernels: how similar two nodes are. One file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray


class Kernel(Protocol):
    """A positive-definite similarity, written as a map of one number per pair."""

    base: ClassVar[str]
    """The number: ``"squared-distance"`` or ``"inner-product"`` of two rows.

    It also says how candidates are searched: nearest first, or largest product first.
    """

    ridge: ClassVar[float]
    """Share of the largest diagonal entry added to local matrices: above zero only
    for kernels of finite rank, whose solutions would not be unique otherwise."""

    form: ClassVar[str]
    """How a similarity follows from that number: a name of ``similarity.FORMS``."""

    def prepare(self, x: FloatArray, name: str, /) -> FloatArray:
        """Return the rows as this kernel sees them, for instance with unit length."""
        ...

    def fit(self, candidates: Candidates, /) -> Kernel:
        """Return the kernel with its open parameters taken from the candidates."""
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
