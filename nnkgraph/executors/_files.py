"""Arrays in files of a folder, which workers map."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.executors import Mapped
from nnkgraph.scratch import new_file, reserve

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Files:
    """The arrays of one pool: those that are files already, and new ones."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = 0

    def share(self, array: NDArray[Any], /) -> Mapped:
        """Return a handle on an array; it is written where it is no file yet."""
        return mapped_file(array) or self.write(array)

    def write(self, array: NDArray[Any]) -> Mapped:
        """Write an array into a file."""
        with new_file(self._folder, self._name(), array.nbytes) as file:
            np.ascontiguousarray(array).tofile(file)
        return Mapped(file.name, array.dtype.str, 0, array.shape)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Mapped:
        """Return a new array that can be written to, with its room reserved."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with new_file(self._folder, self._name(), size) as file:
            reserve(file, size)
        return Mapped(file.name, np.dtype(dtype).str, 0, shape, writable=True)

    def owns(self, path: str) -> bool:
        """Return whether a file is one of these."""
        return os.path.dirname(path) == self._folder  # noqa: PTH120

    def _name(self) -> str:
        self._count += 1
        return f"{self._count}.bin"


def mapped_file(array: NDArray[Any]) -> Mapped | None:
    """Return a handle on an array that is mapped from a file as it is."""
    if not (isinstance(array, np.memmap) and array.flags.c_contiguous):
        return None
    whole = array.base is None or not isinstance(array.base, np.memmap)
    if not (whole and array.filename is not None and Path(array.filename).is_file()):
        return None
    path = str(Path(array.filename).absolute())
    return Mapped(path, array.dtype.str, array.offset, array.shape)
