"""The heaps in which HDF5 files keep text of any length.

The HDF5 library walks through a heap by the sizes that stand in it. Where damage makes
one of them zero, or more than the heap has, it may walk for ever or take gigabytes, and
nothing in Python could end that: so the sizes are looked at before the library does.
"""

from __future__ import annotations

import contextlib
import io
import math
import mmap
import struct
from typing import TYPE_CHECKING, BinaryIO

from nnkgraph.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import h5py

    Content = bytes | mmap.mmap

_MARK = b"GCOL\x01\0\0\0"
_HEAD = 16
"""Bytes of a heap before its first object, and of an object before its content."""


def check_texts(
    dataset: h5py.Dataset, stream: BinaryIO, name: str, *, heaps: bool = True
) -> None:
    """Refuse a file whose heaps, or whose references to them, are broken."""
    with _content(stream) as content:
        _check_references(dataset, content, name)
        if heaps:
            _check_heaps(content, name)


def check_heaps(stream: BinaryIO, name: str) -> None:
    """Refuse a file whose heaps are broken: attributes keep their text there, too."""
    with _content(stream) as content:
        _check_heaps(content, name)


@contextlib.contextmanager
def _content(stream: BinaryIO) -> Iterator[Content]:
    with stream:
        if isinstance(stream, io.BytesIO):
            yield stream.getvalue()
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def _check_references(dataset: h5py.Dataset, content: Content, name: str) -> None:
    for start, stored, count in _pieces(dataset):
        width = stored // max(1, count)
        end = min(start + stored, len(content))
        for place in range(start, end - width + 1, width) if width >= 12 else ():
            # The library makes room for a text before it looks whether it is there.
            (length,) = struct.unpack_from("<I", content, place)
            if length > len(content):
                raise InputError(f"{name}: damaged HDF5 file: a text has no end")


def _pieces(dataset: h5py.Dataset) -> list[tuple[int, int, int]]:
    """Return place, bytes and number of references, where they stand unpacked."""
    if dataset.chunks is None:
        place, stored = dataset.id.get_offset(), dataset.id.get_storage_size()
        return [] if place is None else [(place, stored, dataset.size)]
    if dataset.id.get_create_plist().get_nfilters():
        return []  # damage is found when they are unpacked
    chunks = map(dataset.id.get_chunk_info, range(dataset.id.get_num_chunks()))
    count = math.prod(dataset.chunks)
    return [(one.byte_offset, one.size, count) for one in chunks if one.byte_offset]


def _check_heaps(content: Content, name: str) -> None:
    start = content.find(_MARK)
    while start >= 0:
        if start + _HEAD <= len(content):
            (size,) = struct.unpack_from("<Q", content, start + 8)
            if not _is_sound(content, start, min(size, len(content) - start)):
                raise InputError(f"{name}: damaged HDF5 file: a heap of text is broken")
        start = content.find(_MARK, start + 8)


def _is_sound(content: Content, start: int, size: int) -> bool:
    place = _HEAD
    while place + _HEAD <= size:
        number, _, _, length = struct.unpack_from("<HHIQ", content, start + place)
        # What is free counts its own head; objects are padded to eight bytes.
        step = _HEAD + (length + 7) // 8 * 8 if number else length
        if not _HEAD <= step <= size - place:
            return False
        place += step
    return True
