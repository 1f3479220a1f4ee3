"""Adding atoms: Lawson and Hanson's active set method."""

from __future__ import annotations

import numpy as np

from nnkgraph.compiled import compiled
from nnkgraph.qp._factor import (
    Work,
    append,
    back_substitute,
    polish,
    remove,
    update_residual,
)
from nnkgraph.qp._rows import fill_row

RESIDUAL_TOLERANCE = 1e-15
"""A residual above this share of the largest |b_j| / sqrt(K_jj) calls for its atom."""

MANY = 0.2
"""Share of atoms that makes it worth while to exchange many at once."""

SWAP_TOLERANCE = 1e-13
"""A dependent atom with a residual above this share may replace another one."""


@compiled
def _most_wanted(w: Work, m: int, scale: float) -> tuple[int, float]:
    """Return the atom with the largest residual that is not blocked, or -1."""
    best, j = RESIDUAL_TOLERANCE * scale, -1
    for i in range(m):
        if w.theta[i] == 0.0 and not w.flags[i]:
            score = w.r[i] * w.unit[i]
            if score > best:
                best, j = score, i
    return j, best


@compiled
def _swap(w: Work, p: int) -> tuple[int, bool]:
    """Let the dependent atom ``chosen[p]`` take the place of one it depends on.

    It is a combination of the others, so theta can move from them to it without a
    cost until one of them is used up. Returns how many atoms are chosen now, and
    whether that could be done.
    """
    j = w.chosen[p]
    back_substitute(w.U, w.U[:, p], p, w.s)
    step, at = np.inf, -1
    for i in range(p):
        if w.s[i] > 0.0 and w.theta[w.chosen[i]] < step * w.s[i]:
            step, at = w.theta[w.chosen[i]] / w.s[i], i
    if at < 0:
        return p, False
    for i in range(p):
        atom = w.chosen[i]
        w.theta[atom] = max(0.0, w.theta[atom] - step * w.s[i])
    kept = remove(w, p, at)
    w.chosen[kept] = j
    if not append(w, kept):
        return kept, False
    w.theta[j] = step
    return kept + 1, True


@compiled
def _descend(w: Work, p: int) -> int:
    """Move theta to the best of the chosen atoms; those that reach zero leave."""
    while True:
        back_substitute(w.U, w.z, p, w.s)
        step, at = 1.0, -1
        for i in range(p):
            if w.s[i] <= 0.0:
                old = w.theta[w.chosen[i]]
                limit = old / (old - w.s[i])
                if at < 0 or limit < step:
                    step, at = limit, i
        for i in range(p):
            atom = w.chosen[i]
            w.theta[atom] += step * (w.s[i] - w.theta[atom])
        if at < 0:
            break
        p = remove(w, p, at)
    for i in range(p):
        w.theta[w.chosen[i]] = w.s[i]
    return p


@compiled
def _still_wanted(w: Work, m: int, scale: float) -> int:
    """Flag the atoms that are chosen or wanted; return how many are wanted."""
    count = 0
    for i in range(m):
        wanted = w.r[i] * w.unit[i] > RESIDUAL_TOLERANCE * scale
        count += wanted and w.theta[i] == 0.0
        w.flags[i] = wanted or w.theta[i] > 0.0
    return count


@compiled
def add_atoms(w: Work, m: int, scale: float, budget: int) -> bool:
    """Solve a problem from nothing: add the most wanted atom until none is wanted.

    Returns False, with all atoms flagged that are chosen or wanted, where many are
    wanted still when the budget of atoms is spent.
    """
    for i in range(m):
        w.theta[i] = 0.0
        w.r[i] = w.b[i]
        w.flags[i] = False  # here: blocked
    p = 0
    for _ in range(10 * m + 10):
        j, wanted = _most_wanted(w, m, scale)
        if j < 0:
            break
        w.chosen[p] = j
        if append(w, p):
            if w.z[p] <= 0.0:  # rounding: in exact arithmetic its weight is positive
                w.flags[j] = True
                continue
            fill_row(w, j, m)
            p += 1
        else:
            before, swapped = p, False
            if wanted > SWAP_TOLERANCE * scale:
                fill_row(w, j, m)
                p, swapped = _swap(w, p)
            if p == before and not swapped:
                w.flags[j] = True
                continue
        p = _descend(w, p)
        update_residual(w, m)
        if p == budget and _still_wanted(w, m, scale) > MANY * m:
            return False
        # What depended on the atoms of before may be free now.
        for i in range(m):
            w.flags[i] = False
        w.flags[j] = w.theta[j] == 0.0
    polish(w, p, m)
    return True
