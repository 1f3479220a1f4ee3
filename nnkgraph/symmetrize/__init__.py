"""From directed weights to a graph: the rules that decide which side counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.compiled import frozen
from nnkgraph.errors import ParameterError
from nnkgraph.search import index_dtype
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
    matrix, dropped = _joined(
        candidates.index,
        found,
        rule,
        min_weight,
        _heaviest(candidates.index, found.weights, min_degree),
        np.ones(n) if own is None else own,
        np.arange(n) if first is None else first,
    )
    return matrix, dropped


def _joined(
    index: IndexArray,
    found: Neighborhoods,
    rule: str,
    min_weight: float,
    heavy: NDArray[np.bool_],
    own: FloatArray,
    first: IndexArray,
) -> tuple[csr_array, int]:
    """Join the two directions of every pair; return the matrix and what was dropped."""
    from scipy.sparse import csr_array

    n = len(index)
    if found.errors is None and rule.startswith("error"):
        raise ParameterError(f"rule {rule!r} needs the errors of the nodes")
    errors = np.zeros(n) if found.errors is None else found.errors
    task = (
        frozen(index),
        frozen(found.weights),
        frozen(errors),
        list(RULES).index(rule),
        min_weight,
        frozen(heavy),
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
    matrix = csr_array((data, indices, start.astype(indices.dtype)), (n, n))
    matrix.has_canonical_format = True
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    return matrix, int(dropped)


def _heaviest(index: IndexArray, weights: FloatArray, count: int) -> NDArray[np.bool_]:
    """Mark each row's heaviest positive weights; ties go to the lower node number."""
    marked = np.zeros(index.shape, np.bool_)
    if count > 0:
        order = np.lexsort((index, -weights), axis=1)[:, :count]
        np.put_along_axis(marked, order, values=True, axis=1)
        marked &= weights > 0
    return marked
