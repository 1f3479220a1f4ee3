"""Rows of K, computed from features when they are first needed.

Computing the matrix is most of the work, and a problem that keeps few atoms looks at
few of its rows. With few features, a row is computed for all atoms at once from
transposed features; with many, pair by pair, and no pair twice.
"""

from __future__ import annotations

from typing import Any

from nnkgraph.compiled import compiled, inlined
from nnkgraph.lanes import LANES, inner_product
from nnkgraph.pairs import pair_value
from nnkgraph.qp._residuals import narrow_values
from nnkgraph.qp._workspace import (
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
)
from nnkgraph.similarity import similarity_row

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
