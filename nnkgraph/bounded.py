"""A limit on memory: large arrays are mapped files, and their pages are given back.

Within ``limited`` an array that is large against the limit lives in a temporary file.
The values are the same wherever they live.
"""

from __future__ import annotations

import functools
import math
import weakref
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ParamSpec, TypeVar

import numpy as np

from nnkgraph import pages
from nnkgraph.errors import ResourceError
from nnkgraph.memory import available_memory, taken_memory
from nnkgraph.scratch import new_file, reserve, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LARGE = 16
"""An array is large beyond this part of the limit."""


class Limit:
    """What a run may take, and the files that it takes instead."""

    def __init__(self, size: int, files: ExitStack, *, asked: bool) -> None:
        self.size = size
        self.asked = asked
        self.keeper = pages.Keeper(size)
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


def new_array(shape: tuple[int, ...] | int, dtype: Any) -> NDArray[Any]:
    """Return a new array: in memory, or in a file that is gone when nobody uses it.

    Raises
    ------
    ResourceError
        Where there is no room on the disk for it.
    """
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
    return mapped_scratch(file.name, shape, dtype)


def new_scratch(size: int) -> AbstractContextManager[BinaryIO]:
    """Open a new temporary file for about so many bytes, within a limit."""
    limit = _active.get()
    if limit is None:
        raise LookupError("there is no limit, and so no folder for files")
    return new_file(*limit.new_path(), size)


def mapped_scratch(path: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return a temporary file as an array; it is removed when nobody uses it."""
    try:
        array: Any = np.memmap(path, dtype, "r+", shape=shape)
    except OSError as error:
        raise ResourceError(
            f"{path}: cannot be mapped ({error.strerror}); raise the limit of the "
            "address space (ulimit -v)"
        ) from error
    pages.watch(array)
    # Views keep the map alive, not the array. Its space is free once nobody has it.
    weakref.finalize(array._mmap, _remove, path).atexit = False
    found: NDArray[Any] = array
    return found


def _remove(path: str) -> None:
    with suppress(OSError):  # the folder may be gone
        Path(path).unlink()
