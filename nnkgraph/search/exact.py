"""Exact search by matrix products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import blocks
from nnkgraph.compiled import frozen
from nnkgraph.data import Candidates
from nnkgraph.executors import Here
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search._scan import collect, scan

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.search import Search, Wanted

_COLUMNS = 4096
"""Rows that a block of queries is multiplied with at once."""

_ROUNDING = 2.0**-24
"""Unit roundoff of float32."""


@dataclass(frozen=True)
class Exact:
    """The k best by definition: float32 products preselect, float64 decides."""

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search all rows, block by block on the pool."""
        n, k = len(wanted.x), wanted.k
        index = np.empty((n, k), index_dtype(n))
        score = np.empty((n, k))
        blocks.run(
            wanted.pool,
            _search_block,
            _prepare(wanted, wanted.pool),
            (index, score),
            rows=n,
            block=wanted.block,
            on_rows=wanted.on_rows,
        )
        return Candidates(index, distance_of(score, wanted.base))


def nearest(wanted: Wanted, rows: IndexArray) -> IndexArray:
    """Return the exact candidates of some rows only."""
    part = _prepare(wanted, None)
    found = [
        _search_rows(part, rows[start : start + wanted.block])[0]
        for start in range(0, len(rows), wanted.block)
    ]
    return np.concatenate(found)


def estimated_recall(wanted: Wanted, index: IndexArray, *, sample: int = 200) -> float:
    """Estimate on a seeded sample the share of true candidates that were found."""
    rng = np.random.default_rng(wanted.seed)
    rows = np.sort(rng.choice(len(index), min(len(index), sample), replace=False))
    truth = nearest(wanted, rows)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(truth, index[rows], strict=True)]
    return float(sum(hits) / truth.size)


@dataclass(frozen=True)
class _Part:
    """The data as float32, scaled to at most 1, with a bound on what that loses.

    For rows i and j the score is at least ``own_i + offset_j - factor * product_ij``
    (times ``unit``), where the product is the float32 one, in whatever order a matrix
    product adds it up.
    """

    x: Shared
    small: Shared
    offset: Shared
    own: Shared
    factor: float
    unit: float
    base: str
    k: int


def _prepare(wanted: Wanted, pool: Pool | None) -> _Part:
    x, (n, d) = wanted.x, wanted.x.shape
    distances = wanted.base == "squared-distance"
    # Distances do not change when everything is shifted, but rounding errors do.
    center = x.mean(axis=0, dtype=np.float64) if distances else np.zeros(d)
    rows = max(1, (1 << 22) // d)
    starts = range(0, n, rows)
    spread = max(float(np.abs(x[s : s + rows] - center).max()) for s in starts)
    exponent = math.frexp(spread)[1] if spread > 0 else 0
    small, norm = np.empty((n, d), np.float32), np.empty(n)
    for s in starts:
        part = small[s : s + rows]
        part[...] = np.ldexp(x[s : s + rows] - center, -exponent)
        norm[s : s + rows] = np.einsum("ij,ij->i", part, part, dtype=np.float64)
    # A sum of d products is off by at most d roundings of its absolute value, in any
    # order; the rest covers the conversion to float32, the two additions and
    # underflow. |x||y| <= (|x|^2 + |y|^2) / 2 splits the bound into one part per row.
    margin = 1.01 * (d + 16) * _ROUNDING
    lost = (d + 16) * 2.0**-140
    if distances:
        factor, unit = 2.0, 4.0**exponent
        offset = ((1.0 - margin) * norm).astype(np.float32)
        own = (1.0 - margin) * norm - lost
    else:
        factor, unit = 1.0, 4.0**exponent
        offset = np.zeros(n, np.float32)
        own = -margin * np.sqrt(norm) * math.sqrt(norm.max(initial=0.0)) - lost
    share = pool.share if pool else Here
    return _Part(
        share(x),
        share(small),
        share(offset),
        share(own),
        factor,
        unit,
        wanted.base,
        wanted.k,
    )


def _search_block(part: _Part, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    return _search_rows(part, np.arange(start, stop))


def _search_rows(part: _Part, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of some rows, and their scores."""
    x, small = part.x.open(), part.small.open()
    offset, own = part.offset.open(), part.own.open()
    n, k = len(x), part.k
    kept = min(n - 1, k + max(8, k // 4))
    value = np.full((len(rows), kept), np.inf, np.float32)
    index = np.full((len(rows), kept), -1, index_dtype(n))
    factor = np.float32(part.factor)
    queries = small[rows]
    products = np.empty((len(rows), min(n, _COLUMNS)), np.float32)
    for column in range(0, n, _COLUMNS):
        columns = small[column : column + _COLUMNS]
        out = products[:, : len(columns)]
        np.matmul(queries, columns.T, out=out)
        scan(out, frozen(offset), factor, column, rows, value, index)
    bound = (value[:, 0] + own[rows]) * part.unit
    index, score = ranked(x, x[rows], index, part.base)
    index, score = index[:, :k], score[:, :k]
    if kept < n - 1:
        # All others score at least the bound. Where that is not above the k-th score
        # found, the preselection does not decide: there may be better ones, or ties.
        for i in np.flatnonzero(~(score[:, -1] < bound)):
            index[i], score[i] = _search_thoroughly(part, rows[i], score[i, -1])
    return index, score


def _search_thoroughly(
    part: _Part, row: int, limit: float
) -> tuple[IndexArray, FloatArray]:
    """Look at every row that may score no more than a limit that k rows meet."""
    x, small = part.x.open(), part.small.open()
    offset, own = part.offset.open(), part.own.open()
    limit = limit / part.unit - own[row]
    found = np.empty(len(x), index_dtype(len(x)))
    count = 0
    for column in range(0, len(x), 16 * _COLUMNS):
        products = small[column : column + 16 * _COLUMNS] @ small[row]
        count = collect(
            products, frozen(offset), part.factor, column, row, limit, found, count
        )
    index, score = ranked(x, x[row : row + 1], found[np.newaxis, :count], part.base)
    return index[0, : part.k], score[0, : part.k]


plugin: type[Search] = Exact
