"""The careful way, for atoms that are nearly dependent.

Sums with the inverse of a factor and plane rotations are quick, but their errors grow
with its condition. Solving with the factor itself, and making it anew where an atom
has left, is slower and does not lose accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled
from nnkgraph.qp._factor import copy_row, extend
from nnkgraph.qp._workspace import (
    CHOSEN,
    COUNT,
    DELICATE,
    DIAGONAL,
    GATE,
    REST,
    SPARE,
    TARGET,
    THETA,
    UNIT,
    B,
    K,
    R,
    Z,
)

INDEPENDENT = 1e-14
"""An atom of which less than this share of its diagonal is left depends on others."""


@compiled
def solve_forward(w: Any, n: Any, row: int) -> None:
    """Solve ``L s = b`` for the chosen atoms, with b and s in one row."""
    L = K + w.shape[1]
    for i in range(n[COUNT, 0]):
        own = n[CHOSEN, i]
        total = w[row, i]
        for t in range(i):
            total -= w[L + t, own] * w[row, t]
        w[row, i] = total / w[L + i, own]


@compiled
def solve_back(w: Any, n: Any, row: int) -> float:
    """Solve ``L' TARGET = z`` for the z of a row; return the smallest of TARGET."""
    L, lowest = K + w.shape[1], np.inf
    for i in range(n[COUNT, 0] - 1, -1, -1):
        total = w[row, i]
        for t in range(i + 1, n[COUNT, 0]):
            total -= w[L + i, n[CHOSEN, t]] * w[TARGET, t]
        w[TARGET, i] = total / w[L + i, n[CHOSEN, i]]
        lowest = min(lowest, w[TARGET, i])
    return lowest


@compiled
def rebuild(w: Any, n: Any) -> float:
    """Make the factor of the chosen atoms anew; return the smallest of TARGET.

    Atoms that depend on earlier ones now are left out.
    """
    L, count = K + w.shape[1], n[COUNT, 0]
    n[COUNT, DELICATE] = 1
    copy_row(w, B, R, w.shape[1])
    copy_row(w, DIAGONAL, REST, w.shape[1])
    p = 0
    for i in range(count):
        j = n[CHOSEN, i]
        if w[REST, j] > INDEPENDENT * w[DIAGONAL, j]:
            inverse = 1.0 / np.sqrt(w[REST, j])
            w[Z, p] = w[R, j] * inverse
            extend(w, L, p, j, inverse, w[Z, p])
            n[CHOSEN, p] = j
            w[THETA, p] = w[THETA, i]
            p += 1
        else:
            w[GATE, j] = w[UNIT, j]
    n[COUNT, 0] = p
    return solve_back(w, n, Z)  # type: ignore[no-any-return]


@compiled
def corrected(w: Any, n: Any) -> bool:
    """Correct THETA by the residual, where that keeps all weights positive."""
    for i in range(n[COUNT, 0]):
        w[SPARE, i] = w[R, n[CHOSEN, i]]
    solve_forward(w, n, SPARE)
    solve_back(w, n, SPARE)
    positive = True
    for i in range(n[COUNT, 0]):
        w[TARGET, i] += w[THETA, i]
        positive &= w[TARGET, i] > 0.0
    if positive:
        copy_row(w, TARGET, THETA, n[COUNT, 0])
    else:
        copy_row(w, THETA, TARGET, n[COUNT, 0])
    return positive
