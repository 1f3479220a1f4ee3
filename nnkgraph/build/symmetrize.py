"""From directed weights to a graph: the rules that decide which side counts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.runtime.arrays import memory_limit, new_array, row_slices
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray

    Marks = Callable[[slice], NDArray[np.bool_]]
    from scipy.sparse import csr_array

    from nnkgraph.data import Candidates, Neighborhoods


TIE = 1e-12
"""Errors closer than this share of K_qq are equal: both directions count."""

# The rules by their place in RULES.
_ERROR, _ERROR_UNION, _MAX, _MEAN, _MIN, _MUTUAL = range(6)


@compiled
def _weight(  # noqa: PLR0911 - one line per rule
    rule: int, there: float, back: float, mutual: bool, lead: float, tie: float
) -> float:
    """Return the weight of a pair under a rule; zero means no edge.

    ``lead`` is how much smaller the error of the first node is.
    """
    larger = max(there, back)
    if rule == _MAX:
        return larger
    if rule == _MEAN:
        return (there + back) / 2.0
    if rule == _MIN:
        return min(there, back)
    if rule == _MUTUAL:
        return (there + back) / 2.0 if there > 0.0 and back > 0.0 else 0.0
    if not mutual:
        return larger if rule == _ERROR_UNION else 0.0
    if abs(lead) <= tie:
        return larger
    return there if lead > 0.0 else back


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
    """Return the weight of a pair's edge; zero where there is none."""
    larger = max(there, back)
    weight = _weight(rule, there, back, mutual, lead, tie)
    if not mutual and rule == _ERROR and copies:
        weight = larger  # copies explain each other
    if protected and (weight == 0.0 or weight < min_weight):
        weight = larger
    return weight if weight >= min_weight or protected else 0.0


@compiled
def _place(index: Any, i: int, j: int) -> int:
    """Return where node j is among the candidates of node i, or -1."""
    for t in range(index.shape[1]):
        if index[i, t] == j:
            return t
    return -1


@compiled
def join_pairs(
    index: Any,
    weights: Any,
    errors: Any,
    rule: int,
    min_weight: float,
    heavy: Any,
    own: Any,
    first: Any,
    place: Any,
    fill: bool,
    columns: Any,
    values: Any,
) -> int:
    """Count every node's edges in ``place``, or fill them in from there on.

    Returns how many pairs with a positive weight got no edge.
    """
    n, m = index.shape
    dropped = 0
    for i in range(n):
        for t in range(m):
            j = index[i, t]
            if j < 0:
                continue
            at = _place(index, j, i)
            if at >= 0 and j < i:
                continue  # it was looked at from the other side
            there, back = weights[i, t], weights[j, at] if at >= 0 else 0.0
            weight = _edge(
                rule,
                min_weight,
                there,
                back,
                at >= 0,
                heavy[i, t] or (at >= 0 and heavy[j, at]),
                first[i] == first[j],
                errors[j] - errors[i],
                TIE * max(own[i], own[j]),
            )
            if weight > 0.0:
                if fill:
                    columns[place[i]], values[place[i]] = j, weight
                    columns[place[j]], values[place[j]] = i, weight
                place[i] += 1
                place[j] += 1
            elif max(there, back) > 0.0:
                dropped += 1
    return dropped


@compiled
def join_records(
    source: Any,
    target: Any,
    weights: Any,
    heavy: Any,
    errors: Any,
    rule: int,
    min_weight: float,
    own: Any,
    first: Any,
    lower: Any,
    higher: Any,
    pair: Any,
    values: Any,
) -> Any:
    """Join directed edges of which the two of a pair follow each other.

    That of the lower node comes first. Edges go to ``pair`` and ``values``, and are
    counted at both ends: in ``higher`` at the lower node, in ``lower`` at the other.

    Returns how many edges there are, and how many pairs with a positive weight got
    none.
    """
    count, dropped, t, stop = 0, 0, 0, source.shape[0]
    while t < stop:
        i, j, there, back, protected = source[t], target[t], weights[t], 0.0, heavy[t]
        t += 1
        mutual = t < stop and source[t] == j and target[t] == i
        if mutual:
            back, protected = weights[t], protected or heavy[t]
            t += 1
        weight = _edge(
            rule,
            min_weight,
            there,
            back,
            mutual,
            protected,
            first[i] == first[j],
            errors[j] - errors[i],
            TIE * max(own[i], own[j]),
        )
        if weight > 0.0:
            pair[count, 0], pair[count, 1] = min(i, j), max(i, j)
            values[count] = weight
            higher[min(i, j)] += 1
            lower[max(i, j)] += 1
            count += 1
        elif max(there, back) > 0.0:
            dropped += 1
    return count, dropped


@compiled
def count_lower(index: Any, first: int, counts: Any) -> None:
    """Count the edges of some rows at the lower of their nodes."""
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if index[i, t] >= 0:
                counts[min(first + i, index[i, t])] += 1


@compiled
def deal_directed(
    index: Any,
    weights: Any,
    marks: Any,
    first: int,
    bucket: Any,
    place: Any,
    source: Any,
    target: Any,
    weight: Any,
    heavy: Any,
) -> None:
    """Put every edge at the end of the bucket of its lower node."""
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            j = index[i, t]
            if j >= 0:
                b = bucket[min(first + i, j)]
                at = place[b]
                source[at], target[at] = first + i, j
                weight[at], heavy[at] = weights[i, t], marks[i, t]
                place[b] = at + 1


@compiled
def deal_pairs(
    pair: Any, value: Any, bucket: Any, place: Any, back: Any, weight: Any
) -> None:
    """Put every pair at the end of the bucket of its higher node."""
    for t in range(pair.shape[0]):
        b = bucket[pair[t, 1]]
        at = place[b]
        back[at, 0], back[at, 1] = pair[t, 0], pair[t, 1]
        weight[at] = value[t]
        place[b] = at + 1


@compiled
def append_rows(
    pair: Any, value: Any, end: int, first: int, place: Any, data: Any, indices: Any
) -> None:
    """Append to the rows of one end of some pairs the node at their other end."""
    for t in range(pair.shape[0]):
        row = pair[t, end] - first
        at = place[row]
        data[at], indices[at] = value[t], pair[t, 1 - end]
        place[row] = at + 1


_RECORD = 512
"""A bucket has one directed edge for so many bytes of the limit; each takes about 60
bytes while its bucket is sorted."""

_LEAST = 1 << 10
"""Directed edges in a bucket at least."""


@dataclass(frozen=True)
class Rule:
    """How a pair is joined: what `join_records` needs besides its weights."""

    number: int
    min_weight: float
    errors: FloatArray
    own: FloatArray
    first: IndexArray


def join_external(
    index: IndexArray, weights: FloatArray, marks: Marks, rule: Rule
) -> tuple[tuple[FloatArray, IndexArray, IndexArray], int]:
    """Join the two directions of every pair, with files for what is large.

    Parameters
    ----------
    marks
        Returns, for a slice of rows, which of their edges stay whatever the rule says.

    Returns
    -------
    data, indices, indptr
        The rows of the matrix, in order.
    dropped : int
        Pairs with a positive weight that got no edge.
    """
    n = len(index)
    counts = _zeros(n)
    for rows in row_slices(n, 16 * index.shape[1]):
        count_lower(_block(index, rows), rows.start, _plain(counts))
    dealt = _deal_records(index, weights, marks, counts)
    lower, higher = _zeros(n), _zeros(n)
    pair = new_array((len(dealt.source), 2), index.dtype)
    value = new_array(len(dealt.source), np.float64)
    edges = dropped = 0
    for start, stop in dealt.spans:
        joined, lost = _join_bucket(
            dealt,
            slice(start, stop),
            n,
            rule,
            lower,
            higher,
            pair[edges:],
            value[edges:],
        )
        edges, dropped = edges + joined, dropped + lost
    del dealt
    parts = _rows_of_pairs(pair[:edges], value[:edges], lower, higher)
    return parts, dropped


def _zeros(n: int) -> NDArray[np.int64]:
    array = new_array(n, np.int64)
    array[:] = 0
    return array


def _buckets(counts: NDArray[np.int64]) -> tuple[IndexArray, list[tuple[int, int]]]:
    """Return the bucket of every node, and which nodes each bucket has.

    All buckets have about equally many edges, of which nodes have ``counts``.
    """
    size = max(_LEAST, memory_limit() // _RECORD)
    before = np.cumsum(counts)
    total = int(before[-1]) if len(before) else 0
    before -= counts
    bucket = np.minimum(before // size, total // size).astype(np.int32)
    # Some numbers may be without a node, where one node has the edges of several.
    cuts = [0, *(np.flatnonzero(np.diff(bucket)) + 1).tolist(), len(counts)]
    spans = list(itertools.pairwise(cuts))
    for number, (start, stop) in enumerate(spans):
        bucket[start:stop] = number
    return bucket, spans


@dataclass(frozen=True)
class _Dealt:
    """Directed edges in the order of their buckets."""

    source: IndexArray
    target: IndexArray
    weight: FloatArray
    heavy: NDArray[np.bool_]
    spans: list[tuple[int, int]]
    """From where to where the edges of each bucket are."""


def _deal_records(
    index: IndexArray, weights: FloatArray, marks: Marks, counts: NDArray[np.int64]
) -> _Dealt:
    n, m = index.shape
    bucket, nodes = _buckets(counts)
    ends = np.cumsum([int(counts[a:b].sum()) for a, b in nodes], dtype=np.int64)
    place = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    spans = list(zip(place.tolist(), ends.tolist(), strict=True))
    total = int(ends[-1])
    source = new_array(total, index.dtype)
    target = new_array(total, index.dtype)
    weight, heavy = new_array(total, np.float64), new_array(total, np.bool_)
    out = source, target, weight, heavy
    for rows in row_slices(n, 32 * m):
        block = _block(index, rows), _block(weights, rows), frozen(marks(rows))
        deal_directed(*block, rows.start, bucket, place, *map(_plain, out))
    return _Dealt(source, target, weight, heavy, spans)


def _block(array: NDArray[Any], rows: slice) -> NDArray[Any]:
    return frozen(np.ascontiguousarray(array[rows]))


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return a mapped array as a plain one: compiled code is compiled once for both."""
    return np.asarray(array)


def _join_bucket(
    dealt: _Dealt,
    span: slice,
    n: int,
    rule: Rule,
    lower: IndexArray,
    higher: IndexArray,
    pair: IndexArray,
    value: FloatArray,
) -> tuple[int, int]:
    """Join the pairs of a bucket; return how many edges there are and how many not."""
    source, target = np.asarray(dealt.source[span]), np.asarray(dealt.target[span])
    # By lower node, then by higher node, and the lower node's own edge first.
    key = np.minimum(source, target).astype(np.int64)
    key *= 2 * n
    key += 2 * np.maximum(source, target).astype(np.int64)
    key += source > target
    order = np.argsort(key)
    del key
    joined, dropped = join_records(
        source[order],
        target[order],
        np.asarray(dealt.weight[span])[order],
        np.asarray(dealt.heavy[span])[order],
        frozen(rule.errors),
        rule.number,
        rule.min_weight,
        frozen(rule.own),
        frozen(rule.first),
        _plain(lower),
        _plain(higher),
        _plain(pair),
        _plain(value),
    )
    return int(joined), int(dropped)


def _rows_of_pairs(
    pair: IndexArray, value: FloatArray, lower: IndexArray, higher: IndexArray
) -> tuple[FloatArray, IndexArray, IndexArray]:
    """Return the rows of a symmetric matrix, given its pairs in order."""
    n = len(lower)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(lower, out=indptr[1:])
    indptr[1:] += np.cumsum(higher)
    edges = int(indptr[-1])
    bucket, nodes = _buckets(np.diff(indptr))
    # The pairs again, in the order of the buckets of their higher nodes.
    ends = np.cumsum([int(lower[a:b].sum()) for a, b in nodes], dtype=np.int64)
    place = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    spans = list(zip(place.tolist(), ends.tolist(), strict=True))
    back, weight = new_array(pair.shape, pair.dtype), new_array(len(pair), np.float64)
    for some in row_slices(len(pair), 32):
        block = frozen(pair[some]), frozen(value[some])
        deal_pairs(*block, bucket, place, _plain(back), _plain(weight))
    dtype = index_dtype(max(n, edges))
    data, indices = new_array(edges, np.float64), new_array(edges, dtype)
    out, there = (_plain(data), _plain(indices)), 0
    for (start, stop), (first, last) in zip(nodes, spans, strict=True):
        at = indptr[start:stop].copy()
        more = int(higher[start:stop].sum())
        append_rows(
            frozen(back[first:last]), frozen(weight[first:last]), 1, start, at, *out
        )
        forth = slice(there, there + more)
        append_rows(frozen(pair[forth]), frozen(value[forth]), 0, start, at, *out)
        there += more
    return data, indices, indptr.astype(dtype)


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
