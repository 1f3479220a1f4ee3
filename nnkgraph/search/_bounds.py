"""Lower bounds of scores by matrix products, with a proof against rounding.

A matrix product in float32 is fast, and wrong in its last digits, in a way that depends
on the library and the number of threads. Taking the largest possible error off makes it
a bound that holds whatever the order of the additions was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.executors import Here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.executors import Pool, Shared
    from nnkgraph.search import Wanted

_COLUMNS = 2048
"""Rows that a block of queries is multiplied with at once."""


@dataclass(frozen=True)
class Part:
    """What a block of queries needs; small, because it travels to the workers."""

    x: Shared
    center: Shared
    exponent: int
    data: Shared
    """The rows as float32, and what else their bounds are made from: see `_extend`."""
    own: Shared
    longest: float
    base: str
    k: int


def prepare(wanted: Wanted, pool: Pool | None) -> Part:
    x, (n, d) = wanted.x, wanted.x.shape
    # Distances do not change when everything is shifted, but rounding errors do. The
    # median of a few rows is a center that outliers cannot drag away.
    center = np.zeros(d)
    if wanted.base == "squared-distance":
        center += np.median(x[:: max(1, n // 1000)], axis=0)
    exponent = scale_exponent(x, center)
    data, own, longest = np.empty((n, d + 1), np.float32), np.empty(n), 0.0
    if wanted.base == "inner-product":
        longest = max(float(np.abs(part).max()) for part in _row_blocks(x)) * math.sqrt(
            d
        )
        longest = math.ldexp(longest, -exponent)
    start = 0
    for rows in _row_blocks(x):
        stop = start + len(rows)
        scaled = (rows - center) * 2.0**-exponent
        own[start:stop] = _extend(
            scaled, data[start:stop], wanted.base, longest, exponent
        )
        start = stop
    share = pool.share if pool else Here
    return Part(
        share(x),
        share(center),
        exponent,
        share(data),
        share(own),
        longest,
        wanted.base,
        wanted.k,
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


def _extend(
    scaled: FloatArray, data: FloatArray, base: str, longest: float, exponent: int
) -> FloatArray:
    """Fill rows of ``data`` with ``(x_j, offset_j)``, and return the ``own_j``.

    The product of a query ``(f x_i, 1)``, f = -2 or -1, with a row, plus ``own_i``, is
    then never above the score of the two, in whatever order the products are added.
    """
    d = scaled.shape[1]
    rounding = float(np.finfo(data.dtype).eps) / 2
    data[:, :d] = scaled
    exact = data[:, :d].astype(np.float64)
    norm = np.einsum("ij,ij->i", exact, exact)
    # A sum of d + 1 products is off by at most d + 1 roundings of the sum of their
    # absolute values, 2|x||y| + |y|^2 <= |x|^2 + 2|y|^2; the rest covers the conversion
    # to this precision. In float64 the score that this is compared with is rounded as
    # coarsely. What is lost to underflow comes on top, the score's own included.
    steps = (d + 16 if data.dtype == np.float32 else 2 * d + 24) * rounding
    margin = 1.01 * steps / (1.0 - min(steps, 0.5))
    lost = (d + 16) * (2.0**-140 + math.ldexp(1.0, -1074 - 2 * exponent))
    if base == "squared-distance":
        data[:, d] = (1.0 - 2.0 * margin) * norm
        own: FloatArray = (1.0 - margin) * norm - lost
    else:
        data[:, d] = 0.0
        own = -margin * np.sqrt(norm) * longest - lost
    return own


def bounds_of(
    part: Part, rows: IndexArray, dtype: type[np.floating[Any]]
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield bounds of some rows' scores with all rows, a block of rows at a time.

    The score of query i and row ``column + j`` is at least ``bounds[i, j] + own[i]``,
    in units of ``4 ** exponent``.
    """
    data, x = part.data.open(), part.x.open()
    center, scale = part.center.open(), 2.0**-part.exponent
    n, d = x.shape
    if dtype is np.float32:
        queries, own = data[rows], part.own.open()[rows]
    else:
        queries = np.empty((len(rows), d + 1))
        scaled = (x[rows] - center) * scale
        own = _extend(scaled, queries, part.base, part.longest, part.exponent)
    queries *= dtype(-2.0 if part.base == "squared-distance" else -1.0)
    queries[:, -1] = 1.0
    products = np.empty((len(rows), min(n, _COLUMNS)), dtype)
    columns = np.empty((_COLUMNS, d + 1), dtype) if dtype is np.float64 else None
    for column in range(0, n, _COLUMNS):
        block = data[column : column + _COLUMNS]
        if columns is not None:
            block = columns[: len(block)]
            part_ = (x[column : column + _COLUMNS] - center) * scale
            _extend(part_, block, part.base, part.longest, part.exponent)
        out = products[:, : len(block)]
        np.matmul(queries, block.T, out=out)
        yield column, out, own
