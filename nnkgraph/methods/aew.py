"""Adaptive edge weighting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.data.similarity import exponential
from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain
from nnkgraph.runtime.jit import compiled, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray

    Function = Callable[[FloatArray], tuple[float, FloatArray]]
    """Returns a value that is not negative, and its gradient."""
    from nnkgraph.kernels import Kernel, Problem
    from nnkgraph.methods import Method


def edges_of(index: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the union of all candidate pairs, in both directions.

    Returns
    -------
    starts : (n + 1,) array of int64
        Where the neighbors of each node begin.
    others : (e,) array of int32 or int64
        The neighbors, in ascending order for each node.
    """
    from scipy.sparse import csr_array

    n, present = len(index), index >= 0
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    there = np.ones(starts[-1], np.bool_)
    one_way = csr_array((there, index[present], starts), shape=(n, n))
    one_way.sum_duplicates()
    both = csr_array(one_way + one_way.T)
    both.sort_indices()
    return both.indptr.astype(np.int64), both.indices


@compiled
def _edges_of_node(
    x: Any, i: int, others: Any, first: int, rate: Any, delta: Any, length: Any
) -> None:
    """Set the differences of a node and its neighbors, and their weighted squares."""
    length[:] = 0.0
    for f in range(x.shape[1]):
        for t in range(len(length)):
            difference = x[i, f] - x[others[first + t], f]
            delta[t, f] = difference
            length[t] += difference * difference * rate[f]


@compiled
def _shares(share: Any, factor: float) -> None:
    """Turn the squared lengths of a node's edges into shares that sum to 1.

    Lengths are counted from the shortest one, so that they never vanish all.
    """
    least, total = share.min(), 0.0
    for t in range(len(share)):
        share[t] = exponential(factor * (share[t] - least))
        total += share[t]
    for t in range(len(share)):
        share[t] /= total


@compiled
def _rebuild(
    x: Any, starts: Any, others: Any, widest: int, rate: Any, factor: float, slopes: Any
) -> float:
    """Return the objective; add to ``slopes`` what its gradient is made from."""
    d = x.shape[1]
    delta, residual = np.zeros((widest, d)), np.zeros(d)
    room, pulls = np.zeros(widest), np.zeros(widest)
    objective = 0.0
    for i in range(x.shape[0]):
        first, count = starts[i], starts[i + 1] - starts[i]
        if count == 0:
            continue
        share, pull = room[:count], pulls[:count]
        _edges_of_node(x, i, others, first, rate, delta, share)
        _shares(share, factor)
        residual[:] = 0.0
        for t in range(count):
            for f in range(d):
                residual[f] += share[t] * delta[t, f]
        own = 0.0
        pull[:] = 0.0
        for f in range(d):
            own += residual[f] * residual[f]
            for t in range(count):
                pull[t] += residual[f] * delta[t, f]
        objective += own
        for t in range(count):
            by = share[t] * (own - pull[t])
            for f in range(d):
                slopes[f] += by * (delta[t, f] * delta[t, f])
    return objective


@compiled
def _weigh(x: Any, index: Any, rate: Any, factor: float, weights: Any) -> None:
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            length = 0.0
            if index[i, t] >= 0:
                for f in range(x.shape[1]):
                    difference = x[i, f] - x[index[i, t], f]
                    length += difference * difference * rate[f]
                weights[i, t] = exponential(factor * length)


@dataclass(frozen=True)
class Reconstruction:
    """The error of rebuilding every node from its neighbors, as the scales change.

    With W_ij = exp(-sum_f scale_f^2 (x_if - x_jf)^2 / (2 sigma^2)) on fixed edges and
    shares P_ij = W_ij / sum_j W_ij, it is the sum of |x_i - sum_j P_ij x_j|^2 over all
    nodes that have edges.
    """

    x: FloatArray
    """(n, d) float64, in units that keep squares within range."""

    index: IndexArray
    """(n, m) candidates, -1 where there is none."""

    starts: IndexArray
    others: IndexArray
    factor: float
    """-1 / (2 sigma^2), in these units."""

    unit: float
    """A power of two: what a difference of 1 in ``x`` is in the features' unit."""

    @classmethod
    def of(
        cls, x: Any, index: IndexArray, distance: FloatArray, sigma: float
    ) -> Reconstruction:
        """Find the edges, and a unit in which none is longer than 1."""
        longest = float(distance.max(initial=0.0, where=index >= 0))
        unit = 2.0 ** math.frexp(longest)[1]
        index = frozen(np.ascontiguousarray(index))
        starts, others = edges_of(index)
        rows = np.multiply(x, 1.0 / unit, dtype=np.float64, order="C")
        # Beyond these all edges of a node weigh the same, or the shortest ones alone.
        width = min(max(sigma / unit, 1e-70), 1e70)
        return cls(rows, index, starts, others, -0.5 / width**2, unit)

    def __call__(self, scales: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient, in this unit's square."""
        slopes = np.zeros(len(scales))
        widest = max(1, int(np.diff(self.starts).max(initial=0)))
        rate = np.square(scales)
        objective = _rebuild(
            self.x, self.starts, self.others, widest, rate, self.factor, slopes
        )
        return objective, -4.0 * self.factor * scales * slopes

    def weights(self, scales: FloatArray) -> FloatArray:
        """Return (n, m) weights of the candidates, 0 where there is none.

        Both directions of an edge have the same weight: squares do not know the sign.
        """
        weights = np.zeros(self.index.shape)
        rate = np.square(scales)
        _weigh(self.x, self.index, rate, self.factor, weights)
        return weights


_WINDOW = 5
"""Steps that must bring little together: a single short one says nothing."""

_MEMORY = 10
"""Steps whose curvature is remembered."""

_ENOUGH = 1e-3
"""Share of the fall the gradient promises that makes a step good enough (Armijo)."""

_ROUNDING = 1e-15
"""A fall below this share of the value cannot be told from rounding."""


@dataclass(frozen=True)
class Descent:
    """Where a descent ended, and how it got there."""

    point: FloatArray
    trace: list[float]
    """The value at the start and after every step."""

    norms: list[float]
    """The norm of the gradient at the start and after every step."""

    converged: bool

    @property
    def fall(self) -> float:
        """Share of its value that the function lost in the last steps."""
        return _fall(self.trace)


def descend(
    function: Function,
    point: FloatArray,
    *,
    iterations: int,
    tolerance: float,
    on_step: Callable[[int], object] = lambda _: None,
) -> Descent:
    """Follow quasi-Newton directions (L-BFGS) downhill; every step lowers the value.

    It has converged when the last steps together lowered the value by less than the
    tolerance, relative to the value, or when no step lowers it any more.
    """
    value, gradient = function(point)
    trace, norms = [value], [_norm(gradient)]
    memory: list[tuple[FloatArray, FloatArray]] = []
    converged = False
    while not converged and len(trace) <= iterations:
        direction = _direction(gradient, memory, longest=max(1.0, _norm(point)))
        step = _step(function, point, value, gradient, direction)
        if step is None:
            converged, memory = not memory, []
            continue
        move, value, after = step
        point, change, gradient = point + move, after - gradient, after
        # Changes so small that their squares vanish say nothing about the curvature.
        known = _dot(change, change) > 0
        if known and _dot(move, change) > 1e-10 * _norm(move) * _norm(change):
            memory = [*memory, (move, change)][-_MEMORY:]
        trace.append(value)
        norms.append(_norm(gradient))
        on_step(1)
        converged = len(trace) > _WINDOW and _fall(trace) < tolerance
    return Descent(point, trace, norms, converged)


def _fall(trace: list[float]) -> float:
    before = trace[max(0, len(trace) - 1 - _WINDOW)]
    return (before - trace[-1]) / before if before > 0 else 0.0


def _direction(
    gradient: FloatArray,
    memory: list[tuple[FloatArray, FloatArray]],
    *,
    longest: float,
) -> FloatArray:
    """Return minus the gradient times the inverse curvature that memory knows of.

    Without memory it has length 1. It is never longer than it may be: far away the
    curvature is another one.
    """
    norm = _norm(gradient)
    if norm == 0 or not memory:
        return -gradient / (norm or 1.0)
    direction, shares = -gradient, []
    for move, change in reversed(memory):
        share = _dot(move, direction) / _dot(move, change)
        direction = direction - share * change
        shares.append(share)
    move, change = memory[-1]
    direction = direction * (_dot(move, change) / _dot(change, change))
    for (move, change), share in zip(memory, reversed(shares), strict=True):
        direction = direction + move * (
            share - _dot(change, direction) / _dot(move, change)
        )
    return direction * min(1.0, longest / _norm(direction))


def _step(
    function: Function,
    point: FloatArray,
    value: float,
    gradient: FloatArray,
    direction: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Return the first good move along a direction, the value and gradient there.

    None where the fall to be expected gets lost in rounding.
    """
    slope, length = _dot(gradient, direction), 1.0
    while -slope * length > _ROUNDING * value:
        move = length * direction
        found, after = function(point + move)
        if found < value and found <= value + _ENOUGH * length * slope:
            return move, found, after
        # the bottom of the parabola through what is known, within bounds
        bottom = -0.5 * slope * length**2 / (found - value - slope * length)
        length = min(max(bottom, 0.1 * length), 0.5 * length)
    return None


def _dot(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product, rounded once: the same on every machine."""
    return math.fsum((a * b).tolist())


def _norm(a: FloatArray) -> float:
    largest = float(np.abs(a).max(initial=0.0))
    return largest * math.sqrt(_dot(a / largest, a / largest)) if largest > 0 else 0.0


@dataclass(frozen=True)
class Aew(Plain):
    """Gaussian weights whose feature scales rebuild nodes from their neighbors best."""

    local: ClassVar[bool] = False
    dense: ClassVar[bool] = True

    iterations: int = 100
    """The most steps to take, at least 1."""

    tolerance: float = 1e-4
    """Stop when five steps together lower the error by less than this share of it."""

    def __post_init__(self) -> None:
        if self.iterations < 1:
            what = f"at least 1, not {self.iterations}"
            raise ParameterError(f"method 'aew': iterations must be {what}")
        if not 0 < self.tolerance < math.inf:
            what = f"a number above 0, not {self.tolerance:g}"
            raise ParameterError(f"method 'aew': tolerance must be {what}")

    def check(self, kernel: Kernel, /) -> None:
        """Refuse all but a Gaussian kernel with one bandwidth for all nodes."""
        name = type(kernel).__module__.rpartition(".")[2]
        if name != "gaussian":
            raise ParameterError(
                f"method 'aew' weighs by a Gaussian of its own scales and cannot use "
                f"kernel {name!r}: use kernel gaussian"
            )
        if getattr(kernel, "sigma", None) == "local":
            raise ParameterError(
                "method 'aew' needs one sigma for all nodes, or the two directions of "
                "an edge would differ: use another sigma than 'local'"
            )

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the weights at the scales where the error has settled."""
        sigma: float = problem.kernel.sigma  # type: ignore[attr-defined]
        error = Reconstruction.of(problem.x, problem.index, problem.distance, sigma)
        found = descend(
            error,
            np.ones(problem.x.shape[1]),
            iterations=self.iterations,
            tolerance=self.tolerance,
            on_step=problem.on_step,
        )
        first, last = found.norms[0], found.norms[-1]
        facts = {
            "iterations": len(found.trace) - 1,
            "gradient_norm": last * error.unit**2,
            "gradient_norm_relative": last / first if first > 0 else 0.0,
            "objective": [found.trace[at] * error.unit**2 for at in (0, -1)],
        }
        weights = error.weights(found.point)
        return Neighborhoods(weights, facts=facts, failure=self._failure(found))

    def _failure(self, found: Descent) -> str:
        if found.converged:
            return ""
        return (
            f"aew did not converge: after {self.iterations} iterations the last ones "
            f"still lowered its error by {found.fall:.2g} of it (tolerance "
            f"{self.tolerance:g}): use more iterations or a larger tolerance"
        )


plugin: type[Method] = Aew
