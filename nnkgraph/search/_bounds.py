"""Lower bounds of scores by matrix products, with a proof against rounding.

A matrix product in float32 is fast, and wrong in its last digits, in a way that depends
on the library and the number of threads. Taking the largest possible error off makes it
a bound that holds whatever the order of the additions was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.bounded import new_array
from nnkgraph.executors import Here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.search import Wanted

COLUMNS = 2048
"""Rows that a block of queries is multiplied with at once."""


@dataclass(frozen=True)
class Part:
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
    """What a row adds to its products with queries: see `_terms`."""
    own: Shared
    """What a query adds to its products with rows."""
    longest: float
    base: str
    k: int
    new: bool = False
    """Whether new points ask, so that there is no row to pass over."""


def prepare(wanted: Wanted, pool: Pool | None) -> Part:
    x, (n, d) = wanted.x, wanted.x.shape
    # Distances do not change when everything is shifted, but rounding errors do. The
    # median of a few rows is a center that outliers cannot drag away.
    center = np.zeros(d)
    if wanted.base == "squared-distance":
        center += np.median(x[:: max(1, n // 1000)], axis=0)
    exponent = scale_exponent(x, center)
    output = pool.output if pool else _here
    shared_data, longest = output((n, d), np.float32), 0.0
    shared_offset, shared_own = output((n,), np.float32), output((n,), np.float64)
    data, offset, own = shared_data.open(), shared_offset.open(), shared_own.open()
    if wanted.base == "inner-product":
        longest = max(float(np.abs(part).max()) for part in _row_blocks(x)) * math.sqrt(
            d
        )
        longest = math.ldexp(longest, -exponent)
    start = 0
    for rows in _row_blocks(x):
        stop = start + len(rows)
        data[start:stop] = (rows - center) * 2.0**-exponent
        offset[start:stop], own[start:stop] = _terms(
            data[start:stop], wanted.base, longest, exponent
        )
        start = stop
    share = pool.share if pool else Here
    shared_x = share(x)
    # Shared again now that they are filled: other machines see what was written then.
    shared_data, shared_offset, shared_own = share(data), share(offset), share(own)
    return Part(
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


def _here(shape: tuple[int, ...], dtype: Any) -> Here:
    return Here(new_array(shape, dtype))


def asked_by(part: Part, points: FloatArray, pool: Pool) -> Part:
    """Return the same rows, with new points that ask about them."""
    asked = np.empty(points.shape, np.float32)
    own, start = np.empty(len(points)), 0
    center, scale = part.center.open(), 2.0**-part.exponent
    for rows in _row_blocks(points):
        stop = start + len(rows)
        with np.errstate(over="ignore"):  # too far for float32: float64 decides
            asked[start:stop] = (rows - center) * scale
        own[start:stop] = _terms(
            asked[start:stop], part.base, part.longest, part.exponent
        )[1]
        start = stop
    return replace(
        part,
        points=pool.share(points),
        asked=pool.share(asked),
        own=pool.share(own),
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


def _terms(
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
    part: Part, rows: IndexArray, dtype: type[np.floating[Any]]
) -> Iterator[Products]:
    """Yield products of some rows with all rows, a block of rows at a time."""
    x, center, scale = part.x.open(), part.center.open(), 2.0**-part.exponent
    n = len(x)
    data, offset = part.data.open(), part.offset.open()
    if dtype is np.float32:
        queries, own = part.asked.open()[rows], part.own.open()[rows]
    else:
        queries = (part.points.open()[rows] - center) * scale
        own = _terms(queries, part.base, part.longest, part.exponent)[1]
    queries *= dtype(factor_of(part.base))
    buffer = np.empty(len(rows) * min(n, COLUMNS), dtype)
    for column in range(0, n, COLUMNS):
        block = data[column : column + COLUMNS]
        offsets = offset[column : column + COLUMNS]
        if dtype is np.float64:
            block = (x[column : column + COLUMNS] - center) * scale
            offsets = _terms(block, part.base, part.longest, part.exponent)[0]
        # Always contiguous: the compiled scan then has one form for each precision.
        out = buffer[: len(rows) * len(block)].reshape(len(rows), len(block))
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(queries, block.T, out=out)
        yield Products(column, out, offsets, own)
