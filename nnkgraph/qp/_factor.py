"""One problem's working memory, and the updated Cholesky factor of its chosen atoms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnkgraph.compiled import compiled

PIVOT_TOLERANCE = 1e-14
"""A pivot below this share of its diagonal counts as zero: the atom is dependent."""


class Work(NamedTuple):
    """A problem of m atoms and the memory it is solved in; arrays may be longer."""

    K: Any
    """(m, m) the matrix, as far as its rows are known."""
    known: Any
    """(m,) which rows are known; ``fill_row`` computes the others."""
    source: Any
    """What they are computed from."""
    diagonal: Any
    """(m,) the diagonal, always known."""
    unit: Any
    """(m,) 1 / sqrt(diagonal), what residuals are compared in."""
    b: Any
    """(m,) the vector."""
    theta: Any
    """(m,) the solution so far, never negative between steps."""
    r: Any
    """(m,) the residual b - K theta."""
    U: Any
    """(p, p) upper triangle with U'U = K of the chosen atoms."""
    z: Any
    """(p,) solution of U'z = b."""
    s: Any
    """(p,) solution of Us = z: the best theta of the chosen atoms, of any sign."""
    chosen: Any
    """(p,) the chosen atoms, in the order they were chosen."""
    flags: Any
    """(m,) marks of the algorithm at work."""


@compiled
def append(w: Work, p: int) -> bool:
    """Extend the factor by the atom ``chosen[p]``; False where it is dependent."""
    j = w.chosen[p]
    for i in range(p):
        w.U[i, p] = w.K[w.chosen[i], j]  # rows of chosen atoms are known
    pivot = w.diagonal[j]
    rest = w.b[j]
    for i in range(p):
        value = w.U[i, p] / w.U[i, i]
        w.U[i, p] = value
        for t in range(i + 1, p):
            w.U[t, p] -= w.U[i, t] * value
        pivot -= value * value
        rest -= value * w.z[i]
    if not pivot > PIVOT_TOLERANCE * w.diagonal[j]:
        return False
    w.U[p, p] = np.sqrt(pivot)
    w.z[p] = rest / w.U[p, p]
    return True


@compiled
def remove(w: Work, p: int, at: int) -> int:
    """Take the atom at a position out of the factor; return how many are left."""
    w.theta[w.chosen[at]] = 0.0
    kept = at
    for i in range(at + 1, p):
        w.chosen[kept] = w.chosen[i]
        if append(w, kept):
            kept += 1
        else:  # rounding made it dependent now
            w.theta[w.chosen[i]] = 0.0
    return kept


@compiled
def back_substitute(U: Any, z: Any, p: int, s: Any) -> None:
    """Solve ``U s = z`` for the first p atoms."""
    for i in range(p - 1, -1, -1):
        total = z[i]
        for t in range(i + 1, p):
            total -= U[i, t] * s[t]
        s[i] = total / U[i, i]


@compiled
def update_residual(w: Work, m: int) -> None:
    """Compute ``r = b - K theta``; rows of K are columns, since K is symmetric."""
    for j in range(m):
        w.r[j] = w.b[j]
    for i in range(m):
        if w.theta[i] != 0.0:
            for j in range(m):
                w.r[j] -= w.theta[i] * w.K[i, j]


@compiled
def polish(w: Work, p: int, m: int) -> None:
    """Refine theta once with the residual, where that keeps all weights positive."""
    update_residual(w, m)
    for i in range(p):
        total = w.r[w.chosen[i]]
        for t in range(i):
            total -= w.U[t, i] * w.s[t]
        w.s[i] = total / w.U[i, i]
    back_substitute(w.U, w.s, p, w.s)
    for i in range(p):
        if not w.theta[w.chosen[i]] + w.s[i] > 0.0:
            return
    for i in range(p):
        w.theta[w.chosen[i]] += w.s[i]
