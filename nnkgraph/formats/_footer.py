"""The end of a Parquet file: how many values each column says it holds.

pyarrow can tell this too, but what it throws at a damaged count there ends the whole
process, and nothing in Python can catch that. So the few numbers that are needed
are read here: the footer is a structure of Thrift's compact protocol.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_TAIL = 8
"""Bytes behind the footer: its length, and the four letters of the format."""

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
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("the footer is damaged") from error
    return found


def _read_footer(stream: BinaryIO) -> dict[int, Any]:
    end = stream.seek(-_TAIL, os.SEEK_END)
    length = int.from_bytes(stream.read(4), "little")
    if length > end:
        raise ValueError("the footer is longer than the file")
    stream.seek(end - length)
    return _Compact(stream.read(length)).struct(0)


class _Compact:
    """Reads values one after the other; what is not there is an `IndexError`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._plain: dict[int, Callable[[], Any]] = {
            1: self._byte,  # a truth value in a list
            2: self._byte,
            3: self._byte,
            4: self._number,
            5: self._number,
            6: self._number,
            7: lambda: self._take(8),
            8: lambda: self._take(self._varint()),
        }

    def struct(self, depth: int) -> dict[int, Any]:
        """Read fields by their numbers, up to the byte that ends them."""
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            # A field that is a truth value says which by its kind.
            found[field] = kind == 1 if kind in {1, 2} else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("the footer is too deep")
        if kind == 12:
            return self.struct(depth + 1)
        if kind in {9, 10}:
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind not in self._plain:  # maps are not used in footers
            raise ValueError(f"the footer has a value of kind {kind}")
        return self._plain[kind]()

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise IndexError
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise ValueError("the footer has a number of too many bytes")

    def _number(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)
