"""Where input comes from: a file, a pipe or standard input, and what it looks like."""

from __future__ import annotations

import io
import itertools
import os
import stat
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from nnkgraph.errors import InputError

_HEAD = 1024
_CHUNK = 1 << 20
_LOOKED_AT = 1000
"""Names of a folder among which one that was meant is looked for."""

BY = "--format; of convert --from and --to"
"""The options that name the format of a file."""

LOOKS = {
    "npy": "a NumPy array (npy)",
    "h5": "an HDF5 file (h5)",
    "npz": "a zip archive (npz)",
    "gz": "gzip-compressed data",
    "mtx": "a Matrix Market file (mtx)",
    "edgelist": "an edge list of nnkgraph (edgelist)",
    "graphml": "XML (graphml)",
    "gexf": "a GEXF file (gexf)",
    "parquet": "a Parquet file (parquet)",
    "mat": "a MATLAB file (mat)",
    "pickle": "a Python pickle, which is never loaded",
    "office": "a spreadsheet; save it as CSV",
    "utf-16": "UTF-16 or UTF-32 text; save it as UTF-8",
}

_MAGIC = (
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF\r\n\x1a\n", "h5"),
    (b"PK\x03\x04", "npz"),
    (b"PK\x05\x06", "npz"),
    (b"\x1f\x8b", "gz"),
    (b"%%matrixmarket", "mtx"),
    (b"# nnkgraph graph", "edgelist"),
    (b"<?xml", "graphml"),
    (b"<graphml", "graphml"),
    (b"<gexf", "gexf"),
    (b"PAR1", "parquet"),
    (b"MATLAB 5.0 MAT-file", "mat"),
    (b"MATLAB 7.3 MAT-file", "mat"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\x00\x00\xfe\xff", "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """An input that was opened once, and can be opened again."""

    name: str
    """What the user typed, safe to print."""

    path: str | None
    """The file, or None where `data` holds its content."""

    data: bytes
    """The content of what could be read only once: a pipe, standard input."""

    size: int
    """Bytes in all."""

    head: bytes
    """The first bytes."""

    item: str | None = None
    """The array or dataset inside the file that is wanted."""

    suffix: str = ""
    """The file name ending that chose the format."""

    def open(self) -> BinaryIO:
        """Open the content for reading; the file can seek."""
        if self.path is None:
            return io.BytesIO(self.data)
        try:
            return Path(self.path).open("rb")
        except OSError as error:
            raise InputError(f"{self.name}: {reason(error)}") from error


def show(name: str) -> str:
    """Return a name in which terminal escapes and the like are harmless."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii")
        for c in name
    )


def reason(error: OSError | ValueError) -> str:
    """Return what went wrong, without the path, which the message names already."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    text = error.strerror if isinstance(error, OSError) else None
    return (text or str(error) or type(error).__name__).lower()


def meant(path: str) -> str:
    """Return a hint at the file that may have been meant where there is none."""
    before, colon, item = path.rpartition(":")
    if colon and os.path.isfile(before):  # noqa: PTH113 - any string
        return f"; an item is named with two colons: {show(before)}::{show(item)}"
    folder, wanted = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            # A look, not a search: folders may be huge.
            some = [one.name for one in itertools.islice(entries, _LOOKED_AT)]
    except OSError:
        return ""
    near = get_close_matches(wanted, [one for one in some if one != wanted], 1, 0.8)
    found = os.path.join(folder, near[0]) if near else ""  # noqa: PTH118 - any string
    is_file = os.path.isfile(found)  # noqa: PTH113 - any string
    return f"; did you mean {show(found)}?" if is_file else ""


def open_source(
    path: str, *, item: str | None = None, name: str | None = None
) -> Source:
    """Open a file, or standard input where the path is ``-``.

    Raises
    ------
    InputError
        Where there is nothing to read; the message says why.
    """
    name = show(path if name is None else name)
    try:
        if path == "-":
            return _in_memory(name, _drain(_stdin(name), name), item)
        with Path(path).open("rb") as stream:
            mode = os.fstat(stream.fileno())
            if not stat.S_ISREG(mode.st_mode):
                return _in_memory(name, _drain(stream, name), item)
            return Source(name, path, b"", mode.st_size, stream.read(_HEAD), item)
    except FileNotFoundError as error:
        hint = meant(path)
        raise InputError(f"{name}: {reason(error)}{hint}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: {reason(error)}") from error


def expect(source: Source, *kinds: str) -> str:
    """Return which of some kinds the content looks like; ``""`` is none known.

    Raises
    ------
    InputError
        For an empty file, or where the content looks like another kind.
    """
    if source.size == 0:
        raise InputError(f"{source.name}: empty file")
    found = sniff(source.head)
    if found in kinds:
        return found
    wanted = next((one for one in kinds if one not in {"", "gz"}), "")
    if found:
        foreign = found in {"gz", "pickle", "office", "utf-16"}
        hint = "" if foreign else f"; rename it or name its format, {found} ({BY})"
        raise InputError(
            f"{source.name}: not {_article(wanted)} file: the content looks like "
            f"{LOOKS[found]}{hint}"
        )
    what = "unknown bytes" if b"\0" in source.head else "plain text"
    raise InputError(
        f"{source.name}: not {_article(wanted)} file: the content looks like {what}"
    )


def sniff(head: bytes) -> str:
    """Return the name of the format that some first bytes belong to, or ``""``."""
    bare = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:16].lower()
    for magic, kind in _MAGIC:
        if head.startswith(magic) or bare.startswith(magic):
            # All XML begins alike; the root element follows soon.
            if kind == "graphml" and b"<gexf" in head:
                return "gexf"
            return "office" if kind == "npz" and _is_office(head) else kind
    # Protocol 2 and later: an opcode and the protocol number.
    if head[:1] == b"\x80" and head[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}:
        return "pickle"
    return ""


def _is_office(head: bytes) -> bool:
    """Return whether a zip archive is a spreadsheet (.xlsx, .ods) or the like."""
    return b"[Content_Types].xml" in head or b"vnd.oasis.opendocument" in head


def _article(kind: str) -> str:
    vowel = kind.startswith(("a", "e", "i", "o", "u", "h", "mt"))  # as it is spelled
    return f"{'an' if vowel else 'a'} {kind or 'text'}"


def _in_memory(name: str, data: bytes, item: str | None) -> Source:
    return Source(name, None, data, len(data), data[:_HEAD], item)


def _stdin(name: str) -> BinaryIO:
    # The interpreter sets it to None where the descriptor is closed at the start.
    stream: object = sys.stdin
    if stream is None:
        raise InputError(f"{name}: standard input is closed")
    return sys.stdin.buffer


def _drain(stream: BinaryIO, name: str) -> bytes:
    from nnkgraph.bounded import memory_limit

    content, limit = bytearray(), memory_limit()
    while chunk := stream.read(_CHUNK):
        content += chunk
        if len(content) > limit // 2:
            raise InputError(
                f"{name}: more than half of the memory is full of it; "
                "write it to a file first"
            )
    return bytes(content)
