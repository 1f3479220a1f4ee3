"""MATLAB files, read without trusting them: version 5, and 7.3, which is HDF5.

``scipy.io.loadmat`` is not used: a small file with many cells, each in the one before
it, ends the whole process.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._hdf5 import check_dataset, find, is_dataset
from nnkgraph.runtime.archive import REAL
from nnkgraph.runtime.arrays import check_fits
from nnkgraph.runtime.files import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    import h5py
    from numpy.typing import NDArray


_DEFLATE_LIMIT = 1040  # no deflated byte can stand for more bytes than this
_CHUNK = 1 << 20


class Bytes:
    """The content of one element, unpacked where it is packed."""

    def __init__(self, stream: BinaryIO, size: int, *, packed: bool, name: str) -> None:
        self._stream, self._left, self.name = stream, size, name
        self._unpack = zlib.decompressobj() if packed else None
        self.room = size * (_DEFLATE_LIMIT if packed else 1)
        """The most bytes that can follow."""

        self.taken = 0

    def read(self, size: int) -> bytes:
        """Read so many bytes."""
        if size > self.room:
            raise InputError(
                f"{self.name}: an element claims {size:,} bytes, more than the "
                "file can hold"
            )
        check_fits(size, self.name, "an element")
        parts: list[bytes] = []
        missing = size
        while missing and (part := self._some(min(missing, _CHUNK))):
            parts.append(part)
            missing -= len(part)
        if missing:
            raise InputError(f"{self.name}: the MATLAB file is truncated")
        self.taken += size
        self.room -= size
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Pass over so many bytes."""
        for start in range(0, size, _CHUNK):
            self.read(min(_CHUNK, size - start))

    def finish(self) -> None:
        """Look at the checksum that follows the last bytes of packed content."""
        if self._unpack is not None:
            self._some(_CHUNK)

    def _some(self, most: int) -> bytes:
        if self._unpack is None:
            part = self._stream.read(min(most, self._left))
            self._left -= len(part)
            return part
        while not self._unpack.eof:
            more = self._unpack.unconsumed_tail
            if not more:
                more = self._stream.read(min(_CHUNK, self._left))
                self._left -= len(more)
            part = self._unpack.decompress(more, most)
            if part or not (more or self._unpack.unconsumed_tail):
                return part
        return b""


_TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8", "i8", "u8")
STORED = dict(zip((1, 2, 3, 4, 5, 6, 7, 9, 12, 13), _TYPES, strict=True))
"""What kinds of numbers a file may be made of, by their code."""

_MADE = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
CLASSES = dict(enumerate(_MADE, 6))
"""What MATLAB makes of them, by the code of the array's class."""

MATRIX, PACKED = 14, 15
CELL, STRUCT, CHAR, SPARSE, OPAQUE = 1, 2, 4, 5, 17
_CODECS = {16: "utf-8", 17: "utf-16", 4: "utf-16", 18: "utf-32"}
_MOST_EXTENTS = 32


@dataclass(frozen=True)
class Variable:
    """An array in a file, and where its values begin."""

    name: str
    code: int
    shape: tuple[int, ...]
    is_complex: bool
    start: int  # where its outermost element begins in the file
    skip: int  # bytes from there, unpacked, to its values


class MatFile:
    """A file of version 5."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name, self._stream = name, stream
        self._size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        head = stream.read(128)
        if len(head) < 128 or head[126:] not in {b"IM", b"MI"}:
            raise InputError(f"{name}: the MATLAB file is truncated or damaged")
        self._order: Literal["<", ">"] = "<" if head[126:] == b"IM" else ">"
        self.variables: dict[str, Variable] = {}
        for one in self._scan():
            if one.name in self.variables:
                raise InputError(f"{name}: two variables are {show(one.name)!r}")
            self.variables[one.name] = one

    def kind(self, name: str) -> str:
        """Return what a variable holds: number, sparse, text or something else."""
        one = self.variables[name]
        if one.is_complex:
            return "complex"
        names = {CELL: "text", CHAR: "text", SPARSE: "sparse"}
        return "number" if one.code in CLASSES else names.get(one.code, "other")

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a variable."""
        return self.variables[name].shape

    def numbers(self, name: str) -> NDArray[Any]:
        """Read an array of numbers."""
        one = self.variables[name]
        content, count = self._open(one), math.prod(one.shape)
        dtype = np.dtype(CLASSES[one.code])
        check_fits(count * dtype.itemsize, self.name, f"the array {show(name)!r}")
        found = self._values(content, count)
        content.finish()
        return found.astype(dtype, copy=False).reshape(one.shape, order="F")

    def sparse(self, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read the rows, the beginnings of columns and the values of a matrix."""
        content = self._open(self.variables[name])
        rows, starts, values = (self._values(content) for _ in range(3))
        content.finish()
        return rows, starts, values

    def texts(self, name: str) -> list[str]:
        """Read a list of texts, or the rows of a matrix of characters."""
        one = self.variables[name]
        content = self._open(one)
        if one.code == CHAR:
            return self._characters(content, one.shape)
        count, found = math.prod(one.shape), []
        if 8 * count > content.room:
            raise InputError(f"{self.name}: {show(name)!r} claims too many texts")
        for _ in range(count):
            size, end = self._matrix(content)
            cell = self._head(content, "", 0) if size else None
            if cell is not None and cell.code != CHAR:
                raise InputError(f"{self.name}: {show(name)!r} is no list of text")
            rows = self._characters(content, cell.shape) if cell else []
            found.append("".join(rows))
            content.skip(max(0, end - content.taken))
        content.finish()
        return found

    def _scan(self) -> Iterator[Variable]:
        """Look at the head of every variable."""
        start = 128
        while start + 8 <= self._size:
            self._stream.seek(start)
            code, size = struct.unpack(self._order + "II", self._stream.read(8))
            if start + 8 + size > self._size:
                raise InputError(
                    f"{self.name}: the MATLAB file is truncated: a variable of "
                    f"{size:,} bytes begins at byte {start:,} of {self._size:,}"
                )
            if code in {MATRIX, PACKED}:
                yield from self._look(start, self._element(start))
            start += 8 + size + (0 if code == PACKED else -size % 8)

    def _look(self, start: int, content: Bytes) -> Iterator[Variable]:
        found = self._head(content, "", start)
        yield found
        if found.code != STRUCT or math.prod(found.shape) != 1:
            return
        # The fields of a structure, as toolboxes keep a graph in.
        (length,) = self._values(content, 1).tolist()
        names = self._values(content).astype(np.uint8).tobytes()
        if not 0 < length <= 1024 or len(names) % length:
            raise InputError(f"{self.name}: the structure is damaged")
        for at in range(0, len(names), length):
            field = names[at : at + length].partition(b"\0")[0].decode("latin-1")
            size, end = self._matrix(content)
            if size:
                yield self._head(content, f"{found.name}.{field}", start)
            content.skip(max(0, end - content.taken))

    def _element(self, start: int) -> Bytes:
        """Open a variable's element; what is read next is the head of the array."""
        self._stream.seek(start)
        code, size = struct.unpack(self._order + "II", self._stream.read(8))
        packed = code == PACKED
        content = Bytes(self._stream, size, packed=packed, name=self.name)
        if packed:
            self._matrix(content)
        return content

    def _open(self, one: Variable) -> Bytes:
        content = self._element(one.start)
        content.skip(one.skip - content.taken)
        return content

    def _matrix(self, content: Bytes) -> tuple[int, int]:
        """Read the tag of an array; return its size and where it ends."""
        code, size = struct.unpack(self._order + "II", content.read(8))
        if code != MATRIX:
            raise InputError(f"{self.name}: the MATLAB file is damaged: no array")
        return size, content.taken + size

    def _head(self, content: Bytes, name: str, start: int) -> Variable:
        """Read the class, the extents and the name of an array."""
        flags = int(self._values(content, 2)[0])
        code = flags & 0xFF
        shape: tuple[int, ...] = ()
        if code != OPAQUE:  # objects have no extents
            shape = tuple(self._values(content).astype(np.int64).tolist())
        text = self._element_bytes(content)[1].decode("latin-1")
        if len(shape) > _MOST_EXTENTS or any(one < 0 for one in shape):
            raise InputError(f"{self.name}: {show(text)!r} has impossible extents")
        if math.prod(max(1, one) for one in shape) >= 2**60:
            raise InputError(f"{self.name}: {show(text)!r} claims too many values")
        is_complex = bool(flags & 0x800)
        return Variable(name or text, code, shape, is_complex, start, content.taken)

    def _values(self, content: Bytes, count: int | None = None) -> NDArray[Any]:
        """Read an element of numbers."""
        code, data = self._element_bytes(content)
        if code not in STORED:
            raise InputError(f"{self.name}: the MATLAB file is damaged: type {code}")
        dtype = np.dtype(STORED[code]).newbyteorder(self._order)
        if len(data) % dtype.itemsize:
            raise InputError(f"{self.name}: the MATLAB file is damaged: odd sizes")
        values = np.frombuffer(data, dtype)
        if count is not None and len(values) != count:
            raise InputError(
                f"{self.name}: {count:,} values are announced, but there are "
                f"{len(values):,}"
            )
        return values

    def _characters(self, content: Bytes, shape: tuple[int, ...]) -> list[str]:
        """Read the rows of a matrix of characters."""
        code, data = self._element_bytes(content)
        codec = _CODECS.get(code, "latin-1")
        if codec not in {"latin-1", "utf-8"}:
            codec += "-le" if self._order == "<" else "-be"
        text = data.decode(codec, "replace")
        rows = shape[0] if shape else 0
        if rows <= 1:
            return [text] if rows else []
        if rows > len(text):
            raise InputError(
                f"{self.name}: {rows:,} rows of text are announced, but there are "
                f"{len(text):,} characters"
            )
        # Column by column; blanks fill the shorter rows.
        return [text[row::rows].rstrip(" ") for row in range(rows)]

    def _element_bytes(self, content: Bytes) -> tuple[int, bytes]:
        """Read any element: its type and its content."""
        head = content.read(8)
        code, size = struct.unpack(self._order + "II", head)
        if not code >> 16:
            data = content.read(size)
            content.skip(min(-size % 8, content.room))
            return code, data
        # A short one has its content in place of its size.
        code, size = code & 0xFFFF, code >> 16
        if size > 4:
            raise InputError(f"{self.name}: the MATLAB file is damaged: a tag")
        return code, head[4 : 4 + size]


_PARTS = ("ir", "jc", "data")


class Mat73File:
    """A file of version 7.3; it has the methods of a `MatFile`."""

    def __init__(self, file: h5py.File, name: str) -> None:
        self._file, self.name = file, name
        # Names with a mark are MATLAB's own.
        self.variables = {one: file[one] for one in file if not one.startswith("#")}

    def kind(self, name: str) -> str:
        """Return what a variable holds: number, sparse, text or something else."""
        node = self.variables[name]
        if not is_dataset(node):
            return "sparse" if "MATLAB_sparse" in node.attrs else "other"
        if self._class(name) == "char" or "MATLAB_empty" in node.attrs:
            return "text" if self._class(name) == "char" else "other"
        return "number" if node.dtype.kind in REAL else "other"

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a variable, as MATLAB counts them."""
        if self.kind(name) != "sparse":
            return tuple(reversed(self.variables[name].shape or ()))
        columns = find(self._file, f"{name}/jc", self.name)
        rows = self.variables[name].attrs["MATLAB_sparse"]
        return int(np.ravel(rows)[0]), max(0, int(columns.size or 0) - 1)

    def numbers(self, name: str) -> NDArray[Any]:
        """Read an array of numbers."""
        return self._read(name).T

    def sparse(self, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read the rows, the beginnings of columns and the values of a matrix."""
        node = self.variables[name]
        empty = np.zeros(0, np.int64)
        rows, starts, values = (
            self._read(f"{name}/{part}") if part in node else empty for part in _PARTS
        )
        return rows, starts, values

    def texts(self, name: str) -> list[str]:
        """Read the rows of a matrix of characters."""
        codes = self._read(name).T
        whole = codes.ndim == 2 and codes.dtype.kind in "iu"
        if not whole or codes.max(initial=0) > 0xFFFF:
            raise InputError(f"{self.name}: {show(name)!r} is no text")
        rows = [row.astype("<u2").tobytes() for row in codes]
        return [one.decode("utf-16-le", "replace").rstrip(" ") for one in rows]

    def _class(self, name: str) -> str:
        value = self.variables[name].attrs.get("MATLAB_class", b"")
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)

    def _read(self, path: str) -> NDArray[Any]:
        dataset = find(self._file, path, self.name)
        check_dataset(dataset, self.name)
        if dataset.dtype.kind not in REAL:
            raise InputError(f"{self.name}: {show(path)!r} holds no numbers")
        check_fits(dataset.nbytes, self.name, f"the array {show(path)!r}")
        found: NDArray[Any] = dataset[()]
        return found
