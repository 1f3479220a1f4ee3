"""Exact search by matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import blocks
from nnkgraph.data import Candidates
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search._bounds import Part, bounds_of, prepare
from nnkgraph.search._scan import WIDTH, scan, settle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted

_THOROUGH = 64
"""Undecided queries that are looked at again at once."""


@dataclass(frozen=True)
class Exact:
    """The k best by definition: float32 products preselect, float64 decides."""

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search all rows, block by block on the pool."""
        n, k = len(wanted.x), wanted.k
        index = wanted.pool.output((n, k), index_dtype(n))
        distance = wanted.pool.output((n, k), np.float64)
        blocks.run(
            wanted.pool,
            _search_block,
            prepare(wanted, wanted.pool),
            (index, distance),
            rows=n,
            block=wanted.block,
            on_rows=wanted.on_rows,
        )
        return Candidates(index.open(), distance.open())


def nearest(wanted: Wanted, rows: IndexArray) -> IndexArray:
    """Return the exact candidates of some rows only."""
    part = prepare(wanted, None)
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


def _search_block(part: Part, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    index, score = _search_rows(part, np.arange(start, stop))
    return index, distance_of(score, part.base)


def _search_rows(part: Part, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of some rows, and their scores.

    Where float32 does not decide, float64 does; where ties are left even then, all
    that may tie are looked at.
    """
    index, score, decided = _preselect(part, rows, np.float32)
    open_ = np.flatnonzero(~decided)
    if len(open_):
        index[open_], score[open_], decided = _preselect(part, rows[open_], np.float64)
        open_ = open_[~decided]
    for start in range(0, len(open_), _THOROUGH):
        some = open_[start : start + _THOROUGH]
        index[some], score[some] = _search_thoroughly(part, rows[some], score[some, -1])
    return index, score


def _preselect(
    part: Part, rows: IndexArray, dtype: type[np.floating[Any]]
) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
    """Return k candidates and their scores, and whether they are proven the best."""
    x = part.x.open()
    n, k, b = len(x), part.k, len(rows)
    keep = min(n - 1, k + max(8, k // 4))
    room = keep + max(keep, 2 * WIDTH)
    value = np.empty((b, room), dtype)
    index = np.full((b, room), -1, index_dtype(n))
    filled, limit = np.zeros(b, np.int64), np.full(b, np.inf, dtype)
    own: FloatArray = np.zeros(b)
    for column, bounds, own in bounds_of(part, rows, dtype):  # noqa: B007 - used below
        scan(bounds, column, rows, value, index, filled, limit, keep)
    settle(value, index, filled, limit, keep)
    index, score = ranked(x, x[rows], index[:, :keep], part.base)
    # All others score at least this. Where that is not above the k-th score found,
    # there may be better ones, or ties with a lower row number.
    bound = (limit.astype(np.float64) + own) * 4.0**part.exponent
    return index[:, :k], score[:, :k], score[:, k - 1] < bound


def _search_thoroughly(
    part: Part, rows: IndexArray, score: FloatArray
) -> tuple[IndexArray, FloatArray]:
    """Look at every row that may score no more than the k-th one found."""
    x = part.x.open()
    found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for column, bounds, own in bounds_of(part, rows, np.float64):
        limit = score / 4.0**part.exponent - own
        query, near = np.nonzero(bounds <= limit[:, np.newaxis])
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
