"""Graph learning with logarithms of degrees: the weights for given costs of edges.

Over weights w >= 0 of the allowed edges, 2 w . z - sum(log degree) + |w|^2 is least
where w = max(0, a + b - 2 z) / 2 for the prices a and b of an edge's ends, and where
every node's price is 1 / degree. The prices minimize |w|^2 - sum(log price), a convex
function with one number per node: Newton's method finds them in a few steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.jit import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray


@dataclass(frozen=True)
class Edges:
    """Pairs of nodes; every node has at least one."""

    n: int
    """Number of nodes."""

    one: IndexArray
    """(e,) the lower end of each edge."""

    two: IndexArray
    """(e,) the upper end."""


@dataclass(frozen=True)
class Allowed:
    """The edges of all candidates, and where each of them came from."""

    edges: Edges
    """Between the nodes that have an edge at all, in their order."""

    length: FloatArray
    """(e,) their distances."""

    row: IndexArray
    """(p,) rows of the candidates that are there."""

    column: IndexArray
    """(p,) columns of the candidates that are there."""

    place: IndexArray
    """(p,) numbers of their edges."""

    @property
    def unit(self) -> int:
        """The power of two that a typical length is near."""
        there = self.length[self.length > 0]
        return math.frexp(float(np.median(there)))[1] if len(there) else 0

    def spread(self, weights: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Return the weights of edges at the places of the candidates."""
        out = np.zeros(shape)
        out[self.row, self.column] = weights[self.place]
        return out


def allowed_edges(index: IndexArray, distance: FloatArray) -> Allowed:
    """Join the directions of all candidates.

    Parameters
    ----------
    index : (n, m) array of int
        Candidates, -1 where there is none.
    distance : (n, m) array
        Their distances.
    """
    n = len(index)
    row, column = np.nonzero(index >= 0)
    other = index[row, column].astype(np.int64)
    pairs, place = np.unique(
        np.minimum(row, other) * n + np.maximum(row, other), return_inverse=True
    )
    # The two directions may differ in their last digit, but an edge has one length.
    length = np.full(len(pairs), np.inf)
    np.minimum.at(length, place, distance[row, column])
    ends = np.stack([pairs // max(n, 1), pairs % max(n, 1)])
    used = np.zeros(n, np.bool_)
    used[ends] = True
    small = np.int32 if n < 2**31 else np.int64
    one, two = (np.cumsum(used) - 1)[ends].astype(small)
    return Allowed(Edges(int(used.sum()), one, two), length, row, column, place)


def squared(distance: FloatArray, unit: int) -> FloatArray:
    """Return squared distances in units of 2^unit, which costs no digits.

    Tiny and huge features look alike then. What leaves the range is infinitely far.
    """
    with np.errstate(over="ignore"):
        squares: FloatArray = np.ldexp(distance, -unit) ** 2
    return squares


def _exact_sum(a: Any, b: Any) -> Any:
    """Return the rounded sum and what rounding has lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


_exact_sum_of_two = compiled(_exact_sum)


@compiled
def _weigh(
    one: Any, two: Any, z: Any, stiffness: Any, prices: Any, weights: Any, degree: Any
) -> None:
    degree[:] = 0.0
    for e in range(one.shape[0]):
        i, j = one[e], two[e]
        total, lost = _exact_sum_of_two(prices[0, i], prices[0, j])
        rest, lost_too = _exact_sum_of_two(total, -2.0 * z[e])
        rest += lost + lost_too + (prices[1, i] + prices[1, j])
        weights[e] = stiffness[e] * rest if rest > 0.0 else 0.0
        degree[i] += weights[e]
        degree[j] += weights[e]


@dataclass(frozen=True)
class Springs:
    """Edges whose weight grows with what their ends pay above their cost."""

    edges: Edges
    """Where they are."""

    z: FloatArray
    """(e,) half of what they cost."""

    stiffness: FloatArray
    """(e,) weight for every unit above the cost."""

    def at(self, prices: FloatArray) -> Point:
        """Return the weights for (2, n) prices: main parts and remainders."""
        weights, degree = np.empty(len(self.z)), np.empty(self.edges.n)
        _weigh(
            self.edges.one,
            self.edges.two,
            self.z,
            self.stiffness,
            prices,
            weights,
            degree,
        )
        return Point(self, prices, weights, degree)


@dataclass(frozen=True)
class Point:
    """Prices, and the function of them that is to be minimized."""

    springs: Springs
    prices: FloatArray
    weights: FloatArray
    degree: FloatArray

    @property
    def gap(self) -> FloatArray:
        """(n,) price * degree - 1, which is zero in the end."""
        gap: FloatArray = self.prices[0] * self.degree - 1.0
        return gap

    def slope(self, along: FloatArray) -> float:
        """Return the derivative along a direction."""
        return float((self.gap * (along / self.prices[0])).sum())

    def value(self) -> tuple[float, float]:
        """Return the function, and the size of what it is the difference of."""
        squares = float((self.weights**2 / (2.0 * self.springs.stiffness)).sum())
        logs = np.log(self.prices[0])
        return squares - float(logs.sum()), squares + float(np.abs(logs).sum())

    def moved(self, by: FloatArray) -> Point:
        """Return the point where prices are higher by so much."""
        prices = _exact_sum(self.prices[0], self.prices[1] + by)
        return self.springs.at(np.stack(prices))


_STIFF = 10.0
"""Edges whose stiffness * price^2 is above this at some end are in the forest."""

_FOREST_STEPS = 300
"""Steps of conjugate gradients after which it ends anyway; ten are usual."""


@compiled
def _root(head: Any, i: int) -> int:
    while head[i] != i:
        head[i] = head[head[i]]
        i = head[i]
    return i


@compiled
def _grow(one: Any, two: Any, stiff: Any, chosen: Any, head: Any) -> None:
    """Choose edges that close no circle, in the order they are given in."""
    for e in stiff:
        a, b = _root(head, one[e]), _root(head, two[e])
        if a != b:
            head[b] = a
            chosen[e] = True


@compiled
def _peel(
    one: Any, two: Any, chosen: Any, order: Any, parent: Any, count: Any, edge: Any
) -> int:
    """Take leaves off the forest: set their order, parents and edges to them."""
    for e in range(one.shape[0]):
        if chosen[e]:
            for i in (one[e], two[e]):
                count[i] += 1
                edge[i] ^= e  # what is left when all other edges are gone
    found = 0
    for start in range(count.shape[0]):
        i = start
        while count[i] == 1:
            j = one[edge[i]] + two[edge[i]] - i
            order[found], parent[i] = i, j
            found += 1
            count[i] = 0
            count[j] -= 1
            edge[j] ^= edge[i]
            if j > start:
                break  # its own turn comes
            i = j
    return found


@compiled
def _solve_forest(forest: Any, pivot: Any, b: Any, x: Any, sums: Any) -> None:
    """Solve the system of the forest; ``sums`` are x at a node and at its parent.

    ``pivot`` is what holds a node and all below it: sums of positive numbers only.
    """
    order, parent, gain = forest
    for i in range(b.shape[0]):
        x[i] = b[i]
    for i in order:
        x[parent[i]] -= gain[i] / (gain[i] + pivot[i]) * x[i]
    for i in range(b.shape[0]):
        if parent[i] < 0:
            x[i] /= pivot[i]
    for place in range(order.shape[0] - 1, -1, -1):
        i = order[place]
        above, own, both = x[parent[i]], x[i], gain[i] + pivot[i]
        x[i] = (own - gain[i] * above) / both
        sums[i] = (own + pivot[i] * above) / both


@compiled
def _product(edges: Any, forest: Any, own: Any, x: Any, sums: Any, out: Any) -> None:
    """Multiply x by the matrix, with its sums along the edges of the forest."""
    for i in range(x.shape[0]):
        out[i] = own[i] * x[i]
    one, two, stiffness = edges
    for e in range(one.shape[0]):
        force = stiffness[e] * (x[one[e]] + x[two[e]])
        out[one[e]] += force
        out[two[e]] += force
    order, parent, gain = forest
    for i in order:
        force = gain[i] * sums[i]
        out[i] += force
        out[parent[i]] += force


@compiled
def _pivots(edges: Any, forest: Any, own: Any) -> Any:
    """Return the pivots of the forest; other edges count at their ends only."""
    one, two, stiffness = edges
    order, parent, gain = forest
    pivot = own.copy()
    for e in range(one.shape[0]):
        pivot[one[e]] += stiffness[e]
        pivot[two[e]] += stiffness[e]
    for i in order:
        pivot[parent[i]] += gain[i] * pivot[i] / (gain[i] + pivot[i])
    return pivot


@compiled
def _inner(a: Any, b: Any) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled
def _conjugate(
    edges: Any, forest: Any, own: Any, left: Any, accuracy: float, most: int
) -> Any:
    """Solve by conjugate gradients.

    ``edges`` are the ends and stiffness of those outside the forest, ``forest`` the
    order of its leaves, their parents and the stiffness of the edge to the parent.
    """
    n = own.shape[0]
    pivot = _pivots(edges, forest, own)
    x, along, sums, product = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    solved, solved_sums = np.zeros(n), np.zeros(n)
    _solve_forest(forest, pivot, left, solved, solved_sums)
    size, before = _inner(left, solved), np.inf
    goal = accuracy**2 * size
    for _ in range(most):
        for i in range(n):
            along[i] = solved[i] + size / before * along[i]
            sums[i] = solved_sums[i] + size / before * sums[i]
        _product(edges, forest, own, along, sums, product)
        length = size / _inner(along, product)
        for i in range(n):
            x[i] += length * along[i]
            left[i] -= length * product[i]
        _solve_forest(forest, pivot, left, solved, solved_sums)
        before, size = size, _inner(left, solved)
        if not size > goal:
            break
    return x


def newton_step(
    one: Any, two: Any, stiffness: Any, price: Any, left: Any, accuracy: float
) -> Any:
    """Solve (diag(1 / price^2) + edges) x = left.

    Parameters
    ----------
    one, two : (e,) arrays of int
        Ends of the edges with a weight.
    stiffness : (e,) array
        What each of them adds to the matrix at all four places of its ends.
    price, left : (n,) arrays
        The prices, and the right-hand side, which is lost.
    accuracy : float
        How far the residual goes down, in the norm of the preconditioner.

    Returns
    -------
    (n,) array
    """
    n = len(price)
    a, b = price[one], price[two]
    stiff = np.flatnonzero(stiffness * np.maximum(a, b) ** 2 > _STIFF)
    first = np.argsort(-(stiffness * a * b)[stiff], kind="stable")
    chosen = np.zeros(len(one), np.bool_)
    _grow(one, two, stiff[first], chosen, np.arange(n))
    order, parent = np.empty(n, np.int64), np.full(n, -1)
    count, edge = np.zeros(n, np.int64), np.zeros(n, np.int64)
    order = order[: _peel(one, two, chosen, order, parent, count, edge)]
    gain = np.zeros(n)
    gain[order] = stiffness[edge[order]]
    others = one[~chosen], two[~chosen], stiffness[~chosen]
    own = 1.0 / price**2
    return _conjugate(others, (order, parent, gain), own, left, accuracy, _FOREST_STEPS)


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
