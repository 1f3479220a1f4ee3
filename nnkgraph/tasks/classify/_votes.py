"""From weights of neighbors to weights of classes, and to the class that wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.duplicates import Rows

_TIE = 1e-12
"""Classes closer than this share to the best count as equal: sums are rounded."""


def shares_of_classes(rows: Rows, codes: IndexArray, classes: int) -> Any:
    """Return the classes of the distinct rows: the mean one-hot label of all copies."""
    from scipy.sparse import coo_array

    place = np.arange(len(codes))
    if rows.origin is not None and rows.first is not None:
        place = np.searchsorted(rows.origin, rows.first)
    shape = len(rows.x), classes
    counts = coo_array((np.ones(len(codes)), (place, codes)), shape).tocsr()
    counts.sort_indices()
    counts.data /= np.repeat(np.bincount(place), np.diff(counts.indptr))
    return counts


def class_weights(
    weights: FloatArray,
    index: IndexArray,
    shares: tuple[Any, ...],
    classes: int,
) -> FloatArray:
    """Return the (b, classes) shares of the neighbors' weights.

    Where no candidate has a weight (all similarities vanish, say), the nearest one has
    it all.
    """
    from scipy.sparse import csr_array

    b, m = index.shape
    some = (weights > 0).any(axis=1, keepdims=True)
    weights = np.where(some, weights, np.arange(m) == 0)
    indptr = np.arange(0, b * m + 1, m)
    rows = len(shares[2]) - 1
    given = csr_array((weights.ravel(), index.ravel(), indptr), (b, rows))
    votes: FloatArray = (given @ csr_array(shares, (rows, classes))).toarray()
    votes /= votes.sum(axis=1, keepdims=True)
    return votes


def winners(votes: FloatArray) -> IndexArray:
    """Return the heaviest class of every row, the first of equals."""
    best = votes.max(axis=1, keepdims=True)
    winner: IndexArray = (votes >= best * (1.0 - _TIE)).argmax(axis=1)
    return winner
