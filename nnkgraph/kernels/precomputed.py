"""Similarities from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Plain
from nnkgraph.kernels._gram import check_gram

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray
    from nnkgraph.kernels import Kernel


@dataclass(frozen=True)
class Precomputed(Plain):
    """The input is the N x N matrix of similarities itself, dense or sparse."""

    base: ClassVar[str] = "gram"
    form: ClassVar[str] = "affine"

    ridge: float = 0.0
    """Share of the diagonal that is added, for matrices of low rank: 1e-8."""

    def __post_init__(self) -> None:
        if not 0 <= self.ridge <= 1:
            raise ParameterError(
                f"kernel 'precomputed': ridge must be from 0 to 1, not {self.ridge:g}"
            )

    def prepare(self, x: Any, name: str, /) -> Any:
        """Check that the matrix can be one of similarities."""
        check_gram(x, name)
        return x

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return what leaves a similarity as it is."""
        return np.tile([1.0, 0.0], (len(distance), 1))


plugin: type[Kernel] = Precomputed
