"""Linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Linear:
    """x . y; candidates are searched by inner product, largest first."""

    base: ClassVar[str] = "inner-product"
    ridge: ClassVar[float] = 1e-8
    exponential: ClassVar[bool] = False

    def prepare(self, x: FloatArray, _name: str, /) -> FloatArray:
        """Return the rows as they are."""
        return x

    def fit(self, _candidates: Candidates, /) -> Self:
        """Return itself: there is nothing to fit."""
        return self

    def bandwidth(self, _candidates: Candidates, /) -> None:
        """Return None: there is no bandwidth."""
        return

    def __call__(self, values: FloatArray, _distance: FloatArray, /) -> FloatArray:
        """Return inner products as they are."""
        return values


plugin: type[Kernel] = Linear
