"""Minimize a smooth function whose every step costs a walk over all edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray

    Function = Callable[[FloatArray], tuple[float, FloatArray]]
    """Returns a value that is not negative, and its gradient."""

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
