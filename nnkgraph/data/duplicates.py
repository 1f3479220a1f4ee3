"""Identical rows: found, left out before the search, hung on again at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseGram, SparseRows
from nnkgraph.data.edges import with_edges
from nnkgraph.data.pairs import MATRICES, first_equal_rows
from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import row_slices, taken_rows

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, Graph, IndexArray

POLICIES = ("merge", "keep", "error")


@dataclass(frozen=True)
class Rows:
    """The rows that are searched and solved."""

    x: Any
    """(n, d): all rows, or the distinct ones where copies are merged."""

    first: IndexArray | None = None
    """(N,) the lowest row with the same values; None where all rows differ."""

    origin: IndexArray | None = None
    """(n,) the input rows that were kept; None where none was left out."""

    @property
    def copies(self) -> int:
        """Number of input rows that repeat an earlier one."""
        if self.first is None:
            return 0
        return int((self.first != np.arange(len(self.first))).sum())

    @property
    def kept_copies(self) -> IndexArray | None:
        """What the stages must know about identical rows: None where there are none."""
        return self.first if self.origin is None else None


def distinct_rows(x: Any, policy: str, name: str, *, base: str = "") -> Rows:
    """Find identical rows and treat them as the policy says.

    Columns of a matrix of similarities or distances, as the base of a kernel may be,
    are nodes as well and go with the rows.

    Raises
    ------
    InputError
        Where there are identical rows and the policy is ``error``.
    """
    given = base == "distance-matrix"
    first = first_at_no_distance(x) if given else first_equal(x)
    copies = np.flatnonzero(first != np.arange(len(x)))
    if not len(copies):
        return Rows(x)
    if policy == "error":
        raise InputError(
            f"{name}: row {copies[0]} repeats row {first[copies[0]]} (counted from 0); "
            f"{len(copies)} rows repeat an earlier one: use "
            "`duplicates='merge'` or `duplicates='keep'`"
        )
    if policy == "keep":
        return Rows(x, first)
    origin = np.flatnonzero(first == np.arange(len(x)))
    if isinstance(x, SparseGram):
        return Rows(SparseGram.of(x.matrix()[origin][:, origin]), first, origin)
    if isinstance(x, SparseRows):
        return Rows(x[origin], first, origin)
    matrix = base in MATRICES
    kept = x[np.ix_(origin, origin)] if matrix else taken_rows(x, origin)
    return Rows(kept, first, origin)


def first_equal(x: Any) -> IndexArray:
    """Return, for every row of a dense or sparse matrix, the lowest that equals it."""
    if not isinstance(x, SparseGram | SparseRows):
        dense: IndexArray = first_equal_rows(x)
        return dense
    known: dict[bytes, int] = {}
    first = np.empty(len(x), np.int64)
    for i in range(len(x)):
        row = slice(x.indptr[i], x.indptr[i + 1])
        first[i] = known.setdefault(x.indices[row].tobytes() + x.data[row].tobytes(), i)
    return first


def first_at_no_distance(x: Any) -> IndexArray:
    """Return, for every row of a matrix of distances, the lowest row it is one with.

    That is the lowest row at distance 0, and what that row itself is one with.
    """
    n = len(x)
    first = np.arange(n)
    if isinstance(x, SparseGram):
        row = np.repeat(first, np.diff(x.indptr))
        there = x.data <= 0
        np.minimum.at(first, row[there], x.indices[there])
    else:
        for rows in row_slices(n, 9 * n):
            near = x[rows] <= 0
            lowest = np.where(near.any(axis=1), near.argmax(axis=1), n)
            first[rows] = np.minimum(first[rows], lowest)
    while (first[first] != first).any():
        first = first[first]
    return first


def candidates_with_copies(candidates: Candidates, rows: Rows) -> Candidates:
    """Give every input row its candidates: a copy has those of its first row."""
    if rows.origin is None or rows.first is None:
        return candidates
    place = np.searchsorted(rows.origin, rows.first)
    return replace(
        candidates,
        index=_named(taken_rows(candidates.index, place), rows.origin),
        distance=taken_rows(candidates.distance, place),
    )


def _named(index: IndexArray, origin: IndexArray) -> IndexArray:
    """Name candidates by their input rows, in their place."""
    for some in row_slices(len(index), 24 * index.shape[1]):
        known = index[some]
        index[some] = np.where(known >= 0, origin[np.maximum(known, 0)], -1)
    return index


def with_copies(graph: Graph, rows: Rows) -> Graph:
    """Hang every copy on its first row, with weight 1, no distance and no error."""
    if rows.origin is None or rows.first is None:
        return graph
    total = len(rows.first)
    copies = np.flatnonzero(rows.first != np.arange(total))
    there, back = copies, rows.first[copies]
    if not graph.directed:
        there, back = np.concatenate([there, back]), np.concatenate([back, there])
    more = there, back, np.ones(len(there)), rows.origin, total
    lengths = graph.distances
    known = None if lengths is None else (lengths, np.zeros(len(there)))
    adjacency, lengths = with_edges(graph.adjacency, *more, known)
    errors, index, bridges = graph.errors, graph.candidates, graph.bridges
    if bridges is not None:
        bridges = rows.origin[bridges]
    if errors is not None:
        spread = np.zeros(total)
        spread[rows.origin] = errors
        errors = spread
    if index is not None:
        named = taken_rows(index, np.searchsorted(rows.origin, rows.first))
        index = _named(named, rows.origin)
        for some in row_slices(len(copies), 8 * index.shape[1]):
            index[copies[some]] = -1
        index[copies, 0] = rows.first[copies]
    return replace(
        graph,
        adjacency=adjacency,
        errors=errors,
        candidates=index,
        bridges=bridges,
        distances=lengths,
    )
