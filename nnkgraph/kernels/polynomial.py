"""Polynomial kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Kernel, Plain

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray

_MOST_DEGREE = 20


@dataclass(frozen=True)
class Polynomial(Plain):
    """(gamma x . y + c) ** degree; candidates are searched by similarity."""

    base: ClassVar[str] = "inner-product"
    ridge: ClassVar[float] = 1e-8
    form: ClassVar[str] = "power"

    degree: int = 2
    """The power, at least 1."""

    gamma: float = 1.0
    """Factor of the inner product, above 0."""

    c: float = 1.0
    """What is added to it, not below 0: the kernel is positive definite only then."""

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= _MOST_DEGREE:
            raise ParameterError(
                f"kernel 'polynomial': degree must be from 1 to {_MOST_DEGREE}, not "
                f"{self.degree}"
            )
        if not (0 < self.gamma < math.inf and 0 <= self.c < math.inf):
            raise ParameterError(
                "kernel 'polynomial': gamma must be above 0, and c must not be negative"
            )

    @property
    def nearness(self) -> str:
        """Return what orders rows by similarity: an even power forgets the sign."""
        return "inner-product" if self.degree % 2 else "absolute-product"

    def prepare(self, x: Any, name: str, /) -> Any:
        """Append a column, so that the base is a plain inner product."""
        column = np.full((len(x), 1), math.sqrt(self.c))
        rows = np.concatenate([math.sqrt(self.gamma) * np.asarray(x, float), column], 1)
        largest = float(np.einsum("ij,ij->i", rows, rows).max(initial=0.0))
        if largest > 1.0 and self.degree * math.log10(largest) > 150:
            raise InputError(
                f"{name}: values are too large for a polynomial of degree "
                f"{self.degree}: scale them (`scale`) or lower gamma"
            )
        return rows

    def coefficients(self, distance: FloatArray, /) -> FloatArray:
        """Return the power."""
        return np.tile([float(self.degree), 0.0], (len(distance), 1))


plugin: type[Kernel] = Polynomial
