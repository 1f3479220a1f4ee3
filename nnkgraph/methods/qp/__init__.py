"""The batch solver: many small non-negative quadratic programs, exactly.

For every problem it finds the one theta >= 0 that minimizes
``theta' K theta / 2 - b' theta``, and proves it: with ``r = b - K theta`` the optimum
has ``r = 0`` where theta > 0 and ``r <= 0`` elsewhere. The largest violation is
returned as the problem's certificate. This module knows no graph.

Atoms are added one at a time, the most wanted first, until none is wanted (`_active`);
an atom that depends on the chosen ones to working precision is skipped, or takes the
place of one of them. The residual that proves the result is computed afresh.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.methods.qp._active import begin, include, next_atom, take_result
from nnkgraph.methods.qp._factor import DIAGONAL, PLACE, B, K, new_workspace
from nnkgraph.methods.qp._regression import regress
from nnkgraph.runtime.jit import compiled

__all__ = ["regress", "solve"]


@compiled
def _solve_all(
    gram: Any, cross: Any, present: Any, w: Any, n: Any, theta: Any, results: Any
) -> None:
    for q in range(cross.shape[0]):
        m = 0
        for i in range(cross.shape[1]):
            if present[q, i] and gram[q, i * (i + 1) // 2 + i] > 0.0:
                n[PLACE, m] = i
                m += 1
        for i in range(m):
            w[B, i] = cross[q, n[PLACE, i]]
            start = n[PLACE, i] * (n[PLACE, i] + 1) // 2
            for j in range(i + 1):
                w[K + i, j] = w[K + j, i] = gram[q, start + n[PLACE, j]]
            w[DIAGONAL, i] = w[K + i, i]
            w[K + i, m:] = 0.0
        begin(w, n, m)
        j = next_atom(w, n, m)
        while j >= 0:
            include(w, n, j)
            j = next_atom(w, n, m)
        take_result(w, n, q, theta, results)


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
    results = np.empty((2, len(cross)))
    w, n = new_workspace(cross.shape[1])
    _solve_all(gram, cross, present, w, n, theta, results)
    return theta, *results
