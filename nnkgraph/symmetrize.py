"""From directed weights to a graph: the rules that decide which side counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data import Candidates, FloatArray, IndexArray, Neighborhoods

RULES = {
    "error": "the smaller error wins; only mutual candidates (the paper's Algorithm 3)",
    "error-union": "the smaller error wins; a one-sided candidate keeps its weight",
    "max": "the larger of the two weights",
    "mean": "the mean of the two weights, a missing one is 0",
    "min": "the smaller of the two weights, a missing one is 0",
    "mutual": "the mean, where both weights are positive",
    "none": "directed: row i holds node i's neighborhood",
}

_TIE = 1e-12
"""Errors closer than this share of K_qq are equal: both directions count."""


@dataclass(frozen=True)
class _Pairs:
    """Every pair of nodes that is a candidate in at least one direction, once."""

    low: IndexArray
    high: IndexArray
    there: FloatArray
    """Weight of low -> high; 0 where it is no candidate."""
    back: FloatArray
    mutual: NDArray[np.bool_]
    """Whether both are candidates of each other."""
    protected: NDArray[np.bool_]
    """Whether one side holds it among its heaviest."""


def check_rule(rule: str, *, has_error: bool, method: str) -> None:
    """Refuse a rule that is unknown or asks for errors that the method lacks."""
    if rule not in RULES:
        raise ParameterError(f"unknown rule {rule!r}; choose from {', '.join(RULES)}")
    if rule.startswith("error") and not has_error:
        raise ParameterError(
            f"rule {rule!r} needs the error of every node, which method {method!r} "
            "does not have; use max, mean, min, mutual or none"
        )


def symmetrize(
    candidates: Candidates,
    found: Neighborhoods,
    *,
    rule: str,
    min_weight: float = 1e-8,
    min_degree: int = 0,
    own: FloatArray | None = None,
    first: IndexArray | None = None,
) -> tuple[csr_array, int]:
    """Turn directed weights into an adjacency matrix.

    Parameters
    ----------
    candidates, found
        The (n, m) candidates and their weights and errors.
    rule : str
        A name of ``RULES``.
    min_weight : float
        Lighter edges are dropped in the end.
    min_degree : int
        Each node's own so many heaviest directed edges stay, whatever the rule says.
    own : (n,) array, optional
        Every node's similarity with itself, which scales what counts as a tie.
    first : (n,) array of int, optional
        The lowest row with the same values, where rows may be identical.

    Returns
    -------
    adjacency : csr_array
        Canonical, and symmetric to the bit unless the rule is ``none``.
    dropped : int
        Pairs with a positive weight in some direction that got no edge.
    """
    from scipy.sparse import coo_array

    n = len(candidates.index)
    if rule == "none":
        row, column = np.nonzero((found.weights >= min_weight) & (found.weights > 0))
        target = candidates.index[row, column]
        matrix = coo_array((found.weights[row, column], (row, target)), (n, n)).tocsr()
        matrix.sort_indices()
        return matrix, int((found.weights > 0).sum()) - matrix.nnz
    pairs = _paired(candidates.index, found.weights, min_degree)
    weight = _weight(rule, pairs, found.errors, own, first)
    larger = np.maximum(pairs.there, pairs.back)
    too_light = (weight == 0) | (weight < min_weight)
    weight = np.where(pairs.protected & too_light, larger, weight)
    kept = (weight > 0) & (weight >= min_weight)
    low, high, weight = pairs.low[kept], pairs.high[kept], weight[kept]
    matrix = coo_array(
        (
            np.concatenate([weight, weight]),
            (np.concatenate([low, high]), np.concatenate([high, low])),
        ),
        (n, n),
    ).tocsr()
    matrix.sort_indices()
    return matrix, int((larger > 0).sum()) - len(weight)


def _paired(index: IndexArray, weights: FloatArray, min_degree: int) -> _Pairs:
    """Bring the two directions of every pair together by sorting."""
    n, m = index.shape
    row = np.repeat(np.arange(n), m)
    column = index.ravel().astype(np.int64)
    known = column >= 0
    heavy = _heaviest(index, weights, min_degree).ravel()[known]
    row, column, weight = row[known], column[known], weights.ravel()[known]
    key = np.minimum(row, column) * n + np.maximum(row, column)
    order = np.argsort(key, kind="stable")
    key = key[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    place = np.empty(len(key), np.int64)
    place[order] = np.cumsum(new) - 1
    pairs = int(new.sum())
    forward = row < column
    there, back = np.zeros(pairs), np.zeros(pairs)
    there[place[forward]] = weight[forward]
    back[place[~forward]] = weight[~forward]
    protected = np.zeros(pairs, np.bool_)
    protected[place[heavy]] = True
    mutual = np.bincount(place, minlength=pairs) == 2
    low, high = np.divmod(key[new], n)
    return _Pairs(low, high, there, back, mutual, protected)


def _heaviest(index: IndexArray, weights: FloatArray, count: int) -> NDArray[np.bool_]:
    """Mark each row's heaviest positive weights; ties go to the lower node number."""
    marked = np.zeros(index.shape, np.bool_)
    if count > 0:
        order = np.lexsort((index, -weights), axis=1)[:, :count]
        np.put_along_axis(marked, order, values=True, axis=1)
        marked &= weights > 0
    return marked


def _weight(
    rule: str,
    pairs: _Pairs,
    errors: FloatArray | None,
    own: FloatArray | None,
    first: IndexArray | None,
) -> FloatArray:
    """Return the weight of every pair under a rule; zero means no edge."""
    there, back = pairs.there, pairs.back
    larger = np.maximum(there, back)
    if rule == "max":
        return larger
    if rule == "mean":
        return (there + back) / 2
    if rule == "min":
        return np.minimum(there, back)
    if rule == "mutual":
        return np.where((there > 0) & (back > 0), (there + back) / 2, 0.0)
    if errors is None:
        raise ParameterError(f"rule {rule!r} needs the errors of the nodes")
    low, high = errors[pairs.low], errors[pairs.high]
    unit = np.ones(1) if own is None else np.maximum(own[pairs.low], own[pairs.high])
    chosen = np.where(low < high, there, back)
    chosen = np.where(np.abs(low - high) <= _TIE * unit, larger, chosen)
    one_sided = larger if rule == "error-union" else np.zeros_like(larger)
    if first is not None:
        same = first[pairs.low] == first[pairs.high]
        one_sided = np.where(same, larger, one_sided)
    return np.where(pairs.mutual, chosen, one_sided)
