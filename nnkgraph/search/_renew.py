"""Lists of candidates after rows came and went: only what changes is searched again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import DISTANCES, cross_values
from nnkgraph.data.sparse import share_rows
from nnkgraph.runtime import blocks
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search._products import (
    ProductInputs,
    in_lines,
    may_score,
    prepare,
    search_rows,
)
from nnkgraph.search.exact import (
    MULTIPLIED,
    SparseInputs,
    direct_inputs,
    select,
    select_sparse,
    sparse_inputs,
)

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.runtime.executors import Shared
    from nnkgraph.search import Wanted

_VALUES = 1 << 20
"""Pairs that are compared one by one at once."""


@dataclass(frozen=True)
class _Inputs:
    """What a block of rows needs; small, because it travels to the workers."""

    x: Any
    search: Any
    """All rows as an exact search needs them."""

    newer: Any
    """The rows that came, below them all rows, where these are sparse; else None."""

    rows: Shared
    """The rows that ask."""

    index: Shared
    """(n, k) the candidates of all rows."""

    first: int
    """The first of the rows that came."""

    base: str


def renew(
    wanted: Wanted, index: Any, distance: Any, lost: IndexArray, first: int
) -> IndexArray:
    """Bring lists up to date: see `Exact.renew`."""
    pool, x = wanted.pool, wanted.x
    sparse = isinstance(x, SparseRows)
    if sparse:
        search: Any = sparse_inputs(wanted)
    elif wanted.base in MULTIPLIED:
        search = prepare(wanted, pool)
    else:
        search = direct_inputs(wanted)
    inputs = _Inputs(
        share_rows(pool, x),
        search,
        # One more, because a row may find itself.
        sparse_inputs(replace(wanted, x=x[first:], k=wanted.k + 1), x)
        if sparse
        else None,
        pool.share(lost if len(lost) else np.zeros(1, np.int64)),
        pool.share(index),
        first,
        wanted.base,
    )
    if len(lost):
        index[lost], distance[lost] = _run(wanted, _search, inputs, wanted.k)
    others = np.ones(len(x), np.bool_)
    others[lost] = False
    doubtful = np.flatnonzero(others)
    if first == len(x) or not len(doubtful):
        return lost
    inputs = replace(inputs, rows=pool.share(doubtful), index=pool.share(index))
    doubtful = doubtful[_run(wanted, _is_near, inputs, 0)[0]]
    if not len(doubtful):
        return lost
    inputs = replace(inputs, rows=pool.share(doubtful))
    silent = replace(wanted, on_rows=lambda _: None)  # they were counted
    entered, far = _run(silent, _enter, inputs, wanted.k)
    changed = (entered != index[doubtful]).any(axis=1)
    rows = doubtful[changed]
    index[rows], distance[rows] = entered[changed], far[changed]
    return np.sort(np.concatenate([lost, rows]))


def _run(wanted: Wanted, function: Any, inputs: _Inputs, k: int) -> tuple[Any, ...]:
    """Return index and distance of the rows that ask; without k, a mark for each."""
    pool, count = wanted.pool, len(inputs.rows.open())
    outputs: Any = (pool.output((count,), np.bool_),)
    if k:
        kind = index_dtype(len(wanted.x))
        outputs = pool.output((count, k), kind), pool.output((count, k), np.float64)
    blocks.run(
        pool,
        function,
        inputs,
        outputs,
        rows=count,
        block=wanted.block,
        on_rows=wanted.on_rows,
    )
    if not k:
        return (np.array(outputs[0].open()),)
    return outputs[0].open(), distance_of(np.array(outputs[1].open()), wanted.base)


def _search(inputs: _Inputs, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    """Find the k best of all rows."""
    rows = np.array(inputs.rows.open()[start:stop])
    if isinstance(inputs.search, SparseInputs):
        return select_sparse(inputs.search, rows)
    if isinstance(inputs.search, ProductInputs):
        return search_rows(inputs.search, rows)
    return select(inputs.search, inputs.x.open()[rows], rows)


def _is_near(inputs: _Inputs, start: int, stop: int) -> tuple[Any]:
    """Mark rows to which one that came may be nearer than their last candidate."""
    marks = np.zeros(stop - start, np.bool_)
    marks[_near(inputs, np.array(inputs.rows.open()[start:stop]))[0]] = True
    return (marks,)


def _enter(inputs: _Inputs, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    """Return lists with those that came among the others."""
    rows, x = np.array(inputs.rows.open()[start:stop]), inputs.x.open()
    known = inputs.index.open()[rows]
    came = in_lines(*_near(inputs, rows), len(rows), known.dtype)
    both = np.concatenate([known, came], axis=1)
    both, score = ranked(x, x[rows], both, inputs.base)
    return both[:, : known.shape[1]], score[:, : known.shape[1]]


def _near(inputs: _Inputs, rows: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return pairs of a row, by its place, and one that came and may be near enough."""
    x, first = inputs.x.open(), inputs.first
    known = np.array(inputs.index.open()[rows, -1:])
    last = ranked(x, x[rows], known, inputs.base)[1][:, 0]
    if isinstance(inputs.search, ProductInputs):
        return may_score(inputs.search, rows, last, np.float32, first)
    if inputs.newer is not None:
        found = select_sparse(inputs.newer, rows + len(x) - first, last)[0]
        place, at = np.nonzero(found >= 0)
        return _without_own(rows, place, found[place, at] + first)
    every = np.arange(first, len(x))
    step = max(1, _VALUES // len(every))
    pairs = [np.empty((2, 0), np.int64)]
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        values = cross_values(x, x[some], np.tile(every, (len(some), 1)), inputs.base)
        values = values if inputs.base in DISTANCES else -values
        near = np.nonzero(values <= last[start : start + step, np.newaxis])
        pairs.append(np.stack([near[0] + start, near[1] + first]))
    return _without_own(rows, *np.concatenate(pairs, axis=1))


def _without_own(
    rows: IndexArray, place: IndexArray, near: IndexArray
) -> tuple[IndexArray, IndexArray]:
    """Leave out pairs of a row with itself."""
    others = rows[place] != near
    return place[others], near[others]
