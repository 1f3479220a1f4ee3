"""Files: inputs that are known by their first bytes, outputs that are whole or absent.

Text is read and written here, too, compressed or not; damage is told with its place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import gzip
import io
import itertools
import os
import platform
import secrets
import stat
import sys
import zlib
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, TextIO

from nnkgraph.errors import InputError, NnkGraphError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_HEAD = 1024
_CHUNK = 1 << 20
_LOOKED_AT = 1000
"""Names of a folder among which one that was meant is looked for."""

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
    """Open a file, or standard input where the path is ``-``."""
    name = show(path if name is None else name)
    try:
        if path == "-":
            closed = InputError(f"{name}: standard input is closed")
            return _in_memory(name, _drain(_bytes_of(sys.stdin, closed), name), item)
        with Path(path).open("rb") as stream:
            mode = os.fstat(stream.fileno())
            if not stat.S_ISREG(mode.st_mode):
                return _in_memory(name, _drain(stream, name), item)
            return Source(name, path, b"", mode.st_size, stream.read(_HEAD), item)
    except NnkGraphError:
        raise  # a ValueError too, but it says more
    except FileNotFoundError as error:
        hint = meant(path)
        raise InputError(f"{name}: {reason(error)}{hint}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: {reason(error)}") from error


def expect(source: Source, *kinds: str) -> str:
    """Return which of some kinds the content looks like; ``""`` is none known."""
    if source.size == 0:
        raise InputError(f"{source.name}: empty file")
    found = sniff(source.head)
    if found in kinds:
        return found
    wanted = next((one for one in kinds if one not in {"", "gz"}), "")
    what = "unknown bytes" if b"\0" in source.head else "plain text"
    if found:
        foreign = found in {"gz", "pickle", "office", "utf-16"}
        hint = "" if foreign else f"; rename it or name its `format`, {found}"
        what = f"{LOOKS[found]}{hint}"
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


def _bytes_of(stream: TextIO | None, closed: NnkGraphError) -> BinaryIO:
    # The interpreter sets it to None where the descriptor is closed at the start.
    if stream is None:
        raise closed
    return stream.buffer


def _drain(stream: BinaryIO, name: str) -> bytes:
    from nnkgraph.runtime.arrays import memory_limit

    content, limit = bytearray(), memory_limit()
    while chunk := stream.read(_CHUNK):
        content += chunk
        if len(content) > limit // 2:
            raise InputError(
                f"{name}: more than half of the memory is full of it; "
                "write it to a file first"
            )
    return bytes(content)


_PREFIX = f".nnkgraph-{platform.node()[:64].replace('/', '_')}-"
"""Locks may be a machine's own: what others have left is theirs to remove."""

_STDOUT = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}


def is_stdout(path: str) -> bool:
    """Return whether a path stands for standard output."""
    return path in _STDOUT


def is_special(path: str) -> bool:
    """Return whether a path is a pipe or a device, which is written to directly."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - follows links as open() does
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_stream(path: str) -> bool:
    """Return whether a name is standard output, a pipe or a device."""
    return is_stdout(path) or is_special(path)


def is_temporary(path: str) -> bool:
    """Return whether a file is one that is being written, here or elsewhere."""
    name = os.path.basename(path)  # noqa: PTH119 - any string
    return name.startswith(".nnkgraph-") and name.endswith(".tmp")


def stdout_stream(name: str) -> BinaryIO:
    """Return standard output for bytes."""
    return _bytes_of(sys.stdout, OutputError(f"{name}: standard output is closed"))


class Outputs:
    """Files that appear together, complete, or not at all.

    Each is written under a random name in the directory of its target and renamed
    when the ``with`` block ends without an error; the first opened is renamed last.
    Pipes, devices and standard output are written to directly.
    """

    def __init__(self, name: str) -> None:
        self._name = show(name)
        self._streams: list[BinaryIO] = []
        self._renames: list[tuple[str, str]] = []
        self._removals: list[str] = []

    def open(self, path: str) -> BinaryIO:
        """Open a file for writing."""
        if is_stdout(path):
            return stdout_stream(self._name)
        if is_special(path):
            stream: BinaryIO = Path(path).open("wb")  # noqa: SIM115 - see _discard
        else:
            target = os.path.realpath(path)
            directory = os.path.dirname(target)  # noqa: PTH120 - a string stays one
            _remove_orphans(directory)
            temporary, stream = _temporary(directory)
            self._renames.append((temporary, target))
        self._streams.append(stream)
        return stream

    def remove(self, path: str) -> None:
        """Remove a file, where there is one, once all others are in place."""
        self._removals.append(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, _trace: object) -> None:
        try:
            if kind is None:
                self._commit()
        except BrokenPipeError:
            raise
        except OSError as failure:
            raise self._translated(failure) from failure
        finally:
            self._discard()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise self._translated(error) from error

    def _translated(self, error: OSError) -> OutputError:
        return OutputError(f"{self._name}: cannot be written: {reason(error)}")

    def _commit(self) -> None:
        for stream in self._streams:
            stream.flush()
            if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                sync(stream.fileno())
        # Closed only when all have their names: until then they are locked.
        for temporary, target in reversed(self._renames):
            os.replace(temporary, target)  # noqa: PTH105 - one call to replace in tests
        for path in self._removals:
            with contextlib.suppress(FileNotFoundError):
                Path(path).unlink()
        for stream in self._streams:
            stream.close()
        for directory in {os.path.dirname(target) for _, target in self._renames}:  # noqa: PTH120
            _sync_directory(directory)

    def _discard(self) -> None:
        """Close and remove what is left; after a commit that is nothing."""
        for stream in self._streams:
            # A buffer that cannot be flushed has been complained about already.
            with contextlib.suppress(OSError):
                stream.close()
        for temporary, _ in self._renames:
            # One that cannot go now is an orphan, which the next run removes.
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write any file, whole or not at all."""
    target = os.fspath(path)
    with Outputs(target) as outputs:
        outputs.open(target).write(content)


def _temporary(directory: str) -> tuple[str, BinaryIO]:
    """Make a file with a random name, and lock it so that it is known to be in use."""
    while True:
        path = f"{directory}/{_PREFIX}{secrets.token_hex(8)}.tmp"
        # "x" refuses a planted file or link; the umask decides about the mode.
        stream = Path(path).open("x+b")  # noqa: SIM115 - it outlives this function
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(stream, fcntl.LOCK_EX)
        # Another run may have taken it for an orphan before it was locked.
        if os.fstat(stream.fileno()).st_nlink:
            return path, stream
        stream.close()


def _remove_orphans(directory: str) -> None:
    """Remove what killed runs have left: files that nobody holds a lock on."""
    for path in Path(directory).glob(f"{glob.escape(_PREFIX)}*.tmp"):
        # One that is in use, gone, a link or another user's is left alone.
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


def _sync_directory(directory: str) -> None:
    """Make renames durable, where the file system can."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        sync(handle)
    finally:
        os.close(handle)


def sync(handle: int) -> None:
    """Have what was written on the disk, where the file system can say so."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}:
            raise


@contextlib.contextmanager
def open_bytes(source: Source, *kinds: str) -> Iterator[BinaryIO]:
    """Open content that may be gzip-compressed, whatever its name says."""
    packed = expect(source, *kinds, "gz") == "gz"
    try:
        with source.open() as raw, gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
            if packed:
                head = unpacked.read(len(source.head))
                expect(replace(source, head=head, size=len(head)), *kinds)
                unpacked.seek(0)
            yield unpacked if packed else raw  # type: ignore[misc]
    except (EOFError, OSError, zlib.error) as error:
        what = "the gzip-compressed data is damaged" if packed else "cannot be read"
        raise InputError(f"{source.name}: {what}: {error}") from error


@contextlib.contextmanager
def open_text(
    source: Source, *kinds: str, newline: str | None = None
) -> Iterator[TextIO]:
    """Open UTF-8 text, with or without a byte order mark."""
    with open_bytes(source, *kinds) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", newline=newline)
        try:
            yield text
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.name}: line {_undecodable(stream)} is not UTF-8; save the "
                "file as UTF-8 text, or convert it: iconv -f cp1252 -t utf-8, where it "
                "comes from Windows"
            ) from error
        finally:
            # The stream is closed by its owner; the wrapper must not do it twice.
            text.detach()


@contextlib.contextmanager
def write_text(stream: BinaryIO, *, packed: bool) -> Iterator[Callable[[str], object]]:
    """Give a function that writes text as UTF-8.

    Compressed data carries neither a time nor a file name.
    """
    with contextlib.ExitStack() as stack:
        if packed:
            # Level 6 costs a third of level 9 for the same size within 1 %.
            writer = gzip.GzipFile("", "wb", 6, stream, mtime=0)
            stream = stack.enter_context(writer)  # type: ignore[assignment]
        yield lambda text: stream.write(text.encode("utf-8"))


@contextlib.contextmanager
def seekable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Give a file in which one can go back; what is no such gets all in the end."""
    if stream.seekable() and stream.readable():
        yield stream
        return
    file = io.BytesIO()
    yield file
    stream.write(file.getbuffer())


def _undecodable(stream: BinaryIO) -> int:
    stream.seek(0)
    number = 0
    for number, line in enumerate(stream, 1):  # noqa: B007 - its last value counts
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            break
    return number
