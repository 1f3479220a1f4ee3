"""What is asked of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray


class Kernel(Protocol):
    """A positive-definite similarity of two rows."""

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
