"""Exact search by matrix products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import blocks
from nnkgraph.data import Candidates
from nnkgraph.executors import Here
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search._scan import WIDTH, scan, settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.search import Search, Wanted

_COLUMNS = 2048
"""Rows that a block of queries is multiplied with at once."""

_THOROUGH = 64
"""Undecided queries that are looked at again at once."""

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

    The matrix product of a query ``(f x_i, 1)`` and a row ``(x_j, offset_j)`` of
    ``data``, plus ``own_i``, all times ``unit``, is never above their score: in
    whatever order float32 adds it up.
    """

    x: Shared
    data: Shared
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
    rows = max(1, (1 << 18) // d)
    starts = range(0, n, rows)
    high, low = x.max(axis=0) - center, center - x.min(axis=0)
    spread = max(float(high.max()), float(low.max()), 0.0)
    exponent = math.frexp(spread)[1] if spread > 0 else 0
    data, norm = np.zeros((n, d + 1), np.float32), np.empty(n)
    for s in starts:
        part = data[s : s + rows, :d]
        part[...] = (x[s : s + rows] - center) * 2.0**-exponent
        exact = part.astype(np.float64)
        norm[s : s + rows] = np.einsum("ij,ij->i", exact, exact)
    # A float32 sum of d + 1 products is off by at most d + 1 roundings of the sum of
    # their absolute values, 2|x||y| + |y|^2 <= |x|^2 + 2|y|^2, in any order; the rest
    # covers the conversion to float32 and underflow.
    margin = 1.01 * (d + 16) * _ROUNDING
    lost = (d + 16) * 2.0**-140
    if distances:
        factor = -2.0
        data[:, d] = (1.0 - 2.0 * margin) * norm
        own = (1.0 - margin) * norm - lost
    else:
        factor = -1.0
        own = -margin * np.sqrt(norm) * math.sqrt(norm.max(initial=0.0)) - lost
    share = pool.share if pool else Here
    return _Part(
        share(x), share(data), share(own), factor, 4.0**exponent, wanted.base, wanted.k
    )


def _search_block(part: _Part, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    return _search_rows(part, np.arange(start, stop))


def _bounds(part: _Part, rows: IndexArray) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield lower bounds of some rows' scores with all rows, block by block."""
    data = part.data.open()
    queries = data[rows]
    queries *= np.float32(part.factor)
    queries[:, -1] = 1.0
    products = np.empty((len(rows), min(len(data), _COLUMNS)), np.float32)
    for column in range(0, len(data), _COLUMNS):
        columns = data[column : column + _COLUMNS]
        out = products[:, : len(columns)]
        np.matmul(queries, columns.T, out=out)
        yield column, out


def _search_rows(part: _Part, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of some rows, and their scores."""
    x, own = part.x.open(), part.own.open()
    n, k, b = len(x), part.k, len(rows)
    keep = min(n - 1, k + max(8, k // 4))
    room = keep + max(keep, 2 * WIDTH)
    value = np.empty((b, room), np.float32)
    index = np.full((b, room), -1, index_dtype(n))
    filled, limit = np.zeros(b, np.int64), np.full(b, np.inf, np.float32)
    for column, bounds in _bounds(part, rows):
        scan(bounds, column, rows, value, index, filled, limit, keep)
    settle(value, index, filled, limit, keep)
    index, score = ranked(x, x[rows], index[:, :keep], part.base)
    index, score = index[:, :k], score[:, :k]
    # All others score at least the bound. Where that is not above the k-th score
    # found, the preselection does not decide: there may be better ones, or ties.
    bound = (limit + own[rows]) * part.unit
    open_ = np.flatnonzero(~(score[:, -1] < bound))
    for start in range(0, len(open_), _THOROUGH):
        some = open_[start : start + _THOROUGH]
        index[some], score[some] = _search_thoroughly(part, rows[some], score[some, -1])
    return index, score


def _search_thoroughly(
    part: _Part, rows: IndexArray, score: FloatArray
) -> tuple[IndexArray, FloatArray]:
    """Look at every row that may score no more than the k-th one found."""
    x, own = part.x.open(), part.own.open()
    limit = (score / part.unit - own[rows])[:, np.newaxis]
    found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for column, bounds in _bounds(part, rows):
        query, near = np.nonzero(bounds <= limit)
        found[0].append(query)
        found[1].append(near + column)
    query, near = np.concatenate(found[0]), np.concatenate(found[1])
    others = near != rows[query]
    query, near = query[others], near[others]
    order = np.argsort(query, kind="stable")
    query, near = query[order], near[order]
    count = np.bincount(query, minlength=len(rows))
    place = np.arange(len(query)) - np.repeat(np.cumsum(count) - count, count)
    index = np.full((len(rows), count.max()), -1, index_dtype(len(x)))
    index[query, place] = near
    index, values = ranked(x, x[rows], index, part.base)
    return index[:, : part.k], values[:, : part.k]


plugin: type[Search] = Exact
