"""npz archives: read without trusting them, written the same every time."""

from __future__ import annotations

import contextlib
import os
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from nnkgraph.bounded import new_array
from nnkgraph.errors import InputError
from nnkgraph.formats._arrays import Header, check_text, read_header
from nnkgraph.formats._memory import check_fits
from nnkgraph.formats._source import expect, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from nnkgraph.formats._source import Source

_DEFLATE_LIMIT = 1040
"""No deflated byte can stand for more bytes than this."""

_CHUNK = 1 << 24
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
            key: self._header(key) for key in self._members if self._is(key)
        }

    def __contains__(self, key: str) -> bool:
        return key in self.headers

    def read(self, key: str) -> NDArray[Any]:
        """Read one array."""
        header = self.headers[key]
        if not header.dtype.itemsize:
            return np.zeros(header.shape, header.dtype)
        what = f"the array {show(key)!r}"
        self._taken += header.size
        check_fits(self._taken, self.name, what, mapped=True)
        shape = header.shape[::-1] if header.fortran else header.shape
        values = new_array(shape, header.dtype)
        flat = np.asarray(values).reshape(-1).view(np.uint8)
        with self._zip.open(self._members[key]) as stream:
            stream.read(header.offset)
            for start in range(0, flat.size, _CHUNK):
                wanted = min(_CHUNK, flat.size - start)
                chunk = stream.read(wanted)
                if len(chunk) != wanted:
                    raise InputError(f"{self.name}: {what} is truncated")
                flat[start : start + wanted] = np.frombuffer(chunk, np.uint8)
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

    def _is(self, key: str) -> bool:
        return self._members[key].filename.endswith(".npy")

    def _header(self, key: str) -> Header:
        info, name = self._members[key], f"{self.name}: member {show(key)!r}"
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
