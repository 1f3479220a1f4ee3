"""Exact search by matrix products."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph import blocks
from nnkgraph.data import Candidates, SparseGram, SparseRows
from nnkgraph.search import distance_of, index_dtype
from nnkgraph.search._bounds import Part, asked_by, prepare
from nnkgraph.search._decide import decide, judge, search_rows
from nnkgraph.search._direct import GRAIN, direct_part, select, select_block
from nnkgraph.search._mutual import Reservoirs, empty_reservoirs, fill
from nnkgraph.search._sparse import select_sparse, select_sparse_block, sparse_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted

_PRODUCTS = 0.9
"""The share of the time that products take, of what is reported as progress."""

MULTIPLIED = {"squared-distance", "inner-product"}
"""Bases whose bounds come from matrix products; others are valued pair by pair."""


@dataclass(frozen=True)
class Exact:
    """The k best by definition: float32 products preselect, float64 decides."""

    by_rows: ClassVar[bool] = True

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search all rows."""
        if isinstance(wanted.x, SparseRows):
            shares, asking = sparse_part(wanted), wanted.asking
            return _run(wanted, select_sparse_block, shares, asking, wanted.on_rows)
        if wanted.base in MULTIPLIED:
            return self._find_by_products(wanted)
        part = direct_part(wanted)
        return _run(wanted, select_block, part, wanted.asking, wanted.on_rows)

    def _find_by_products(self, wanted: Wanted) -> Candidates:
        """Multiply pairs of groups of rows on the pool, then decide block by block."""
        n, k, pool = len(wanted.x), wanted.k, wanted.pool
        part = prepare(wanted, pool)
        if wanted.checkpoint or wanted.span is not None or not pool.in_place:
            # Reservoirs belong to all rows at once, and so cannot be kept by blocks;
            # and they are filled where they are.
            return _run(wanted, _search_block, part, wanted.asking, wanted.on_rows)
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
            wanted,
            function,
            arguments,
            range(n),
            lambda rows: progress.add(rows * left),
        )


def _run(
    wanted: Wanted,
    function: Any,
    arguments: Any,
    asking: range,
    on_rows: Callable[[int], object],
) -> Candidates:
    """Collect index and score of some rows, block by block on the pool."""
    pool, k, n = wanted.pool, wanted.k, len(asking)
    index = pool.output((n, k), index_dtype(len(wanted.x)))
    score = pool.output((n, k), np.float64)
    block = max(GRAIN, wanted.block // GRAIN * GRAIN)
    outputs = index, score
    blocks.run(
        pool,
        function,
        arguments,
        outputs,
        rows=n,
        first=asking.start,
        block=block,
        on_rows=on_rows,
        kept=blocks.kept_in(wanted.checkpoint, "search"),
    )
    return Candidates(index.open(), distance_of(score.open(), wanted.base))


def nearest_to(wanted: Wanted, points: FloatArray) -> Candidates:
    """Return the k best rows for every one of some new points."""
    pool = wanted.pool
    if wanted.base in MULTIPLIED:
        part: Any = asked_by(prepare(wanted, pool), points, pool)
        function: Any = _search_block
    else:
        part = replace(direct_part(wanted), points=pool.share(points))
        function = select_block
    return _run(wanted, function, part, range(len(points)), wanted.on_rows)


def nearest(wanted: Wanted, rows: IndexArray) -> IndexArray:
    """Return the exact candidates of some rows only."""
    if isinstance(wanted.x, SparseRows):
        return select_sparse(sparse_part(wanted), rows)[0]
    if wanted.base not in MULTIPLIED:
        x = wanted.x
        queries = None if isinstance(x, SparseGram) else x[rows]
        return select(direct_part(wanted), queries, rows)[0]
    part = prepare(wanted, None)
    found = [
        search_rows(part, rows[start : start + wanted.block])[0]
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
    # Copies: a worker that dies here must leave what the next one starts from.
    taken = tuple(array.copy() for array in reservoirs.of(start, stop))
    rows, own = np.arange(start, stop), part.own.open()[start:stop]
    return decide(part, rows, *judge(part, rows, taken, reservoirs.keep, own))


def _search_block(part: Part, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
    return search_rows(part, np.arange(start, stop))


plugin: type[Search] = Exact
