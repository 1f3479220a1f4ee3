"""One non-negative quadratic program by an active set: its steps, and its proof.

Minimize ``theta' K theta / 2 - b' theta`` over theta >= 0. Atoms are chosen one at a
time, the one with the largest residual ``r = b - K theta`` first, until none is above
zero (Lawson and Hanson). Where the best theta of the chosen atoms is negative, theta
moves towards it until an atom reaches zero, which leaves.

``L`` is the Cholesky factor of the chosen atoms' part of K, continued over all atoms:
row i is what the i-th chosen atom adds, so that ``K - L' L`` is what is left of K, and
the diagonal of that is REST. ``C`` is the factor alone, a row for every chosen atom.
Every sum is taken in the order of the loops below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.data import sums
from nnkgraph.data.similarity import SMALLEST, exponential, similarity_row
from nnkgraph.data.sums import copy_columns, squared_distances, value_row
from nnkgraph.runtime.jit import compiled, inner

# Rows of the numbers ``w``, one per atom.
B = 0  # the vector b
R = 1  # the residual b - K theta
REST = 2  # what the chosen atoms leave of the diagonal
DIAGONAL = 3
UNIT = 4  # 1 / sqrt(diagonal), what residuals are compared in
GATE = 5  # the same, but zero for atoms that are chosen or blocked
# One per chosen atom, in the order they were chosen.
INVERSE = 6  # 1 / the diagonal of the factor
Z = 7  # the solution of C z = b
TARGET = 8  # the best theta of the chosen atoms, of any sign: C' TARGET = z
THETA = 9  # theta itself, never negative
SPARE = 10

# Rows of the integers ``n``.
PLACE = 0  # which candidate an atom is
ATOM = 1  # and which row of the features
CHOSEN = 2  # the chosen atoms
KNOWN = 3  # 1 for atoms whose row of K is there
COUNT = 4  # how many atoms are chosen, and for how many the factor is made
FACTORED = 1

_SMALLEST_PIVOT = 1e-14
"""An atom of which less than this share of its diagonal is left depends on the chosen
ones to working precision: it is treated as if as much were left."""

_WANTED = 1e-15
"""A residual above this share of the largest |b_j| / sqrt(K_jj) calls for its atom;
one of a dependent atom has to be a hundred times larger."""

_AT_ONCE = 4
"""For every so many chosen atoms one more is chosen before theta moves, while ..."""

_FIRM = 1e-6
"""... more than this share of an atom's diagonal is left."""

_MOST_PROOFS = 8
"""How often the exact residual may find that a problem is not solved after all."""


def new_workspace(m: int, d: int) -> tuple[Any, ...]:
    """Return the memory for problems of up to m atoms of d features."""
    width = sums.padded(m + 1)
    columns, point = np.zeros((d, width)), np.zeros((1, d))
    w, n = np.zeros((11, width)), np.zeros((5, width), np.int64)
    K, L, C = np.zeros((3, width, width))
    return columns, point, w, n, K, L, C


@inner
def _factor(w: Any, n: Any, K: Any, L: Any, C: Any) -> None:
    """Continue the factor over the chosen atoms, and bring R and REST up to date.

    ``L[p] = (K[j] - sum of L[i, j] L[i]) / pivot``, over the i below p.
    """
    width = w.shape[1]
    for p in range(n[COUNT, FACTORED], n[COUNT, 0]):
        j = n[CHOSEN, p]
        for i in range(p):
            C[p, i] = L[i, j]
        for t in range(width):
            L[p, t] = K[j, t]
        for i in range(0, p - 1, 2):
            a, b = C[p, i], C[p, i + 1]
            for t in range(width):
                L[p, t] = (L[p, t] - a * L[i, t]) - b * L[i + 1, t]
        for i in range(p - p % 2, p):
            for t in range(width):
                L[p, t] -= C[p, i] * L[i, t]
        least = _SMALLEST_PIVOT * w[DIAGONAL, j]
        inverse = 1.0 / np.sqrt(w[REST, j] if w[REST, j] > least else least)
        z = w[R, j] * inverse
        w[INVERSE, p], w[Z, p] = inverse, z
        for t in range(width):
            L[p, t] *= inverse
            w[R, t] -= L[p, t] * z
            w[REST, t] -= L[p, t] * L[p, t]
    n[COUNT, FACTORED] = n[COUNT, 0]


@inner
def _settle(w: Any, n: Any, K: Any, L: Any, C: Any) -> None:  # noqa: C901
    """Move theta to the best of the chosen atoms; those that reach zero leave."""
    while True:
        _factor(w, n, K, L, C)
        count = n[COUNT, 0]
        for i in range(count):
            w[TARGET, i] = w[Z, i]
        for t in range(count - 1, -1, -1):
            target = w[TARGET, t] * w[INVERSE, t]
            for i in range(t):
                w[TARGET, i] -= C[t, i] * target
            w[TARGET, t] = target
        step, at = 1.0, -1
        for i in range(count):
            old, new = w[THETA, i], w[TARGET, i]
            if new <= 0.0 and (at < 0 or old < step * (old - new)):
                step, at = old / (old - new) if old > 0.0 else 0.0, i
        for i in range(count):
            w[THETA, i] += step * (w[TARGET, i] - w[THETA, i])
        if at < 0:
            return
        # The atom at this position leaves, and with it the factor from there on.
        w[GATE, n[CHOSEN, at]] = w[UNIT, n[CHOSEN, at]]
        n[COUNT, 0], n[COUNT, FACTORED] = count - 1, at
        for i in range(at, count - 1):
            n[CHOSEN, i], w[THETA, i] = n[CHOSEN, i + 1], w[THETA, i + 1]
        for t in range(w.shape[1]):
            w[R, t], w[REST, t] = w[B, t], w[DIAGONAL, t]
        for i in range(at):
            for t in range(w.shape[1]):
                w[R, t] -= L[i, t] * w[Z, i]
                w[REST, t] -= L[i, t] * L[i, t]


@inner
def _value_rows(columns: Any, point: Any, K: Any, a: int, b: int, base: int) -> None:
    """Set rows a and b of K to the values of those columns with all columns."""
    if base == 0:
        squared_distances(columns, a, b, K)
    else:
        for j in (a, b):
            for t in range(columns.shape[0]):
                point[0, t] = columns[t, j]
            value_row(columns, columns.shape[0], point, 0, base, K, j, K.shape[1])


@inner
def _finish_row(
    w: Any, n: Any, K: Any, j: int, form: int, coefficients: Any, q: int
) -> None:
    """Turn the values in the row of an atom into similarities."""
    similarity_row(form, coefficients, q, K, j, K.shape[1])
    K[j, j] = w[DIAGONAL, j]
    n[KNOWN, j] = 1


@inner
def _fill_rows(
    columns: Any,
    point: Any,
    w: Any,
    n: Any,
    K: Any,
    a: int,
    m: int,
    base: int,
    form: int,
    coefficients: Any,
    q: int,
) -> None:
    """Compute two rows of K: that of atom a, and one that will probably be needed."""
    b, most = m, 0.0  # row m is of no use to anybody
    for t in range(m):
        score = w[R, t] * w[GATE, t]
        if score > most and t != a and n[KNOWN, t] == 0:
            b, most = t, score
    _value_rows(columns, point, K, a, b, base)
    _finish_row(w, n, K, a, form, coefficients, q)
    _finish_row(w, n, K, b, form, coefficients, q)


@inner
def violation(w: Any, n: Any, K: Any, m: int) -> float:
    """Compute the residual afresh; return how far theta is from optimal."""
    for t in range(w.shape[1]):
        w[R, t] = w[B, t]
    for i in range(n[COUNT, 0]):
        for t in range(w.shape[1]):
            w[R, t] -= w[THETA, i] * K[n[CHOSEN, i], t]
    worst = 0.0
    for t in range(m):
        wrong = w[R, t] * w[UNIT, t]
        worst = wrong if wrong > worst else worst
    for i in range(n[COUNT, 0]):
        j = n[CHOSEN, i]
        wrong = -w[R, j] * w[UNIT, j]
        worst = wrong if wrong > worst else worst
    return worst


@inner
def _minimize(  # noqa: C901, PLR0912, PLR0915 - its parts need all that is known here
    columns: Any,
    point: Any,
    w: Any,
    n: Any,
    K: Any,
    L: Any,
    C: Any,
    m: int,
    base: int,
    form: int,
    coefficients: Any,
    q: int,
) -> tuple[float, float]:
    """Solve a problem of m atoms whose B and DIAGONAL are set.

    Rows of K that are not KNOWN are computed from the columns when they are needed,
    with coefficients q. Returns the certificate and the gain.
    """
    width, scale, total = w.shape[1], 0.0, 0.0
    for i in range(width):
        own = w[DIAGONAL, i] if i < m else 0.0
        if i >= m:
            w[B, i] = w[DIAGONAL, i] = 0.0
        # An atom that has no diagonal cannot help, and is never wanted.
        unit = 1.0 / np.sqrt(own) if own > 0.0 else 0.0
        w[R, i], w[REST, i], w[UNIT, i], w[GATE, i] = w[B, i], own, unit, unit
        score = abs(w[B, i] * unit)
        scale = score if score > scale else scale
        total += score
    n[COUNT, 0] = n[COUNT, FACTORED] = 0
    worst, proven, proofs, corrections, pending = 0.0, False, 0, 0, 0
    blocked = False
    for steps in range(10 * m + 20):
        j, most = -1, _WANTED * scale
        for t in range(m):
            score = w[R, t] * w[GATE, t]
            if score > most:
                j, most = t, score
        if j >= 0 and proofs < _MOST_PROOFS and steps < 10 * m:
            if n[KNOWN, j] == 0:
                _fill_rows(columns, point, w, n, K, j, m, base, form, coefficients, q)
            w[GATE, j] = 0.0
            left = w[REST, j] / w[DIAGONAL, j]
            if left < _SMALLEST_PIVOT and most < 100 * _WANTED * scale:
                blocked = True  # until something changes
                continue
            n[CHOSEN, n[COUNT, 0]], w[THETA, n[COUNT, 0]] = j, 0.0
            n[COUNT, 0] += 1
            proven, corrections, pending = False, 0, pending + 1
            if pending <= n[COUNT, 0] // _AT_ONCE and steps < m and left > _FIRM:
                _factor(w, n, K, L, C)
                continue
        elif pending == 0:
            if proven:
                break
            worst = violation(w, n, K, m)
            proofs += 1
            good = worst <= _WANTED * scale
            proven = good or corrections == 2 or proofs >= _MOST_PROOFS
            if proven:
                continue
            corrections += 1
            # Correct z by what is left of b.
            for i in range(n[COUNT, 0]):
                rest = w[R, n[CHOSEN, i]]
                for t in range(i):
                    rest -= C[i, t] * w[SPARE, t]
                w[SPARE, i] = rest * w[INVERSE, i]
                w[Z, i] += w[SPARE, i]
        _settle(w, n, K, L, C)
        if blocked and pending > 0:
            blocked = False
            for t in range(m):
                w[GATE, t] = w[UNIT, t]
            for i in range(n[COUNT, 0]):
                w[GATE, n[CHOSEN, i]] = 0.0
        pending = 0
    gain = 0.0
    for i in range(n[COUNT, 0]):
        j = n[CHOSEN, i]
        gain += w[THETA, i] * (w[B, j] + w[R, j])
    # Comparisons pass over what is no number: here it shows.
    if not np.isfinite(gain + total):
        return np.inf, gain
    return worst / scale if scale > 0.0 else 0.0, 0.5 * gain


@inner
def _set_atoms(q: int, index: Any, n: Any) -> int:
    """Take the atoms that there are of a problem; return how many."""
    m = 0
    for i in range(index.shape[1]):
        if index[q, i] >= 0:
            n[PLACE, m], n[ATOM, m], n[KNOWN, m] = i, index[q, i], 0
            m += 1
    return m


@inner
def _set_node(
    columns: Any,
    point: Any,
    w: Any,
    n: Any,
    K: Any,
    m: int,
    base: int,
    form: int,
    coefficients: Any,
    q: int,
) -> float:
    """Set b to the similarities of atoms and node, whose features are column m.

    Returns what weights have to be multiplied by. That is 1, except where all
    similarities are so small that they would lose their digits: distances are then
    counted from the nearest atom.
    """
    scale = 1.0
    if m == 0:
        return scale
    # The first atom is the nearest, which will be chosen: its row costs little here.
    _value_rows(columns, point, K, m, 0, base)
    if form == 1:
        nearest = K[m, 0]
        for i in range(m):
            nearest = K[m, i] if K[m, i] < nearest else nearest
        largest = exponential(coefficients[q, 0] * nearest)
        if largest < SMALLEST and nearest < np.inf:
            scale = largest
            for i in range(m):
                K[m, i] -= nearest
    similarity_row(form, coefficients, q, K, m, m)
    for i in range(m):
        w[B, i] = K[m, i]
    _finish_row(w, n, K, 0, form, coefficients, q)
    return scale


@compiled
def solve_features(
    x: Any,
    queries: Any,
    index: Any,
    diagonal: Any,
    base: int,
    form: int,
    coefficients: Any,
    l1_penalty: float,
    room: Any,
    theta: Any,
    proof: Any,
) -> None:
    columns, point, w, n, K, L, C = room
    for q in range(index.shape[0]):
        m = _set_atoms(q, index, n)
        for i in range(m):
            w[DIAGONAL, i] = diagonal[q, n[PLACE, i]]
        copy_columns(x, n, ATOM, 0, m, columns)
        for t in range(x.shape[1]):
            columns[t, m] = queries[q, t]
        scale = _set_node(columns, point, w, n, K, m, base, form, coefficients, q)
        if l1_penalty > 0.0:  # beside what was scaled up it is beyond all measure
            for i in range(m):
                w[B, i] = w[B, i] - l1_penalty if scale == 1.0 else -1.0
        certificate, gain = _minimize(
            columns, point, w, n, K, L, C, m, base, form, coefficients, q
        )
        proof[0, q], proof[1, q], proof[2, q] = certificate, gain, scale
        for i in range(n[COUNT, 0]):
            theta[q, n[PLACE, n[CHOSEN, i]]] = w[THETA, i]


@compiled
def solve_grams(
    gram: Any, cross: Any, index: Any, room: Any, theta: Any, proof: Any
) -> None:
    columns, point, w, n, K, L, C = room
    for q in range(index.shape[0]):
        m = _set_atoms(q, index, n)
        for i in range(m):
            start = n[PLACE, i] * (n[PLACE, i] + 1) // 2
            for j in range(i + 1):
                K[i, j] = K[j, i] = gram[q, start + n[PLACE, j]]
            for j in range(m, K.shape[1]):
                K[i, j] = 0.0
            w[B, i], w[DIAGONAL, i] = cross[q, n[PLACE, i]], K[i, i]
            n[KNOWN, i] = 1
        proof[0, q], proof[1, q] = _minimize(
            columns, point, w, n, K, L, C, m, 0, 0, w, 0
        )
        for i in range(n[COUNT, 0]):
            theta[q, n[PLACE, n[CHOSEN, i]]] = w[THETA, i]
