"""Laplacian kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nnkgraph.kernels import Kernel, WithBandwidth


@dataclass(frozen=True)
class Laplacian(WithBandwidth):
    """exp(-L1 distance(x, y) / sigma); candidates and sigma by L1 distance."""

    base: ClassVar[str] = "l1-distance"
    ridge: ClassVar[float] = 0.0
    form: ClassVar[str] = "exponential"

    def rate(self, sigma: Any) -> Any:
        """Return the factor of a value in the exponent."""
        return -1.0 / sigma


plugin: type[Kernel] = Laplacian
