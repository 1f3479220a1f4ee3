"""From directed weights to a graph: the rules that decide which side counts.

Every directed edge is written again at its target. A row of the graph is then its own
edges merged with those that arrive at it. Rows are joined in blocks, and arrays that
are large against the memory limit are mapped files.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import arrays
from nnkgraph.runtime.arrays import AnyArray, FloatArray, IndexArray, row_slices
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import index_dtype

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, Neighborhoods


RULES = {
    "error": "the smaller error wins; only mutual candidates (the paper's Algorithm 3)",
    "error-union": "the smaller error wins; a one-sided candidate keeps its weight",
    "max": "the larger of the two weights",
    "mean": "the mean of the two weights, a missing one is 0",
    "min": "the smaller of the two weights, a missing one is 0",
    "mutual": "the mean, where both weights are positive",
    "none": "directed: row i holds node i's neighborhood",
}

# The rules by their place in RULES.
_, _ERROR_UNION, _MAX, _MEAN, _MIN, _MUTUAL = range(6)

TIE = 1e-12
"""Errors closer than this share of K_qq are equal: both directions count."""

_BLOCK = 1 << 18
"""Directed edges in a block of rows at most: they fit into the processor's cache."""

_LEAST_BLOCK = 1 << 10

_EDGE_SHARE = 512
"""Bytes of the limit for each edge of a block, which takes 40 while it is joined."""


@compiled
def _edge(
    rule: int,
    min_weight: float,
    there: float,
    back: float,
    mutual: bool,
    protected: bool,
    copies: bool,
    lead: float,
    tie: float,
) -> float:
    """Return the weight of a pair's edge; zero where there is none.

    ``lead`` is how much smaller the error of the first node is.
    """
    larger = max(there, back)
    if rule == _MAX:
        weight = larger
    elif rule == _MEAN:
        weight = (there + back) / 2.0
    elif rule == _MIN:
        weight = min(there, back)
    elif rule == _MUTUAL:
        weight = (there + back) / 2.0 if there > 0.0 and back > 0.0 else 0.0
    elif not mutual:  # copies explain each other
        weight = larger if rule == _ERROR_UNION or copies else 0.0
    elif abs(lead) <= tie:
        weight = larger
    else:
        weight = there if lead > 0.0 else back
    if protected and (weight == 0.0 or weight < min_weight):
        return larger
    return weight if weight >= min_weight or protected else 0.0


@compiled
def count_incoming(index: Any, counts: Any) -> None:
    """Count the edges that arrive at every node."""
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if index[i, t] >= 0:
                counts[index[i, t]] += 1


@compiled
def deal_edges(
    source: Any,
    target: Any,
    weight: Any,
    group: Any,
    first: int,
    place: Any,
    sources: Any,
    targets: Any,
    weights: Any,
) -> None:
    """Put every edge at the end of the group that its target is in.

    ``group`` has the group of every node from ``first`` on, and ``place`` where the
    next edge of each group goes. Edges of a group stay in order.
    """
    for t in range(target.shape[0]):
        j = target[t]
        if j >= 0:
            at = place[group[j - first]]
            sources[at], targets[at], weights[at] = source[t], j, weight[t]
            place[group[j - first]] = at + 1


@compiled
def _is_protected(weight: float, j: int, least: float, last: int) -> bool:
    """Return whether an edge to node j is among its node's own heaviest."""
    return weight > 0.0 and (weight > least or (weight == least and j <= last))


@compiled
def join_rows(
    index: Any,
    order: Any,
    weights: Any,
    first: int,
    start: Any,
    source: Any,
    arriving: Any,
    known: Any,
    place: Any,
    fill: bool,
    columns: Any,
    values: Any,
) -> int:
    """Count the edges of some rows in ``place``, or fill them in from there on.

    ``order`` sorts every row of ``index``; what arrives at row i is sorted by source
    and stands from ``start[i]`` on. ``known`` is what `symmetrize` knows of all nodes.

    Returns how many pairs with a positive weight, of which the lower node is among the
    rows, got no edge.
    """
    rule, min_weight, errors, own, same, least, last = known
    m, n = index.shape[1], errors.shape[0]
    dropped = 0
    for row in range(index.shape[0]):
        i, t, s, stop = first + row, 0, start[row], start[row + 1]
        while t < m and index[row, order[row, t]] < 0:
            t += 1
        while t < m or s < stop:
            here = index[row, order[row, t]] if t < m else n
            there = source[s] if s < stop else n
            j = min(here, there)
            leaves, arrives, protected = 0.0, 0.0, False
            if here == j:
                leaves = weights[row, order[row, t]]
                protected = _is_protected(leaves, j, least[i], last[i])
                t += 1
            if there == j:
                arrives = arriving[s]
                protected = protected or _is_protected(arrives, i, least[j], last[j])
                s += 1
            if leaves <= 0.0 and arrives <= 0.0:
                continue
            low, high = min(i, j), max(i, j)
            weight = _edge(
                rule,
                min_weight,
                leaves if i < j else arrives,
                arrives if i < j else leaves,
                here == there,
                protected,
                same[i] == same[j],
                errors[high] - errors[low],
                TIE * max(own[i], own[j]),
            )
            if weight > 0.0:
                if fill:
                    columns[place[row]], values[place[row]] = j, weight
                place[row] += 1
            elif i < j:
                dropped += 1
    return dropped


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
) -> tuple[Any, int]:
    """Turn directed weights into an adjacency matrix (CSR), symmetric to the bit.

    Each node's own ``min_degree`` heaviest edges stay, whatever the rule says. ``own``
    has every node's similarity with itself, which scales what counts as a tie, and
    ``first`` the lowest row with the same values, where rows may be identical. Returned
    is also how many pairs with a positive weight in some direction got no edge.
    """
    index, weights, errors = candidates.index, found.weights, found.errors
    n = len(index)
    if rule == "none":
        return _directed(index, weights, min_weight)
    if errors is None and rule.startswith("error"):
        raise ParameterError(f"rule {rule!r} needs the errors of the nodes")
    known = (
        list(RULES).index(rule),
        float(min_weight),
        frozen(np.zeros(n) if errors is None else errors),
        frozen(np.ones(n) if own is None else own),
        frozen(np.arange(n) if first is None else first),
        *_least_protected(index, weights, min_degree),
    )
    blocks, start, source, arriving = _incoming(index, weights)
    indptr, dropped = np.zeros(n + 1, np.int64), 0

    def join(rows: slice, place: IndexArray, *out: Any) -> int:
        block = _plain(index, rows)
        span = slice(start[rows.start], start[rows.stop])
        leaving = block, np.argsort(block, axis=1), _plain(weights, rows), rows.start
        begin = start[rows.start : rows.stop + 1] - span.start
        arrived = begin, _plain(source, span), _plain(arriving, span)
        return int(join_rows(*leaving, *arrived, known, place, *out))

    nothing = np.empty(0, index_dtype(n)), np.empty(0)
    for rows in blocks:
        dropped += join(rows, indptr[1:][rows], False, *nothing)
    np.cumsum(indptr, out=indptr)
    edges = int(indptr[-1])
    indices = arrays.new_array(edges, index_dtype(max(n, edges)))
    data = arrays.new_array(edges, np.float64)
    for rows in blocks:
        join(rows, indptr[rows].copy(), True, np.asarray(indices), np.asarray(data))
    return _matrix(data, indices, indptr.astype(indices.dtype)), dropped


def _incoming(
    index: IndexArray, weights: FloatArray
) -> tuple[list[slice], IndexArray, IndexArray, FloatArray]:
    """Return blocks of rows, and all edges by target and then by source.

    The rows of a block have not too many edges, in both directions together. Those that
    arrive at node i stand from ``start[i]`` on; they have a source and a weight.
    """
    n, m = index.shape
    start = np.zeros(n + 1, np.int64)
    for rows in row_slices(n, 16 * m):
        count_incoming(_plain(index, rows), start[1:])
    np.cumsum(start, out=start)
    size = max(_LEAST_BLOCK, min(_BLOCK, arrays.memory_limit() // _EDGE_SHARE))
    both = start + m * np.arange(n + 1)
    inner = np.searchsorted(both, np.arange(size, both[-1], size))
    cuts = np.unique([0, *inner.tolist(), n])
    number = np.repeat(np.arange(len(cuts) - 1, dtype=np.int32), np.diff(cuts))
    # First by block, which is appending in few places, and then within each block:
    # appending at every node of a large graph would be all over a mapped file.
    total, place = int(start[-1]), start[cuts[:-1]]
    source, target = (
        arrays.new_array(total, index.dtype),
        arrays.new_array(total, index.dtype),
    )
    weight = arrays.new_array(total, np.float64)
    dealt = np.asarray(source), np.asarray(target), np.asarray(weight)
    for rows in row_slices(n, 32 * m):
        nodes = np.repeat(np.arange(rows.start, rows.stop, dtype=index.dtype), m)
        edges = nodes, index[rows].ravel(), weights[rows].ravel()
        deal_edges(*map(frozen, edges), number, 0, place, *dealt)
    blocks = [slice(*cut) for cut in itertools.pairwise(cuts.tolist())]
    for rows in blocks:
        span = slice(start[rows.start], start[rows.stop])
        copies = (frozen(array[span].copy()) for array in dealt)
        nodes = np.arange(rows.stop - rows.start, dtype=np.int32)
        deal_edges(*copies, nodes, rows.start, start[rows].copy(), *dealt)
    return blocks, start, source, weight


def _plain(array: AnyArray, part: slice) -> AnyArray:
    """Return a part of an array in the one layout that is compiled for."""
    return frozen(np.ascontiguousarray(array[part]))


def _matrix(data: FloatArray, indices: IndexArray, indptr: IndexArray) -> Any:
    """Return rows that have every column once as a matrix."""
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    parts: Any = (data, indices, indptr)
    matrix = csr_array(parts, (n, n))
    matrix.has_canonical_format = True
    return matrix


def _directed(
    index: IndexArray, weights: FloatArray, min_weight: float
) -> tuple[Any, int]:
    """Return all neighborhoods as rows, and how many positive weights they lack."""
    n, m = index.shape
    start, positive = np.zeros(n + 1, np.int64), 0
    for rows in row_slices(n, 32 * m):
        kept = (weights[rows] >= min_weight) & (weights[rows] > 0)
        start[rows.start + 1 : rows.stop + 1] = kept.sum(axis=1)
        positive += int((weights[rows] > 0).sum())
    np.cumsum(start, out=start)
    edges = int(start[-1])
    indices = arrays.new_array(edges, index_dtype(max(n, edges)))
    data = arrays.new_array(edges, np.float64)
    for rows in row_slices(n, 32 * m):
        kept = (weights[rows] >= min_weight) & (weights[rows] > 0)
        row, target, weight = kept.nonzero()[0], index[rows][kept], weights[rows][kept]
        order = np.lexsort((target, row))
        place = slice(start[rows.start], start[rows.stop])
        indices[place], data[place] = target[order], weight[order]
    return _matrix(data, indices, start.astype(indices.dtype)), positive - edges


def _least_protected(
    index: IndexArray, weights: FloatArray, count: int
) -> tuple[FloatArray, IndexArray]:
    """Return the weight and the target of each row's last protected edge.

    Those are a row's heaviest positive weights; ties go to the lower node number.
    """
    n, m = index.shape
    least, last = arrays.new_array(n, np.float64), arrays.new_array(n, index.dtype)
    least[:], last[:] = np.inf, -1
    if min(count, m) > 0:
        for rows in row_slices(n, 40 * m):
            order = np.lexsort((index[rows], -weights[rows]), axis=1)
            at = np.arange(len(order)), order[:, min(count, m) - 1]
            least[rows], last[rows] = weights[rows][at], index[rows][at]
    return frozen(least), frozen(last)
