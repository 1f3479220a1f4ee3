"""Executors: where blocks of rows are computed. One file each.

Workers open arrays in this process's memory, or mapped from a file.
"""

from __future__ import annotations

import itertools
import math
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import AnyArray, new_file, reserve, watch
from nnkgraph.runtime.limits import granted_cpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager


class Pool(Protocol):
    """Workers that are ready; what an executor opens."""

    workers: int
    """How many blocks are computed at the same time."""

    threads: int
    """How many threads this process itself may keep busy while its workers wait."""

    block_factor: int
    """How many times larger blocks should be where a task has more overhead."""

    block_timeout: float | None
    """Seconds without a finished block after which a worker hangs; None: never."""

    in_place: bool
    """Whether workers write their rows into outputs; else they return them."""

    returns: bool
    """Whether tasks may return results of any size."""

    def share(self, array: AnyArray, /) -> Shared:
        """Return a handle under which every worker can open the array."""

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Shared:
        """Return a new array for the rows of every worker's results."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start a call on some worker."""

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        """Return those of some calls that are done, at least one, or none in time."""

    def revive(self) -> None:
        """Replace the workers after one of them died."""


class Executor(Protocol):
    """Opens pools of workers."""

    in_process: ClassVar[bool]
    """Whether its workers share this process, and so cost nothing to start."""

    @property
    def attached(self) -> bool:
        """Whether its workers are there already, whatever their number."""

    def open(
        self,
        workers: int,
        /,
        *,
        block_timeout: float | None = None,
        shared_dir: str | None = None,
    ) -> AbstractContextManager[Pool]:
        """Start workers; they and their temporary files end with the context.

        ``shared_dir`` is a directory that other machines are likely to see as well.
        """


_MOST_PER_CPU = 4
"""More workers than this for each processor only get into each other's way."""

_SMALL_SECONDS = 4.0
"""Work below this is done before worker processes would have started and paid off."""


BLOCK_TIMEOUT = 3600.0
"""Seconds for a block, which takes less than one: whatever takes longer hangs."""


def open_pool(
    spec: str,
    workers: int | str,
    *,
    seconds: float,
    block_timeout: float = BLOCK_TIMEOUT,
    shared_dir: str | None = None,
) -> AbstractContextManager[Pool]:
    """Open the pool that suits a job of so many seconds on one processor.

    With workers "auto" it is the processors granted, with threads for a small job.
    A ``block_timeout`` of 0 waits for ever.
    """
    count, in_process = pool_size(spec, workers, seconds=seconds)
    executor: Executor = registry.create("executors", spec)
    if in_process and (count == 1 or not executor.in_process):
        executor = registry.create("executors", "serial" if count == 1 else "threads")
    return executor.open(
        count, block_timeout=block_timeout or None, shared_dir=shared_dir
    )


def pool_size(spec: str, workers: int | str, *, seconds: float) -> tuple[int, bool]:
    """Return how many workers a job gets, and whether they are in this process."""
    executor: Executor = registry.create("executors", spec)
    count = granted_cpus() if workers == "auto" else int(workers)
    if count < 1:
        raise ParameterError(f"workers must be at least 1, not {count}")
    count = min(count, _MOST_PER_CPU * granted_cpus())
    if executor.attached:
        return count, False
    small = workers == "auto" and seconds < _SMALL_SECONDS
    return count, executor.in_process or count == 1 or small


@dataclass(frozen=True)
class Mapped:
    """An array in a file: small to send, mapped wherever it is opened."""

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]
    writable: bool = False

    def open(self) -> AnyArray:
        """Return the array; the file is mapped once in every process."""
        return _map(self)


@dataclass(frozen=True)
class Here:
    """An array in the memory of this process."""

    array: AnyArray

    def open(self) -> AnyArray:
        """Return the array."""
        return self.array


Shared = Mapped | Here


@lru_cache(maxsize=32)
def _map(mapped: Mapped) -> AnyArray:
    if 0 in mapped.shape:  # nothing cannot be mapped
        return np.empty(mapped.shape, mapped.dtype)
    mode: Any = "r+" if mapped.writable else "r"
    try:
        array: AnyArray = np.memmap(
            mapped.path, mapped.dtype, mode, mapped.offset, mapped.shape
        )
    except FileNotFoundError as error:
        raise ResourceError(
            f"{mapped.path}: is not there on {platform.node()}; it may have been "
            "removed, or be on a disk that this machine does not see"
        ) from error
    watch(array)
    return array


def forget_maps() -> None:
    """Let go of files that were mapped: removed ones then free their space."""
    _map.cache_clear()


def mapped_file(array: AnyArray) -> Mapped | None:
    """Return a handle on an array that is mapped from a file as it is."""
    if not (isinstance(array, np.memmap) and array.flags.c_contiguous):
        return None
    whole = array.base is None or not isinstance(array.base, np.memmap)
    if not (whole and array.filename is not None and Path(array.filename).is_file()):
        return None
    path = str(Path(array.filename).absolute())
    return Mapped(path, array.dtype.str, array.offset, array.shape)


class FilePool:
    """A pool that shares arrays as files of a directory."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._names = (f"{number}.bin" for number in itertools.count(1))

    def share(self, array: AnyArray, /) -> Mapped:
        """Return a handle under which every worker can open the array."""
        return mapped_file(array) or self.write(array)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Mapped:
        """Return a new array that can be written to, with its room reserved."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with new_file(self.folder, next(self._names), size) as file:
            reserve(file, size)
        return Mapped(file.name, np.dtype(dtype).str, 0, shape, writable=True)

    def write(self, array: AnyArray) -> Mapped:
        """Write an array into a new file."""
        with new_file(self.folder, next(self._names), array.nbytes) as file:
            np.ascontiguousarray(array).tofile(file)
        return Mapped(file.name, array.dtype.str, 0, array.shape)
