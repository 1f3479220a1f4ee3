"""One problem: its beginning, what to do next, and its end with a proof."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled, inlined
from nnkgraph.qp._active import descend, open_gates
from nnkgraph.qp._delicate import corrected, rebuild
from nnkgraph.qp._factor import copy_row
from nnkgraph.qp._residuals import exact_residual, largest_residual, most_wanted
from nnkgraph.qp._workspace import (
    BLOCKED,
    CERTIFICATE,
    CHOSEN,
    COUNT,
    DELICATE,
    DIAGONAL,
    FINISHES,
    FINITE,
    GATE,
    PLACE,
    PROOF,
    REST,
    SCALE,
    STEPS,
    TARGET,
    THETA,
    UNIT,
    B,
    R,
)

_WANTED = 1e-15
"""A residual above this share of the largest |b_j| / sqrt(K_jj) calls for its atom."""

_GOOD = 1e-15
"""A certificate above this is worth a correction."""

_DOUBTFUL = 1e-13
"""A certificate above this calls for care."""

_MOST_FINISHES = 4
"""How often the exact residual may find that a problem is not solved after all."""


@compiled
def begin(w: Any, n: Any, m: int) -> None:
    """Prepare for m atoms, whose B and DIAGONAL are set."""
    width = w.shape[1]
    scale = total = 0.0
    for i in range(m):
        own = w[DIAGONAL, i]
        w[UNIT, i] = 1.0 if own == 1.0 else 1.0 / np.sqrt(own)
        score = abs(w[B, i] * w[UNIT, i])
        scale = max(scale, score)
        total += score
    for i in range(m, width):
        w[B, i] = w[DIAGONAL, i] = w[UNIT, i] = 0.0
    copy_row(w, B, R, width)
    copy_row(w, DIAGONAL, REST, width)
    copy_row(w, UNIT, GATE, width)
    for i in range(width):
        w[TARGET, i] = 0.0
    w[PROOF, SCALE], w[PROOF, CERTIFICATE], w[PROOF, FINITE] = scale, 0.0, total
    n[COUNT, 0] = n[COUNT, BLOCKED] = n[COUNT, DELICATE] = 0
    n[COUNT, STEPS] = n[COUNT, FINISHES] = 0


@inlined
def next_atom(w: Any, n: Any, m: int) -> Any:
    """Return the atom to add next, or -1 where the problem is solved and proven."""
    limit = _WANTED * w[PROOF, SCALE]
    n[COUNT, STEPS] += 1
    j = most_wanted(w, limit)
    if (j < 0 and n[COUNT, 0] > 0) or n[COUNT, STEPS] > 10 * m + 10:
        w[PROOF, CERTIFICATE] = _finish(w, n)
        n[COUNT, FINISHES] += 1
        j = most_wanted(w, limit)
        if n[COUNT, FINISHES] == _MOST_FINISHES or n[COUNT, STEPS] > 10 * m + 10:
            j = -1
    return j


@compiled
def _violation(w: Any, n: Any) -> float:
    """Compute the residual afresh; return how far theta is from optimal."""
    exact_residual(w, n, n[COUNT, 0])
    worst = max(0.0, largest_residual(w))
    for i in range(n[COUNT, 0]):
        j = n[CHOSEN, i]
        worst = max(worst, -w[R, j] * w[UNIT, j])
    return worst  # type: ignore[no-any-return]


@compiled
def _finish(w: Any, n: Any) -> float:
    """Correct theta where that helps; return its certificate, R being exact."""
    scale = w[PROOF, SCALE]
    worst = _violation(w, n)
    if worst > _GOOD * scale and corrected(w, n):
        worst = _violation(w, n)
    if worst > _DOUBTFUL * scale and n[COUNT, DELICATE] == 0:
        if rebuild(w, n) <= 0.0:
            descend(w, n)
        copy_row(w, TARGET, THETA, n[COUNT, 0])
        open_gates(w, n)
        worst = _violation(w, n)
    return worst / scale  # type: ignore[no-any-return]


@compiled
def take_result(w: Any, n: Any, q: int, theta: Any, results: Any) -> None:
    """Store the solution of problem q, its certificate and its gain."""
    gain = 0.0
    for i in range(n[COUNT, 0]):
        j = n[CHOSEN, i]
        theta[q, n[PLACE, j]] = w[THETA, i]
        gain += w[THETA, i] * (w[B, j] + w[R, j])
    # Comparisons pass over what is no number: here it shows.
    proof = w[PROOF, CERTIFICATE]
    if not np.isfinite(gain + w[PROOF, FINITE]):
        proof = np.inf
    results[0, q], results[1, q] = proof, 0.5 * gain
