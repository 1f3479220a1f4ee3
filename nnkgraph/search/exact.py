"""Exact search by matrix products."""

from __future__ import annotations

import math
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import Candidates, SparseGram, SparseRows, pairs
from nnkgraph.data.pairs import TILE, copy_tile, tile_values
from nnkgraph.data.sparse import share_rows
from nnkgraph.data.sums import parts, sparse_value, squared_lengths
from nnkgraph.runtime import blocks
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import Memory, Plain, distance_of, index_dtype, insert, ranked
from nnkgraph.search._products import (
    ProductInputs,
    Reservoirs,
    decide,
    empty_reservoirs,
    fill,
    judge,
    prepare,
    search_rows,
    with_queries,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import HeldRows, SharedGram, SharedRows
    from nnkgraph.runtime.executors import Shared
    from nnkgraph.search import Search, Wanted


GRAIN = 64
"""Rows that a function is asked about at once: always the same ones, since the rounding
of a matrix product depends on its shape."""

_COLUMNS = 1024


@dataclass(frozen=True)
class DirectInputs:
    """What a block of queries needs; small, because it travels to the workers."""

    x: Shared | SharedGram
    base: str
    k: int
    similarity: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    points: Shared | None = None
    """New points that ask; None where the rows do."""


def direct_inputs(wanted: Wanted) -> DirectInputs:
    """Share the rows of a search."""
    x: Any = share_rows(wanted.pool, wanted.x)
    return DirectInputs(x, wanted.base, wanted.k, wanted.similarity)


@compiled
def _select_pairs(
    x: Any,
    queries: Any,
    own: Any,
    base: int,
    sign: float,
    room: Any,
    score: Any,
    index: Any,
) -> None:
    last = score.shape[1] - 1
    for first in range(0, x.shape[0], TILE):
        stop = min(first + TILE, x.shape[0])
        copy_tile(x, first, stop, base, room)
        for q in range(queries.shape[0]):
            values = tile_values(x, first, stop, queries, q, base, room)
            for j in range(first, stop):
                value = sign * values[0, j - first]
                if value < score[q, last] and j != own[q]:
                    insert(value, j, score, index, q)


@compiled
def _select_values(values: Any, first: int, own: Any, score: Any, index: Any) -> None:
    last = score.shape[1] - 1
    for q in range(values.shape[0]):
        for j in range(values.shape[1]):
            if -values[q, j] < score[q, last] and first + j != own[q]:
                insert(-values[q, j], first + j, score, index, q)


def select(
    inputs: DirectInputs, queries: Any, own: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Return the k best rows for some queries, and their scores: the lower the better.

    Parameters
    ----------
    part : DirectPart
        All rows.
    queries : (b, d) array
        Ignored where ``part`` is a sparse matrix, which knows its rows by number.
    own : (b,) array of int
        A row that each query must not find, -1 for none.
    """
    x = inputs.x.open()
    b = len(own)
    score = np.full((b, inputs.k), np.inf)
    index = np.full((b, inputs.k), -1, index_dtype(len(x)))
    if isinstance(x, SparseGram):
        pairs.most_similar(x, own, index, inputs.base, score)
    elif inputs.similarity is not None:
        for first in range(0, len(x), _COLUMNS):
            rows = np.asarray(x[first : first + _COLUMNS], np.float64)
            values = inputs.similarity(np.asarray(queries, np.float64), rows)
            _select_values(values, first, own, score, index)
    else:
        sign = 1.0 if inputs.base in pairs.DISTANCES else -1.0
        task = frozen(x), frozen(queries), own, pairs.BASES.index(inputs.base), sign
        _select_pairs(*task, pairs.tile_room(x.shape[1]), score, index)
    return index, score


def select_block(
    inputs: DirectInputs, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Return candidates of a block of rows; a function sees fixed parts of it."""
    x = inputs.x.open()
    if inputs.similarity is None:
        return _select_rows(inputs, x, start, stop)
    parts = [
        _select_rows(inputs, x, at, min(at + GRAIN, stop))
        for at in range(start, stop, GRAIN)
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _select_rows(
    inputs: DirectInputs, x: Any, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    if inputs.points is not None:
        return select(
            inputs, inputs.points.open()[start:stop], np.full(stop - start, -1)
        )
    queries = None if isinstance(x, SparseGram) else x[start:stop]
    return select(inputs, queries, np.arange(start, stop))


_ROUNDING = 8.0 * 2.0**-53
"""Of a sum of one term; sums of m terms are off by at most m times as much."""


def slack_of(x: SparseRows) -> float:
    """Return how far off a score made of products may be, in squared lengths."""
    longest = int(np.diff(x.indptr).max(initial=0))
    return _ROUNDING * (2 * longest + 16)


@dataclass(frozen=True)
class SparseInputs:
    """What a block of queries needs; small, because it travels to the workers."""

    x: SharedRows | HeldRows
    """The rows, and below them the points that ask, where there are any."""

    columns: SharedRows | HeldRows
    """The rows again, column by column."""

    lengths: Shared
    """Squared, of all of ``x``."""

    base: str
    k: int


def sparse_inputs(wanted: Wanted, points: Any = None) -> SparseInputs:
    """Share the rows of a search, also by their columns."""
    pool, x = wanted.pool, wanted.x
    columns: Any = share_rows(pool, x.transposed())
    if points is not None:
        x = x.stacked(points)
    shared: Any = share_rows(pool, x)
    lengths = pool.share(squared_lengths(x))
    return SparseInputs(shared, columns, lengths, wanted.base, wanted.k)


@compiled
def add_products(x: Any, columns: Any, row: int, out: Any) -> None:
    """Add up a row's products with all rows, in the order of its columns."""
    out[:] = 0.0
    for s in range(x[0][row], x[0][row + 1]):
        value, column = x[2][s], x[1][s]
        for t in range(columns[0][column], columns[0][column + 1]):
            out[columns[1][t]] += value * columns[2][t]


@compiled
def _select(
    x: Any,
    columns: Any,
    lengths: Any,
    n: int,
    rows: Any,
    product: bool,
    slack: float,
    last: Any,
    score: Any,
    index: Any,
) -> None:
    k = score.shape[1]
    rough = np.empty(n)
    upper, place = np.empty((1, k)), np.empty((1, k), np.int64)
    for q in range(len(rows)):
        row = rows[q]
        add_products(x, columns, row, rough)
        upper[:] = last[q]
        for j in range(n):
            both = lengths[row] + lengths[j]
            rough[j] = -rough[j] if product else both - 2.0 * rough[j]
            most = rough[j] + slack * both + 1e-300
            if most < upper[0, k - 1] and j != row:
                insert(most, j, upper, place, 0)
        # Rows are looked at in order: ties go to the lower row number.
        for j in range(n):
            least = rough[j] - slack * (lengths[row] + lengths[j]) - 1e-300
            if least <= upper[0, k - 1] and j != row:
                value = sparse_value(x, row, x, j, product)
                value = -value if product else value
                if value < score[q, k - 1]:
                    insert(value, j, score, index, q)


def select_sparse(
    inputs: SparseInputs, rows: IndexArray, last: FloatArray | None = None
) -> tuple[IndexArray, FloatArray]:
    """Return the k best rows for some of them, and their scores: the lower the better.

    Scores are squared distances or negative inner products. Those beyond ``last``, one
    for each row, may be left out.
    """
    x, columns, lengths = inputs.x.open(), inputs.columns.open(), inputs.lengths.open()
    score = np.full((len(rows), inputs.k), np.inf)
    index = np.full((len(rows), inputs.k), -1, index_dtype(inputs.columns.columns))
    product = inputs.base == "inner-product"
    _select(
        parts(x),
        parts(columns),
        frozen(lengths),
        inputs.columns.columns,
        frozen(np.ascontiguousarray(rows)),
        product,
        slack_of(x),
        np.full(len(rows), np.inf) if last is None else last,
        score,
        index,
    )
    return index, score


def select_sparse_block(
    inputs: SparseInputs, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Return candidates of a block of rows."""
    return select_sparse(inputs, np.arange(start, stop))


_PRODUCTS = 0.9
"""The share of the time that products take, of what is reported as progress."""

MULTIPLIED = {"squared-distance", "inner-product"}
"""Bases whose bounds come from matrix products; others are valued pair by pair."""


@dataclass(frozen=True)
class Exact(Plain):
    """The k best by definition: float32 products preselect, float64 decides."""

    exact: ClassVar[bool] = True
    by_rows: ClassVar[bool] = True
    answers_queries: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True

    def memory(self, n: int, d: int, k: int, base: str, /, *, some: bool) -> Memory:
        """Return what a copy in float32 takes, and lists longer than k."""
        if base not in MULTIPLIED:
            return Memory()
        reservoirs = 0 if some else n * (k + max(8, k // 4)) * 16
        return Memory(files=n * d * 4 + reservoirs)

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search all rows."""
        if wanted.base == "jaccard-distance":
            from nnkgraph.search import _overlaps

            inputs: Any = _overlaps.overlap_inputs(wanted)
            asking, say = wanted.asking, wanted.on_rows
            return _run(wanted, _overlaps.select_overlaps_block, inputs, asking, say)
        if isinstance(wanted.x, SparseRows):
            shares, asking = sparse_inputs(wanted), wanted.asking
            return _run(wanted, select_sparse_block, shares, asking, wanted.on_rows)
        if wanted.base in MULTIPLIED:
            return self._find_by_products(wanted)
        inputs = direct_inputs(wanted)
        return _run(wanted, select_block, inputs, wanted.asking, wanted.on_rows)

    def query(self, wanted: Wanted, points: Any, /) -> Candidates:
        """Return the k best rows for every one of some new points."""
        pool, n = wanted.pool, len(wanted.x)
        below, say = range(n, n + len(points)), wanted.on_rows
        if wanted.base == "jaccard-distance":
            from nnkgraph.search import _overlaps

            inputs: Any = _overlaps.overlap_inputs(wanted, points)
            return _run(wanted, _overlaps.select_overlaps_block, inputs, below, say)
        if isinstance(wanted.x, SparseRows):
            inputs = sparse_inputs(wanted, points)
            return _run(wanted, select_sparse_block, inputs, below, say)
        if wanted.base in MULTIPLIED:
            inputs = with_queries(prepare(wanted, pool), points, pool.share)
            function: Any = _search_block
        else:
            inputs = replace(direct_inputs(wanted), points=pool.share(points))
            function = select_block
        return _run(wanted, function, inputs, range(len(points)), wanted.on_rows)

    def renew(
        self, wanted: Wanted, index: Any, distance: Any, lost: IndexArray, first: int
    ) -> IndexArray:
        """Bring the lists of all rows up to date, in place; return those that changed.

        The lists are the k best among the rows before ``first``, except for the rows
        that are ``lost``, which are searched among all. Into all others those from
        ``first`` on are entered where they are better.
        """
        from nnkgraph.search._renew import renew

        return renew(wanted, index, distance, lost, first)

    def _find_by_products(self, wanted: Wanted) -> Candidates:
        """Multiply pairs of groups of rows on the pool, then decide block by block."""
        n, k, pool = len(wanted.x), wanted.k, wanted.pool
        inputs = prepare(wanted, pool)
        if wanted.checkpoint or wanted.span is not None or not pool.in_place:
            # Reservoirs belong to all rows at once, and so cannot be kept by blocks;
            # and they are filled where they are.
            return _run(wanted, _search_block, inputs, wanted.asking, wanted.on_rows)
        progress = _Progress(n, wanted.on_rows)
        function: Any = _settle_block
        try:
            reservoirs = empty_reservoirs(pool, n, k)
            arguments: Any = (inputs, reservoirs)
            fill(
                pool,
                inputs,
                reservoirs,
                block=wanted.block,
                on_share=lambda share: progress.add(_PRODUCTS * n * share),
            )
        except BrokenExecutor:
            # A worker that dies leaves reservoirs half done. Blocks of rows can be
            # done again one by one; they find the same.
            pool.revive()
            function, arguments = _search_block, inputs
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


def nearest(wanted: Wanted, rows: IndexArray) -> IndexArray:
    """Return the exact candidates of some rows only."""
    if wanted.base == "jaccard-distance":
        from nnkgraph.search import _overlaps

        return _overlaps.select_overlaps(_overlaps.overlap_inputs(wanted), rows)[0]
    if isinstance(wanted.x, SparseRows):
        return select_sparse(sparse_inputs(wanted), rows)[0]
    if wanted.base not in MULTIPLIED:
        x = wanted.x
        queries = None if isinstance(x, SparseGram) else x[rows]
        return select(direct_inputs(wanted), queries, rows)[0]
    inputs = prepare(wanted, None)
    found = [
        search_rows(inputs, rows[start : start + wanted.block])[0]
        for start in range(0, len(rows), wanted.block)
    ]
    return np.concatenate(found)


def estimated_recall(
    wanted: Wanted, score: FloatArray, *, sample: int = 400
) -> dict[str, Any]:
    """Estimate what share of the true candidates was found, on a seeded sample.

    Found is what is not farther than the last true one. Returns ``recall``, and an
    interval of it with 95 % confidence, for `Candidates`.
    """
    rng = np.random.default_rng(wanted.seed)
    rows = np.sort(rng.choice(len(score), min(len(score), sample), replace=False))
    truth = nearest(wanted, rows)
    last = ranked(wanted.x, wanted.x[rows], truth, wanted.base)[1][:, -1:]
    return interval((score[rows] <= last).mean(axis=1))


def interval(hits: FloatArray) -> dict[str, Any]:
    """Return the mean of what was found of every row, and where it may be.

    Rows are what is drawn: the candidates of a row are missed together.
    """
    m, mean = len(hits), float(hits.mean())
    half = 1.96 * float(hits.std()) / math.sqrt(m)
    # Of what happens to one row in m / 3, none of m rows may show anything.
    low, high = max(0.0, mean - max(half, 0.3 / m)), min(1.0, mean + half)
    return {"recall": mean, "recall_interval": (low, high)}


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
    arguments: tuple[ProductInputs, Reservoirs], start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    """Decide rows whose reservoirs have seen all others."""
    inputs, reservoirs = arguments
    # Copies: a worker that dies here must leave what the next one starts from.
    taken = tuple(array.copy() for array in reservoirs.of(start, stop))
    rows, own = np.arange(start, stop), inputs.own.open()[start:stop]
    return decide(inputs, rows, *judge(inputs, rows, taken, reservoirs.keep, own))


def _search_block(
    inputs: ProductInputs, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    return search_rows(inputs, np.arange(start, stop))


plugin: type[Search] = Exact
