"""Exact search by matrix products."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import blocks
from nnkgraph.compiled import frozen
from nnkgraph.data import Candidates, SparseGram
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search._bounds import Part, asked_by, prepare, products_of
from nnkgraph.search._direct import GRAIN, direct_part, select, select_block
from nnkgraph.search._mutual import Reservoirs, empty_reservoirs, fill, kept
from nnkgraph.search._reservoir import settle
from nnkgraph.search._scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted

_PRODUCTS = 0.9
"""The share of the time that products take, of what is reported as progress."""

_MULTIPLIED = {"squared-distance", "inner-product"}
"""Bases whose bounds come from matrix products; others are valued pair by pair."""

_THOROUGH = 64
"""Undecided queries that are looked at again at once."""


@dataclass(frozen=True)
class Exact:
    """The k best by definition: float32 products preselect, float64 decides."""

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search all rows."""
        if wanted.base in _MULTIPLIED:
            return self._find_by_products(wanted)
        part = direct_part(wanted)
        return _run(wanted, select_block, part, len(wanted.x), wanted.on_rows)

    def _find_by_products(self, wanted: Wanted) -> Candidates:
        """Multiply pairs of groups of rows on the pool, then decide block by block."""
        n, k, pool = len(wanted.x), wanted.k, wanted.pool
        part = prepare(wanted, pool)
        progress = _Progress(n, wanted.on_rows)
        function: Any = _settle_block
        try:
            reservoirs = empty_reservoirs(pool, n, k)
            arguments: Any = (part, reservoirs)
            fill(
                pool,
                part,
                reservoirs,
                block=wanted.block,
                on_share=lambda share: progress.add(_PRODUCTS * n * share),
            )
        except BrokenExecutor:
            # A worker that dies leaves reservoirs half done. Blocks of rows can be
            # done again one by one; they find the same.
            pool.revive()
            function, arguments = _search_block, part
        left = 1.0 - progress.done / n
        return _run(
            wanted, function, arguments, n, lambda rows: progress.add(rows * left)
        )


def _run(
    wanted: Wanted,
    function: Any,
    arguments: Any,
    n: int,
    on_rows: Callable[[int], object],
) -> Candidates:
    """Collect index and score of n rows, block by block on the pool."""
    pool, k = wanted.pool, wanted.k
    index = pool.output((n, k), index_dtype(len(wanted.x)))
    score = pool.output((n, k), np.float64)
    block = max(GRAIN, wanted.block // GRAIN * GRAIN)
    outputs = index, score
    blocks.run(pool, function, arguments, outputs, rows=n, block=block, on_rows=on_rows)
    return Candidates(index.open(), distance_of(score.open(), wanted.base))


def nearest_to(wanted: Wanted, points: FloatArray) -> Candidates:
    """Return the k best rows for every one of some new points."""
    pool = wanted.pool
    if wanted.base in _MULTIPLIED:
        part: Any = asked_by(prepare(wanted, pool), points, pool)
        function: Any = _search_block
    else:
        part = replace(direct_part(wanted), points=pool.share(points))
        function = select_block
    return _run(wanted, function, part, len(points), wanted.on_rows)


def nearest(wanted: Wanted, rows: IndexArray) -> IndexArray:
    """Return the exact candidates of some rows only."""
    if wanted.base not in _MULTIPLIED:
        x = wanted.x
        queries = None if isinstance(x, SparseGram) else x[rows]
        return select(direct_part(wanted), queries, rows)[0]
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


class _Progress:
    """Adds up parts of rows and reports whole ones."""

    def __init__(self, n: int, on_rows: Callable[[int], object]) -> None:
        self.done = 0.0
        self._n, self._told, self._on_rows = n, 0, on_rows

    def add(self, rows: float) -> None:
        self.done += rows
        whole = min(self._n, int(self.done + 1e-6 * self._n))
        self._on_rows(whole - self._told)
        self._told = whole


def _settle_block(
    arguments: tuple[Part, Reservoirs], start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Decide rows whose reservoirs have seen all others."""
    part, reservoirs = arguments
    value, index, filled, limit = reservoirs.of(start, stop)
    settle(value, index, filled, limit, reservoirs.keep)
    rows, own = np.arange(start, stop), part.own.open()[start:stop]
    judged = _judge(part, rows, index[:, : reservoirs.keep], limit, own)
    return _decide(part, rows, *judged)


def _search_block(part: Part, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    return _search_rows(part, np.arange(start, stop))


def _search_rows(part: Part, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of some rows, and their scores."""
    return _decide(part, rows, *_preselect(part, rows, np.float32))


def _decide(
    part: Part,
    rows: IndexArray,
    index: IndexArray,
    score: FloatArray,
    decided: NDArray[np.bool_],
) -> tuple[IndexArray, FloatArray]:
    """Look again at rows that are not decided.

    Where float32 does not decide, float64 does; where ties are left even then, all
    that may tie are looked at.
    """
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
    n, b = len(part.data.open()), len(rows)
    keep, room = kept(n - (not part.new), part.k)
    value = np.empty((b, room), dtype)
    index = np.empty((b, room), index_dtype(n))
    filled, limit = np.zeros(b, np.int64), np.full(b, np.inf, dtype)
    own: FloatArray = np.zeros(b)
    passed = np.full(b, -1) if part.new else rows
    for block in products_of(part, rows, dtype):
        seen = block.product, frozen(block.offset), block.column
        scan(*seen, passed, value, index, filled, limit, keep)
        own = block.own
    settle(value, index, filled, limit, keep)
    return _judge(part, rows, index[:, :keep], limit, own)


def _judge(
    part: Part,
    rows: IndexArray,
    index: IndexArray,
    limit: FloatArray,
    own: FloatArray,
) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
    """Order what was preselected; return the k best and whether they are proven."""
    x, k = part.x.open(), part.k
    index, score = ranked(x, part.points.open()[rows], index, part.base)
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
    for block in products_of(part, rows, np.float64):
        limit = score / 4.0**part.exponent - block.own
        bound = block.product + block.offset
        query, near = np.nonzero(bound <= limit[:, np.newaxis])
        found[0].append(query)
        found[1].append(near + block.column)
    query, near = np.concatenate(found[0]), np.concatenate(found[1])
    if not part.new:
        others = near != rows[query]
        query, near = query[others], near[others]
    order = np.argsort(query, kind="stable")
    query, near = query[order], near[order]
    count = np.bincount(query, minlength=len(rows))
    place = np.arange(len(query)) - np.repeat(np.cumsum(count) - count, count)
    index = np.full((len(rows), count.max()), -1, index_dtype(len(x)))
    index[query, place] = near
    index, values = ranked(x, part.points.open()[rows], index, part.base)
    return index[:, : part.k], values[:, : part.k]


plugin: type[Search] = Exact
