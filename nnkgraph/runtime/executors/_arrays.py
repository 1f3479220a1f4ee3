"""Arrays that workers can open: in this process's memory, or mapped from a file."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ResourceError
from nnkgraph.runtime.arrays import new_file, reserve, watch

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Mapped:
    """An array in a file: small to send, mapped wherever it is opened."""

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]
    writable: bool = False

    def open(self) -> NDArray[Any]:
        """Return the array; the file is mapped once in every process."""
        return _map(self)


@dataclass(frozen=True)
class Here:
    """An array in the memory of this process."""

    array: NDArray[Any]

    def open(self) -> NDArray[Any]:
        """Return the array."""
        return self.array


Shared = Mapped | Here


@lru_cache(maxsize=32)
def _map(mapped: Mapped) -> NDArray[Any]:
    if 0 in mapped.shape:  # nothing cannot be mapped
        return np.empty(mapped.shape, mapped.dtype)
    mode: Any = "r+" if mapped.writable else "r"
    try:
        array: NDArray[Any] = np.memmap(
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


def mapped_file(array: NDArray[Any]) -> Mapped | None:
    """Return a handle on an array that is mapped from a file as it is."""
    if not (isinstance(array, np.memmap) and array.flags.c_contiguous):
        return None
    whole = array.base is None or not isinstance(array.base, np.memmap)
    if not (whole and array.filename is not None and Path(array.filename).is_file()):
        return None
    path = str(Path(array.filename).absolute())
    return Mapped(path, array.dtype.str, array.offset, array.shape)


class ArrayFiles:
    """Writes the arrays of one pool into files of a directory."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = 0

    def write(self, array: NDArray[Any]) -> Mapped:
        """Write an array into a new file."""
        with new_file(self._folder, self._new_name(), array.nbytes) as file:
            np.ascontiguousarray(array).tofile(file)
        return Mapped(file.name, array.dtype.str, 0, array.shape)

    def output(self, shape: tuple[int, ...], dtype: Any) -> Mapped:
        """Return a new array that can be written to, with its room reserved."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with new_file(self._folder, self._new_name(), size) as file:
            reserve(file, size)
        return Mapped(file.name, np.dtype(dtype).str, 0, shape, writable=True)

    def contains(self, path: str) -> bool:
        """Return whether a file is one of these."""
        return os.path.dirname(path) == self._folder  # noqa: PTH120

    def _new_name(self) -> str:
        self._count += 1
        return f"{self._count}.bin"
