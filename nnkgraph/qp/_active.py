"""Adding atoms: Lawson and Hanson's active set method on a growing Cholesky factor.

The factor L is kept for all atoms, not only the chosen ones: entry (j, i) says how much
of atom j the i-th chosen atom explains. Then an atom that is added finds its own row of
the factor ready, and residuals and what is left of the diagonal are updated by one
multiple of the new column. V, the inverse of the chosen part transposed, makes the best
theta a running sum as well. An atom leaves by plane rotations. No step solves a system,
and all of them are sums of rows. Where that would lose accuracy `_delicate` steps in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled, inlined
from nnkgraph.qp._delicate import INDEPENDENT, rebuild, solve_back
from nnkgraph.qp._factor import combine, copy_row, extend, release, rotate, stretch
from nnkgraph.qp._workspace import (
    BLOCKED,
    CHOSEN,
    COUNT,
    DELICATE,
    DIAGONAL,
    GATE,
    PROOF,
    REST,
    SCALE,
    SPARE,
    TARGET,
    THETA,
    UNIT,
    WIDTH,
    K,
    R,
    Z,
)

_FIRM = 1e-6
"""Where less than this share of an atom's diagonal is left, care is taken."""

_WORTH_A_SWAP = 1e-13
"""A dependent atom with a residual above this share may replace another one."""


@inlined
def _append(w: Any, n: Any, j: int) -> float:
    """Choose an atom that is independent; return the smallest of the new TARGET."""
    p, L = n[COUNT, 0], K + w.shape[1]
    inverse = 1.0 / np.sqrt(w[REST, j])
    z = w[R, j] * inverse
    w[Z, p] = z
    w[THETA, p] = 0.0
    n[CHOSEN, p] = j
    n[COUNT, 0] = p + 1
    if w[REST, j] < _FIRM * w[DIAGONAL, j]:
        n[COUNT, DELICATE] = 1
    extend(w, L, p, j, inverse, z)
    if n[COUNT, DELICATE]:
        lowest = solve_back(w, n, Z)
    else:
        lowest = stretch(w, L, p, j, inverse, z)
    return lowest  # type: ignore[no-any-return]


@compiled
def _remove(w: Any, n: Any, at: int) -> float:
    """Take the atom at a position out; return the smallest of the new TARGET."""
    last = n[COUNT, 0] - 1
    out = n[CHOSEN, at]
    w[GATE, out] = w[UNIT, out]
    if n[COUNT, DELICATE] == 0:
        _rotate_out(w, n, at)
    for i in range(at, last):
        n[CHOSEN, i] = n[CHOSEN, i + 1]
        w[THETA, i] = w[THETA, i + 1]
    w[THETA, last] = w[TARGET, last] = 0.0
    n[COUNT, 0] = last
    if n[COUNT, DELICATE]:
        return rebuild(w, n)  # type: ignore[no-any-return]
    return combine(w, Z, last, K + 2 * w.shape[1])  # type: ignore[no-any-return]


@compiled
def _rotate_out(w: Any, n: Any, at: int) -> None:
    """Free L, V and Z of the atom at a position by plane rotations."""
    last, L = n[COUNT, 0] - 1, K + w.shape[1]
    V = L + w.shape[1]
    for i in range(at, last):
        own = n[CHOSEN, i + 1]
        a, b = w[L + i, own], w[L + i + 1, own]
        length = np.sqrt(a * a + b * b)
        cosine, sine = a / length, b / length
        rotate(w, L + i, w.shape[1], cosine, sine)
        if (i + 1) % WIDTH == 0:
            w[V + i, i + 1 : i + 1 + WIDTH] = 0.0
        rotate(w, V + i, i + 2, cosine, sine)
        a, b = w[Z, i], w[Z, i + 1]
        w[Z, i], w[Z, i + 1] = cosine * a + sine * b, cosine * b - sine * a
    release(w, L + last, w[Z, last])
    for i in range(at, last):
        for t in range(at, i + 1):
            w[V + i, t] = w[V + i, t + 1]
        w[V + i, i + 1] = 0.0


@compiled
def _swap(w: Any, n: Any, j: int) -> tuple[bool, float]:
    """Let a dependent atom take the place of one that it depends on.

    It is a combination of the chosen ones, so theta can move from them to it without a
    cost until one of them is used up. Returns whether that could be done, and the
    smallest of the new TARGET.
    """
    p, L = n[COUNT, 0], K + w.shape[1]
    for i in range(p):
        w[SPARE, i] = w[L + i, j]
    solve_back(w, n, SPARE)
    step, at = np.inf, -1
    for i in range(p):
        if w[TARGET, i] > 0.0 and w[THETA, i] < step * w[TARGET, i]:
            step, at = w[THETA, i] / w[TARGET, i], i
    if at < 0:
        return False, solve_back(w, n, Z)
    for i in range(p):
        w[THETA, i] = max(0.0, w[THETA, i] - step * w[TARGET, i])
    lowest = _remove(w, n, at)
    if not w[REST, j] > INDEPENDENT * w[DIAGONAL, j]:
        return False, lowest
    lowest = _append(w, n, j)
    w[THETA, n[COUNT, 0] - 1] = step
    return True, lowest


@compiled
def descend(w: Any, n: Any) -> None:
    """Move theta towards TARGET; atoms that reach zero on the way leave."""
    while True:
        p, step, at = n[COUNT, 0], np.inf, -1
        for i in range(p):
            new = w[TARGET, i]
            if new <= 0.0:
                old = w[THETA, i]
                limit = old / (old - new) if old > 0.0 else 0.0
                if limit < step:
                    step, at = limit, i
        if at < 0:
            break
        for i in range(p):
            w[THETA, i] += step * (w[TARGET, i] - w[THETA, i])
        _remove(w, n, at)


@compiled
def open_gates(w: Any, n: Any) -> None:
    """Let every atom be wanted that is not chosen."""
    copy_row(w, UNIT, GATE, w.shape[1])
    for i in range(n[COUNT, 0]):
        w[GATE, n[CHOSEN, i]] = 0.0
    n[COUNT, BLOCKED] = 0


@inlined
def include(w: Any, n: Any, j: int) -> None:
    """Add a wanted atom, whose row of K is known, and move theta to the new best."""
    before, chosen = n[COUNT, 0], True
    if w[REST, j] > INDEPENDENT * w[DIAGONAL, j]:
        lowest = _append(w, n, j)
    elif w[R, j] * w[UNIT, j] > _WORTH_A_SWAP * w[PROOF, SCALE]:
        chosen, lowest = _swap(w, n, j)
    else:
        chosen, lowest = False, np.inf
    if lowest <= 0.0:
        descend(w, n)
    copy_row(w, TARGET, THETA, n[COUNT, 0])
    # What depended on the atoms of before may be free now.
    if n[COUNT, BLOCKED] > 0 and (chosen or n[COUNT, 0] != before):
        open_gates(w, n)
    if w[GATE, j] != 0.0:  # it is not among the chosen: not again before a change
        w[GATE, j] = 0.0
        n[COUNT, BLOCKED] += 1
