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
from nnkgraph.data.pairs import DISTANCES
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
    method: Method,
    kernel: Kernel,
    tolerance: float | None,
    k: int,
    max_k: int | None,
) -> None:
    """Refuse kernels and methods whose residuals cannot be bounded."""
    if max_k is not None and max_k < k:
        raise ParameterError(f"max_k is {max_k}, but k is {k} already")
    if tolerance is not None and not 0 < tolerance < np.inf:
        raise ParameterError(f"grow must be a number above 0, not {tolerance:g}")
    if not (kernel.form and kernel.nearness in DISTANCES):
        raise ParameterError(
            "what lies outside the candidates is bounded for kernels gaussian, "
            "laplacian and cosine only"
        )
    if getattr(kernel, "sigma", None) == "local":
        raise ParameterError(
            "candidates can grow only where sigma does not depend on them: use another "
            "sigma than 'local'"
        )
    if not (method.local and method.has_error):
        raise ParameterError(
            "what lies outside the candidates matters to methods with an error only: "
            "nnk, omp, mp and l1"
        )


def outside_bounds(x: Any, candidates: Candidates, kernel: Kernel) -> FloatArray:
    """Return each node's similarity with its last candidate; 0 where it has all."""
    n, m = candidates.index.shape
    there = (candidates.index >= 0).sum(axis=1)
    if m == 0:
        return np.zeros(n)
    every = np.arange(n)
    last = np.maximum(there - 1, 0)[:, np.newaxis]
    problem = Problem(
        x,
        x,
        np.ascontiguousarray(np.take_along_axis(candidates.index, last, axis=1)),
        candidates.distance,
        kernel,
        rows=every,
    )
    bounds: FloatArray = problem.cross()[:, 0]
    return np.where(there >= n - 1, 0.0, bounds)


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
    x, n = wanted.x, len(wanted.x)
    most = min(max_k, n - 1)
    outside = outside_bounds(x, candidates, kernel)
    width = candidates.index.shape[1]
    doubtful = np.flatnonzero(outside > tolerance)
    state = _State(
        widened(candidates.index, most, -1),
        widened(candidates.distance, most, np.inf),
        widened(found.weights, most, 0.0),
        np.array(found.errors),
        None if found.certificate is None else np.array(found.certificate),
        np.full(n, width),
    )
    seen = width
    while len(doubtful) and seen < most:
        seen = min(2 * seen, most)
        left = []
        for start in range(0, len(doubtful), _AT_ONCE):
            rows = doubtful[start : start + _AT_ONCE]
            task = wanted, state, rows, seen, tolerance
            left.append(_look_further(pool, *task, kernel, method, outside))
        doubtful = np.concatenate(left)
    grown = int((state.used > width).sum())
    keep = max(width, int(state.used.max(initial=0)))
    return Growth(
        replace(
            candidates,
            index=widened(state.index[:, :keep]),
            distance=widened(state.distance[:, :keep]),
        ),
        replace(
            found,
            weights=widened(state.weights[:, :keep]),
            errors=state.errors,
            certificate=state.certificate,
        ),
        outside,
        grown,
        len(doubtful),
    )


@dataclass
class _State:
    index: IndexArray
    distance: FloatArray
    weights: FloatArray
    errors: FloatArray
    certificate: FloatArray | None
    used: IndexArray


def _look_further(
    pool: Pool,
    wanted: Wanted,
    state: _State,
    rows: IndexArray,
    seen: int,
    tolerance: float,
    kernel: Kernel,
    method: Method,
    outside: FloatArray,
) -> IndexArray:
    """Look at the ``seen`` nearest of some nodes; return those still in doubt."""
    x = wanted.x
    near = nearest(replace(wanted, k=seen), rows)
    near, score = ranked(x, x[rows], near, wanted.base)
    distance = distance_of(score, wanted.base)
    # Only lists in which something is missing are taken over and solved again.
    residual = _residuals(x, rows, near, distance, state, kernel)
    needed = residual.max(axis=1) > tolerance
    some = np.flatnonzero(needed)
    if len(some):
        solved = solve.solve(
            pool,
            x,
            Candidates(near[some], distance[some]),
            kernel=kernel,
            method=method,
            points=x[rows[some]],
        )
        target = rows[some]
        state.index[target, :seen], state.distance[target, :seen] = (
            near[some],
            distance[some],
        )
        state.weights[target, :seen] = solved.weights
        state.errors[target] = solved.errors
        if state.certificate is not None and solved.certificate is not None:
            state.certificate[target] = solved.certificate
        state.used[target] = seen
    last = Problem(
        x, x[rows], np.ascontiguousarray(near[:, -1:]), distance, kernel, rows=rows
    ).cross()[:, 0]
    worst = np.where(needed, 0.0, np.maximum(residual.max(axis=1), 0.0))
    outside[rows] = np.maximum(last if seen < len(x) - 1 else 0.0, worst)
    return rows[last > tolerance] if seen < len(x) - 1 else rows[:0]


def _residuals(
    x: Any,
    rows: IndexArray,
    near: IndexArray,
    distance: FloatArray,
    state: _State,
    kernel: Kernel,
) -> FloatArray:
    """Return the residuals of candidates that were not looked at before."""
    problem = Problem(x, x[rows], near, distance, kernel, rows=rows)
    cross = problem.cross()
    support = state.weights[rows] > 0
    widest = int(support.sum(axis=1).max(initial=0))
    order = np.argsort(~support, axis=1, kind="stable")[:, :widest]
    chosen = np.take_along_axis(state.index[rows], order, axis=1)
    theta = np.take_along_axis(state.weights[rows], order, axis=1)
    explained = np.zeros(cross.shape)
    for place in range(widest):
        # One neighbor of every node at a time, as seen by all of its candidates.
        atoms = np.maximum(chosen[:, place], 0)
        seen = Problem(x, x[atoms], near, distance, kernel, rows=atoms).cross()
        explained += np.where(theta[:, place] > 0, theta[:, place], 0.0)[:, None] * seen
    residual = cross - explained
    known = np.arange(near.shape[1]) < state.used[rows][:, np.newaxis]
    residual[known | (near < 0)] = -np.inf
    return residual
