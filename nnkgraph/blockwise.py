"""Whole-array work done block by block, with results in files where they are large."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.bounded import (
    is_large,
    mapped_scratch,
    memory_limit,
    new_array,
    new_scratch,
)
from nnkgraph.scratch import longer_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

_BLOCK = 64
"""A block of rows takes at most this part of the limit."""

_LEAST_BLOCK, _MOST_BLOCK = 1 << 20, 1 << 25


def row_slices(n: int, row_bytes: int) -> Iterator[slice]:
    """Cut n rows into blocks that are small against the limit.

    What is computed for a row must not depend on the block that it is in.
    """
    most = min(_MOST_BLOCK, max(_LEAST_BLOCK, memory_limit() // _BLOCK))
    rows = max(1, most // max(1, row_bytes))
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def converted(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return an array in C order with another dtype; itself where nothing changes."""
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    result = new_array(array.shape, dtype)
    if array.ndim == 0:
        result[...] = array
        return result
    row = math.prod(array.shape[1:])
    for rows in row_slices(len(array), row * (array.itemsize + result.itemsize)):
        result[rows] = array[rows]
    return result


def widened(array: NDArray[Any], width: int = 0, value: Any = 0) -> NDArray[Any]:
    """Return a copy of a matrix, in C order, with more columns full of a value."""
    n, m = array.shape
    result = new_array((n, max(m, width)), array.dtype)
    for rows in row_slices(n, 2 * result.shape[1] * array.itemsize):
        result[rows, :m] = array[rows]
        result[rows, m:] = value
    return result


def stacked(blocks: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return blocks of rows under each other; in a file once they are large."""
    coming, known, size = iter(blocks), [], 0
    for block in coming:
        known.append(block)
        size += block.nbytes
        if is_large(2 * size):
            break
    else:
        return known[0] if len(known) == 1 else np.concatenate(known)
    first, rows = known[0], 0
    with new_scratch(size) as file:
        path = file.name
    for block in itertools.chain(known, coming):
        with longer_file(path, block.nbytes) as more:
            block.tofile(more)
        rows += len(block)
    return mapped_scratch(path, (rows, *first.shape[1:]), first.dtype)


def taken_rows(array: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return some rows of an array, in the order given."""
    result = new_array((len(rows), *array.shape[1:]), array.dtype)
    size = math.prod(array.shape[1:]) * array.itemsize
    for part in row_slices(len(rows), size):
        result[part] = array[rows[part]]
    return result
