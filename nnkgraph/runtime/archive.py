"""npz archives: read without trusting them, written the same every time."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy_format

from nnkgraph.errors import InputError, NnkGraphError
from nnkgraph.runtime import arrays
from nnkgraph.runtime.files import Source, expect, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike


REAL = "biuf"
"""The kinds of dtype that are real numbers."""

_INT32_END = 2**31 - 1
_MOST_EXTENTS = 32
_MOST_WITHOUT = 1 << 20
_LAST_CHARACTER = 0x10FFFF

# What NumPy's parser raises for headers that are not what it wrote.
_DAMAGE = (
    ValueError,
    SyntaxError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)


@dataclass(frozen=True, slots=True)
class Header:
    """What the first bytes of a NumPy array say about the rest."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int
    """Bytes before the values."""

    @property
    def order(self) -> Literal["C", "F"]:
        """How the values follow each other."""
        return "F" if self.fortran else "C"

    @property
    def size(self) -> int:
        """Bytes in all, header included; exact however large."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"shape {self.shape}, dtype {self.dtype}"


def read_header(stream: BinaryIO, name: str) -> Header:
    """Read the header; the stream then stands at the first value."""
    try:
        with warnings.catch_warnings():
            # Files of Python 2 need a second look, and old names of dtypes are
            # going away: both are nobody's concern.
            warnings.simplefilter("ignore")
            shape, fortran, dtype = _parse(stream, name)
    except _DAMAGE as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise InputError(
            f"{name}: the npy header is truncated or damaged: {first}"
        ) from error
    if any(extent < 0 for extent in shape):
        raise InputError(f"{name}: the npy header claims the impossible shape {shape}")
    # Extents of zero, and text without characters, must not hide all the others.
    claimed = math.prod(max(1, extent) for extent in shape) * max(1, dtype.itemsize)
    without = 0 if dtype.itemsize else math.prod(shape)
    if claimed >= 2**63 or without > _MOST_WITHOUT or len(shape) > _MOST_EXTENTS:
        raise InputError(f"{name}: the npy header claims more bytes than there can be")
    if dtype.hasobject:
        raise InputError(
            f"{name}: holds Python objects, which are never loaded; convert the values "
            "to float32 or float64"
        )
    return Header(tuple(map(int, shape)), bool(fortran), dtype, stream.tell())


def _parse(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy_format.read_magic(stream)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(stream)
    # Version 3 differs in the letters of field names, which no array of numbers has.
    if version in {(2, 0), (3, 0)}:
        return npy_format.read_array_header_2_0(stream)
    raise InputError(f"{name}: npy version {version} is not known: save it anew")


def check_real(dtype: np.dtype[Any], name: str) -> None:
    """Refuse values that are no real numbers."""
    if dtype.kind not in REAL:
        raise InputError(
            f"{name}: the values have dtype {dtype}, which is no real number; convert "
            "them to float32 or float64"
        )


def check_text(values: arrays.AnyArray, name: str) -> None:
    """Refuse numbers that are no characters: Python would make broken text of them."""
    if values.dtype.kind != "U" or not values.size:
        return
    native = values.dtype.newbyteorder("=")
    codes = np.ascontiguousarray(values, native).reshape(-1).view(np.uint32)
    if codes.max() > _LAST_CHARACTER:
        raise InputError(f"{name}: holds text with characters that do not exist")


def as_neighbors(array: ArrayLike, name: str) -> arrays.IndexArray:
    """Return a 2-D array of whole numbers as indices."""
    values = np.asarray(array)
    if values.ndim != 2:
        raise InputError(
            f"{name}: the neighbors have shape {values.shape}; one row per node and "
            "one column per neighbor are needed"
        )
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"{name}: the neighbors have dtype {values.dtype}, not integer"
        )
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # 2**53 is infinity for short ones
            whole = np.isfinite(values) & (np.abs(values) < 2**53)
        if not (whole.all() and (values == np.trunc(values)).all()):
            raise InputError(f"{name}: the neighbors are not whole numbers")
    wanted = np.int32 if values.dtype == np.int32 else np.int64
    return arrays.converted(values, wanted)


def as_distances(
    array: ArrayLike, neighbors: arrays.IndexArray, name: str
) -> arrays.FloatArray:
    """Return the distances that belong to some neighbors."""
    values = np.asarray(array)
    check_real(values.dtype, name)
    if values.shape != neighbors.shape:
        raise InputError(
            f"{name}: distances have shape {values.shape}, neighbors {neighbors.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return arrays.converted(values, np.float64)


def index_dtype(*largest: int) -> type[np.int32 | np.int64]:
    """Return the smallest dtype that holds some counts, the same on every machine."""
    return np.int32 if max(largest, default=0) <= _INT32_END else np.int64


_DEFLATE_LIMIT = 1040
"""No deflated byte can stand for more bytes than this."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


class Archive:
    """The arrays of an npz file; each is read when it is asked for."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self._taken = 0
        self._size = stream.seek(0, os.SEEK_END)
        self._zip = zipfile.ZipFile(stream)
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            key = info.filename.removesuffix(".npy")
            if key in self._members:
                raise InputError(f"{name}: two members are called {show(key)!r}")
            self._members[key] = info
        self.headers = {
            key: self._header(key, info)
            for key, info in self._members.items()
            if info.filename.endswith(".npy")
        }

    def __contains__(self, key: str) -> bool:
        return key in self.headers

    def read(self, key: str) -> arrays.AnyArray:
        """Read one array."""
        header = self.headers[key]
        if not header.dtype.itemsize:
            return np.zeros(header.shape, header.dtype)
        what = f"the array {show(key)!r}"
        self._taken += header.size
        arrays.check_fits(self._taken, self.name, what, mapped=True)
        shape = header.shape[::-1] if header.fortran else header.shape
        values = arrays.new_array(shape, header.dtype)
        flat = np.asarray(values).reshape(-1).view(np.uint8)
        with self._zip.open(self._members[key]) as stream:
            stream.read(header.offset)
            for part in arrays.row_slices(flat.size, 1):
                chunk = stream.read(part.stop - part.start)
                if len(chunk) != part.stop - part.start:
                    raise InputError(f"{self.name}: {what} is truncated")
                flat[part] = np.frombuffer(chunk, np.uint8)
            if stream.read(1):
                raise InputError(f"{self.name}: {what} is followed by other bytes")
        values = values.T if header.fortran else values
        check_text(values, f"{self.name}: {what}")
        return values

    def text(self, key: str) -> str:
        """Read one piece of text."""
        header = self.headers[key]
        if header.shape != () or header.dtype.kind not in "US":
            raise InputError(f"{self.name}: the member {show(key)!r} is not text")
        value = self.read(key).item()
        return value.decode("ascii") if isinstance(value, bytes) else str(value)

    def strings(self, key: str) -> tuple[str, ...]:
        """Read a list of text."""
        header = self.headers[key]
        if len(header.shape) != 1 or header.dtype.kind not in "US":
            raise InputError(
                f"{self.name}: the member {show(key)!r} is no list of text"
            )
        return tuple(
            one.decode() if isinstance(one, bytes) else one
            for one in self.read(key).tolist()
        )

    def _header(self, key: str, info: zipfile.ZipInfo) -> Header:
        name = f"{self.name}: member {show(key)!r}"
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise InputError(f"{name}: compressed in a way that NumPy never uses")
        if info.compress_size > self._size:
            raise InputError(f"{name}: claims more bytes than the archive has")
        factor = _DEFLATE_LIMIT if info.compress_type else 1
        if info.file_size > info.compress_size * factor:
            raise InputError(
                f"{name}: claims {info.file_size:,} bytes, more than its "
                f"{info.compress_size:,} compressed bytes can hold"
            )
        with self._zip.open(info) as stream:
            header = read_header(stream, name)  # type: ignore[arg-type]
        if header.size != info.file_size:
            raise InputError(
                f"{name}: its header ({header}) makes {header.size:,} bytes, the "
                f"archive says {info.file_size:,}"
            )
        return header


@contextlib.contextmanager
def open_archive(source: Source) -> Iterator[Archive]:
    """Open an npz file; damage found anywhere in the block is an `InputError`."""
    expect(source, "npz")
    try:
        with source.open() as stream:
            yield Archive(stream, source.name)
    except NnkGraphError:
        raise  # a ValueError too, but it says more
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
        LookupError,
        struct.error,
    ) as error:
        raise InputError(f"{source.name}: damaged npz archive: {error}") from error


def write_archive(stream: BinaryIO, members: Mapping[str, Any]) -> None:
    """Write arrays uncompressed, in the order given and without a date."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for key, value in members.items():
            info = zipfile.ZipInfo(f"{key}.npy", _EPOCH)
            info.external_attr = 0o644 << 16
            # Always, not only for large members: the size is not known beforehand.
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(
                    member, np.asanyarray(value), allow_pickle=False
                )
