"""Large tables of text read by pyarrow, where that gives the same values to the bit.

Whatever is odd about a table is left to the plain reader, which has the messages. So
nothing is accepted here that it would refuse: blank lines, quotation marks inside of
fields and the like are looked for before, infinity and NaN behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import stacked
from nnkgraph.runtime.files import open_bytes, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from nnkgraph.data import FloatArray
    from nnkgraph.formats._layout import Layout
    from nnkgraph.runtime.files import Source

LEAST = 1 << 25
"""Bytes from which on pyarrow saves more time than its import takes."""

_CHUNK, _LONGEST = 1 << 21, 1 << 24
"""Bytes that are read at once, so that they stay in a processor's cache; at most."""

_ROWS, _FIELD = 1024, 8
"""Rows that are read at once at least, of fields that take about so many bytes.

With fewer, as thousands of columns would have, pyarrow is the slower reader.
"""

_BOM = b"\xef\xbb\xbf"
_ENDS = {b"", b"\n", b"\r\n"}
_BLANKS = b"\t\v\f\x1c\x1d\x1e\x1f"  # but the space, in ASCII


class _OddError(ValueError):
    """There is something that the plain reader has to look at."""


def most_rows(source: Source, layout: Layout) -> int:
    """Return how many rows a large file has at most; 0 where that is not known."""
    if source.size < LEAST or sniff(source.head) == "gz":
        return 0
    lines = 1
    with source.open() as stream:
        while part := stream.read(_CHUNK):
            lines += part.count(b"\n") + (part.count(b"\r") if b"\r" in part else 0)
    # A field takes a byte at least, with what ends it.
    return min(lines, source.size // layout.count + 1)


def read(source: Source, layout: Layout) -> tuple[FloatArray, list[str] | None] | None:
    """Read the values and, where a column has them, the ids; None where it cannot."""
    size = max(_CHUNK, _ROWS * _FIELD * layout.count)
    if source.size < LEAST or size > _LONGEST:
        return None
    try:
        import pyarrow.csv
    except ImportError:
        return None
    ids: list[str] = []
    try:
        with open_bytes(source, "") as stream:
            pieces = _checked(_pieces(stream, layout.skip, size), layout.delimiter)
            blocks = _parsed(pyarrow, pieces, layout, ids)
            values = stacked(blocks, most_rows(source, layout))
    except (_OddError, InputError, pyarrow.ArrowException):
        return None
    return values, None if layout.roles.ids is None else ids


def _pieces(stream: BinaryIO, skip: int, size: int) -> Iterator[bytes]:
    """Yield the rows, many whole lines at a time, without the end of the last."""
    for _ in range(skip):
        if b"\r" in stream.readline().rstrip(b"\r\n"):
            raise _OddError
    head = b"" if skip else stream.read(len(_BOM)).removeprefix(_BOM)
    ended = False
    while data := head + stream.read(size):
        tail, head = stream.readline(_LONGEST), b""
        if len(tail) == _LONGEST:
            raise _OddError
        lines = data + tail
        piece = lines.rstrip(b"\r\n")
        if piece and ended:
            raise _OddError  # blank lines stand before it
        # A line without anything, or more than the end of one.
        ended = ended or not piece or lines[len(piece) :] not in _ENDS
        if piece:
            yield piece


def _checked(pieces: Iterator[bytes], delimiter: str | None) -> Iterator[bytes]:
    """Refuse what means something else to pyarrow."""
    for piece in pieces:
        odd = b"\0" in piece or piece.startswith(_BOM)
        if b"\r" in piece:
            odd = odd or piece.count(b"\r") != piece.count(b"\r\n")
        if delimiter is None:
            odd = odd or not _has_single_blanks(piece)
        elif not odd and b'"' in piece:
            odd = not _has_whole_quotes(piece, delimiter)
        if not odd and not piece.isascii():
            try:
                piece.decode("utf-8")
            except UnicodeDecodeError:
                odd = True
        if odd:
            raise _OddError
        yield piece


def _has_single_blanks(piece: bytes) -> bool:
    """Return whether there is one space between two fields, and none elsewhere."""
    if not piece.isascii() or len(piece.translate(None, _BLANKS)) < len(piece):
        return False
    doubtful = (b"  ", b"\n ", b" \n", b" \r", b'"')
    return piece.strip(b" ") == piece and not any(one in piece for one in doubtful)


def _has_whole_quotes(piece: bytes, delimiter: str) -> bool:
    """Return whether quotation marks only stand around whole fields."""
    letters = np.frombuffer(b"\n" + piece + b"\n", np.uint8)
    at = np.flatnonzero(letters == ord('"'))
    around = [ord(one) for one in f"{delimiter}\r\n"]
    opened = np.isin(letters[at[::2] - 1], around)
    closed = np.isin(letters[at[1::2] + 1], around)
    return len(at) % 2 == 0 and bool(opened.all() and closed.all())


def _parsed(
    pa: Any, pieces: Iterator[bytes], layout: Layout, ids: list[str]
) -> Iterator[FloatArray]:
    """Yield the numbers of some rows at a time; ids are added to those there are."""
    every = list(map(str, range(layout.count)))
    kept = [every[at] for at in layout.roles.features(layout.count)]
    types = dict.fromkeys(kept, pa.float64())
    name = None if layout.roles.ids is None else every[layout.roles.ids]
    if name is not None:
        types[name] = pa.string()
    parse = pa.csv.ParseOptions(delimiter=layout.delimiter or " ")
    convert = pa.csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=[],
        check_utf8=False,
        decimal_point=layout.decimal,
    )
    for piece in pieces:
        how = pa.csv.ReadOptions(
            use_threads=False, column_names=every, block_size=len(piece) + 1
        )
        table = pa.csv.read_csv(pa.BufferReader(piece), how, parse, convert)
        if len(table) != piece.count(b"\n") + 1:
            raise _OddError  # a blank line was left out, or one goes on in the next
        block = np.empty((len(table), len(kept)))
        for at, column in enumerate(table.columns[: len(kept)]):
            block[:, at] = _numbers(column)
        if not np.isfinite(block).all():
            raise _OddError
        if name is not None:
            ids += table.column(name).to_pylist()
        yield block


def _numbers(column: Any) -> FloatArray:
    """Return a column of float64; pyarrow itself would import pandas for that."""
    if column.null_count:
        raise _OddError
    parts = [
        np.frombuffer(one.buffers()[1], np.float64, len(one), 8 * one.offset)
        for one in column.chunks
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
