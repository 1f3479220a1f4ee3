"""Identical rows: found, left out before the search, hung on again at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseGram, SparseRows
from nnkgraph.errors import InputError
from nnkgraph.pairs import first_equal_rows

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


def distinct_rows(x: Any, policy: str, name: str, *, square: bool = False) -> Rows:
    """Find identical rows and treat them as the policy says.

    Where the matrix is ``square``, its columns are nodes as well and go with the rows.

    Raises
    ------
    InputError
        Where there are identical rows and the policy is ``error``.
    """
    sparse = isinstance(x, SparseGram | SparseRows)
    first = _first_equal(x) if sparse else first_equal_rows(x)
    copies = np.flatnonzero(first != np.arange(len(x)))
    if not len(copies):
        return Rows(x)
    if policy == "error":
        raise InputError(
            f"{name}: row {copies[0]} repeats row {first[copies[0]]} (counted from 0); "
            f"{len(copies)} rows repeat an earlier one: use --duplicates merge or keep"
        )
    if policy == "keep":
        return Rows(x, first)
    origin = np.flatnonzero(first == np.arange(len(x)))
    if isinstance(x, SparseGram):
        return Rows(SparseGram.of(x.matrix()[origin][:, origin]), first, origin)
    return Rows(x[np.ix_(origin, origin)] if square else x[origin], first, origin)


def _first_equal(x: SparseGram | SparseRows) -> IndexArray:
    """Return, for every row of a sparse matrix, the lowest row that equals it."""
    known: dict[bytes, int] = {}
    first = np.empty(len(x), np.int64)
    for i in range(len(x)):
        row = slice(x.indptr[i], x.indptr[i + 1])
        first[i] = known.setdefault(x.indices[row].tobytes() + x.data[row].tobytes(), i)
    return first


def candidates_with_copies(candidates: Candidates, rows: Rows) -> Candidates:
    """Give every input row its candidates: a copy has those of its first row."""
    if rows.origin is None or rows.first is None:
        return candidates
    place = np.searchsorted(rows.origin, rows.first)
    index = candidates.index
    named = np.where(index >= 0, rows.origin[np.maximum(index, 0)], -1)
    return replace(
        candidates,
        index=named.astype(index.dtype)[place],
        distance=candidates.distance[place],
    )


def with_copies(graph: Graph, rows: Rows) -> Graph:
    """Hang every copy on its first row, with weight 1 and no error."""
    if rows.origin is None or rows.first is None:
        return graph
    from scipy.sparse import coo_array

    total = len(rows.first)
    copies = np.flatnonzero(rows.first != np.arange(total))
    edges = graph.adjacency.tocoo()
    row, column = rows.origin[edges.row], rows.origin[edges.col]
    there, back = copies, rows.first[copies]
    ends = [(there, back)] if graph.directed else [(there, back), (back, there)]
    adjacency = coo_array(
        (
            np.concatenate([edges.data, *(np.ones(len(copies)) for _ in ends)]),
            (
                np.concatenate([row, *(end[0] for end in ends)]),
                np.concatenate([column, *(end[1] for end in ends)]),
            ),
        ),
        (total, total),
    ).tocsr()
    adjacency.sort_indices()
    errors, index, bridges = graph.errors, graph.candidates, graph.bridges
    if bridges is not None:
        bridges = rows.origin[bridges]
    if errors is not None:
        spread = np.zeros(total)
        spread[rows.origin] = errors
        errors = spread
    if index is not None:
        named = np.full((total, index.shape[1]), -1, index.dtype)
        named[rows.origin] = np.where(index >= 0, rows.origin[np.maximum(index, 0)], -1)
        named[copies, 0] = rows.first[copies]
        index = named
    return replace(
        graph, adjacency=adjacency, errors=errors, candidates=index, bridges=bridges
    )
