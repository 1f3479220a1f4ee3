"""Regressions from features: only what is needed of K is computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import borrowed, compiled, frozen
from nnkgraph.exponential import exponential
from nnkgraph.lanes import LANES
from nnkgraph.pairs import BASES, pair_value
from nnkgraph.qp._active import include
from nnkgraph.qp._one import begin, next_atom, take_result
from nnkgraph.qp._rows import (
    diagonal,
    fill_rest,
    fill_row,
    gather,
    many_wanted,
    values,
)
from nnkgraph.qp._workspace import COUNT, DIAGONAL, KNOWN, SPOT, B, new_workspace
from nnkgraph.similarity import FORMS, similarity_row

_SMALLEST = 1e-250
"""Where all similarities are below this, they are scaled up before they are used."""


@compiled
def _raised(coefficient: float, m: int, w: Any) -> float:
    """Shift the distances in B where all similarities would vanish; return by what."""
    nearest = np.inf
    for i in range(m):
        nearest = min(nearest, w[B, i])
    largest = exponential(coefficient * nearest)
    if m == 0 or largest >= _SMALLEST:
        return 1.0
    for i in range(m):
        w[B, i] -= nearest
    return largest  # type: ignore[no-any-return]


@compiled
def _regress_all(
    x: Any,
    queries: Any,
    index: Any,
    base: int,
    form: int,
    coefficients: Any,
    ridge: float,
    less: float,
    w: Any,
    n: Any,
    theta: Any,
    results: Any,
) -> None:
    x, queries, index = borrowed(x), borrowed(queries), borrowed(index)
    coefficients, w, n = borrowed(coefficients), borrowed(w), borrowed(n)
    theta, results = borrowed(theta), borrowed(results)
    wide = x.shape[1] >= LANES
    for q in range(index.shape[0]):
        m = gather(x, index, q, w, n)
        if base == 0 and form == 1:  # exp of a row's distance to itself, which is 0
            results[3, q] = 1.0
            for i in range(m):
                w[DIAGONAL, i] = 1.0
        else:
            w[B, 0] = pair_value(queries, q, queries, q, base)
            similarity_row(form, coefficients, q, w, B, 1)
            results[3, q] = w[B, 0]
            m = diagonal(x, base, form, coefficients, q, ridge, m, w, n)
        values(x, queries, q, base, m, w, n)
        results[2, q] = _raised(coefficients[q, 0], m, w) if form == 1 else 1.0
        similarity_row(form, coefficients, q, w, B, m)
        if less > 0.0:
            for i in range(m):  # beside what was scaled up it is beyond all measure
                w[B, i] = w[B, i] - less if results[2, q] == 1.0 else -1.0
        begin(w, n, m)
        j = next_atom(w, n, m)
        while j >= 0:
            if n[SPOT, j] >= n[COUNT, KNOWN]:
                if wide and n[COUNT, 0] == 1 and many_wanted(m, w):
                    fill_rest(x, base, form, coefficients, q, m, w, n)
                else:
                    fill_row(x, base, form, coefficients, q, j, m, w, n)
            include(w, n, j)
            j = next_atom(w, n, m)
        take_result(w, n, q, theta, results)


def regress(
    x: Any,
    queries: Any,
    index: Any,
    *,
    base: str,
    form: str,
    coefficients: Any,
    ridge: float = 0.0,
    less: float = 0.0,
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
    less : float
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
    theta = np.zeros(index.shape)
    results = np.empty((4, len(index)))
    _regress_all(
        frozen(x),
        frozen(queries),
        frozen(index),
        BASES.index(base),
        FORMS.index(form),
        coefficients,
        ridge,
        less,
        *new_workspace(index.shape[1]),
        theta,
        results,
    )
    return theta, *results
