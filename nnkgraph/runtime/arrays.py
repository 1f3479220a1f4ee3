"""Large arrays: in memory or in temporary files, within a limit, block by block."""

from __future__ import annotations

import errno
import fcntl
import functools
import glob
import itertools
import math
import mmap
import os
import platform
import re
import secrets
import shutil
import tempfile
import threading
import weakref
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, ParamSpec, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nnkgraph.errors import InputError, ResourceError
from nnkgraph.runtime import limits
from nnkgraph.runtime.limits import available_memory, taken_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

AnyArray = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
IndexArray = NDArray[np.integer[Any]]

SHORT = "/tmp"  # noqa: S108 - names in it are random
_CHUNK = 1 << 20
_OWN = re.compile(r"(\d+)-[a-z0-9_]{8}(-[a-z0-9_]{8})?")
"""The number of a process, and what makes its folders' names their own."""


def _machine() -> str:
    """Return this machine's name, short enough for the path of a socket."""
    name = platform.node().replace("/", "_")
    return name if len(name) <= 32 else f"{name[:23]}-{crc32(name.encode()):08x}"


def temporary_place() -> str:
    """Return the directory for temporary files."""
    try:
        return tempfile.gettempdir()
    except OSError as error:
        raise ResourceError(
            "temporary files can be written nowhere; set TMPDIR to a directory with "
            "room, or raise the limit of file sizes (ulimit -f)"
        ) from error


@contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[str]:
    """Make a folder for temporary files, by default in TMPDIR; it goes in the end."""
    mine = f"nnkgraph-{_machine()}-"
    place = parent or temporary_place()
    # Its name is known before it is made: a signal may come in between.
    folder = f"{place}/{mine}{os.getpid()}-{secrets.token_hex(4)}"
    held = None
    try:
        try:
            for one in {place, SHORT}:
                _remove_orphans(Path(one), mine)
            held = make_held(folder)
        except OSError as error:
            advice = "name another" if parent else "set TMPDIR to a directory with room"
            raise ResourceError(
                f"no temporary directory can be made in {place} ({error.strerror}); "
                f"{advice}"
            ) from error
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


def make_held(folder: str) -> int:
    """Make a directory that is known to be in use for as long as the result is open.

    The number of a process does not tell: containers share directories and the name of
    the machine, and count their own processes.
    """
    while True:
        Path(folder).mkdir(mode=0o700)
        held = os.open(folder, os.O_RDONLY)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(held, fcntl.LOCK_EX)
        if os.path.isdir(folder):  # noqa: PTH112 - nobody took it for an orphan
            return held
        os.close(held)


@contextmanager
def new_file(
    folder: str, name: str, size: int, mode: Literal["xb", "ab"] = "xb"
) -> Iterator[BinaryIO]:
    """Open a new file, or a longer one; where it cannot be written, room is lacking."""
    try:
        with Path(folder, name).open(mode) as file:
            yield file
    except OSError as error:
        raise ResourceError(
            f"{folder}: cannot write {size} bytes of temporary files "
            f"({error.strerror or error}); set TMPDIR to a directory with room"
        ) from error


def longer_file(path: str, size: int) -> AbstractContextManager[BinaryIO]:
    """Open a file that gets longer by so many bytes."""
    return new_file(*os.path.split(path), size, "ab")


def reserve(file: BinaryIO, size: int) -> None:
    """Take room on the disk, by writing it where the system has no other way.

    A full disk would otherwise be a bus error for who writes to the mapped file.
    """
    try:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
    except AttributeError:  # macOS
        file.writelines(
            bytes(min(_CHUNK, size - start)) for start in range(0, size, _CHUNK)
        )


def _remove_orphans(parent: Path, prefix: str) -> None:
    """Remove folders of runs on this machine that were killed."""
    for folder in parent.glob(f"{glob.escape(prefix)}*"):
        # The name of another machine may begin with this one's.
        own = _OWN.fullmatch(folder.name.removeprefix(prefix))
        if own and not _is_running(int(own[1])):
            with suppress(OSError):  # one that is in use, or gone, is left alone
                handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    _lock_at_once(handle)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(handle)


def _lock_at_once(handle: int) -> None:
    """Take a lock; fail where another process has it, and not where there are none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
            raise


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, PermissionError)  # it is another user's
    return True


_FASTEST = 4 << 30
"""Bytes in a second that a process could map: how soon to look again."""

_SHORTEST, _IDLE, _LONGEST = 0.002, 0.02, 1.0
"""Seconds between two looks: at least, where nothing moves, and at most."""

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_lock = threading.Lock()


def watch(array: Any) -> None:
    """Let pages of a mapped array be given back; other arrays are left alone."""
    if not isinstance(array, np.memmap) or array.mode not in {"r", "r+", "w+"}:
        return  # what was written into a private copy would be lost
    known = getattr(array, "_mmap", None)
    if isinstance(known, mmap.mmap):
        with _lock:
            _maps.add(known)


def give_back() -> None:
    """Give back all pages of watched arrays."""
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    with _lock:
        known = list(_maps)
    for one in known:
        try:
            one.madvise(mmap.MADV_DONTNEED)
        except (ValueError, OSError):  # closed since, or locked in memory
            continue


class Keeper:
    """Keeps this process's memory below a target, as far as mapped files make it up.

    It looks the more often the less is left. Programs and libraries are mapped files
    as well: what of them is in use when it begins does not count.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.libraries = self._files = limits.memory_of()[2]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no longer."""
        self._ended.set()
        self._thread.join()

    def look(self) -> float:
        """Give back pages where too many are in use; return seconds until next time."""
        _, resident, files = limits.memory_of()
        own, self._files = resident - files, files
        # However much else there is, some pages must stay for the work to go on.
        most = max(self.target - own, self.target // 8)
        mapped = files - self.libraries
        if mapped > most:
            give_back()
            self.libraries, mapped = limits.memory_of()[2], 0
        return min(_LONGEST, max(_SHORTEST, (most - mapped) / _FASTEST))

    def _keep(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            before = self._files
            soon = self.look()
            idle = self._files == before
            pause = max(soon, min(_IDLE, 2 * pause)) if idle else soon


_P = ParamSpec("_P")
_R = TypeVar("_R")

_LARGE = 16
"""An array is large beyond this part of the limit."""


class Limit:
    """What a run may take, and the files that it takes instead."""

    def __init__(self, size: int, files: ExitStack, *, asked: bool) -> None:
        self.size = size
        self.asked = asked
        self.keeper = Keeper(size)
        self.keeper.target = self.usable
        self._files = files
        self._folder = ""
        self._count = 0

    @property
    def usable(self) -> int:
        """Bytes for everything but programs and libraries, with some to spare."""
        return max(self.size * 7 // 8 - self.keeper.libraries, self.size // 4)

    def new_path(self) -> tuple[str, str]:
        """Return a folder and the name of a new file in it."""
        if not self._folder:
            self._folder = self._files.enter_context(scratch_folder())
        self._count += 1
        return self._folder, f"{self._count}.array"


_active: ContextVar[Limit | None] = ContextVar("limit", default=None)


@contextmanager
def limited(memory: int | None) -> Iterator[Limit]:
    """Work within a limit: in bytes, or what there is where it is None.

    None within another limit leaves that one alone.
    """
    outer = _active.get()
    if outer is not None and memory is None:
        yield outer
        return
    size = available_memory() + taken_memory() if memory is None else memory
    with ExitStack() as files:
        limit = Limit(size, files, asked=memory is not None)
        files.callback(limit.keeper.stop)
        files.callback(_active.reset, _active.set(limit))
        yield limit


def within_memory(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a function within the limit that its argument ``memory`` says."""

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        memory: Any = kwargs.get("memory")
        with limited(memory):
            return function(*args, **kwargs)

    return run


@contextmanager
def shared_with(workers: int) -> Iterator[int | None]:
    """Leave most of the limit to worker processes; return what each may take."""
    limit = _active.get()
    if limit is None:
        yield None
        return
    limit.keeper.target = limit.usable // 4
    try:
        yield worker_share(workers)
    finally:
        limit.keeper.target = limit.usable


def memory_limit() -> int:
    """Return the bytes that this run may take."""
    limit = _active.get()
    return available_memory() + taken_memory() if limit is None else limit.size


def worker_share(workers: int) -> int:
    """Return the bytes that each of some workers may take."""
    limit = _active.get()
    usable = memory_limit() if limit is None else limit.usable
    return usable * 3 // 4 // workers


def is_large(size: int) -> bool:
    """Return whether so many bytes are better kept in a file."""
    limit = _active.get()
    return limit is not None and size > limit.size // _LARGE


def new_array(shape: tuple[int, ...] | int, dtype: Any) -> AnyArray:
    """Return a new array: in memory, or in a file that is gone when nobody uses it."""
    shape = (shape,) if isinstance(shape, int) else shape
    size = math.prod(shape) * np.dtype(dtype).itemsize
    limit = _active.get()
    if limit is None or not is_large(size):
        return np.empty(shape, dtype)
    name = ""
    try:
        with new_scratch(size) as file:
            name = file.name
            reserve(file, size)
    except ResourceError:
        if limit.asked:
            raise
        _remove(name)  # nobody asked for a limit: it may fit into memory
        return np.empty(shape, dtype)
    return mapped_scratch(name, shape, dtype)


def new_scratch(size: int) -> AbstractContextManager[BinaryIO]:
    """Open a new temporary file for about so many bytes, within a limit."""
    limit = _active.get()
    if limit is None:
        raise LookupError("there is no limit, and so no folder for files")
    return new_file(*limit.new_path(), size)


def mapped_scratch(path: str, shape: tuple[int, ...], dtype: Any) -> AnyArray:
    """Return a temporary file as an array; it is removed when nobody uses it."""
    try:
        array: Any = np.memmap(path, dtype, "r+", shape=shape)
    except OSError as error:
        raise ResourceError(
            f"{path}: cannot be mapped ({error.strerror}); raise the limit of the "
            "address space (ulimit -v)"
        ) from error
    watch(array)
    # Views keep the map alive, not the array. Its space is free once nobody has it.
    weakref.finalize(array._mmap, _remove, path).atexit = False
    return array  # type: ignore[no-any-return]


def _remove(path: str) -> None:
    with suppress(OSError):  # the folder may be gone
        Path(path).unlink()


_BLOCK = 64
"""A block of rows takes at most this part of the limit."""

_LEAST_BLOCK, _MOST_BLOCK = 1 << 20, 1 << 25


def row_slices(n: int, row_bytes: int, *, fixed: bool = False) -> Iterator[slice]:
    """Cut n rows into blocks that are small against the limit.

    What is computed for a row must not depend on the block that it is in. With `fixed`
    blocks are the same whatever the limit: for sums over rows, which depend on them.
    """
    most = _MOST_BLOCK
    if not fixed:
        most = min(most, max(_LEAST_BLOCK, memory_limit() // _BLOCK))
    rows = max(1, most // max(1, row_bytes))
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def converted(array: AnyArray, dtype: Any) -> AnyArray:
    """Return an array in C order with another dtype; itself where nothing changes."""
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    result = new_array(array.shape, dtype)
    if array.ndim == 0:
        result[...] = array
        return result
    row = math.prod(array.shape[1:])
    for rows in row_slices(len(array), row * (array.itemsize + result.itemsize)):
        result[rows] = array[rows]
    return result


def widened(array: AnyArray, width: int = 0, value: Any = 0) -> AnyArray:
    """Return a copy of a matrix, in C order, with more columns full of a value."""
    n, m = array.shape
    result = new_array((n, max(m, width)), array.dtype)
    for rows in row_slices(n, 2 * result.shape[1] * array.itemsize):
        result[rows, :m] = array[rows]
        result[rows, m:] = value
    return result


def stacked(blocks: Iterable[AnyArray], most: int = 0) -> AnyArray:
    """Return blocks of rows under each other; in a file once they are large.

    Where it is known how many rows there are at most, no block is copied twice.
    """
    coming = iter(blocks)
    if most and (one := next(coming, None)) is not None:
        result, rows = new_array((max(most, len(one)), *one.shape[1:]), one.dtype), 0
        for block in itertools.chain([one], coming):
            result[rows : rows + len(block)] = block
            rows += len(block)
        return result[:rows]
    known, size = [], 0
    for block in coming:
        known.append(block)
        size += block.nbytes
        if is_large(2 * size):
            break
    else:
        return known[0] if len(known) == 1 else np.concatenate(known)
    first, rows = known[0], 0
    with new_scratch(size) as file:
        path = file.name
    for block in itertools.chain(known, coming):
        with longer_file(path, block.nbytes) as more:
            block.tofile(more)
        rows += len(block)
    return mapped_scratch(path, (rows, *first.shape[1:]), first.dtype)


def taken_rows(array: AnyArray, rows: AnyArray) -> AnyArray:
    """Return some rows of an array, in the order given."""
    result = new_array((len(rows), *array.shape[1:]), array.dtype)
    size = math.prod(array.shape[1:]) * array.itemsize
    for part in row_slices(len(rows), size):
        result[part] = array[rows[part]]
    return result


def check_fits(size: int, name: str, what: str, *, mapped: bool = False) -> None:
    """Refuse an input whose declared size is more than the memory there is.

    What may be ``mapped`` goes to a file where it is large against a limit.
    """
    limit, addresses = available_memory(), limits.free_addresses()
    if mapped and is_large(size) and not 0 <= addresses < size:
        with suppress(OSError):
            limit = max(limit, shutil.disk_usage(temporary_place()).free)
    if size > limit:
        raise InputError(
            f"{name}: {what} claims {size:,} bytes, more than the {limit:,} bytes of "
            "memory that are available"
        )
