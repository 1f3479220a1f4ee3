"""Rows of K, computed from features when they are first needed.

Computing the matrix is most of the work, and a problem that keeps few atoms looks at
few of its rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnkgraph.compiled import compiled
from nnkgraph.pairs import pair_value
from nnkgraph.similarity import similarity_row


class Source(NamedTuple):
    """What rows of K are computed from."""

    x: Any
    """(n, d) all rows of features."""
    atoms: Any
    """(m,) the problem's rows among them."""
    base: int
    """What a pair's value is: its place in ``pairs.BASES``."""
    form: int
    """What its similarity is: its place in ``similarity.FORMS``."""
    coefficients: Any
    """(2,) the form's coefficients."""


@compiled
def no_source() -> Source:
    """Return what problems have whose rows are all known."""
    return Source(np.empty((0, 0)), np.empty(0, np.int64), 0, 0, np.empty(2))


@compiled
def fill_row(w: Any, j: int, m: int) -> None:
    """Compute row j of K, unless it is known; what other rows know is copied."""
    if w.known[j]:
        return
    x, atoms, values = w.source.x, w.source.atoms, w.K[j]
    row = x[atoms[j]]
    for i in range(m):
        if w.known[i] or i == j:
            values[i] = 0.0
        else:
            values[i] = pair_value(row, x[atoms[i]], w.source.base)
    similarity_row(w.source.form, w.source.coefficients, values[:m])
    for i in range(m):
        if w.known[i]:
            values[i] = w.K[i, j]
    values[j] = w.diagonal[j]
    w.known[j] = True


@compiled
def fill_all(w: Any, m: int) -> None:
    """Compute all rows of K that are not known."""
    x, atoms = w.source.x, w.source.atoms
    for j in range(m):
        if w.known[j]:
            continue
        row, values = x[atoms[j]], w.K[j]
        for i in range(j):
            values[i] = pair_value(row, x[atoms[i]], w.source.base)
        similarity_row(w.source.form, w.source.coefficients, values[:j])
        values[j] = w.diagonal[j]
    for j in range(m):
        for i in range(j):
            if not w.known[i]:
                w.K[i, j] = w.K[j, i]
    w.known[:m] = True
