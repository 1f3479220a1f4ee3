"""Gaussian kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nnkgraph.kernels import Kernel, WithBandwidth


@dataclass(frozen=True)
class Gaussian(WithBandwidth):
    """exp(-distance(x, y)^2 / (2 sigma^2)), the paper's default."""

    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    dense: ClassVar[bool] = False
    form: ClassVar[str] = "exponential"

    def rate(self, sigma: Any) -> Any:
        """Return the factor of a value in the exponent."""
        return -0.5 / sigma**2


plugin: type[Kernel] = Gaussian
