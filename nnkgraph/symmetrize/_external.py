"""Joining directions where the candidates of all nodes do not fit into memory.

Directed edges are dealt out to buckets of lower nodes, where the two directions of a
pair meet; a bucket is small enough to be sorted. That gives the pairs in order, lower
node by lower node. What each pair is for its higher node is dealt out once more, to
buckets of rows, and every row is put together from its lower and its higher neighbors.
Files are only ever read from front to back, or written at the ends of buckets.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.blockwise import row_slices
from nnkgraph.bounded import memory_limit, new_array
from nnkgraph.compiled import frozen
from nnkgraph.search import index_dtype
from nnkgraph.symmetrize._deal import (
    append_rows,
    count_lower,
    deal_directed,
    deal_pairs,
)
from nnkgraph.symmetrize._join import join_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray

    Marks = Callable[[slice], NDArray[np.bool_]]

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
