"""Cosine kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nnkgraph.data.scaling import unit_rows
from nnkgraph.kernels import Kernel, Plain


@dataclass(frozen=True)
class Cosine(Plain):
    """(1 + cos(x, y)) / 2, between 0 and 1; candidates are searched by angle."""

    # For rows u, v of unit length |u - v|^2 = 2 - 2 cos: the kernel is a map of the
    # squared distance, and the nearest rows are those of the smallest angle.
    base: ClassVar[str] = "squared-distance"
    ridge: ClassVar[float] = 0.0
    dense: ClassVar[bool] = False
    form: ClassVar[str] = "affine"
    terms: ClassVar[tuple[float, float]] = (-0.25, 1.0)

    def prepare(self, x: Any, name: str, /) -> Any:
        """Scale all rows to unit length."""
        return unit_rows(x, name)


plugin: type[Kernel] = Cosine
