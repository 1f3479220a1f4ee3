"""Local matrices that need not be positive definite, and the ridge that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.jit import compiled, frozen, inner

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray

LEAST = 2.0**-26
"""The smallest ridge: smaller ones do not tell solutions from rounding."""

SLACK = 1e-12
"""Down to minus this an eigenvalue counts as a zero that was rounded."""


@inner
def _fill(gram: Any, cross: Any, own: Any, present: Any, q: int, border: Any) -> None:
    """Write a node below its candidates; one that is missing is like no other."""
    m = cross.shape[1]
    border[:] = 0.0
    border[m, m] = own[q]
    for i in range(m):
        border[i, i] = 1.0
        if present[q, i]:
            border[m, i] = cross[q, i]
            for j in range(i + 1):
                if present[q, j]:
                    border[i, j] = gram[q, i * (i + 1) // 2 + j]


@inner
def _is_definite(border: Any, more: float, factor: Any) -> bool:
    """Return whether Cholesky's pivots are above 0, with more on all but the last."""
    last = border.shape[0] - 1
    for i in range(last + 1):
        for j in range(i + 1):
            value = border[i, j]
            if i == j and i < last:
                value += more
            for t in range(j):
                value -= factor[i, t] * factor[j, t]
            if i > j:
                factor[i, j] = value / factor[j, j]
            elif value > 0.0:
                factor[i, i] = np.sqrt(value)
            else:
                return False
    return True


@compiled
def _find(gram: Any, cross: Any, own: Any, present: Any, out: Any) -> None:
    m = cross.shape[1]
    border, factor = np.empty((m + 1, m + 1)), np.empty((m + 1, m + 1))
    for q in range(cross.shape[0]):
        _fill(gram, cross, own, present, q, border)
        ridge, more = 0.0, SLACK
        while not _is_definite(border, more, factor):
            ridge = max(LEAST, 2.0 * ridge)
            more = 0.5 * ridge
        out[q] = ridge


def ridges(
    gram: FloatArray, cross: FloatArray, own: FloatArray, present: Any
) -> FloatArray:
    """Return what the diagonals of local matrices need to be positive definite.

    It is 0 where they are, up to rounding, and else the smallest power of two from
    2**-26 on of which half is enough, for the node and its candidates together: so
    that the error J is not negative either.

    Parameters
    ----------
    gram : (b, m(m+1)/2) array
        Similarities of candidates, packed.
    cross, own : (b, m) and (b,) arrays
        Those of the nodes with them, and with themselves.
    present : (b, m) array of bool
        Where there is a candidate.
    """
    out = np.empty(len(cross))
    _find(*map(frozen, (gram, cross, own, present)), out)
    return out
