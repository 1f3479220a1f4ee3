"""Kernels: how similar two nodes are. One file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.kernel import Kernel

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray

__all__ = ["Kernel", "Plain"]


class Plain:
    """What most kernels share: candidates by their base, rows as they are, no sigma."""

    @property
    def nearness(self) -> str:
        """Return the base."""
        base: str = self.base  # type: ignore[attr-defined]
        return base

    def prepare(self, x: Any, _name: str, /) -> Any:
        """Return the rows as they are."""
        return x

    def fit(self, _candidates: Candidates, /) -> Any:
        """Return itself: there is nothing to fit."""
        return self

    @property
    def needs_all_rows(self) -> bool:
        """Return False: there is nothing to fit."""
        return False

    def bandwidth(self, _candidates: Candidates, /) -> float | None:
        """Return None: there is no bandwidth."""
        return None

    def coefficients(self, _distance: FloatArray, /) -> FloatArray:
        """Refuse: a kernel without a form has none."""
        raise TypeError("a kernel without a form has no coefficients")
