"""Prices of nodes, and the weights of edges that follow from them.

Prices have two parts: the weight of a far node is about 1 / z, but it is a difference
of numbers that are as large as z, and nothing that is rounded off may get lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray
    from nnkgraph.methods._edges import Edges


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
