"""Methods: which weight every candidate edge gets. One file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from nnkgraph.data.pairs import DISTANCES, MATRICES
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, Neighborhoods
    from nnkgraph.kernels import Kernel, Problem
    from nnkgraph.search import Wanted


class Method(Protocol):
    """Answers which weight each candidate edge has."""

    local: ClassVar[bool]
    """Whether blocks of rows are independent; otherwise it gets all rows at once."""

    rule: ClassVar[str]
    """The symmetrization that suits it."""

    has_error: ClassVar[bool]
    """Whether it yields J, which the rules ``error`` and ``error-union`` need."""

    has_certificate: ClassVar[bool]
    """Whether it yields a proof for every node."""

    dense: ClassVar[bool]
    """Whether it looks at the values of features itself, which sparse ones lack."""

    uses_kernel: ClassVar[bool]
    """Whether its weights depend on the kernel, and so on a bandwidth."""

    @property
    def l1_penalty(self) -> float:
        """What every unit of weight costs besides the error."""
        ...

    def check(self, kernel: Kernel, /) -> None:
        """Refuse a kernel that the method cannot work with."""
        ...

    def width(self, k: int, /) -> int:
        """Return how many candidates it wants to choose from, for k neighbors."""
        ...

    def gather(
        self, wanted: Wanted, candidates: Candidates, kernel: Kernel, /
    ) -> Candidates:
        """Return the candidates it works on, where it finds others than the k best."""
        ...

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return (b, m) weights: zero means no edge."""
        ...

    def remarks(self, candidates: Candidates, found: Neighborhoods, /) -> list[str]:
        """Say what the user should know about the result."""
        ...


class Plain:
    """What most methods share: local, for every kernel, the k best as candidates."""

    local: ClassVar[bool] = True
    rule: ClassVar[str] = "max"
    has_error: ClassVar[bool] = False
    has_certificate: ClassVar[bool] = False
    dense: ClassVar[bool] = False
    uses_kernel: ClassVar[bool] = True

    @property
    def l1_penalty(self) -> float:
        """Return 0: there is none."""
        return 0.0

    def check(self, kernel: Kernel, /) -> None:
        """Accept every kernel."""

    def width(self, k: int, /) -> int:
        """Return k."""
        return k

    def gather(
        self, _wanted: Wanted, candidates: Candidates, _kernel: Kernel, /
    ) -> Candidates:
        """Return the candidates as they are."""
        return candidates

    def remarks(self, _candidates: Candidates, _found: Neighborhoods, /) -> list[str]:
        """Say nothing."""
        return []


def need_distances(name: str, kernel: Kernel) -> None:
    """Refuse a kernel whose candidates have no distances."""
    if kernel.nearness not in DISTANCES:
        raise ParameterError(
            f"method {name!r} needs distances, but this kernel has similarities only: "
            "use kernel gaussian, laplacian, jaccard or cosine"
        )


def need_features(name: str, kernel: Kernel) -> None:
    """Refuse a kernel without features."""
    if kernel.base in MATRICES:
        raise ParameterError(
            f"method {name!r} needs features, but a matrix of similarities or "
            "distances has none"
        )
    need_zeros(name, kernel)


def need_zeros(name: str, kernel: Kernel) -> None:
    """Refuse a kernel that keeps rows without their zeros."""
    if kernel.base == "jaccard-distance":
        raise ParameterError(
            f"method {name!r} needs rows with their zeros, which kernel jaccard leaves "
            "out"
        )


def __getattr__(name: str) -> Any:
    """Return the class of a plug-in by its name, as in ``methods.NNK``."""
    if name.lower() not in registry.names("methods"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return registry.load("methods", name.lower())
