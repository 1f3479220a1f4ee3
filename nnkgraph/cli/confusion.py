"""How often classes were taken for others, as a table that fits a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnkgraph.cli.layout import WIDTH
from nnkgraph.cli.lists import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

_MISTAKES = 10
"""Kinds of mistakes that are printed where there are too many classes for a matrix."""


def confusion_table(
    title: str, classes: Sequence[str], table: Sequence[Sequence[int]]
) -> str:
    """Return the matrix of true and predicted classes, or the commonest mistakes."""
    named = list(zip(classes, table, strict=True))
    rows = [
        ["true \\ predicted", *classes],
        *([name, *map(str, row)] for name, row in named),
    ]
    matrix = aligned(rows, left=1)
    if len(matrix.partition("\n")[0]) <= WIDTH:
        return f"{title}\n{matrix}"
    mistakes = [
        (count, name, other)
        for name, row in named
        for other, count in zip(classes, row, strict=True)
        if name != other and count
    ]
    mistakes.sort(key=lambda one: -one[0])
    most = [[name, other, str(count)] for count, name, other in mistakes[:_MISTAKES]]
    said = f"{title}: {len(most)} of {len(mistakes)} kinds of mistakes, --json has all"
    return f"{said}\n{aligned([['true', 'predicted', 'times'], *most], left=2)}"
