"""One regression by an active set: its steps, delicate cases, and its proof."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.methods.qp import _factor as ws
from nnkgraph.methods.qp._factor import (
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
    SPARE,
    STEPS,
    TARGET,
    THETA,
    UNIT,
    WIDTH,
    B,
    K,
    R,
    Rows,
    Z,
    combine,
    copy_row,
    extend,
    instructions,
    release,
    rotate,
    stretch,
)
from nnkgraph.runtime.jit import cgutils, compiled, inlined, intrinsic, types

_INFINITY = float("inf")


@intrinsic  # type: ignore[untyped-decorator]
def most_wanted(typingctx: Any, w: Any, tolerance: Any) -> Any:
    """Return the atom with the largest ``R * GATE`` above a tolerance, or -1."""

    def write(rows: Rows, tolerance: Any) -> Any:
        builder = rows.builder
        best = cgutils.alloca_once_value(builder, rows.spread(tolerance))
        place = cgutils.alloca_once_value(builder, rows.spread(rows.number(-1)))
        with rows.vectors(rows.width) as (at, _):
            score = builder.fmul(rows.load(ws.R, at), rows.load(ws.GATE, at))
            better = builder.fcmp_ordered(">", score, builder.load(best))
            builder.store(builder.select(better, score, builder.load(best)), best)
            column = builder.select(better, rows.columns(at), builder.load(place))
            builder.store(column, place)
        return rows.place_of_highest(builder.load(best), builder.load(place))

    return instructions(write, w, 0, 1, types.int64)


@intrinsic  # type: ignore[untyped-decorator]
def largest_residual(typingctx: Any, w: Any) -> Any:
    """Return the largest ``R * UNIT``."""

    def write(rows: Rows) -> Any:
        builder = rows.builder
        best = cgutils.alloca_once_value(builder, rows.constant(_INFINITY))
        with rows.vectors(rows.width) as (at, _):
            score = builder.fmul(rows.load(ws.R, at), rows.load(ws.UNIT, at))
            value = builder.fneg(score)
            lower = builder.fcmp_ordered("<", value, builder.load(best))
            builder.store(builder.select(lower, value, builder.load(best)), best)
        return builder.fneg(rows.lowest(builder.load(best)))

    return instructions(write, w, 0, 0, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def exact_residual(typingctx: Any, w: Any, n: Any, p: Any) -> Any:
    """Set R to B minus THETA times the rows of K of the p chosen atoms."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = Rows(context, builder, signature.args[0], args[0])
        integers = Rows(context, builder, signature.args[1], args[1])

        def term(i: Any, at: Any) -> Any:
            chosen = integers.one(ws.CHOSEN, i)
            row = rows.load(builder.add(rows.number(ws.K), chosen), at)
            return builder.fmul(rows.spread(rows.one(ws.THETA, i)), row)

        with rows.vectors(rows.width) as (at, _):
            b = rows.load(ws.B, at)
            r = rows.subtract(rows.number(0), args[2], lambda i: term(i, at), b)
            rows.store(r, ws.R, at)
        return context.get_dummy_value()

    return types.void(w, n, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def narrow_values(typingctx: Any, w: Any, row: Any, d: Any, base: Any) -> Any:
    """Fill a row with the values of POINT and all atoms, from d rows of FEATURES."""

    def write(rows: Rows, row: Any, d: Any, base: Any) -> None:
        builder = rows.builder
        products = builder.icmp_signed("==", base, rows.number(1))

        def term(t: Any, at: Any) -> Any:
            point = rows.spread(rows.one(ws.POINT, t))
            own = rows.load(builder.add(rows.number(ws.FEATURES), t), at)
            difference = builder.fsub(point, own)
            with_base = builder.select(
                products,
                builder.fmul(point, own),
                builder.fmul(difference, difference),
            )
            return builder.fneg(with_base)

        with rows.vectors(rows.width) as (at, _):
            zero = rows.number(0)
            start = rows.constant(0.0)
            value = rows.subtract(zero, d, lambda t: term(t, at), start)
            rows.store(value, row, at)

    return instructions(write, w, 3, 0, types.void)


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
