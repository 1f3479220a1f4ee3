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
from nnkgraph.qp._one import gain_of, new_work, solve_one
from nnkgraph.qp._regression import regress
from nnkgraph.qp._rows import no_source

__all__ = ["regress", "solve"]


@compiled
def _solve_all(
    gram: Any, cross: Any, present: Any, theta: Any, certificate: Any, gain: Any
) -> None:
    m = cross.shape[1]
    w = new_work(m, no_source())
    w.known[:] = True
    at = np.empty(m, np.int64)
    for q in range(cross.shape[0]):
        size = 0
        for i in range(m):
            if present[q, i] and gram[q, i * (i + 1) // 2 + i] > 0.0:
                at[size] = i
                size += 1
        for i in range(size):
            w.b[i] = cross[q, at[i]]
            start = at[i] * (at[i] + 1) // 2
            for j in range(i + 1):
                w.K[i, j] = gram[q, start + at[j]]
                w.K[j, i] = w.K[i, j]
            w.diagonal[i] = w.K[i, i]
        certificate[q] = solve_one(w, size)
        gain[q] = gain_of(w, size)
        for i in range(size):
            theta[q, at[i]] = w.theta[i]


def solve(gram: Any, cross: Any, present: Any) -> tuple[Any, Any, Any]:
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
    _solve_all(gram, cross, present, theta, certificate, gain)
    return theta, certificate, gain
