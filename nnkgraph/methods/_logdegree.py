"""Graph learning with logarithms of degrees: the weights for given costs of edges.

Over weights w >= 0 of the allowed edges, 2 w . z - sum(log degree) + |w|^2 is least
where w = max(0, a + b - 2 z) / 2 for the prices a and b of an edge's ends, and where
every node's price is 1 / degree. The prices minimize |w|^2 - sum(log price), a convex
function with one number per node: Newton's method finds them in a few steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.methods._forest import newton_step
from nnkgraph.methods._prices import Springs

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray
    from nnkgraph.methods._edges import Edges
    from nnkgraph.methods._prices import Point

_TOLERANCE, _ROUGH = 1e-11, 0.1
"""How far price * degree may be from 1 in the end, and on the way there."""

_SOFTER, _SOFTEST = 0.1, 1e-14
"""How much of their extra penalty long edges keep from one stage to the next.

The last of it changes conditions by no more than rounding does, and keeps weights
within reach of floating-point numbers, however far apart nodes are.
"""

_STEPS, _ALL_STEPS = 60, 500
"""Newton steps of one stage and of all; five and seven are usual."""

_LARGEST = 1e120
"""Larger costs count as this one, or their squares would leave float64."""

_NEGLIGIBLE = 1e-8
"""Weights below this share of the heaviest one at both ends are no edges."""


@dataclass(frozen=True)
class Solution:
    """The weights of the allowed edges."""

    weights: FloatArray
    """(e,) zero where there is no edge."""

    certificate: float
    """Violation of the optimality conditions, relative to the largest two prices."""

    worst: float
    """The same, for every edge relative to the prices of its own ends."""

    steps: int
    """Newton steps that were made."""


def solve(
    edges: Edges, z: FloatArray, on_step: Callable[[int], object] = lambda _: None
) -> Solution:
    """Find the best weights.

    Where nodes are far from all others, prices have to fit each other to many digits,
    and Newton's method would creep from corner to corner. So long edges begin with a
    larger penalty than |w|^2, which goes down in stages.

    Parameters
    ----------
    edges : Edges
        The allowed edges.
    z : (e,) array
        Their costs: theta times the squared distance.
    on_step : callable
        Hears of every Newton step.
    """
    z = np.minimum(z, _LARGEST)
    prices = _first_prices(edges, z)
    least = max(_SOFTEST, 1.0 / max(1.0, float(z.max())) ** 2)
    softness, steps = max(_SOFTER, least), 0
    while True:
        last = softness <= least
        point = Springs(edges, z, 0.5 / np.maximum(1.0, softness * z**2)).at(prices)
        most = min(steps + _STEPS, _ALL_STEPS)
        while steps < most and np.abs(point.gap).max() > (
            _TOLERANCE if last else _ROUGH
        ):
            point = _improved(point)
            steps += 1
            on_step(1)
        if last:
            return _judged(edges, z, point.weights, steps)
        prices = point.prices
        softness = max(softness * _SOFTER, least)


def _first_prices(edges: Edges, z: FloatArray) -> FloatArray:
    """Return what a node would pay for one edge to a node that pays as much."""
    nearest = np.full(edges.n, np.inf)
    np.minimum.at(nearest, edges.one, z)
    np.minimum.at(nearest, edges.two, z)
    prices: FloatArray = np.zeros((2, edges.n))
    prices[0] = nearest / 2.0 + np.sqrt(nearest**2 / 4.0 + 1.0)
    return prices


def _improved(point: Point) -> Point:
    """Make one Newton step, shortened until the function goes down."""
    edges, price = point.springs.edges, point.prices[0]
    on = point.weights > 0
    step = newton_step(
        edges.one[on],
        edges.two[on],
        point.springs.stiffness[on],
        price,
        1.0 / price - point.degree,
        min(0.1, max(1e-10, float(np.sqrt((point.gap**2).mean())))),
    )
    length = 0.9 / max(0.9, float((-step / price).max()))  # prices stay positive
    slope, (value, size) = point.slope(step), point.value()
    moved = point
    for _ in range(40):
        moved = point.moved(length * step)
        # Near the end values no longer tell better from worse, but slopes do.
        down = moved.value()[0] <= value + 1e-12 * size
        if down and moved.slope(step) <= -0.8 * slope:
            break
        length *= 0.5
    return moved


def _judged(edges: Edges, z: FloatArray, weights: FloatArray, steps: int) -> Solution:
    """Drop what is no edge, and check the conditions on what is left."""
    top = np.zeros(edges.n)
    np.maximum.at(top, edges.one, weights)
    np.maximum.at(top, edges.two, weights)
    small = weights < _NEGLIGIBLE * np.minimum(top[edges.one], top[edges.two])
    weights = np.where(small, 0.0, weights)
    degree = np.bincount(edges.one, weights, edges.n)
    degree += np.bincount(edges.two, weights, edges.n)
    if not (degree > 0).all():  # the whole price of such a node is unexplained
        return Solution(weights, 1.0, 1.0, steps)
    pay = 1.0 / degree[edges.one] + 1.0 / degree[edges.two]
    loss = 2.0 * z - pay + 2.0 * weights
    loss = np.where(weights > 0, np.abs(loss), np.maximum(-loss, 0.0))
    worst = float((loss / pay).max())
    return Solution(weights, float(loss.max() / pay.max()), worst, steps)
