"""Columns of numbers that name or count rows: they say nothing about what is alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.checks import row_blocks
from nnkgraph.formats._columnnames import is_key_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Features

_ROWS = 10
"""Whole numbers of fewer rows are in order by chance."""


def key_facts(features: Features) -> list[dict[str, Any]]:
    """Return the columns that look like row numbers or keys, and why.

    Those are whole numbers that grow with every row, that are those of a range each
    once, or whose column is called like a key.
    """
    x = features.x
    if len(x) < _ROWS:
        return []
    whole, grows, counts = _orders(x)
    names = features.columns or [None] * x.shape[1]
    found = []
    for at in np.flatnonzero(whole).tolist():
        name = names[at]
        called = bool(name) and is_key_name(str(name))
        why = "counts the rows" if counts[at] else "grows with every row"
        if not grows[at]:
            why = _why(x[:, at], called=called)
        if why:
            found.append({"column": at, "name": name, "why": why})
    return found


def _orders(x: NDArray[Any]) -> tuple[NDArray[np.bool_], ...]:
    """Return which columns are whole numbers, grow, and grow by one, row by row."""
    whole, grows, counts = (np.ones(x.shape[1], np.bool_) for _ in range(3))
    last = np.empty((0, x.shape[1]))
    for block in row_blocks(x):
        whole &= (block == np.trunc(block)).all(axis=0)
        if not whole.any():
            break
        steps = np.diff(np.concatenate([last, block]), axis=0)
        grows &= (steps > 0).all(axis=0)
        counts &= (steps == 1).all(axis=0)
        last = block[-1:]
    return whole, whole & grows, whole & counts


def _why(values: NDArray[Any], *, called: bool) -> str:
    """Say why whole numbers in any order look like a key, or nothing."""
    dense = float(values.max()) - float(values.min()) == len(values) - 1
    if not (called or dense):
        return ""
    if len(np.unique(values)) == len(values):
        return "is another whole number in every row"
    return "has the name of a key" if called else ""
