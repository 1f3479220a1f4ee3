"""Matching pursuits as they are written down, on packed triangles of similarities.

They share nothing with :mod:`nnkgraph.methods.qp`: that orthogonal pursuit and nnk
agree is a test of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.runtime.jit import compiled

_WANTED = 1e-15
"""A residual above this share of the largest calls for its atom."""

_DEPENDENT = 1e-14
"""An atom of which less than this share is new depends on the chosen ones."""


@compiled
def _unpacked(gram: Any, present: Any, q: int, full: Any, unit: Any) -> None:
    """Set the whole matrix of node q, and 1 / sqrt(diagonal), 0 for missing atoms."""
    m = full.shape[0]
    place = 0
    for i in range(m):
        for j in range(i + 1):
            full[i, j] = full[j, i] = gram[q, place]
            place += 1
        there = present[q, i] and full[i, i] > 0.0
        unit[i] = 1.0 / np.sqrt(full[i, i]) if there else 0.0


@compiled
def _best(residual: Any, unit: Any, free: Any, limit: float) -> int:
    found, best = -1, limit
    for i in range(residual.shape[0]):
        if free[i] and residual[i] * unit[i] > best:
            found, best = i, residual[i] * unit[i]
    return found


@compiled
def _solved(full: Any, b: Any, chosen: Any, count: int, factor: Any, z: Any) -> bool:
    """Solve K z = b on the chosen atoms; False where they depend on each other."""
    for i in range(count):
        for j in range(i + 1):
            rest = full[chosen[i], chosen[j]]
            for t in range(j):
                rest -= factor[i, t] * factor[j, t]
            if j < i:
                factor[i, j] = rest / factor[j, j]
            elif rest <= _DEPENDENT * full[chosen[i], chosen[i]]:
                return False
            else:
                factor[i, i] = np.sqrt(rest)
    for i in range(count):
        rest = b[chosen[i]]
        for t in range(i):
            rest -= factor[i, t] * z[t]
        z[i] = rest / factor[i, i]
    for i in range(count - 1, -1, -1):
        rest = z[i]
        for t in range(i + 1, count):
            rest -= factor[t, i] * z[t]
        z[i] = rest / factor[i, i]
    return True


@compiled
def _best_of_chosen(
    full: Any, b: Any, chosen: Any, count: int, theta: Any, factor: Any, z: Any
) -> int:
    """Find the best non-negative weights of the chosen atoms; return how many stay.

    Weights move towards the unconstrained best until one vanishes, which drops out.
    The number is negative where the newest atom depends on the others.
    """
    while count > 0:
        if not _solved(full, b, chosen, count, factor, z):
            return -count
        step, leaving = 1.0, -1
        for i in range(count):
            if z[i] <= 0.0:
                share = theta[chosen[i]] / (theta[chosen[i]] - z[i])
                if leaving < 0 or share < step:
                    step, leaving = share, i
        for i in range(count):
            atom = chosen[i]
            theta[atom] = theta[atom] + step * (z[i] - theta[atom])
        if leaving < 0:
            for i in range(count):
                theta[chosen[i]] = z[i]
            return count
        theta[chosen[leaving]] = 0.0
        for i in range(leaving, count - 1):
            chosen[i] = chosen[i + 1]
        count -= 1
    return count


@compiled
def _residuals(full: Any, b: Any, theta: Any, out: Any) -> None:
    for i in range(b.shape[0]):
        out[i] = b[i]
    for j in range(b.shape[0]):
        if theta[j] != 0.0:
            for i in range(b.shape[0]):
                out[i] -= theta[j] * full[j, i]


@compiled
def _pursue_all(
    gram: Any, cross: Any, present: Any, again: bool, theta: Any, gain: Any
) -> None:
    m = cross.shape[1]
    full, factor = np.zeros((m, m)), np.zeros((m, m))
    unit, residual, z = np.zeros(m), np.zeros(m), np.zeros(m)
    chosen, free = np.zeros(m, np.int64), np.ones(m, np.bool_)
    for q in range(cross.shape[0]):
        b, weights = cross[q], theta[q]
        _unpacked(gram, present, q, full, unit)
        residual[:] = b
        free[:] = True
        scale = 0.0
        for i in range(m):
            scale = max(scale, abs(b[i]) * unit[i])
        count = 0
        for _ in range(4 * m if again else m):
            j = _best(residual, unit, free, _WANTED * scale)
            if j < 0:
                break
            if not again:
                size = residual[j] / full[j, j]
                weights[j] += size
                for i in range(m):
                    residual[i] -= size * full[j, i]
                continue
            chosen[count] = j
            stay = _best_of_chosen(full, b, chosen, count + 1, weights, factor, z)
            if stay < 0:  # nothing has changed: the others still fit
                free[j] = False
                continue
            count = stay
            free[:] = True
            for i in range(count):
                free[chosen[i]] = False
            _residuals(full, b, weights, residual)
        _residuals(full, b, weights, residual)
        total = 0.0
        for i in range(m):
            total += weights[i] * (b[i] + residual[i])
        gain[q] = 0.5 * total


def pursue(gram: Any, cross: Any, present: Any, *, again: bool) -> tuple[Any, Any]:
    """Choose atoms one by one, each the one that explains most of what is left.

    Parameters
    ----------
    gram, cross, present
        As ``qp.solve`` takes them.
    again : bool
        Whether all weights are found again after each step (orthogonal pursuit).

    Returns
    -------
    theta : (n, m) array of float64
        The weights.
    gain : (n,) array of float64
        How far the objective lies below its value at zero.
    """
    theta, gain = np.zeros(cross.shape), np.zeros(len(cross))
    _pursue_all(gram, cross, present, again, theta, gain)
    return theta, gain


@compiled
def _violations(gram: Any, cross: Any, present: Any, theta: Any, out: Any) -> None:
    m = cross.shape[1]
    full, unit, residual = np.zeros((m, m)), np.zeros(m), np.zeros(m)
    for q in range(cross.shape[0]):
        _unpacked(gram, present, q, full, unit)
        _residuals(full, cross[q], theta[q], residual)
        worst = scale = 0.0
        for i in range(m):
            scale = max(scale, abs(cross[q, i]) * unit[i])
            size = residual[i] * unit[i]
            worst = max(worst, abs(size) if theta[q, i] > 0.0 else size)
        out[q] = worst / scale if scale > 0.0 else 0.0


def violations(gram: Any, cross: Any, present: Any, theta: Any) -> Any:
    """Return how far each node's weights are from optimal, as ``qp.solve`` does."""
    out = np.zeros(len(cross))
    _violations(gram, cross, present, theta, out)
    return out
