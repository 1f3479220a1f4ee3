"""Regressions from features: only what is needed of K is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled, frozen
from nnkgraph.exponential import exponential
from nnkgraph.pairs import BASES, pair_value
from nnkgraph.qp._one import gain_of, new_work, solve_one
from nnkgraph.qp._rows import Source
from nnkgraph.similarity import FORMS, similarity_row

if TYPE_CHECKING:
    from nnkgraph.qp._factor import Work

_SMALLEST = 1e-250
"""Where all similarities are below this, they are scaled up before they are used."""


@compiled
def _only_positive(w: Work, atoms: Any, at: Any, size: int) -> tuple[int, float]:
    """Leave out atoms with a zero diagonal; return how many are left, and the top."""
    kept, largest = 0, 0.0
    for i in range(size):
        if w.diagonal[i] > 0.0:
            w.diagonal[kept] = w.diagonal[i]
            atoms[kept], at[kept] = atoms[i], at[i]
            largest = max(largest, w.diagonal[i])
            kept += 1
    return kept, largest


@compiled
def _regress_all(
    x: Any,
    queries: Any,
    index: Any,
    base: int,
    form: int,
    coefficients: Any,
    ridge: float,
    theta: Any,
    certificate: Any,
    gain: Any,
    scale: Any,
) -> None:
    m = index.shape[1]
    atoms, at = np.empty(m, np.int64), np.empty(m, np.int64)
    own = np.empty(2)
    w = new_work(m, Source(x, atoms, base, form, own))
    for q in range(index.shape[0]):
        own[0], own[1] = coefficients[q, 0], coefficients[q, 1]
        size = 0
        for i in range(m):
            if index[q, i] >= 0:
                atoms[size], at[size] = index[q, i], i
                row = x[atoms[size]]
                # The distance of a row to itself needs no computing.
                w.diagonal[size] = pair_value(row, row, base) if base == 1 else 0.0
                size += 1
        similarity_row(form, own, w.diagonal[:size])
        size, largest = _only_positive(w, atoms, at, size)
        for i in range(size):
            w.diagonal[i] += ridge * largest
            w.known[i] = False
            w.b[i] = pair_value(queries[q], x[atoms[i]], base)
        scale[q] = 1.0
        if form == 1:
            nearest = np.inf
            for i in range(size):
                nearest = min(nearest, w.b[i])
            largest = exponential(own[0] * nearest)
            if size > 0 and largest < _SMALLEST:
                scale[q] = largest
                for i in range(size):
                    w.b[i] -= nearest
        similarity_row(form, own, w.b[:size])
        certificate[q] = solve_one(w, size)
        gain[q] = gain_of(w, size)
        for i in range(size):
            theta[q, at[i]] = w.theta[i]


def regress(
    x: Any,
    queries: Any,
    index: Any,
    *,
    base: str,
    form: str,
    coefficients: Any,
    ridge: float = 0.0,
) -> tuple[Any, Any, Any, Any]:
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
    """
    theta = np.zeros(index.shape)
    certificate, gain, scale = (np.empty(len(index)) for _ in range(3))
    _regress_all(
        frozen(x),
        frozen(queries),
        frozen(index),
        BASES.index(base),
        FORMS.index(form),
        coefficients,
        ridge,
        theta,
        certificate,
        gain,
        scale,
    )
    return theta, certificate, gain, scale
