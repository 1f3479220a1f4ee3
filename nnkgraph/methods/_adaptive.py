"""How well weighted neighbors rebuild every node, and how that depends on the weights.

Only differences of rows enter, never the rows themselves: nothing depends on where the
origin lies, and there is nothing to center.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import compiled, frozen, inlined
from nnkgraph.exponential import exponentials
from nnkgraph.lanes import inner_product

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray

_GROUP = 8
"""Room behind the similarities of a node, to exponentiate whole groups of them."""


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


@inlined
def _differences(x: Any, i: int, j: int, delta: Any, square: Any, t: int) -> None:
    """Set row t to x[i] - x[j], and to the squares of that."""
    for f in range(x.shape[1]):
        difference = x[i, f] - x[j, f]
        delta[t, f] = difference
        square[t, f] = difference * difference


@inlined
def _add(values: Any, t: int, factor: float, out: Any) -> None:
    """Add a multiple of row t."""
    for f in range(values.shape[1]):
        out[0, f] += factor * values[t, f]


@compiled
def _shares(share: Any, count: int, factor: float) -> None:
    """Turn the squared lengths of a node's edges into shares that sum to 1.

    Lengths are counted from the shortest one, so that they never vanish all.
    """
    least = share[0, 0]
    for t in range(1, count):
        least = min(least, share[0, t])
    for t in range(count):
        share[0, t] -= least
    exponentials(share, 0, count, factor)
    total = 0.0
    for t in range(count):
        total += share[0, t]
    for t in range(count):
        share[0, t] /= total


@compiled
def _rebuild(
    x: Any, starts: Any, others: Any, widest: int, rate: Any, factor: float, slopes: Any
) -> float:
    """Return the objective; add to ``slopes`` what its gradient is made from."""
    d = x.shape[1]
    delta, square = np.zeros((widest, d)), np.zeros((widest, d))
    share, residual = np.zeros((1, widest + _GROUP)), np.zeros((1, d))
    objective = 0.0
    for i in range(x.shape[0]):
        first, count = starts[i], starts[i + 1] - starts[i]
        if count == 0:
            continue
        for t in range(count):
            _differences(x, i, others[first + t], delta, square, t)
            share[0, t] = inner_product(square, t, rate, 0)
        _shares(share, count, factor)
        residual[:] = 0.0
        for t in range(count):
            _add(delta, t, share[0, t], residual)
        own = inner_product(residual, 0, residual, 0)
        objective += own
        for t in range(count):
            pull = own - inner_product(residual, 0, delta, t)
            _add(square, t, share[0, t] * pull, slopes)
    return objective


@compiled
def _weigh(x: Any, index: Any, rate: Any, factor: float, weights: Any) -> None:
    delta, square = np.zeros((1, x.shape[1])), np.zeros((1, x.shape[1]))
    m = index.shape[1]
    for i in range(index.shape[0]):
        for t in range(m):
            if index[i, t] >= 0:
                _differences(x, i, index[i, t], delta, square, 0)
                weights[i, t] = inner_product(square, 0, rate, 0)
        exponentials(weights, i, m, factor)
        for t in range(m):
            if index[i, t] < 0:
                weights[i, t] = 0.0


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
        slopes = np.zeros((1, len(scales)))
        widest = max(1, int(np.diff(self.starts).max(initial=0)))
        rate = np.square(scales)[np.newaxis]
        objective = _rebuild(
            self.x, self.starts, self.others, widest, rate, self.factor, slopes
        )
        return objective, -4.0 * self.factor * scales * slopes[0]

    def weights(self, scales: FloatArray) -> FloatArray:
        """Return (n, m) weights of the candidates, 0 where there is none.

        Both directions of an edge have the same weight: squares do not know the sign.
        """
        weights = np.zeros(self.index.shape)
        rate = np.square(scales)[np.newaxis]
        _weigh(self.x, self.index, rate, self.factor, weights)
        return weights
