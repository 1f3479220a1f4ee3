"""From directed weights to a graph: the rules that decide which side counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.blockwise import row_slices
from nnkgraph.bounded import memory_limit, new_array
from nnkgraph.compiled import frozen
from nnkgraph.errors import ParameterError
from nnkgraph.search import index_dtype
from nnkgraph.symmetrize._external import Rule, join_external
from nnkgraph.symmetrize._join import join_pairs

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


_BYTES = 36
"""What a candidate takes while all are in memory: it, its weight, its two edges."""


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
    n = len(candidates.index)
    if rule == "none":
        return _directed(candidates.index, found.weights, min_weight)
    matrix, dropped = _joined(
        candidates.index,
        found,
        rule,
        min_weight,
        min_degree,
        np.ones(n) if own is None else own,
        np.arange(n) if first is None else first,
    )
    return matrix, dropped


def _joined(
    index: IndexArray,
    found: Neighborhoods,
    rule: str,
    min_weight: float,
    min_degree: int,
    own: FloatArray,
    first: IndexArray,
) -> tuple[csr_array, int]:
    """Join the two directions of every pair; return the matrix and what was dropped."""
    n = len(index)
    if found.errors is None and rule.startswith("error"):
        raise ParameterError(f"rule {rule!r} needs the errors of the nodes")
    errors = np.zeros(n) if found.errors is None else found.errors

    def heavy(rows: slice) -> NDArray[np.bool_]:
        return _heaviest(index[rows], found.weights[rows], min_degree)

    if index.size * _BYTES > memory_limit() // 4:
        how = Rule(list(RULES).index(rule), min_weight, errors, own, first)
        parts, dropped = join_external(index, found.weights, heavy, how)
        return _matrix(*parts), dropped
    task = (
        frozen(index),
        frozen(found.weights),
        frozen(errors),
        list(RULES).index(rule),
        min_weight,
        frozen(heavy(slice(None))),
        frozen(own),
        frozen(first),
    )
    start = np.zeros(n + 1, np.int64)
    nothing = np.empty(0, index_dtype(n)), np.empty(0)
    dropped = join_pairs(*task, start[1:], False, *nothing)
    np.cumsum(start, out=start)
    edges = int(start[-1])
    indices, data = np.empty(edges, index_dtype(max(n, edges))), np.empty(edges)
    join_pairs(*task, start[:-1].copy(), True, indices, data)
    matrix = _matrix(data, indices, start.astype(indices.dtype))
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    return matrix, int(dropped)


def _matrix(data: FloatArray, indices: IndexArray, indptr: IndexArray) -> csr_array:
    """Return rows that have every column once as a matrix."""
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    parts: Any = (data, indices, indptr)
    matrix = csr_array(parts, (n, n))
    matrix.has_canonical_format = True
    return matrix


def _directed(
    index: IndexArray, weights: FloatArray, min_weight: float
) -> tuple[csr_array, int]:
    """Return all neighborhoods as rows, and how many positive weights they lack."""
    n, m = index.shape
    start, positive = np.zeros(n + 1, np.int64), 0
    for rows in row_slices(n, 32 * m):
        kept = (weights[rows] >= min_weight) & (weights[rows] > 0)
        start[rows.start + 1 : rows.stop + 1] = kept.sum(axis=1)
        positive += int((weights[rows] > 0).sum())
    np.cumsum(start, out=start)
    edges = int(start[-1])
    indices = new_array(edges, index_dtype(max(n, edges)))
    data = new_array(edges, np.float64)
    for rows in row_slices(n, 32 * m):
        kept = (weights[rows] >= min_weight) & (weights[rows] > 0)
        row, target, weight = kept.nonzero()[0], index[rows][kept], weights[rows][kept]
        order = np.lexsort((target, row))
        place = slice(start[rows.start], start[rows.stop])
        indices[place], data[place] = target[order], weight[order]
    return _matrix(data, indices, start.astype(indices.dtype)), positive - edges


def _heaviest(index: IndexArray, weights: FloatArray, count: int) -> NDArray[np.bool_]:
    """Mark each row's heaviest positive weights; ties go to the lower node number."""
    marked = np.zeros(index.shape, np.bool_)
    if count > 0:
        order = np.lexsort((index, -weights), axis=1)[:, :count]
        np.put_along_axis(marked, order, values=True, axis=1)
        marked &= weights > 0
    return marked
