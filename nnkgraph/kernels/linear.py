"""Linear kernel."""

from dataclasses import dataclass
from typing import ClassVar

from nnkgraph.kernels import Kernel, Plain


@dataclass(frozen=True)
class Linear(Plain):
    """x . y; candidates are searched by inner product, largest first."""

    base: ClassVar[str] = "inner-product"
    ridge: ClassVar[float] = 1e-8
    dense: ClassVar[bool] = False
    form: ClassVar[str] = "affine"


plugin: type[Kernel] = Linear
