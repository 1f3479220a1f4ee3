"""MATLAB files, read without trusting them: version 5, and 7.3, which is HDF5.

``scipy.io.loadmat`` is not used: a small file with many cells, each in the one before
it, ends the whole process.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._hdf5 import check_dataset, child, find, is_dataset, is_octave
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
        names = {CELL: "text", CHAR: "text", SPARSE: "sparse", STRUCT: "struct"}
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


_KINDS_4 = ("f8", "f4", "i4", "i2", "u2", "u1")
_NUMBERS_4, _TEXT_4, _SPARSE_4 = range(3)
_LONGEST_NAME = 64


@dataclass(frozen=True)
class _Variable4:
    """An array in a file of version 4: its numbers, and what they stand for."""

    code: int
    dtype: np.dtype[Any]
    shape: tuple[int, int]
    is_complex: bool
    start: int


def is_version_4(head: bytes) -> bool:
    """Return whether some first bytes are the head of an array; there is no other."""
    found = _head_4(head)
    if found is None:
        return False
    name = head[20 : 20 + found[1]]
    return name.endswith(b"\0") and name[:1].isalpha() and name[:-1].isascii()


def _head_4(head: bytes) -> tuple[_Variable4, int] | None:
    """Return an array whose values follow its head, and the length of its name."""
    for order in "<>":
        if len(head) < 20:
            return None
        code, rows, columns, imaginary, length = struct.unpack(f"{order}5i", head[:20])
        # Thousands are the order of bytes, tens the kind of number.
        high, kind = divmod(code % 1000, 10), code // 10 % 10
        sane = code // 1000 == "<>".index(order) and high[0] < len(_KINDS_4)
        sane = sane and high[1] <= _SPARSE_4 and imaginary in {0, 1}
        if sane and min(rows, columns) >= 0 and 1 < length <= _LONGEST_NAME:
            dtype = np.dtype(_KINDS_4[kind]).newbyteorder(order)  # type: ignore[arg-type]
            found = high[1], dtype, (rows, columns), bool(imaginary), 20 + length
            return _Variable4(*found), length
    return None


class Mat4File:
    """A file of version 4; it has the methods of a `MatFile`."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name, self._stream = name, stream
        self.variables: dict[str, _Variable4] = {}
        size, at = stream.seek(0, os.SEEK_END), 0
        while at < size:
            stream.seek(at)
            found = _head_4(stream.read(20))
            if found is None:
                raise InputError(f"{name}: the MATLAB file is damaged at byte {at:,}")
            one, length = replace(found[0], start=at + found[0].start), found[1]
            title = stream.read(length).rstrip(b"\0").decode("latin-1")
            count = math.prod(one.shape) * (1 + one.is_complex)
            at = one.start + count * one.dtype.itemsize
            if at > size or title in self.variables:
                what = "is truncated" if at > size else f"has {show(title)!r} twice"
                raise InputError(f"{name}: the MATLAB file {what}")
            self.variables[title] = one

    def kind(self, name: str) -> str:
        """Return what a variable holds: number, sparse, text or complex."""
        one = self.variables[name]
        # A complex sparse matrix has a column more.
        if one.is_complex or (one.code == _SPARSE_4 and one.shape[1] != 3):
            return "complex"
        return ("number", "text", "sparse")[one.code]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a variable."""
        one = self.variables[name]
        if self.kind(name) != "sparse" or not one.shape[0]:
            return one.shape
        rows, columns, _ = self._read(name)[-1]
        if not (0 <= rows < _MOST_4 and 0 <= columns < _MOST_4):
            raise InputError(f"{self.name}: {show(name)!r} has impossible extents")
        return int(rows), int(columns)

    def numbers(self, name: str) -> NDArray[Any]:
        """Read an array of numbers."""
        return self._read(name)

    def sparse(self, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read the rows, the beginnings of columns and the values of a matrix."""
        rows, columns, values = self._read(name)[:-1].T
        width = self.shape(name)[1]
        check_fits(16 * width, self.name, f"the array {show(name)!r}")
        if not ((columns >= 1) & (columns <= width)).all():
            raise InputError(f"{self.name}: {show(name)!r} leaves its extents")
        order = np.argsort(columns, kind="stable")
        counts = np.bincount(columns.astype(np.int64), minlength=width + 1)
        return rows[order] - 1, np.cumsum(counts), values[order]

    def texts(self, name: str) -> list[str]:
        """Read the rows of a matrix of characters."""
        codes = self._read(name)
        if not ((codes >= 0) & (codes < 256)).all():
            raise InputError(f"{self.name}: {show(name)!r} is no text")
        rows = codes.astype("u1")
        return [row.tobytes().decode("latin-1").rstrip(" ") for row in rows]

    def _read(self, name: str) -> NDArray[Any]:
        one = self.variables[name]
        size = math.prod(one.shape) * one.dtype.itemsize
        check_fits(size, self.name, f"the array {show(name)!r}")
        self._stream.seek(one.start)
        found = np.frombuffer(self._stream.read(size), one.dtype)
        native = found.astype(one.dtype.newbyteorder("="), copy=False)
        return native.reshape(one.shape, order="F")


_MOST_4 = 2**31
_PARTS = ("ir", "jc", "data")
_PARTS_OCTAVE = ("ridx", "cidx", "data")
_NUMERIC = {"double", "single", "logical", ""}
_NUMERIC |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_DEEPEST, _MOST_VARIABLES = 8, 10_000


@dataclass(frozen=True)
class _Stored:
    """A variable in an HDF5 file: what it holds, and where."""

    kind: str
    node: Any
    octave: bool


class Mat73File:
    """A file of version 7.3, or one by Octave; it has the methods of a `MatFile`."""

    def __init__(self, file: h5py.File, name: str) -> None:
        self._file, self.name = file, name
        self.variables: dict[str, _Stored] = {}
        # Names with a mark are MATLAB's own.
        for one in file:
            if isinstance(one, str) and not one.startswith("#"):
                self._take(one, child(file, one), 0)

    def _take(self, name: str, node: Any, depth: int) -> None:
        """Note a variable, and the fields of a structure behind it."""
        if not hasattr(node, "attrs") or depth > _DEEPEST:
            return  # nothing, a link, or a type that has a name
        if len(self.variables) >= _MOST_VARIABLES:
            raise InputError(f"{self.name}: holds too many variables")
        one = self.variables[name] = self._look(node)
        for field in one.node if one.kind == "struct" else ():
            self._take(f"{name}.{field}", child(one.node, field), depth + 1)

    def _look(self, node: Any) -> _Stored:
        if is_octave(node):
            value, title = child(node, "value"), child(node, "type")
            told = is_dataset(title) and title.shape == () and title.dtype.kind == "S"
            if value is None or not told:
                raise InputError(f"{self.name}: {show(node.name)} is damaged")
            check_dataset(title, self.name, single=True)
            return _Stored(_octave_kind(title, value), value, octave=True)
        if not hasattr(node, "attrs"):  # a cell that is a link
            return _Stored("other", node, octave=False)
        title = ""
        there = "MATLAB_class" in node.attrs
        # Text of any length would be in a heap, which has not been looked at.
        if there and node.attrs.get_id("MATLAB_class").dtype.kind == "S":
            title = bytes(node.attrs["MATLAB_class"]).decode("latin-1")
        if not is_dataset(node):
            kind = "sparse" if "MATLAB_sparse" in node.attrs else "struct"
        elif "MATLAB_empty" in node.attrs:
            kind = "text" if title == "char" else "empty"
        else:
            numeric = title in _NUMERIC and node.dtype.kind in REAL
            kind = {"char": "text", "cell": "text"}.get(title, "other")
            kind = "number" if numeric else kind
        return _Stored(kind, node, octave=False)

    def kind(self, name: str) -> str:
        """Return what a variable holds: number, sparse, text or something else."""
        return self.variables[name].kind

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a variable, as MATLAB counts them."""
        one = self.variables[name]
        if one.kind == "sparse" and one.octave:
            rows, columns = (self._numbers(one.node, part) for part in ("nr", "nc"))
            return int(rows.ravel()[0]), int(columns.ravel()[0])
        if one.kind == "sparse":
            columns = find(self._file, f"{one.node.name}/jc", self.name)
            rows = one.node.attrs["MATLAB_sparse"]
            return int(np.ravel(rows)[0]), max(0, int(columns.size or 0) - 1)
        if one.kind == "empty":
            return ()
        if not is_dataset(one.node):
            cells = child(one.node, "dims") if one.kind == "text" else None
            return (
                tuple(self._read(cells, name).tolist()[::-1])
                if is_dataset(cells)
                else ()
            )
        extents: tuple[int, ...] = tuple(reversed(one.node.shape or ()))
        return extents if extents or not one.octave else (1, 1)

    def numbers(self, name: str) -> NDArray[Any]:
        """Read an array of numbers."""
        found = self._read(self.variables[name].node, name)
        return found.T if found.ndim else found.reshape(1, 1)

    def sparse(self, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read the rows, the beginnings of columns and the values of a matrix."""
        one = self.variables[name]
        parts = _PARTS_OCTAVE if one.octave else _PARTS
        empty = np.zeros(0, np.int64)
        rows, starts, values = (
            self._numbers(one.node, part) if part in one.node else empty
            for part in parts
        )
        return rows, starts, values

    def texts(self, name: str) -> list[str]:
        """Read a list of texts, or the rows of a matrix of characters."""
        one = self.variables[name]
        cells = self._cells(one)
        if cells is None:
            return self._characters(one, name)
        found = [self._look(cell) for cell in cells]
        if any(cell.kind != "text" for cell in found):
            raise InputError(f"{self.name}: {show(name)!r} is no list of text")
        return ["".join(self._characters(cell, name)) for cell in found]

    def _cells(self, one: _Stored) -> Iterator[Any] | None:
        """Return what the cells of a cell array hold; None where it is none."""
        if one.octave:
            if is_dataset(one.node):
                return None
            # Of ten cells on their numbers have zeros before them.
            names = sorted(set(one.node) - {"dims"}, key=lambda name: int(name[1:]))
            return (child(one.node, name) for name in names)
        if one.node.dtype.kind != "O":
            return None
        check_dataset(one.node, self.name)
        return (self._file[cell] for cell in one.node[()].T.ravel(order="F"))

    def _characters(self, one: _Stored, name: str) -> list[str]:
        """Read the rows of a matrix of characters: UTF-16, or UTF-8 by Octave."""
        octave, node = one.octave, one.node
        # Octave writes the extents, in longer numbers, of what is empty.
        if not is_dataset(node) or (octave and node.dtype != np.int8):
            return []
        if "MATLAB_empty" in node.attrs:
            return []
        codes = self._read(node, name).T
        codes = codes.view("u1") if octave else codes
        whole = codes.ndim == 2 and codes.dtype.kind in "iu"
        if not whole or codes.max(initial=0) > 0xFFFF:
            raise InputError(f"{self.name}: {show(name)!r} is no text")
        kind, codec = ("u1", "utf-8") if octave else ("<u2", "utf-16-le")
        rows = [row.astype(kind).tobytes() for row in codes]
        return [one.decode(codec, "replace").rstrip(" ") for one in rows]

    def _numbers(self, group: Any, part: str) -> NDArray[Any]:
        path = f"{group.name}/{part}"
        return self._read(find(self._file, path, self.name), path).ravel()

    def _read(self, dataset: h5py.Dataset, name: str) -> NDArray[Any]:
        if not is_dataset(dataset) or dataset.dtype.kind not in REAL:
            raise InputError(f"{self.name}: {show(name)!r} holds no numbers")
        check_dataset(dataset, self.name, single=True, called=name)
        if dataset.nbytes > _CHUNK:  # cells are many and small
            check_fits(dataset.nbytes, self.name, f"the array {show(name)!r}")
        return np.asarray(dataset[()])


def _octave_kind(title: h5py.Dataset, value: Any) -> str:
    """Return the kind of a variable that Octave wrote, by the name of its type."""
    known = bytes(title[()]).decode("latin-1")
    if "string" in known or known == "cell":
        return "text"
    if not is_dataset(value):
        kinds = {"sparse matrix": "sparse", "sparse bool matrix": "sparse"}
        return {**kinds, "scalar struct": "struct"}.get(known, "other")
    if "complex" in known:
        return "complex"
    if "OCTAVE_EMPTY_MATRIX" in value.parent.attrs:
        return "empty"
    return "number" if value.dtype.kind in REAL else "other"
