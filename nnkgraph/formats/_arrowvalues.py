"""Matrices in a Parquet table: columns of numbers, or a column of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._arrow import numbers
from nnkgraph.formats._memory import check_fits
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.formats._arrow import Table


def read_numbers(table: Table, columns: list[str], *, gaps: bool) -> NDArray[Any]:
    """Read columns of numbers, side by side."""
    kinds = [table.schema.field(one).type.to_pandas_dtype() for one in columns]
    dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    if gaps and dtype.kind != "f":
        dtype = np.dtype(np.float64)
    shape = table.rows, len(columns)
    check_fits(shape[0] * shape[1] * dtype.itemsize, table.name, f"a table {shape}")
    found = np.empty(shape, dtype)
    for start, batch in table.batches(columns):
        for at, (column, values) in enumerate(zip(columns, batch, strict=True)):
            if values.null_count and not gaps:
                raise table.null(start, values, column)
            part = numbers(values)
            if not gaps:
                _check_finite(table, start, part, column)
            found[start : start + len(part), at] = part
    return found


def _check_finite(table: Table, start: int, values: NDArray[Any], column: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        what = "NaN" if np.isnan(values[row]) else "infinity"
        raise InputError(
            f"{table.name}: row {start + row} (counted from 0), column "
            f"{show(column)!r} is {what}: remove or fill such rows"
        )


def read_lists(table: Table, column: str, *, gaps: bool) -> NDArray[Any]:
    """Read a column of lists that are all of a length, as embeddings are stored."""
    parts: list[NDArray[Any]] = []
    width = -1
    for start, (values,) in table.batches([column]):
        if values.null_count:
            raise table.null(start, values, column)
        lengths = numbers(values.value_lengths())
        width = int(lengths[0]) if width < 0 and len(lengths) else width
        if (lengths != width).any():
            row = int((lengths != width).argmax())
            raise InputError(
                f"{table.name}: row {start + row} (counted from 0) has a list of "
                f"{int(lengths[row])} numbers where {width} are expected"
            )
        flat = values.flatten()
        if flat.null_count and not gaps:
            row = start + int(numbers(flat.is_null()).argmax()) // width
            raise InputError(
                f"{table.name}: the list of row {row} (counted from 0) has a null"
            )
        parts.append(numbers(flat).reshape(len(lengths), width))
    return np.concatenate(parts) if parts else np.empty((0, max(width, 0)))
