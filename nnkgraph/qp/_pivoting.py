"""Block pivoting: Kim and Park's exchange of all offenders at once."""

from __future__ import annotations

import numpy as np

from nnkgraph.compiled import compiled
from nnkgraph.qp._atoms import RESIDUAL_TOLERANCE
from nnkgraph.qp._factor import (
    PIVOT_TOLERANCE,
    Work,
    back_substitute,
    polish,
    update_residual,
)
from nnkgraph.qp._rows import fill_all

_PATIENCE = 3
"""Exchanges that may fail to improve before atoms are exchanged one at a time."""


@compiled
def _factorize(w: Work, m: int) -> int:
    """Factorize K of the flagged atoms; return their number, or -1 if singular."""
    p = 0
    for i in range(m):
        if w.flags[i]:
            w.chosen[p] = i
            p += 1
    for i in range(p):
        row = w.K[w.chosen[i]]
        for t in range(i, p):
            w.U[i, t] = row[w.chosen[t]]
        w.z[i] = w.b[w.chosen[i]]
    for i in range(p):
        if not w.U[i, i] > PIVOT_TOLERANCE * w.diagonal[w.chosen[i]]:
            return -1
        root = np.sqrt(w.U[i, i])
        for t in range(i, p):
            w.U[i, t] /= root
        w.z[i] /= root
        for below in range(i + 1, p):
            factor = w.U[i, below]
            for t in range(below, p):
                w.U[below, t] -= factor * w.U[i, t]
            w.z[below] -= factor * w.z[i]
    return p


@compiled
def _offends(w: Work, i: int, scale: float) -> bool:
    """Return whether an atom is on the wrong side."""
    if w.flags[i]:
        return bool(w.theta[i] <= 0.0)
    return bool(w.r[i] * w.unit[i] > RESIDUAL_TOLERANCE * scale)


@compiled
def _take_solution(w: Work, p: int, m: int) -> None:
    """Set theta to the best of the chosen atoms, of any sign, and its residual."""
    back_substitute(w.U, w.z, p, w.s)
    for i in range(m):
        w.theta[i] = 0.0
    for i in range(p):
        w.theta[w.chosen[i]] = w.s[i]
    update_residual(w, m)


@compiled
def _count_offenders(w: Work, m: int, scale: float) -> tuple[int, int]:
    """Return how many atoms are on the wrong side, and the last of them."""
    count, last = 0, -1
    for i in range(m):
        if _offends(w, i, scale):
            count += 1
            last = i
    return count, last


@compiled
def pivot_blocks(w: Work, m: int, scale: float) -> bool:
    """Solve a problem starting from the flagged atoms.

    Returns False, with nothing solved, where the matrix is singular to working
    precision or the exchanges do not settle.
    """
    fill_all(w, m)
    fewest, patience = m + 1, _PATIENCE
    for _ in range(5 * m + 10):
        p = _factorize(w, m)
        if p < 0:
            return False
        _take_solution(w, p, m)
        offenders, last = _count_offenders(w, m, scale)
        if offenders == 0:
            polish(w, p, m)
            return True
        if offenders < fewest:
            fewest, patience = offenders, _PATIENCE
        else:
            patience -= 1
        for i in range(m):
            if (patience >= 0 or i == last) and _offends(w, i, scale):
                w.flags[i] = not w.flags[i]
    return False
