"""The bytes of one element of a MATLAB file."""

from __future__ import annotations

import zlib
from typing import BinaryIO

from nnkgraph.errors import InputError
from nnkgraph.formats._memory import check_fits

_DEFLATE_LIMIT = 1040
"""No deflated byte can stand for more bytes than this."""

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
