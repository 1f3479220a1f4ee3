"""From bounds to proven candidates: float64 decides, then ties are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.compiled import frozen
from nnkgraph.search import index_dtype, ranked
from nnkgraph.search._bounds import products_of
from nnkgraph.search._mutual import kept
from nnkgraph.search._reservoir import settle
from nnkgraph.search._scan import scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search._bounds import Part

_THOROUGH = 64
"""Undecided queries that are looked at again at once."""


def search_rows(part: Part, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of some rows, and their scores."""
    return decide(part, rows, *_preselect(part, rows, np.float32))


def decide(
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
    return judge(part, rows, (value, index, filled, limit), keep, own)


def judge(
    part: Part,
    rows: IndexArray,
    reservoirs: tuple[Any, Any, Any, Any],
    keep: int,
    own: FloatArray,
) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
    """Order what was preselected; return the k best and whether they are proven."""
    x, k = part.x.open(), part.k
    value, index, filled, limit = reservoirs
    settle(value, index, filled, limit, keep)
    # Points too far away for this precision have seen nothing that is a number.
    seen = np.arange(keep) < filled[:, np.newaxis]
    index = np.where(seen, index[:, :keep], -1)
    index, score = ranked(x, part.points.open()[rows], index, part.base)
    # All others score at least this. Where that is not above the k-th score found,
    # there may be better ones, or ties with a lower row number.
    with np.errstate(over="ignore", invalid="ignore"):
        bound = (limit.astype(np.float64) + own) * 4.0**part.exponent
    return index[:, :k], score[:, :k], (score[:, k - 1] < bound) & seen.all(axis=1)


def _search_thoroughly(
    part: Part, rows: IndexArray, score: FloatArray
) -> tuple[IndexArray, FloatArray]:
    """Look at every row that may score no more than the k-th one found."""
    x = part.x.open()
    found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for block in products_of(part, rows, np.float64):
        limit = score / 4.0**part.exponent - block.own
        with np.errstate(invalid="ignore"):
            bound = block.product + block.offset
        # Written so that what is no number counts as near.
        query, near = np.nonzero(~(bound > limit[:, np.newaxis]))
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
