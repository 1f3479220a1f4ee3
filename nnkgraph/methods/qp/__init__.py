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

from nnkgraph.data.pairs import BASES
from nnkgraph.data.similarity import FORMS
from nnkgraph.methods.qp._active import new_workspace, solve_features, solve_grams
from nnkgraph.runtime.jit import frozen

__all__ = ["regress", "solve"]


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
    theta, proof = np.zeros(cross.shape), np.empty((2, len(cross)))
    given = frozen(np.ascontiguousarray(gram)), frozen(np.ascontiguousarray(cross))
    index = frozen(np.where(present, 0, -1))
    solve_grams(*given, index, new_workspace(cross.shape[1], 0), theta, proof)
    return theta, *proof


def regress(
    x: Any,
    queries: Any,
    index: Any,
    diagonal: Any,
    *,
    base: str,
    form: str,
    coefficients: Any,
    l1_penalty: float = 0.0,
) -> tuple[Any, Any, Any, Any]:
    """Solve a block of kernel regressions, computing only what they need of K.

    Parameters
    ----------
    x : (n, d) array
        All rows.
    queries : (b, d) array
        The points that are regressed on their candidates.
    index : (b, m) array of int
        The candidates among x; -1 where there is none.
    diagonal : (b, m) array of float64
        The diagonals of the matrices K.
    base, form : str
        What b and all else of K are made from: names of ``pairs.BASES`` and
        ``similarity.FORMS``.
    coefficients : (b, 2) array
        The form's coefficients for every problem.
    l1_penalty : float
        What is taken from b.

    Returns
    -------
    theta, certificate, gain : arrays of float64
        As ``solve`` returns them.
    scale : (b,) array of float64
        What theta has to be multiplied by: 1, except where all of b would vanish.
    """
    theta, proof = np.zeros(index.shape), np.empty((3, len(index)))
    index = frozen(np.ascontiguousarray(index, np.int64))
    known = frozen(x), frozen(np.ascontiguousarray(queries)), index, frozen(diagonal)
    how = BASES.index(base), FORMS.index(form), coefficients, l1_penalty
    solve_features(
        *known, *how, new_workspace(index.shape[1], x.shape[1]), theta, proof
    )
    return theta, *proof
