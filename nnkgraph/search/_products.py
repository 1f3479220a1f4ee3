"""Exact search by matrix products: bounds in float32, then float64 and ties decide."""

from __future__ import annotations

import math
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.arrays import new_array, worker_share
from nnkgraph.runtime.blocks import next_done
from nnkgraph.runtime.executors import Here
from nnkgraph.runtime.jit import frozen
from nnkgraph.search import index_dtype, ranked
from nnkgraph.search._reservoir import WIDTH, scan, scan_both, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.runtime.executors import Pool, Shared
    from nnkgraph.search import Wanted


COLUMNS = 2048
"""Rows that a block of queries is multiplied with at once."""


@dataclass(frozen=True)
class ProductInputs:
    """What a block of queries needs; small, because it travels to the workers."""

    x: Shared
    points: Shared
    """The rows that ask: x itself, or new points."""
    center: Shared
    exponent: int
    data: Shared
    """The rows as float32, centered and scaled."""
    asked: Shared
    """The rows that ask as float32, centered and scaled."""
    offset: Shared
    """What a row adds to its products with queries: see `terms`."""
    own: Shared
    """What a query adds to its products with rows."""
    longest: float
    base: str
    k: int
    new: bool = False
    """Whether new points ask, so that there is no row to pass over."""


def prepare(wanted: Wanted, pool: Pool | None) -> ProductInputs:
    x, (n, d) = wanted.x, wanted.x.shape
    # Distances do not change when everything is shifted, but rounding errors do. The
    # median of a few rows is a center that outliers cannot drag away.
    center = np.zeros(d)
    if wanted.base == "squared-distance":
        center += np.median(x[:: max(1, n // 1000)], axis=0)
    exponent = scale_exponent(x, center)
    output = pool.output if pool else _local_array
    shared_data, longest = output((n, d), np.float32), 0.0
    shared_offset, shared_own = output((n,), np.float32), output((n,), np.float64)
    data, offset, own = shared_data.open(), shared_offset.open(), shared_own.open()
    if wanted.base == "inner-product":
        longest = max(
            float(np.abs(inputs).max()) for inputs in _row_blocks(x)
        ) * math.sqrt(d)
        longest = math.ldexp(longest, -exponent)
    start = 0
    for rows in _row_blocks(x):
        stop = start + len(rows)
        data[start:stop] = (rows - center) * 2.0**-exponent
        offset[start:stop], own[start:stop] = terms(
            data[start:stop], wanted.base, longest, exponent
        )
        start = stop
    share = pool.share if pool else Here
    shared_x = share(x)
    # Shared again now that they are filled: other machines see what was written then.
    shared_data, shared_offset, shared_own = share(data), share(offset), share(own)
    return ProductInputs(
        shared_x,
        shared_x,
        share(center),
        exponent,
        shared_data,
        shared_data,
        shared_offset,
        shared_own,
        longest,
        wanted.base,
        wanted.k,
    )


def _local_array(shape: tuple[int, ...], dtype: Any) -> Here:
    return Here(new_array(shape, dtype))


def with_queries(
    inputs: ProductInputs, points: FloatArray, share: Callable[[Any], Shared]
) -> ProductInputs:
    """Return the same rows, with new points that ask about them, shared as told."""
    asked = np.empty(points.shape, np.float32)
    own, start = np.empty(len(points)), 0
    center, scale = inputs.center.open(), 2.0**-inputs.exponent
    for rows in _row_blocks(points):
        stop = start + len(rows)
        with np.errstate(over="ignore"):  # too far for float32: float64 decides
            asked[start:stop] = (rows - center) * scale
        own[start:stop] = terms(
            asked[start:stop], inputs.base, inputs.longest, inputs.exponent
        )[1]
        start = stop
    return replace(
        inputs,
        points=share(points),
        asked=share(asked),
        own=share(own),
        new=True,
    )


def scale_exponent(x: FloatArray, center: FloatArray) -> int:
    """Return the power of two that the distances from a center are measured in."""
    spread = max(
        float((x.max(axis=0) - center).max()), float((center - x.min(axis=0)).max())
    )
    # Below this the squares of the unit would vanish.
    return max(math.frexp(spread)[1], -500) if spread > 0 else 0


def _row_blocks(x: FloatArray) -> Iterator[FloatArray]:
    rows = max(1, (1 << 18) // x.shape[1])
    for start in range(0, len(x), rows):
        yield x[start : start + rows]


def factor_of(base: str) -> float:
    """Return what queries are multiplied by before they meet rows."""
    return -2.0 if base == "squared-distance" else -1.0


def terms(
    data: FloatArray, base: str, longest: float, exponent: int
) -> tuple[FloatArray, FloatArray]:
    """Return the offsets and own terms of rows.

    The product of a query ``factor * x_i`` with a row ``x_j``, plus ``offset_j``, plus
    ``own_i``, is never above the score of the two, in whatever order it is added.
    """
    d = data.shape[1]
    rounding = float(np.finfo(data.dtype).eps) / 2
    exact = data.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = np.einsum("ij,ij->i", exact, exact)
    # A sum of d + 1 products is off by at most d + 1 roundings of the sum of their
    # absolute values, 2|x||y| + |y|^2 <= |x|^2 + 2|y|^2; the rest covers the conversion
    # to this precision. In float64 the score that this is compared with is rounded as
    # coarsely. What is lost to underflow comes on top, the score's own included.
    steps = (d + 16 if data.dtype == np.float32 else 2 * d + 24) * rounding
    margin = 1.01 * steps / (1.0 - min(steps, 0.5))
    lost = (d + 16) * (2.0**-140 + math.ldexp(1.0, -1074 - 2 * exponent))
    if base == "squared-distance":
        return (1.0 - 2.0 * margin) * norm, (1.0 - margin) * norm - lost
    return np.zeros(len(data)), -margin * np.sqrt(norm) * longest - lost


@dataclass(frozen=True)
class Products:
    """Products of some queries with a block of rows, and what makes bounds of them.

    The score of query i and row ``column + j`` is at least
    ``product[i, j] + offset[j] + own[i]``, in units of ``4 ** exponent``.
    """

    column: int
    product: FloatArray
    offset: FloatArray
    own: FloatArray


def products_of(
    inputs: ProductInputs,
    rows: IndexArray,
    dtype: type[np.floating[Any]],
    first: int = 0,
) -> Iterator[Products]:
    """Yield products of some rows with others, from the first, a block at a time."""
    x, center, scale = inputs.x.open(), inputs.center.open(), 2.0**-inputs.exponent
    n = len(x)
    data, offset = inputs.data.open(), inputs.offset.open()
    if dtype is np.float32:
        queries, own = inputs.asked.open()[rows], inputs.own.open()[rows]
    else:
        queries = (inputs.points.open()[rows] - center) * scale
        own = terms(queries, inputs.base, inputs.longest, inputs.exponent)[1]
    queries *= dtype(factor_of(inputs.base))
    buffer = np.empty(len(rows) * min(n, COLUMNS), dtype)
    for column in range(first, n, COLUMNS):
        block = data[column : column + COLUMNS]
        offsets = offset[column : column + COLUMNS]
        if dtype is np.float64:
            block = (x[column : column + COLUMNS] - center) * scale
            offsets = terms(block, inputs.base, inputs.longest, inputs.exponent)[0]
        # Always contiguous: the compiled scan then has one form for each precision.
        out = buffer[: len(rows) * len(block)].reshape(len(rows), len(block))
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(queries, block.T, out=out)
        yield Products(column, out, offsets, own)


_GROUPS = 4
"""Groups for each worker: with fewer, workers wait for each other in the end."""

_LARGEST = 65536
"""Rows in a group at most: two groups must be multiplied within the block timeout."""

_SMALLEST = 2048
"""Rows in a group at least, where there are several."""


_DIAGONAL = 1024
"""Rows that are multiplied with themselves, both ways, to find their first limits."""


@dataclass(frozen=True)
class Reservoirs:
    """The smallest bounds that were seen of every row; see `scan`."""

    value: Shared
    index: Shared
    filled: Shared
    limit: Shared
    keep: int

    def of(self, start: int, stop: int) -> tuple[Any, Any, Any, Any]:
        """Return the arrays of some rows, which can be written."""
        rows = slice(start, stop)
        shared = (self.value, self.index, self.filled, self.limit)
        value, index, filled, limit = (np.asarray(a.open()[rows]) for a in shared)
        return value, index, filled, limit


def reservoir_size(most: int, k: int) -> tuple[int, int]:
    """Return how many of ``most`` values a reservoir must keep, and its room."""
    keep = min(most, k + max(8, k // 4))
    return keep, keep + max(keep, 2 * WIDTH)


def empty_reservoirs(pool: Pool, n: int, k: int) -> Reservoirs:
    """Return reservoirs of all rows that every worker can write."""
    keep, room = reservoir_size(n - 1, k)
    filled = pool.output((n,), np.int64)
    limit = pool.output((n,), np.float32)
    filled.open()[:] = 0
    limit.open()[:] = np.inf
    value = pool.output((n, room), np.float32)
    index = pool.output((n, room), index_dtype(n))
    return Reservoirs(value, index, filled, limit, keep)


def fill(
    pool: Pool,
    inputs: ProductInputs,
    reservoirs: Reservoirs,
    *,
    block: int,
    on_share: Callable[[float], object],
) -> None:
    """Take the bounds of all pairs into the reservoirs; report the share just done."""
    n = len(inputs.data.open())
    least = _least_groups(inputs, reservoirs, worker_share(pool.workers))
    groups = max(
        1, min(max(_GROUPS * pool.workers, least, n // _LARGEST), n // _SMALLEST)
    )
    edges = [n * g // groups for g in range(groups + 1)]
    waiting = [(a, a + step) for step in range(groups) for a in range(groups - step)]
    begun = pool.output((groups, groups), np.bool_)
    begun.open()[:] = False
    running: dict[Future[Any], tuple[int, int]] = {}
    while waiting or running:
        busy = {group for pair in running.values() for group in pair}
        for pair in list(waiting):
            if len(running) >= pool.workers:
                break
            if busy.isdisjoint(pair):
                a, b = pair
                spans = (edges[a], edges[a + 1]), (edges[b], edges[b + 1])
                task = begun, pair, inputs, reservoirs, *spans, block
                future = pool.submit(_multiply_groups_once, *task)
                running[future] = pair
                waiting.remove(pair)
                busy.update(pair)
        for future in next_done(pool, running):
            future.result()
            a, b = running.pop(future)
            on_share((1 if a == b else 2) / groups**2)


def _least_groups(inputs: ProductInputs, reservoirs: Reservoirs, share: int) -> int:
    """Return in how many groups two of them take a half of a worker's memory."""
    parts = (inputs.data, reservoirs.value, reservoirs.index)
    return -(-4 * sum(one.open().nbytes for one in parts) // share)


def _multiply_groups_once(begun: Shared, pair: tuple[int, int], *task: Any) -> None:
    """Multiply two groups, unless somebody has begun to: then all is lost.

    An engine may do a task again, unasked, when the worker that had it is lost. Its
    values would be in the reservoirs twice.
    """
    marks = begun.open()
    if marks[pair]:
        raise BrokenExecutor("a worker was lost")
    marks[pair] = True
    _multiply_groups(*task)


def _multiply_groups(
    inputs: ProductInputs,
    reservoirs: Reservoirs,
    group: tuple[int, int],
    other: tuple[int, int],
    block: int,
) -> None:
    """Multiply two groups of rows, or one with itself."""
    if group != other:
        _scan_two_groups(inputs, reservoirs, group, other, block)
        return
    chunks = _cut(*group, _DIAGONAL)
    for chunk in chunks:
        _scan_within_group(inputs, reservoirs, chunk, block)
    for chunk in chunks[:-1]:
        _scan_two_groups(inputs, reservoirs, chunk, (chunk[1], group[1]), block)


def _cut(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    return [(at, min(at + size, stop)) for at in range(start, stop, size)]


def _scan_within_group(
    inputs: ProductInputs, reservoirs: Reservoirs, chunk: tuple[int, int], block: int
) -> None:
    """Take rows into each other's reservoirs, both ways at once.

    It costs every product twice, but all of a row's are there at the same time, from
    which it gets a limit to start with.
    """
    data, offset = inputs.data.open(), frozen(inputs.offset.open())
    factor = np.float32(factor_of(inputs.base))
    columns = slice(*chunk)
    for start, stop in _cut(*chunk, block):
        product = (data[start:stop] * factor) @ data[columns].T
        seen = product, offset[columns], chunk[0], np.arange(start, stop)
        scan(*seen, *reservoirs.of(start, stop), reservoirs.keep)


def _scan_two_groups(
    inputs: ProductInputs,
    reservoirs: Reservoirs,
    group: tuple[int, int],
    other: tuple[int, int],
    block: int,
) -> None:
    """Take rows of two groups into each other's reservoirs."""
    data, offset = inputs.data.open(), frozen(inputs.offset.open())
    factor = np.float32(factor_of(inputs.base))
    buffer = np.empty(block * COLUMNS, np.float32)
    for start, stop in _cut(*group, block):
        queries = data[start:stop] * factor
        mine = reservoirs.of(start, stop)
        for first, last in _cut(*other, COLUMNS):
            product = _multiply(queries, data[first:last], buffer)
            offsets = offset[start:stop], offset[first:last]
            yours = reservoirs.of(first, last)
            scan_both(product, *offsets, start, first, *mine, *yours, reservoirs.keep)


def _multiply(queries: FloatArray, rows: FloatArray, buffer: FloatArray) -> FloatArray:
    shape = len(queries), len(rows)
    out = buffer[: shape[0] * shape[1]].reshape(shape)
    return np.matmul(queries, rows.T, out=out)


_THOROUGH = 64
"""Undecided queries that are looked at again at once."""


def search_rows(
    inputs: ProductInputs, rows: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Return the k best candidates of some rows, and their scores."""
    return decide(inputs, rows, *_preselect(inputs, rows, np.float32))


def decide(
    inputs: ProductInputs,
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
        index[open_], score[open_], decided = _preselect(
            inputs, rows[open_], np.float64
        )
        open_ = open_[~decided]
    for start in range(0, len(open_), _THOROUGH):
        some = open_[start : start + _THOROUGH]
        index[some], score[some] = _search_thoroughly(
            inputs, rows[some], score[some, -1]
        )
    return index, score


def _preselect(
    inputs: ProductInputs, rows: IndexArray, dtype: type[np.floating[Any]]
) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
    """Return k candidates and their scores, and whether they are proven the best."""
    n, b = len(inputs.data.open()), len(rows)
    keep, room = reservoir_size(n - (not inputs.new), inputs.k)
    value = np.empty((b, room), dtype)
    index = np.empty((b, room), index_dtype(n))
    filled, limit = np.zeros(b, np.int64), np.full(b, np.inf, dtype)
    own: FloatArray = np.zeros(b)
    passed = np.full(b, -1) if inputs.new else rows
    for block in products_of(inputs, rows, dtype):
        seen = block.product, frozen(block.offset), block.column
        scan(*seen, passed, value, index, filled, limit, keep)
        own = block.own
    return judge(inputs, rows, (value, index, filled, limit), keep, own)


def judge(
    inputs: ProductInputs,
    rows: IndexArray,
    reservoirs: tuple[Any, Any, Any, Any],
    keep: int,
    own: FloatArray,
) -> tuple[IndexArray, FloatArray, NDArray[np.bool_]]:
    """Order what was preselected; return the k best and whether they are proven."""
    x, k = inputs.x.open(), inputs.k
    value, index, filled, limit = reservoirs
    settle(value, index, filled, limit, keep)
    # Points too far away for this precision have seen nothing that is a number.
    seen = np.arange(keep) < filled[:, np.newaxis]
    index = np.where(seen, index[:, :keep], -1)
    index, score = ranked(x, inputs.points.open()[rows], index, inputs.base)
    # All others score at least this. Where that is not above the k-th score found,
    # there may be better ones, or ties with a lower row number.
    with np.errstate(over="ignore", invalid="ignore"):
        bound = (limit.astype(np.float64) + own) * 4.0**inputs.exponent
    return index[:, :k], score[:, :k], (score[:, k - 1] < bound) & seen.all(axis=1)


def _search_thoroughly(
    inputs: ProductInputs, rows: IndexArray, score: FloatArray
) -> tuple[IndexArray, FloatArray]:
    """Look at every row that may score no more than the k-th one found."""
    x = inputs.x.open()
    query, near = may_score(inputs, rows, score, np.float64)
    index = in_lines(query, near, len(rows), index_dtype(len(x)))
    index, values = ranked(x, inputs.points.open()[rows], index, inputs.base)
    return index[:, : inputs.k], values[:, : inputs.k]


def may_score(
    inputs: ProductInputs,
    rows: IndexArray,
    score: FloatArray,
    dtype: type[np.floating[Any]],
    first: int = 0,
) -> tuple[IndexArray, IndexArray]:
    """Return pairs of one of some rows, by its place, and a row that is near it.

    They may score no more than is said for each; the near ones count from the first.
    """
    found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for block in products_of(inputs, rows, dtype, first):
        with np.errstate(invalid="ignore", over="ignore"):
            limit = (score / 4.0**inputs.exponent - block.own).astype(dtype)
            limit = np.nextafter(limit, dtype(np.inf))  # it may have been rounded down
            bound = np.add(block.product, block.offset, out=block.product)
        # Written so that what is no number counts as near.
        query, near = np.nonzero(~(bound > limit[:, np.newaxis]))
        found[0].append(query)
        found[1].append(near + block.column)
    query, near = np.concatenate(found[0]), np.concatenate(found[1])
    if not inputs.new:
        others = near != rows[query]
        query, near = query[others], near[others]
    return query, near


def in_lines(query: IndexArray, near: IndexArray, count: int, kind: Any) -> IndexArray:
    """Return what is near each of so many rows in a line of its own; -1 ends it."""
    order = np.argsort(query, kind="stable")
    query, near = query[order], near[order]
    size = np.bincount(query, minlength=count)
    place = np.arange(len(query)) - np.repeat(np.cumsum(size) - size, size)
    index = np.full((count, size.max(initial=0)), -1, kind)
    index[query, place] = near
    return index
