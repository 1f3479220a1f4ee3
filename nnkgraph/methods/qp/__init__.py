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
from nnkgraph.methods.qp._active import new_workspace, solve_all
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
    theta, results = np.zeros(cross.shape), np.empty((4, len(cross)))
    nothing, index = frozen(np.zeros((0, 0))), frozen(np.where(present, 0, -1))
    given = frozen(np.ascontiguousarray(gram)), frozen(np.ascontiguousarray(cross))
    how = 0, 0, np.zeros((0, 0)), 0.0, 0.0
    room = new_workspace(cross.shape[1], 0)
    solve_all(nothing, nothing, index, *given, *how, room, theta, results)
    return theta, results[0], results[1]


def regress(
    x: Any,
    queries: Any,
    index: Any,
    *,
    base: str,
    form: str,
    coefficients: Any,
    ridge: float = 0.0,
    l1_penalty: float = 0.0,
) -> tuple[Any, Any, Any, Any, Any]:
    """Solve a block of kernel regressions, computing only what they need of K.

    Parameters
    ----------
    x : (n, d) array
        All rows.
    queries : (b, d) array
        The rows that are regressed.
    index : (b, m) array of int
        Their candidates among x; -1 where there is none.
    base, form : str
        What similarities are made from: names of ``pairs.BASES`` and
        ``similarity.FORMS``.
    coefficients : (b, 2) array
        The form's coefficients for every query.
    ridge : float
        Share of the largest diagonal entry that is added to the diagonal, which makes
        the solution unique where K is singular by nature.
    l1_penalty : float
        What is taken off every similarity of query and candidate, as l1 does.

    Returns
    -------
    theta : (b, m) array of float64
        The solutions, divided by the scale.
    certificate : (b,) array of float64
        As ``solve`` returns it.
    gain : (b,) array of float64
        As ``solve`` returns it, divided by the square of the scale.
    scale : (b,) array of float64
        1, except where all similarities of a query are so small that they would lose
        their digits.
    own : (b,) array of float64
        The queries' similarities with themselves.
    """
    theta, results = np.zeros(index.shape), np.empty((4, len(index)))
    nothing, index = frozen(np.zeros((0, 0))), np.ascontiguousarray(index, np.int64)
    rows = frozen(x), frozen(queries), frozen(index), nothing, nothing
    how = BASES.index(base), FORMS.index(form), coefficients, ridge, l1_penalty
    room = new_workspace(index.shape[1], x.shape[1])
    solve_all(*rows, *how, room, theta, results)
    return theta, *results
