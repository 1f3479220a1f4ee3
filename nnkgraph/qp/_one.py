"""One problem: the choice between the two roads, and the certificate."""

from __future__ import annotations

import numpy as np

from nnkgraph.compiled import compiled
from nnkgraph.qp._atoms import add_atoms
from nnkgraph.qp._factor import Work, update_residual
from nnkgraph.qp._pivoting import pivot_blocks
from nnkgraph.qp._rows import Source, fill_row

_FULL_HOUSE = 0.8
"""Share of atoms still wanted after the best one, above which pivoting starts."""

_GOOD = 1e-12
"""A certificate that block pivoting must reach to be believed."""


@compiled
def _violation(w: Work, m: int, scale: float) -> float:
    """Return how far theta is from optimal, relative to the problem's scale."""
    update_residual(w, m)
    worst = 0.0
    for i in range(m):
        off = abs(w.r[i]) if w.theta[i] > 0.0 else w.r[i]
        worst = max(worst, off * w.unit[i])
    return worst / scale


@compiled
def solve_one(w: Work, m: int) -> float:
    """Solve one problem with a positive diagonal; return its certificate."""
    scale, top, best = 0.0, 0.0, -1
    for i in range(m):
        w.unit[i] = 1.0 / np.sqrt(w.diagonal[i])
        score = w.b[i] * w.unit[i]
        scale = max(scale, abs(score))
        if score > top:
            top, best = score, i
    for i in range(m):
        w.theta[i] = 0.0
        w.r[i] = w.b[i]
    if best < 0:
        return 0.0
    # With the best atom alone, how many others would still help?
    fill_row(w, best, m)
    wanted = 0
    for i in range(m):
        w.flags[i] = i == best or w.b[i] > w.b[best] / w.diagonal[best] * w.K[best, i]
        wanted += w.flags[i]
    certificate, solved = np.inf, False
    if wanted <= _FULL_HOUSE * m:
        solved = add_atoms(w, m, scale, 3 + m // 8)
    if solved or pivot_blocks(w, m, scale):
        certificate = _violation(w, m, scale)
    if not certificate <= _GOOD:
        add_atoms(w, m, scale, -1)
        certificate = _violation(w, m, scale)
    return certificate


@compiled
def gain_of(w: Work, m: int) -> float:
    """Return how far the objective lies below its value at zero."""
    total = 0.0
    for i in range(m):
        total += w.theta[i] * (w.b[i] + w.r[i])
    return 0.5 * total


@compiled
def new_work(m: int, source: Source) -> Work:
    return Work(
        K=np.empty((m, m)),
        known=np.empty(m, np.bool_),
        source=source,
        diagonal=np.empty(m),
        unit=np.empty(m),
        b=np.empty(m),
        theta=np.empty(m),
        r=np.empty(m),
        U=np.empty((m, m)),
        z=np.empty(m),
        s=np.empty(m),
        chosen=np.empty(m, np.int64),
        flags=np.empty(m, np.bool_),
    )
