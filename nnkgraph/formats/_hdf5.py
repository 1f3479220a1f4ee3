"""Opening HDF5 files so that no other file is read and every failure is explained."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import math
import mmap
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, NnkGraphError
from nnkgraph.runtime.files import Source, expect, show, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator

    import h5py
    from numpy.typing import NDArray


_MARK = b"GCOL\x01\0\0\0"
_HEAD = 16
"""Bytes of a heap before its first object, and of an object before its content."""


@contextlib.contextmanager
def _content(source: Source) -> Iterator[bytes | mmap.mmap]:
    with source.open() as stream:
        if isinstance(stream, io.BytesIO):
            yield stream.getvalue()
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def _check_references(dataset: h5py.Dataset, source: Source) -> None:
    """Refuse a dataset whose references to texts are broken."""
    with _content(source) as content:
        for start, stored, count in _pieces(dataset):
            width = stored // max(1, count)
            end = min(start + stored, len(content))
            for place in range(start, end - width + 1, width) if width >= 12 else ():
                # The library makes room for a text before it looks whether it is there.
                (length,) = struct.unpack_from("<I", content, place)
                if length > len(content):
                    name = source.name
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


def check_heaps(source: Source) -> None:
    """Refuse a file whose heaps are broken: attributes keep their text there, too."""
    with _content(source) as content:
        start = content.find(_MARK)
        while start >= 0:
            if start + _HEAD <= len(content):
                (size,) = struct.unpack_from("<Q", content, start + 8)
                if not _is_sound(content, start, min(size, len(content) - start)):
                    what = "damaged HDF5 file: a heap of text is broken"
                    raise InputError(f"{source.name}: {what}")
            start = content.find(_MARK, start + 8)


def _is_sound(content: bytes | mmap.mmap, start: int, size: int) -> bool:
    place = _HEAD
    while place + _HEAD <= size:
        number, _, _, length = struct.unpack_from("<HHIQ", content, start + place)
        # What is free counts its own head; objects are padded to eight bytes.
        step = _HEAD + (length + 7) // 8 * 8 if number else length
        if not _HEAD <= step <= size - place:
            return False
        place += step
    return True


_MOST_LINKS = 32
_PACKED_LIMIT = 1040  # no deflated byte can stand for more bytes than this
_NOTHING = 1 << 24  # so many bytes may be claimed and never have been written
_LISTED = 12


@contextlib.contextmanager
def open_h5(source: Source) -> Iterator[h5py.File]:
    """Open a file for reading; damage found in the block is an `InputError`."""
    import h5py

    # A user block may stand before the signature, which the head does not show.
    if source.path is None or sniff(source.head) or not h5py.is_hdf5(source.path):
        expect(source, "h5")
    try:
        with _open(source) as file:
            yield file
    except NnkGraphError:
        raise  # a ValueError too, but it says more
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{source.name}: {_explain(error)}") from error


def _open(source: Source) -> h5py.File:
    import h5py

    if source.path is None:
        return h5py.File(source.open(), "r")
    try:
        return h5py.File(source.path, "r", locking="best-effort")
    except ValueError:
        # This HDF5 library is too old to be told about locking.
        return h5py.File(source.path, "r")


def is_dataset(node: Any) -> bool:
    """Return whether something in a file holds values, and is no group."""
    import h5py

    return isinstance(node, h5py.Dataset)


def is_text(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset holds text."""
    import h5py

    return h5py.check_string_dtype(dataset.dtype) is not None


def is_octave(node: Any) -> bool:
    """Return whether a group is a variable that Octave wrote."""
    import h5py

    return isinstance(node, h5py.Group) and "OCTAVE_NEW_FORMAT" in node.attrs


def child(group: Any, name: str) -> Any:
    """Return what is in a group under a name, None where nothing is or it is a link."""
    import h5py

    link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
    return group[name] if isinstance(link, h5py.HardLink) else None


def has(file: h5py.File, path: str) -> bool:
    """Return whether there is something at a path; no link is followed on the way."""
    import h5py

    *folders, last = path.split("/")
    node = functools.reduce(child, folders, file)
    if not (last and isinstance(node, h5py.Group)):
        return False
    return node.get(last, getlink=True) is not None


def find(file: h5py.File, path: str, name: str) -> h5py.Dataset:
    """Return the dataset at a path, walking link by link and never out of the file."""
    node = walk(file, path, name)
    if not is_dataset(node):
        raise InputError(
            f"{name}: {show(path)!r} is a group, not a dataset; it holds "
            f"{contents(file)}"
        )
    return node


def walk(file: h5py.File, path: str, name: str) -> h5py.Dataset | h5py.Group:
    """Return what stands at a path as `find` does, be it a dataset or a group."""
    import h5py

    node, parts, links = file, _split(path), 0
    while parts:
        part = parts.pop(0)
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            raise InputError(
                f"{name}: there is no dataset {show(path)!r} inside; it holds "
                f"{contents(file)}"
            )
        if isinstance(link, h5py.ExternalLink):
            raise InputError(
                f"{name}: {show(part)!r} is a link to another file; links out of the "
                "file are not followed"
            )
        if isinstance(link, h5py.SoftLink):
            links += 1
            if links > _MOST_LINKS:
                raise InputError(f"{name}: the links of {show(path)!r} have no end")
            parts = _split(link.path) + parts
            node = file if link.path.startswith("/") else node
            continue
        node = node[part]
    if not isinstance(node, h5py.Dataset | h5py.Group):  # a type that has a name
        raise InputError(f"{name}: {show(path)!r} holds no values")
    return node


def check_dataset(
    dataset: h5py.Dataset,
    name: str,
    *,
    fields: bool = False,
    single: bool = False,
    called: str = "",
) -> None:
    """Refuse a dataset without values of its own.

    With `fields` one may be compound, with `single` hold a single value. The name of
    one that a reference led to takes long to find: say what it is to be `called`.
    """
    import h5py

    what = f"{name}: the dataset {show(called or dataset.name)}"
    if dataset.shape is None:
        raise InputError(f"{what} is empty; the file holds {contents(dataset.file)}")
    if (dataset.dtype.kind == "V" and not fields) or (
        dataset.shape == () and not single
    ):
        kind = "a single value" if dataset.shape == () else "compound"
        raise InputError(f"{what} is {kind}; the file holds {contents(dataset.file)}")
    if dataset.external or dataset.is_virtual:
        raise InputError(
            f"{what} keeps its values in other files, which are not opened; copy the "
            "values into the file"
        )
    _check_stored(dataset, what)
    plist = dataset.id.get_create_plist()
    for number in range(plist.get_nfilters()):
        code, _, _, title = plist.get_filter(number)
        if not h5py.h5z.filter_avail(code):
            title = show(title.decode("utf-8", "replace")) or "without a name"
            raise InputError(
                f"{what} needs the filter {title} (number {code}), which is not "
                "installed; try the package hdf5plugin, or h5repack -f NONE"
            )


def _check_stored(dataset: h5py.Dataset, what: str) -> None:
    """Refuse a dataset, or one chunk of it, that cannot be what the file holds.

    Values that were never written cost nothing in the file, however many they are.
    """
    stored = dataset.id.get_storage_size()
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    claimed = max(int(dataset.nbytes), chunk)
    if claimed > _NOTHING + _PACKED_LIMIT * stored:
        raise InputError(
            f"{what} claims {claimed:,} bytes, more than its {stored:,} stored bytes "
            "can hold"
        )


def read_texts(
    dataset: h5py.Dataset, source: Source, *, heaps: bool = True
) -> NDArray[Any]:
    """Read a dataset of text, once what the library trusts has been checked.

    `heaps` is False where `check_heaps` has looked at the file already.
    """
    import h5py

    check_dataset(dataset, source.name)
    if h5py.check_string_dtype(dataset.dtype).length is None:
        _check_references(dataset, source)
        if heaps:
            check_heaps(source)
    return np.asarray(dataset.asstr()[()], object)


def datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return all datasets by path; links out of the file are not followed."""
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str | bytes, node: Any) -> None:
        # A name that is no UTF-8 comes as bytes.
        path = name if isinstance(name, str) else name.decode("utf-8", "replace")
        # A type that NumPy does not know has no dtype to ask for.
        with contextlib.suppress(TypeError):
            if is_dataset(node) and node.dtype is not None:
                found[path] = node

    file.visititems(visit)
    return found


def contents(file: h5py.File) -> str:
    """Return a list of the datasets in a file, for messages."""
    found = datasets(file)
    parts = [f"{show(path)} {one.shape} {one.dtype}" for path, one in found.items()]
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    return (", ".join(parts[:_LISTED]) or "no datasets") + more


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _explain(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "h5clear" in text or "already open for" in text:
        return (
            "a program that wrote it did not close it, or is still writing; if none "
            "is, run h5clear -s on a copy"
        )
    code = error.errno if isinstance(error, OSError) else None
    if code in {errno.EAGAIN, errno.ENOLCK} or "unable to lock" in text:
        return (
            "another program has locked it, or the file system cannot lock; if nobody "
            "writes to it, set HDF5_USE_FILE_LOCKING=FALSE"
        )
    if "truncated" in text:
        return f"the HDF5 file is truncated: {text}"
    return f"damaged HDF5 file: {text}"
