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
from nnkgraph.data.similarity import FORMS, exponential, similarity_row
from nnkgraph.data.sums import copy_columns, copy_point, value_row
from nnkgraph.methods.qp._active import (
    ATOM,
    CHOSEN,
    COUNT,
    DIAGONAL,
    KNOWN,
    PLACE,
    THETA,
    B,
    minimize,
    new_workspace,
)
from nnkgraph.runtime.jit import compiled, frozen, inner

__all__ = ["regress", "solve"]

_SMALLEST = 1e-250
"""Where all similarities are below this, they are scaled up before they are used."""


@inner
def _take_gram(gram: Any, cross: Any, q: int, m: int, w: Any, n: Any, K: Any) -> None:
    """Set a problem whose matrix is given, as a packed triangle."""
    for i in range(m):
        w[B, i] = cross[q, n[PLACE, i]]
        start = n[PLACE, i] * (n[PLACE, i] + 1) // 2
        for j in range(i + 1):
            K[i, j] = K[j, i] = gram[q, start + n[PLACE, j]]
        for j in range(m, K.shape[1]):
            K[i, j] = 0.0
        w[DIAGONAL, i] = K[i, i]
        n[KNOWN, i] = 1


@inner
def _take_features(  # noqa: C901 - what was read is used at once
    x: Any,
    queries: Any,
    q: int,
    m: int,
    base: int,
    form: int,
    coefficients: Any,
    ridge: float,
    columns: Any,
    point: Any,
    w: Any,
    n: Any,
) -> tuple[float, float]:
    """Set a problem whose matrix is computed as it is needed.

    Returns what B was divided by, where all of it would vanish, and the similarity of
    the query with itself.
    """
    copy_columns(x, n, ATOM, 0, m, columns)
    copy_point(queries, q, point)
    own = 0.0
    for i in range(m):
        w[DIAGONAL, i] = 0.0
        n[KNOWN, i] = 0
    if base in (1, 2):  # of products; the distance of a row to itself is zero
        for t in range(columns.shape[0]):
            own += point[0, t] * point[0, t]
            for i in range(m):
                w[DIAGONAL, i] += columns[t, i] * columns[t, i]
    w[DIAGONAL, m] = own  # beside the others, there is room for one more
    similarity_row(form, coefficients, q, w, DIAGONAL, m + 1)
    own, largest = w[DIAGONAL, m], 0.0
    for i in range(m):
        largest = max(largest, w[DIAGONAL, i])
    for i in range(m):
        if w[DIAGONAL, i] > 0.0:
            w[DIAGONAL, i] += ridge * largest
    value_row(columns, x.shape[1], point, 0, base, w, B, w.shape[1])
    nearest, scale = np.inf, 1.0
    for i in range(m):
        nearest = min(nearest, w[B, i])
    if form == 1 and m > 0:
        largest = exponential(coefficients[q, 0] * nearest)
        if largest < _SMALLEST:
            scale = largest
            for i in range(m):
                w[B, i] -= nearest
    similarity_row(form, coefficients, q, w, B, m)
    return scale, own


@compiled
def _solve_all(
    x: Any,
    queries: Any,
    index: Any,
    gram: Any,
    cross: Any,
    base: int,
    form: int,
    coefficients: Any,
    ridge: float,
    l1_penalty: float,
    room: Any,
    theta: Any,
    results: Any,
) -> None:
    columns, point, w, n, K, L, C = room
    for q in range(index.shape[0]):
        m = 0
        for i in range(index.shape[1]):
            if index[q, i] >= 0:
                n[PLACE, m], n[ATOM, m] = i, index[q, i]
                m += 1
        if gram.shape[1] > 0:
            _take_gram(gram, cross, q, m, w, n, K)
        else:
            results[2, q], results[3, q] = _take_features(
                x, queries, q, m, base, form, coefficients, ridge, columns, point, w, n
            )
        if l1_penalty > 0.0:
            for i in range(m):  # beside what was scaled up it is beyond all measure
                w[B, i] = w[B, i] - l1_penalty if results[2, q] == 1.0 else -1.0
        results[0, q], results[1, q] = minimize(
            columns, point, w, n, K, L, C, m, base, form, coefficients, q
        )
        for i in range(n[COUNT, 0]):
            theta[q, n[PLACE, n[CHOSEN, i]]] = w[THETA, i]


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
    index = np.where(present, 0, -1)
    nothing, size = np.zeros((0, 0)), (cross.shape[1], 0)
    given = frozen(np.ascontiguousarray(gram)), frozen(np.ascontiguousarray(cross))
    _solve_all(
        frozen(nothing),
        frozen(nothing),
        frozen(index),
        *given,
        *(0, 0, nothing, 0.0, 0.0),
        new_workspace(*size),
        theta,
        results,
    )
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
    nothing = frozen(np.zeros((0, 0)))
    _solve_all(
        frozen(x),
        frozen(queries),
        frozen(np.ascontiguousarray(index, np.int64)),
        nothing,
        nothing,
        BASES.index(base),
        FORMS.index(form),
        coefficients,
        ridge,
        l1_penalty,
        new_workspace(index.shape[1], x.shape[1]),
        theta,
        results,
    )
    return theta, *results
