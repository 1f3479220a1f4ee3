"""Regressions from features: only what is needed of K is computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.data.pairs import BASES, pair_value
from nnkgraph.data.similarity import FORMS, exponential, similarity_row
from nnkgraph.data.sums import LANES, inner_product
from nnkgraph.methods.qp._active import (
    begin,
    include,
    narrow_values,
    next_atom,
    take_result,
)
from nnkgraph.methods.qp._factor import (
    ATOMS,
    COUNT,
    DIAGONAL,
    FEATURES,
    GATE,
    KNOWN,
    ORDER,
    PLACE,
    POINT,
    SPARE,
    SPOT,
    B,
    K,
    R,
    new_workspace,
)
from nnkgraph.runtime.jit import borrowed, compiled, frozen, inlined

_FULL_HOUSE = 0.8
"""Share of atoms wanted beside the first one, above which all of K is computed."""


@inlined
def gather(x: Any, index: Any, q: int, w: Any, n: Any) -> int:
    """Set the atoms of a problem; return how many there are."""
    m = 0
    for i in range(index.shape[1]):
        if index[q, i] >= 0:
            n[ATOMS, m], n[PLACE, m] = index[q, i], i
            n[ORDER, m] = n[SPOT, m] = m
            m += 1
    n[COUNT, KNOWN] = 0
    if x.shape[1] < LANES:
        for i in range(m):
            for t in range(x.shape[1]):
                w[FEATURES + t, i] = x[n[ATOMS, i], t]
    return m


@compiled
def _only_positive(m: int, w: Any, n: Any) -> int:
    """Leave out atoms with a zero diagonal; return how many are left."""
    kept = 0
    for i in range(m):
        if w[DIAGONAL, i] > 0.0:
            if kept < i:
                w[DIAGONAL, kept] = w[DIAGONAL, i]
                n[ATOMS, kept], n[PLACE, kept] = n[ATOMS, i], n[PLACE, i]
                for t in range(FEATURES, K):
                    w[t, kept] = w[t, i]
            kept += 1
    return kept


@compiled
def diagonal(
    x: Any,
    base: int,
    form: int,
    coefficients: Any,
    q: int,
    ridge: float,
    m: int,
    w: Any,
    n: Any,
) -> int:
    """Set the diagonal; return how many atoms have one above zero."""
    for i in range(m):
        atom = n[ATOMS, i]
        w[DIAGONAL, i] = inner_product(x, atom, x, atom) if base == 1 else 0.0
    similarity_row(form, coefficients, q, w, DIAGONAL, m)
    m, largest = _only_positive(m, w, n), 0.0
    for i in range(m):
        largest = max(largest, w[DIAGONAL, i])
    for i in range(m):
        w[DIAGONAL, i] += ridge * largest
    return m


@inlined
def values(x: Any, queries: Any, q: int, base: int, m: int, w: Any, n: Any) -> None:
    """Set B to the values of a query with its atoms."""
    if x.shape[1] < LANES:
        for t in range(x.shape[1]):
            w[POINT, t] = queries[q, t]
        narrow_values(w, B, x.shape[1], base)
    else:
        for i in range(m):
            w[B, i] = pair_value(queries, q, x, n[ATOMS, i], base)


@inlined
def fill_row(
    x: Any,
    base: int,
    form: int,
    coefficients: Any,
    q: int,
    j: int,
    m: int,
    w: Any,
    n: Any,
) -> None:
    """Compute row j of K; what other rows know is copied where that is cheaper."""
    known, row = n[COUNT, KNOWN], K + j
    if x.shape[1] < LANES:
        for t in range(x.shape[1]):
            w[POINT, t] = w[FEATURES + t, j]
        # What is beyond the problem's own atoms are atoms of an earlier one.
        narrow_values(w, row, x.shape[1], base)
        similarity_row(form, coefficients, q, w, row, w.shape[1])
        if w[row, j] != w[DIAGONAL, j]:
            w[row, j] = w[DIAGONAL, j]
    else:
        for t in range(known, m):
            atom = n[ATOMS, n[ORDER, t]]
            w[SPARE, t - known] = pair_value(x, n[ATOMS, j], x, atom, base)
        similarity_row(form, coefficients, q, w, SPARE, m - known)
        for t in range(known):
            w[row, n[ORDER, t]] = w[K + n[ORDER, t], j]
        for t in range(known, m):
            w[row, n[ORDER, t]] = w[SPARE, t - known]
        w[row, j] = w[DIAGONAL, j]
        for i in range(m, w.shape[1]):
            w[row, i] = 0.0
    # The row changes places with the first unknown one.
    first, spot = n[ORDER, known], n[SPOT, j]
    n[ORDER, spot], n[SPOT, first] = first, spot
    n[ORDER, known], n[SPOT, j] = j, known
    n[COUNT, KNOWN] = known + 1


@compiled
def fill_rest(
    x: Any, base: int, form: int, coefficients: Any, q: int, m: int, w: Any, n: Any
) -> None:
    """Compute all rows of K that are not known: each pair once, many at a time."""
    known, width = n[COUNT, KNOWN], w.shape[1]
    start = K + 2 * width + width // 2  # the second half of V is free at this time
    row, column = start, 0
    for t in range(known + 1, m):
        atom = n[ATOMS, n[ORDER, t]]
        for s in range(known, t):
            other = n[ATOMS, n[ORDER, s]]
            w[row, column] = pair_value(x, atom, x, other, base)
            column += 1
            if column == width:
                row, column = row + 1, 0
    for i in range(start, row):
        similarity_row(form, coefficients, q, w, i, width)
    similarity_row(form, coefficients, q, w, row, column)
    row, column = start, 0
    for t in range(known, m):
        own = n[ORDER, t]
        for s in range(known):
            w[K + own, n[ORDER, s]] = w[K + n[ORDER, s], own]
        for s in range(known, t):
            other = n[ORDER, s]
            w[K + own, other] = w[K + other, own] = w[row, column]
            column += 1
            if column == width:
                row, column = row + 1, 0
        w[K + own, own] = w[DIAGONAL, own]
        for i in range(m, width):
            w[K + own, i] = 0.0
    n[COUNT, KNOWN] = m


@compiled
def many_wanted(m: int, w: Any) -> bool:
    count = 0
    for i in range(m):
        count += w[R, i] * w[GATE, i] > 0.0
    return count >= _FULL_HOUSE * m


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
    l1_penalty: float,
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
        if l1_penalty > 0.0:
            for i in range(m):  # beside what was scaled up it is beyond all measure
                w[B, i] = w[B, i] - l1_penalty if results[2, q] == 1.0 else -1.0
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
        l1_penalty,
        *new_workspace(index.shape[1]),
        theta,
        results,
    )
    return theta, *results
