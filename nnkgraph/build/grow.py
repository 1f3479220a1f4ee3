"""Was k large enough? What a point outside the candidates could still explain.

A candidate that was never looked at would enter a neighborhood if its residual,
``K_qj - sum theta_i K_ij``, were positive. Kernels that are never negative and fall
with distance bound it: nothing beyond the last candidate has a residual above that
candidate's similarity. Where the bound is not small enough, more candidates decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import solve
from nnkgraph.data import Candidates, Neighborhoods
from nnkgraph.data.pairs import GEOMETRIC
from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Kernel, Problem
from nnkgraph.runtime.arrays import FloatArray, IndexArray, widened
from nnkgraph.search import Wanted, distance_of, ranked
from nnkgraph.search.exact import nearest

if TYPE_CHECKING:
    from nnkgraph.methods import Method
    from nnkgraph.runtime.executors import Pool

_AT_ONCE = 4096
"""Nodes that grow at the same time."""


@dataclass(frozen=True)
class Growth:
    """What became of the candidates."""

    candidates: Candidates
    found: Neighborhoods
    outside: FloatArray
    """(n,) bound of the residual that a point outside could have."""
    grown: int
    """Nodes that got more candidates."""
    bounded: int
    """Nodes that would need more than they may have."""


def check_grow(
    method: Method, kernel: Kernel, tolerance: float | None, k: int, max_k: int | None
) -> None:
    """Refuse kernels and methods whose residuals cannot be bounded."""
    if max_k is not None and max_k < k:
        raise ParameterError(f"max_k is {max_k}, but k is {k} already")
    if tolerance is not None and not 0 < tolerance < np.inf:
        raise ParameterError(f"grow must be a number above 0, not {tolerance:g}")
    if not (kernel.form and kernel.nearness in GEOMETRIC):
        raise ParameterError(
            "what lies outside the candidates is bounded for kernels gaussian, "
            "laplacian, cosine and correlation only"
        )
    if tolerance is not None and getattr(kernel, "sigma", None) == "local":
        raise ParameterError(
            "candidates can grow only where sigma does not depend on them: use another "
            "sigma than 'local'"
        )
    if not (method.local and method.has_error):
        raise ParameterError(
            "what lies outside the candidates matters to methods with an error only: "
            "nnk, omp, mp and l1"
        )


def outside_bounds(
    x: Any, candidates: Candidates, kernel: Kernel, points: Any = None
) -> FloatArray:
    """Return each node's similarity with its last candidate; 0 where it has all.

    The nodes are all rows, or those among them that are given as ``points``.
    """
    n, m = candidates.index.shape
    there = (candidates.index >= 0).sum(axis=1)
    if m == 0:
        return np.zeros(n)
    last = np.maximum(there - 1, 0)[:, np.newaxis]
    farthest = np.ascontiguousarray(np.take_along_axis(candidates.index, last, axis=1))
    known = farthest, candidates.distance, kernel
    bounds = Problem(x, x if points is None else points, *known).cross()[:, 0]
    return np.where(there >= len(x) - 1, 0.0, bounds)


def grow(
    pool: Pool,
    wanted: Wanted,
    candidates: Candidates,
    found: Neighborhoods,
    *,
    kernel: Kernel,
    method: Method,
    tolerance: float,
    max_k: int,
) -> Growth:
    """Give nodes more candidates until none outside has a residual above a tolerance.

    A node keeps the candidates it has where the next ones, as many again each time,
    would have no larger residual, up to where the bound proves the rest.
    """
    n, width = candidates.index.shape
    most = min(max_k, n - 1)
    outside = outside_bounds(wanted.x, candidates, kernel)
    growing = _Growing(
        pool,
        wanted,
        kernel,
        method,
        tolerance,
        outside,
        widened(candidates.index, most, -1),
        widened(candidates.distance, most, np.inf),
        widened(found.weights, most, 0.0),
        np.array(found.errors),
        None if found.certificate is None else np.array(found.certificate),
        np.full(n, width),
    )
    doubtful, seen = np.flatnonzero(outside > tolerance), width
    while len(doubtful) and seen < most:
        seen = min(2 * seen, most)
        parts = np.split(doubtful, range(_AT_ONCE, len(doubtful), _AT_ONCE))
        doubtful = np.concatenate([growing.look_further(one, seen) for one in parts])
    keep = max(width, int(growing.used.max(initial=0)))
    index, distance, weights = (
        widened(one[:, :keep])
        for one in (growing.index, growing.distance, growing.weights)
    )
    errors, certificate = growing.errors, growing.certificate
    return Growth(
        replace(candidates, index=index, distance=distance),
        replace(found, weights=weights, errors=errors, certificate=certificate),
        outside,
        int((growing.used > width).sum()),
        len(doubtful),
    )


@dataclass(frozen=True)
class _Growing:
    """Candidates and solutions that are replaced where more is needed."""

    pool: Pool
    wanted: Wanted
    kernel: Kernel
    method: Method
    tolerance: float
    outside: FloatArray
    index: IndexArray
    distance: FloatArray
    weights: FloatArray
    errors: FloatArray
    certificate: FloatArray | None
    used: IndexArray

    def look_further(self, rows: IndexArray, seen: int) -> IndexArray:
        """Look at the ``seen`` nearest of some nodes; return those still in doubt."""
        x, base = self.wanted.x, self.wanted.base
        near = nearest(replace(self.wanted, k=seen), rows)
        near, score = ranked(x, x[rows], near, base)
        distance = distance_of(score, base)
        # Only lists in which something is missing are taken over and solved again.
        residual = self._residuals(rows, near, distance).max(axis=1)
        needed = residual > self.tolerance
        if needed.any():
            self._solve_again(rows[needed], near[needed], distance[needed])
        if seen >= len(x) - 1:
            last: FloatArray = np.zeros(len(rows))
        else:
            farthest = np.ascontiguousarray(near[:, -1:])
            last = self._cross(rows, farthest, distance)[:, 0]
        worst = np.where(needed, 0.0, np.maximum(residual, 0.0))
        self.outside[rows] = np.maximum(last, worst)
        return rows[last > self.tolerance]

    def _solve_again(
        self, rows: IndexArray, near: IndexArray, distance: FloatArray
    ) -> None:
        x, seen = self.wanted.x, near.shape[1]
        solved = solve.solve(
            self.pool,
            x,
            Candidates(near, distance),
            kernel=self.kernel,
            method=self.method,
            points=x[rows],
        )
        self.index[rows, :seen], self.distance[rows, :seen] = near, distance
        self.weights[rows, :seen], self.errors[rows] = solved.weights, solved.errors
        if self.certificate is not None and solved.certificate is not None:
            self.certificate[rows] = solved.certificate
        self.used[rows] = seen

    def _cross(
        self, rows: IndexArray, near: IndexArray, distance: FloatArray
    ) -> FloatArray:
        """Return the similarities of some nodes with others."""
        x = self.wanted.x
        return Problem(x, x[rows], near, distance, self.kernel).cross()

    def _residuals(
        self, rows: IndexArray, near: IndexArray, distance: FloatArray
    ) -> FloatArray:
        """Return the residuals of candidates that were not looked at before."""
        cross = self._cross(rows, near, distance)
        support = self.weights[rows] > 0
        widest = int(support.sum(axis=1).max(initial=0))
        order = np.argsort(~support, axis=1, kind="stable")[:, :widest]
        chosen = np.take_along_axis(self.index[rows], order, axis=1)
        theta = np.take_along_axis(self.weights[rows], order, axis=1)
        explained = np.zeros(cross.shape)
        for place in range(widest):
            # One neighbor of every node at a time, as seen by all of its candidates.
            similar = self._cross(np.maximum(chosen[:, place], 0), near, distance)
            explained += np.maximum(theta[:, place], 0.0)[:, np.newaxis] * similar
        residual = cross - explained
        known = np.arange(near.shape[1]) < self.used[rows][:, np.newaxis]
        residual[known | (near < 0)] = -np.inf
        return residual
