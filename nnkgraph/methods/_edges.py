"""The undirected edges that candidates allow, each of them once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
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
