"""Writing MATLAB files of version 5, the same bytes for the same graph."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from nnkgraph.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_TITLE = b"MATLAB 5.0 MAT-file, written by nnkgraph"
# Text as UTF-8: the one way that MATLAB, Octave and scipy all read as it is meant.
_INT8, _UINT8, _INT32, _UINT32, _DOUBLE, _MATRIX, _UTF8 = 1, 2, 5, 6, 9, 14, 16
_CELL_CLASS, _CHAR_CLASS, _SPARSE_CLASS, _DOUBLE_CLASS, _UINT8_CLASS = 1, 4, 5, 6, 9
_LOGICAL = 0x200
_MOST = 2**31 - 1

Part = tuple[int, Any]
"""The code of a type, and an array or bytes."""


def write_header(stream: BinaryIO) -> None:
    """Write what a file begins with; there is no date."""
    stream.write(_TITLE.ljust(116) + bytes(8) + struct.pack("<H", 0x0100) + b"IM")


def write_sparse(stream: BinaryIO, name: str, matrix: Any, target: str) -> None:
    """Write a sparse matrix, given by columns."""
    if matrix.nnz > _MOST or max(matrix.shape) > _MOST:
        raise _too_large(name, target)
    parts = [
        (_INT32, matrix.indices.astype("<i4", copy=False)),
        (_INT32, matrix.indptr.astype("<i4", copy=False)),
        (_DOUBLE, matrix.data.astype("<f8", copy=False)),
    ]
    # MATLAB wants room for one value even where there is none.
    room = max(1, matrix.nnz)
    _write(stream, name, _SPARSE_CLASS, matrix.shape, parts, target, room=room)


def write_column(
    stream: BinaryIO, name: str, values: NDArray[Any], target: str
) -> None:
    """Write numbers, one below the other."""
    parts = [(_DOUBLE, values.astype("<f8", copy=False))]
    _write(stream, name, _DOUBLE_CLASS, (len(values), 1), parts, target)


def write_truth(stream: BinaryIO, name: str, value: bool, target: str) -> None:
    """Write true or false."""
    parts = [(_UINT8, bytes([value]))]
    _write(stream, name, _UINT8_CLASS | _LOGICAL, (1, 1), parts, target)


def write_text(stream: BinaryIO, name: str, text: str, target: str) -> None:
    """Write a row of characters."""
    parts = [(_UTF8, text.encode())]
    _write(stream, name, _CHAR_CLASS, (1, len(text)), parts, target)


def write_texts(stream: BinaryIO, name: str, texts: Sequence[str], target: str) -> None:
    """Write a column of cells, each with a row of characters."""
    cells = []
    for one in texts:
        text, head = one.encode(), _head("", _CHAR_CLASS, (1, len(one)), 0)
        body = head + struct.pack("<II", _UTF8, len(text)) + _padded(text)
        cells.append(struct.pack("<II", _MATRIX, len(body)) + body)
    _write(stream, name, _CELL_CLASS, (len(texts), 1), [], target, cells=cells)


def _write(
    stream: BinaryIO,
    name: str,
    code: int,
    shape: tuple[int, ...],
    parts: Sequence[Part],
    target: str,
    *,
    room: int = 0,
    cells: Sequence[bytes] = (),
) -> None:
    head = _head(name, code, shape, room)
    views = [(kind, memoryview(data).cast("B")) for kind, data in parts]
    size = len(head) + sum(map(len, cells))
    size += sum(8 + len(view) + -len(view) % 8 for _, view in views)
    if size > _MOST:
        raise _too_large(name, target)
    stream.write(struct.pack("<II", _MATRIX, size) + head)
    for kind, view in views:
        stream.write(struct.pack("<II", kind, len(view)))
        stream.write(view)
        stream.write(bytes(-len(view) % 8))
    stream.writelines(cells)


def _head(name: str, code: int, shape: tuple[int, ...], room: int) -> bytes:
    extents = np.array(shape, "<i4").tobytes()
    title = name.encode("ascii")
    return (
        struct.pack("<IIII", _UINT32, 8, code, room)
        + struct.pack("<II", _INT32, len(extents))
        + _padded(extents)
        + struct.pack("<II", _INT8, len(title))
        + _padded(title)
    )


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _too_large(name: str, target: str) -> OutputError:
    return OutputError(
        f"{target}: {name} takes more than the 2 GB that MATLAB files of version 5 "
        "have room for; write .npz, .mtx or .parquet instead"
    )
