"""The batch solver: many small non-negative quadratic programs, exactly.

For every problem it finds the one theta >= 0 that minimizes
``theta' K theta / 2 - b' theta``, and proves it: with ``r = b - K theta`` the optimum
has ``r = 0`` where theta > 0 and ``r <= 0`` elsewhere. The largest violation is
returned as the problem's certificate. This module knows no graph.

Two exact roads lead there, chosen by a look at the problem itself. *Adding atoms*
(Lawson and Hanson's active set method, with an updated Cholesky factor) is quick when
few weights stay positive. *Block pivoting* starts from many and exchanges all
offenders at once; it is quick when most stay. Where block pivoting meets a matrix that
is singular to working precision, or does not settle, adding atoms takes over: it skips
atoms that depend on those it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled
from nnkgraph.qp._atoms import add_atoms
from nnkgraph.qp._factor import Work, update_residual
from nnkgraph.qp._pivoting import pivot_blocks

_FULL_HOUSE = 0.6
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
        worst = max(worst, off / np.sqrt(w.K[i, i]))
    return worst / scale


@compiled
def _solve_one(w: Work, m: int) -> float:
    """Solve one problem with a positive diagonal; return its certificate."""
    scale, top, best = 0.0, 0.0, -1
    for i in range(m):
        score = w.b[i] / np.sqrt(w.K[i, i])
        scale = max(scale, abs(score))
        if score > top:
            top, best = score, i
    w.theta[:m] = 0.0
    w.r[:m] = w.b[:m]
    if best < 0:
        return 0.0
    # With the best atom alone, how many others would still help?
    weight = w.b[best] / w.K[best, best]
    wanted = 0
    for i in range(m):
        w.flags[i] = i == best or w.b[i] > weight * w.K[best, i]
        wanted += w.flags[i]
    certificate = np.inf
    if wanted > _FULL_HOUSE * m and pivot_blocks(w, m, scale):
        certificate = _violation(w, m, scale)
    if not certificate <= _GOOD:
        add_atoms(w, m, scale)
        certificate = _violation(w, m, scale)
    return certificate


@compiled
def _solve_all(
    gram: Any,
    cross: Any,
    present: Any,
    ridge: float,
    theta: Any,
    certificate: Any,
    gain: Any,
) -> None:
    m = cross.shape[1]
    w = Work(
        K=np.empty((m, m)),
        b=np.empty(m),
        theta=np.empty(m),
        r=np.empty(m),
        U=np.empty((m, m)),
        z=np.empty(m),
        s=np.empty(m),
        chosen=np.empty(m, np.int64),
        flags=np.empty(m, np.bool_),
    )
    at = np.empty(m, np.int64)
    for q in range(cross.shape[0]):
        size, largest = 0, 0.0
        for i in range(m):
            diagonal = gram[q, i * (i + 1) // 2 + i]
            if present[q, i] and diagonal > 0.0:
                at[size] = i
                size += 1
                largest = max(largest, diagonal)
        for i in range(size):
            w.b[i] = cross[q, at[i]]
            start = at[i] * (at[i] + 1) // 2
            for j in range(i + 1):
                value = gram[q, start + at[j]]
                w.K[i, j] = value
                w.K[j, i] = value
            w.K[i, i] += ridge * largest
        certificate[q] = _solve_one(w, size)
        total = 0.0
        for i in range(size):
            theta[q, at[i]] = w.theta[i]
            total += w.theta[i] * (w.b[i] + w.r[i])
        gain[q] = 0.5 * total


def solve(
    gram: Any, cross: Any, present: Any, *, ridge: float = 0.0
) -> tuple[Any, Any, Any]:
    """Solve a block of problems.

    Parameters
    ----------
    gram : (n, m(m+1)/2) array of float64
        Lower triangles of the matrices K, row by row, diagonals included.
    cross : (n, m) array of float64
        The vectors b.
    present : (n, m) array of bool
        False where an atom is missing; its theta is zero. Atoms whose diagonal is
        zero are treated alike: they cannot help.
    ridge : float
        Share of the largest diagonal entry that is added to the diagonal, which
        makes the solution unique where K is singular by nature.

    Returns
    -------
    theta : (n, m) array of float64
        The solutions.
    certificate : (n,) array of float64
        The largest violation of the optimality conditions: of |r_j| where theta > 0
        and of r_j elsewhere, each over sqrt(K_jj), relative to the largest
        |b_j| / sqrt(K_jj).
    gain : (n,) array of float64
        How far the objective lies below its value at zero, ``b' theta / 2`` at the
        optimum.
    """
    theta = np.zeros(cross.shape)
    certificate, gain = np.empty(len(cross)), np.empty(len(cross))
    _solve_all(gram, cross, present, ridge, theta, certificate, gain)
    return theta, certificate, gain
