"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import secrets
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from nnkgraph.errors import OutputError
from nnkgraph.formats._source import reason, show

if TYPE_CHECKING:
    from types import TracebackType

_PREFIX = f".nnkgraph-{platform.node()[:64]}-"
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
    # The interpreter sets it to None where the descriptor is closed at the start.
    stream: object = sys.stdout
    if stream is None:
        raise OutputError(f"{name}: standard output is closed")
    return sys.stdout.buffer


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
                os.fsync(stream.fileno())
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
            with contextlib.suppress(FileNotFoundError):
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
    for path in Path(directory).glob(f"{_PREFIX}*.tmp"):
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
        os.fsync(handle)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(handle)
