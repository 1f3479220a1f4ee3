"""Opening Parquet files: only what is asked for, batch by batch."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, ResourceError
from nnkgraph.formats._footer import count_values
from nnkgraph.formats._memory import check_fits
from nnkgraph.formats._source import expect, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nnkgraph.formats._source import Source

BATCH = 1 << 16
"""Rows that are read at once."""


def arrow() -> Any:
    """Return pyarrow with its part for Parquet, or say what to install."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise ResourceError(
            "Parquet files need pyarrow: pip install 'nnkgraph[arrow]'"
        ) from error
    return pa


class Table:
    """A Parquet file that was opened; its values are read when they are asked for."""

    def __init__(self, stream: Any, name: str) -> None:
        pa = arrow()
        self.name, self._stream = name, stream
        file = pa.parquet.ParquetFile(stream)
        self.schema = file.schema_arrow
        self.columns: list[str] = list(self.schema.names)
        twice = {one for one in self.columns if self.columns.count(one) > 1}
        if twice:
            first = show(min(twice))
            raise InputError(f"{name}: two columns are called {first!r}")
        self.rows = int(file.metadata.num_rows)

    def kind(self, column: str) -> str:
        """Return what a column holds: number, text, list or something else."""
        types = arrow().types
        kind = self.schema.field(column).type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_list(kind) or types.is_large_list(kind):
            return "list" if _is_number(kind.value_type) else "other"
        if types.is_fixed_size_list(kind):
            return "list" if _is_number(kind.value_type) else "other"
        if types.is_string(kind) or types.is_large_string(kind):
            return "text"
        return "number" if _is_number(kind) else "other"

    def type_of(self, column: str) -> str:
        """Return the type of a column, for messages."""
        return show(str(self.schema.field(column).type))

    def batches(self, columns: list[str]) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number of a first row, and the values of some columns from it on.

        Text comes as codes and what they stand for, so that what repeats is small.
        """
        pa = arrow()
        text = [one for one in columns if self.kind(one) == "text"]
        self._check_size(columns)
        self._stream.seek(0)
        file = pa.parquet.ParquetFile(self._stream, read_dictionary=text)
        start = 0
        for batch in file.iter_batches(BATCH, columns=columns):
            if start + len(batch) > self.rows:
                break
            yield start, [batch.column(one) for one in columns]
            start += len(batch)
        if columns and start != self.rows:
            raise InputError(
                f"{self.name}: {self.rows:,} rows are announced, but {start:,} came"
            )

    def texts(self, column: str, *, missing: str | None = None) -> list[str]:
        """Read a column of names: text, or whole numbers."""
        found: list[str] = []
        for start, (values,) in self.batches([column]):
            if values.null_count and missing is None:
                raise self.null(start, values, column)
            found.extend(as_texts(values, missing or ""))
        return found

    def null(self, start: int, values: Any, column: str) -> InputError:
        """Return the error for a value that is not there."""
        row = start + int(values.is_null().to_numpy(zero_copy_only=False).argmax())
        return InputError(
            f"{self.name}: row {row} (counted from 0), column {show(column)!r} is "
            "null: remove or fill such rows"
        )

    def index_column(self) -> str | None:
        """Return the column that pandas says is the index of its rows."""
        try:
            text = (self.schema.metadata or {}).get(b"pandas", b"{}")
            found = json.loads(text)["index_columns"]
            (column,) = (one for one in found if isinstance(one, str))
        except (ValueError, LookupError, TypeError, RecursionError):
            return None
        return column if column in self.columns else None

    def _check_size(self, columns: list[str]) -> None:
        """Refuse more values than memory holds: lists can be of any length."""
        values = self.rows
        if any(self.kind(one) == "list" for one in columns):
            known = count_values(self._stream)
            values = max(values, sum(known.get(one, 0) for one in columns))
        check_fits(8 * values, self.name, "the table")


@contextlib.contextmanager
def open_table(source: Source) -> Iterator[Table]:
    """Open a Parquet file; damage found anywhere in the block is an `InputError`."""
    pa = arrow()
    expect(source, "parquet")
    try:
        with source.open() as stream:
            yield Table(stream, source.name)
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        first = " ".join(str(error).split())[:200]
        raise InputError(
            f"{source.name}: damaged Parquet file: {show(first)}"
        ) from error


def numbers(values: Any) -> NDArray[Any]:
    """Return a column of numbers; what is not there is NaN."""
    types = arrow().types
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if found.dtype == object:  # truth values of which some are not there
        found = np.array([np.nan if one is None else float(one) for one in found])
    return found


def as_texts(values: Any, missing: str) -> list[str]:
    """Return a column of text or of whole numbers as text."""
    types = arrow().types
    if not types.is_dictionary(values.type):
        return [missing if one is None else str(one) for one in values.to_pylist()]
    known = [missing if one is None else str(one) for one in values.dictionary.tolist()]
    codes = values.indices.to_pylist()
    return [missing if one is None else known[one] for one in codes]


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    )
