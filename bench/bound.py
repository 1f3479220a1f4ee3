"""The solver's lower bound: kernel blocks, and a Cholesky solve of known supports."""

from __future__ import annotations

import numpy as np

from nnkgraph.data.similarity import similarity_row
from nnkgraph.data.sums import (
    LANES,
    copy_columns,
    copy_point,
    squared_distances,
    value_row,
)
from nnkgraph.runtime.jit import compiled, frozen


@compiled
def _solve_support(K, b, chosen, p, U, z):
    for i in range(p):
        for t in range(i, p):
            U[i, t] = K[chosen[t], chosen[i]]
        z[i] = b[0, chosen[i]]
    for i in range(p):
        root = np.sqrt(U[i, i])
        for t in range(i, p):
            U[i, t] /= root
        z[i] /= root
        for row in range(i + 1, p):
            factor = U[i, row]
            for t in range(row, p):
                U[row, t] -= factor * U[i, t]
            z[row] -= factor * z[i]
    for i in range(p - 1, -1, -1):
        total = z[i]
        for t in range(i + 1, p):
            total -= U[i, t] * z[t]
        z[i] = total / U[i, i]


@compiled
def _bound(x, index, start, stop, factor, theta, out):
    m, d = index.shape[1], x.shape[1]
    width = -(-(m + 1) // LANES) * LANES
    K, U, b = np.empty((width, width)), np.empty((m, m)), np.empty((1, width))
    columns, point = np.zeros((d, width)), np.empty((1, d))
    z, chosen = np.empty(m), np.empty(m, np.int64)
    coefficients = np.array([[factor, 0.0]])
    for q in range(start, stop):
        copy_columns(x, index, q, 0, m, columns)
        copy_point(x, q, point)
        value_row(columns, d, point, 0, 0, b, 0, width)
        for i in range(0, m, 2):
            squared_distances(columns, i, i + 1, K)
        for i in range(m):
            similarity_row(1, coefficients, 0, K, i, i)
            K[i, i] = 1.0
        similarity_row(1, coefficients, 0, b, 0, m)
        p = 0
        for i in range(m):
            if theta[q, i] > 0.0:
                chosen[p] = i
                p += 1
        _solve_support(K, b, chosen, p, U, z)
        for i in range(p):
            out[q, chosen[i]] = z[i]


def lower_bound(x, index, sigma, theta, submit, block=256):
    """Return the weights, computed with the support of ``theta`` given."""
    out = np.zeros(theta.shape)
    arguments = (frozen(x), frozen(index))
    jobs = [
        submit(
            _bound,
            *arguments,
            start,
            min(start + block, len(x)),
            -0.5 / sigma**2,
            frozen(theta),
            out,
        )
        for start in range(0, len(x), block)
    ]
    for job in jobs:
        job.result()
    return out
