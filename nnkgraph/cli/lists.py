"""Lists of values as options, and rows of cells as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.cli.numbers import Value
from nnkgraph.cli.types import Sigma

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


class Numbers(Value):
    """Numbers as 10,20,30 or FIRST:LAST:STEP."""

    name = "numbers"
    shown = "N,N,...|FIRST:LAST:STEP"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return the numbers, all at least 1."""
        if isinstance(value, list):
            return value
        try:
            if ":" in value:
                first, last, *step = (int(part) for part in value.split(":"))
                found = list(range(first, last + 1, *step))
            else:
                found = [int(part) for part in value.split(",")]
        except (ValueError, TypeError):
            self.fail(f"{value!r} is neither N,N,... nor FIRST:LAST:STEP", param, ctx)
        if not found or min(found) < 1:
            self.fail(f"{value!r} has to name numbers of at least 1", param, ctx)
        return found


class Sigmas(Value):
    """Bandwidths and rules for them, with commas between."""

    name = "sigmas"
    shown = "auto|kth-max|local|matlab|NUMBER[,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """Check every value; the kernel gets it as it was typed."""
        if isinstance(value, list):
            return value
        return [Sigma().convert(one.strip(), param, ctx) for one in value.split(",")]


class Positive(Value):
    """Numbers above 0 with commas between."""

    name = "positive"
    shown = "NUMBER[,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        """Return the numbers."""
        if isinstance(value, list):
            return value
        try:
            found = [float(one) for one in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is no list of numbers", param, ctx)
        if not all(0 < one < float("inf") for one in found):
            self.fail(f"{value!r} has to name finite numbers above 0", param, ctx)
        return found


def aligned(cells: Sequence[Sequence[str]], *, left: int) -> str:
    """Return rows of cells as columns: so many to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )
