"""Parquet: columns of numbers as features, edge lists as graphs."""

from __future__ import annotations

import contextlib
import io
import json
import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import Features, Graph
from nnkgraph.data.checks import find_gaps
from nnkgraph.errors import (
    InputError,
    MissingValuesError,
    NnkGraphError,
    ParameterError,
    ResourceError,
)
from nnkgraph.formats import _base, _columns, _graphs
from nnkgraph.formats._base import Extras, Format, Note, Target, TextOptions
from nnkgraph.formats.edgelist import TITLES, named_graph
from nnkgraph.runtime.arrays import check_fits
from nnkgraph.runtime.files import Source, expect, seekable, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


_TAIL = 8  # bytes behind the footer: its length, and the four letters of the format
_DEEPEST = 32
_ROW_GROUPS, _COLUMNS, _ABOUT, _PATH, _VALUES = 4, 1, 3, 3, 5
"""Numbers of fields: in a file, a row group, a column, and twice what is about it."""


def count_values(stream: BinaryIO) -> dict[str, int]:
    """Return the number of values by column; `ValueError` where the footer is damaged.

    The parts of a nested column count together.
    """
    found: dict[str, int] = {}
    try:
        for group in _read_footer(stream)[_ROW_GROUPS]:
            for column in group[_COLUMNS]:
                about = column[_ABOUT]
                name = about[_PATH][0].decode()
                found[name] = found.get(name, 0) + int(about[_VALUES])
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("the footer is damaged") from error
    return found


def _read_footer(stream: BinaryIO) -> dict[int, Any]:
    end = stream.seek(-_TAIL, os.SEEK_END)
    length = int.from_bytes(stream.read(4), "little")
    if length > end:
        raise ValueError("the footer is longer than the file")
    stream.seek(end - length)
    return _struct(io.BytesIO(stream.read(length)), 0)


def _struct(data: io.BytesIO, depth: int) -> dict[int, Any]:
    """Read fields by their numbers, up to the byte that ends them."""
    found: dict[int, Any] = {}
    field = 0
    while head := data.read(1)[0]:
        field = field + (head >> 4) if head >> 4 else _number(data)
        kind = head & 15
        # A field that is a truth value says which by its kind.
        found[field] = kind == 1 if kind in {1, 2} else _value(data, kind, depth)
    return found


def _value(data: io.BytesIO, kind: int, depth: int) -> Any:
    """Read one value; what is not there is an `IndexError`."""
    if depth > _DEEPEST:
        raise ValueError("the footer is too deep")
    if kind == 12:
        return _struct(data, depth + 1)
    if kind in {9, 10}:
        head = data.read(1)[0]
        size = _varint(data) if head >> 4 == 15 else head >> 4
        return [_value(data, head & 15, depth + 1) for _ in range(size)]
    if kind in {1, 2, 3}:  # a byte, or a truth value in a list
        return data.read(1)[0]
    if kind in {4, 5, 6}:
        return _number(data)
    if kind not in {7, 8}:  # maps are not used in footers
        raise ValueError(f"the footer has a value of kind {kind}")
    size = 8 if kind == 7 else _varint(data)
    found = data.read(size)
    if len(found) < size:
        raise IndexError
    return found


def _varint(data: io.BytesIO) -> int:
    found = shift = 0
    while True:
        byte = data.read(1)[0]
        found |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return found
        if shift > 63:
            raise ValueError("the footer has a number of too many bytes")


def _number(data: io.BytesIO) -> int:
    found = _varint(data)
    return (found >> 1) ^ -(found & 1)


_ID = "id"
"""The column that names of rows are written to."""

BATCH = 1 << 16  # rows that are read at once


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
        lists = types.is_list, types.is_large_list, types.is_fixed_size_list
        if any(is_list(kind) for is_list in lists):
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
        row = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
        return self.bad(start + row, column, "null")

    def bad(self, row: int, column: str, what: str) -> InputError:
        """Return the error for a value that cannot be used."""
        return InputError(
            f"{self.name}: row {row} (counted from 0), column {show(column)!r} is "
            f"{what}: remove or fill such rows"
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
    except NnkGraphError:
        raise  # a ValueError too, but it says more
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        first = show(" ".join(str(error).split())[:200])
        raise InputError(f"{source.name}: damaged Parquet file: {first}") from error


def numbers(values: Any) -> NDArray[Any]:
    """Return a column of numbers; what is not there is NaN."""
    pa = arrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_decimal(values.type):
        # The nearest number, which the direct way does not always give.
        values = values.cast(pa.string()).cast(pa.float64())
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if found.dtype == object:  # truth values of which some are not there
        found = np.array([np.nan if one is None else float(one) for one in found])
    return found


def as_texts(values: Any, missing: str) -> list[str]:
    """Return a column of text or of whole numbers as text."""
    if not arrow().types.is_dictionary(values.type):
        return [missing if one is None else str(one) for one in values.to_pylist()]
    known = [missing if one is None else str(one) for one in values.dictionary.tolist()]
    codes = values.indices.to_pylist()
    return [missing if one is None else known[one] for one in codes]


def _is_number(kind: Any) -> bool:
    types = arrow().types
    known = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return any(is_kind(kind) for is_kind in known)


def read_numbers(table: Table, columns: list[str], *, gaps: bool) -> NDArray[Any]:
    """Read columns of numbers, side by side."""
    kinds = [table.schema.field(one).type.to_pandas_dtype() for one in columns]
    kinds = [np.float64 if kind is np.object_ else kind for kind in kinds]  # decimals
    dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    if gaps and dtype.kind != "f":
        dtype = np.dtype(np.float64)
    shape = table.rows, len(columns)
    check_fits(shape[0] * shape[1] * dtype.itemsize, table.name, f"a table {shape}")
    found = np.empty(shape, dtype)
    for start, batch in table.batches(columns):
        for at, (column, values) in enumerate(zip(columns, batch, strict=True)):
            part = numbers(values)
            if not gaps and not np.isfinite(part).all():
                infinite = np.isinf(part)
                if not infinite.any():
                    raise MissingValuesError(table.name)
                raise table.bad(start + int(infinite.argmax()), column, "infinity")
            found[start : start + len(part), at] = part
    return found


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
            raise MissingValuesError(table.name)
        parts.append(numbers(flat).reshape(len(lengths), width))
    return np.concatenate(parts) if parts else np.empty((0, max(width, 0)))


def _refuse_gaps(values: NDArray[Any], name: str, titles: list[str]) -> None:
    """Say where values are missing: null or NaN."""
    gaps = find_gaps(values)
    if gaps is not None:
        row, at = min((rows[0], at) for at, rows in gaps.first_rows.items())
        place = f"row {row} (counted from 0), column {titles[at] if titles else at}"
        raise MissingValuesError(
            f"{name}: {place} is null or NaN; {gaps.text(titles)}: remove or fill them"
        )


def _edge_columns(table: Table) -> list[str]:
    known = {one.lower(): one for one in table.columns}
    pair = next((p for p in sorted(TITLES) if {*p} <= known.keys()), None)
    if pair is None:
        raise InputError(
            f"{table.name}: an edge list has columns source and target; these are "
            f"{_columns.some(table.columns)}; {_base.MADE}"
        )
    columns = [known[one] for one in pair]
    for one in columns:
        kind = table.type_of(one)
        if table.kind(one) != "text" and not kind.startswith(("int", "uint")):
            raise InputError(
                f"{table.name}: column {show(one)!r} ({kind}) holds neither names nor "
                "numbers of nodes"
            )
    for one in [one for one in ("weight", "distance") if one in known]:
        if table.kind(known[one]) != "number":
            raise InputError(f"{table.name}: the {one}s are no numbers")
        columns.append(known[one])
    return columns


def _roles(
    table: Table, options: TextOptions, asked: int | None = None
) -> _columns.Roles:
    """Return which columns are no features: as told, or as pandas has marked it."""
    names, index = table.columns, table.index_column()
    marked = index is not None and index not in _columns.drop_words(options, names)
    if options.id_column is None and marked:
        options.note(f"{table.name}: the index of pandas names the rows")
        options = replace(options, id_column=index)

    def can_name(at: int) -> bool:
        return options.for_nodes or table.kind(names[at]) == "text"

    columns = _columns.Columns(names, len(names), options, table.name)
    return columns.roles(can_name, _values(table, options), asked)


def _values(table: Table, options: TextOptions) -> Callable[[int], Iterator[str]]:
    """Return what reads a column of text; none is read where no ids are known."""

    def values(at: int) -> Iterator[str]:
        column = table.columns[at]
        if options.known and table.kind(column) == "text":
            for _, (batch,) in table.batches([column]):
                yield from as_texts(batch, "")

    return values


def _only(table: Table, roles: _columns.Roles, options: TextOptions) -> str:
    """Return the column that can only be the labels or values."""

    def likely() -> str:
        return _columns.likely_labels(rest, lambda one: table.texts(one, missing=""))

    usable = [one for one in table.columns if table.kind(one) in {"number", "text"}]
    rest = [one for one in usable if table.columns.index(one) != roles.ids]
    return _columns.pick_column(rest, table.name, "column", likely, options.note)


def _ids(table: Table, roles: _columns.Roles) -> list[str] | None:
    return None if roles.ids is None else table.texts(table.columns[roles.ids])


def _vectors(table: Table, columns: list[str]) -> str | None:
    """Return the only column of lists, as of embeddings, where no other has numbers."""
    kinds = [table.kind(one) for one in columns]
    only = kinds.count("list") == 1 and {*kinds} <= {"list", "text"}
    return columns[kinds.index("list")] if only else None


def _refuse_others(table: Table, columns: list[str], *, named: bool) -> None:
    kinds = {one: table.kind(one) for one in columns}
    odd = [one for one, kind in kinds.items() if kind != "number"]
    if not odd:
        return
    lists = [one for one in odd if kinds[one] == "list"]
    places = [table.columns.index(one) for one in odd]
    if lists:
        hint = f"name a column of lists as {_columns.item_of(table.name, lists[0])}"
    elif kinds[odd[0]] == "text":
        hint = _columns.leave_out(table.columns, places, named=named)
    else:
        hint = _columns.leave_out(table.columns, places[:1], named=True)
        if table.type_of(odd[0]) != "null":
            hint = f"convert it to numbers, or {hint}"
    raise InputError(
        f"{table.name}: column {show(odd[0])!r} ({table.type_of(odd[0])}) "
        f"holds no numbers; {hint}"
    )


_EDGE_BYTES = 32
"""What an edge takes while it is written: a million of them make a row group."""


@dataclass(frozen=True, slots=True)
class Parquet(Format):
    """Parquet for pandas, polars, R and others (features, graphs as edge lists)."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    binary: ClassVar[bool] = True
    has_items: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True
    sidecar: ClassVar[tuple[str, ...]] = _base.EXTRAS[:-1]  # distances are a column

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read all columns of numbers, or the column of lists that the item names."""
        with open_table(source) as table:
            if _graphs.TITLE.encode() in (table.schema.metadata or {}):
                raise _graphs.not_features(source.name)
            roles = _roles(table, options)
            features, named = roles.features(len(table.columns)), roles.ids is not None
            hint = _columns.key_hint(table.columns, features, named=named)
            if source.item is not None:
                hint = ""
                features = [_columns.asked(table.columns, source.item, source.name)]
            columns = [table.columns[at] for at in features]
            vectors = _vectors(table, columns)
            if vectors is None:
                _refuse_others(table, columns, named=named)
            else:
                if source.item is None:
                    what = f"features are the lists in {show(vectors)!r}"
                    options.note(f"{source.name}: {what}")
                columns, hint = [vectors], ""
            read = partial(read_numbers, table, columns)
            if vectors is not None:
                read = partial(read_lists, table, vectors)
            try:
                values = read(gaps=options.gaps)
            except MissingValuesError:
                values = read(gaps=True)
                titles = [repr(show(one)) for one in columns] if vectors is None else []
                _refuse_gaps(values, source.name, titles)
            if hint:
                options.note(f"{source.name}: {hint}")
            ids = _ids(table, roles)
        _columns.check_own(ids or (), options, source.name)
        found = Features.of(values, ids=ids, name=source.name, gaps=options.gaps)
        whole = len(columns) == values.shape[1]
        return replace(found, columns=tuple(columns) if whole else None)

    def write_features(
        self, stream: BinaryIO, features: Features, target: Target, /
    ) -> None:
        """Write a column for each feature, and ``id`` before them."""
        pa, x = arrow(), features.x
        names = features.columns or tuple(map(str, range(x.shape[1])))
        kind = pa.float32() if x.dtype == np.float32 else pa.float64()
        schema = [(name, kind) for name in names]
        if features.ids is not None:
            schema.insert(0, (_ID, pa.string()))
        with seekable(stream) as file:
            writer = pa.parquet.ParquetWriter(file, pa.schema(schema))
            for start in range(0, len(x), BATCH):
                rows = slice(start, start + BATCH)
                columns = [pa.array(np.ascontiguousarray(one)) for one in x[rows].T]
                if features.ids is not None:
                    columns.insert(0, pa.array(features.ids[rows], pa.string()))
                writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema))
            writer.close()

    def check_features(self, features: Features, target: Target, /) -> None:
        """Refuse a column of lists, and one that would be taken for names."""
        super(Parquet, self).check_features(features, target)
        if target.item is not None:
            what = f"leave out '::{show(target.item)}'"
            raise ParameterError(f"{target.name}: every feature gets a column: {what}")
        if _ID in (features.columns or ()):
            raise ParameterError(
                f"{target.name}: a feature is called {_ID!r}; rename it"
            )

    def read_column(self, source: Source, options: TextOptions, /) -> _base.Column:
        """Read the only column of numbers or text, or the one that the item names."""
        with open_table(source) as table:
            item, names = source.item, table.columns
            at = None if item is None else _columns.asked(names, item, source.name)
            roles = _roles(table, options, at)
            column = _only(table, roles, options) if at is None else names[at]
            ids = _ids(table, roles)
            if ids is None:
                columns = _columns.Columns(names, len(names), options, source.name)
                columns.say_unused(names.index(column), _values(table, options))
            if table.kind(column) == "text":
                texts = table.texts(column, missing="")
                return _columns.as_array(texts, source.name), ids
            if table.kind(column) != "number":
                raise InputError(
                    f"{source.name}: column {show(column)!r} ({table.type_of(column)})"
                    " holds neither numbers nor text"
                )
            parts = [numbers(values) for _, (values,) in table.batches([column])]
            return np.concatenate(parts) if parts else np.empty(0), ids

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read the columns source and target, and weight and distance if there are."""
        facts, edges = _graphs.Facts(), _graphs.EdgeTable()
        with open_table(source) as table:
            about = (table.schema.metadata or {}).get(_graphs.TITLE.encode(), b"")
            lines = about.decode("utf-8", "replace").split("\n")
            for number, line in enumerate(lines, 1):
                facts.take(line, source.name, number)
            columns = _edge_columns(table)
            for start, batch in table.batches(columns):
                for values, column in zip(batch, columns, strict=True):
                    if values.null_count:
                        raise table.null(start, values, column)
                edges.source.extend(map(edges.number, as_texts(batch[0], "")))
                edges.target.extend(map(edges.number, as_texts(batch[1], "")))
                given = zip(columns[2:], batch[2:], strict=True)
                found = {one.lower(): numbers(values) for one, values in given}
                weights = found.get("weight", np.ones(len(batch[0])))
                edges.weights.frombytes(weights.astype(np.float64).tobytes())
                lengths = found.get("distance", np.empty(0))
                edges.distances.frombytes(lengths.astype(np.float64).tobytes())

        def where(edge: int) -> str:
            return f"row {edge} (counted from 0)"

        labels, about = list(edges.numbers), (facts, extras, source.name, where)
        return named_graph(labels, edges.arrays(), *about, edges.lengths())

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that are no text, or that the file beside cannot carry."""
        arrow()
        super(Parquet, self).check_ids(ids, target)
        _base.check_unicode(ids, target)

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write source, target, weight and distance, each undirected edge once."""
        pa = arrow()
        kind = pa.int64() if graph.ids is None else pa.string()
        values = ["weight"] if graph.distances is None else ["weight", "distance"]
        schema = pa.schema(
            [("source", kind), ("target", kind), *((v, pa.float64()) for v in values)],
            metadata={_graphs.TITLE: "\n".join(_graphs.fact_lines(graph))},
        )
        names = None if graph.ids is None else np.array(graph.ids, object)
        # A pipe does not say where it stands, which the footer has to tell.
        with (
            seekable(stream) as file,
            pa.parquet.ParquetWriter(
                file, schema, compression="snappy", write_page_checksum=True
            ) as writer,
        ):
            blocks = _graphs.edge_arrays(graph, _EDGE_BYTES, distances=True)
            for rows, cols, *numbers in blocks:
                ends = (rows, cols) if names is None else (names[rows], names[cols])
                columns = [pa.array(one, kind) for one in ends]
                columns += map(pa.array, numbers)
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))


plugin: type[Format] = Parquet
