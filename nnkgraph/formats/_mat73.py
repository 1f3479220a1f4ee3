"""MATLAB files of version 7.3, which are HDF5 files of a certain kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._arrays import REAL
from nnkgraph.formats._h5 import check_dataset, find
from nnkgraph.formats._memory import check_fits
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

_PARTS = ("ir", "jc", "data")


class Mat73File:
    """A file of version 7.3; it has the methods of a ``MatFile``."""

    def __init__(self, file: h5py.File, name: str) -> None:
        self._file, self.name = file, name
        # Names with a mark are MATLAB's own.
        self.variables = {one: file[one] for one in file if not one.startswith("#")}

    def kind(self, name: str) -> str:
        """Return what a variable holds: number, sparse, text or something else."""
        import h5py

        node = self.variables[name]
        if isinstance(node, h5py.Group):
            return "sparse" if "MATLAB_sparse" in node.attrs else "other"
        if self._class(name) == "char" or "MATLAB_empty" in node.attrs:
            return "text" if self._class(name) == "char" else "other"
        return "number" if node.dtype.kind in REAL else "other"

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a variable, as MATLAB counts them."""
        if self.kind(name) != "sparse":
            return tuple(reversed(self.variables[name].shape or ()))
        columns = find(self._file, f"{name}/jc", self.name)
        rows = self.variables[name].attrs["MATLAB_sparse"]
        return int(np.ravel(rows)[0]), max(0, int(columns.size or 0) - 1)

    def numbers(self, name: str) -> NDArray[Any]:
        """Read an array of numbers."""
        return self._read(name).T

    def sparse(self, name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read the rows, the beginnings of columns and the values of a matrix."""
        node = self.variables[name]
        empty = np.zeros(0, np.int64)
        rows, starts, values = (
            self._read(f"{name}/{part}") if part in node else empty for part in _PARTS
        )
        return rows, starts, values

    def texts(self, name: str) -> list[str]:
        """Read the rows of a matrix of characters."""
        codes = self._read(name).T
        if (
            codes.ndim != 2
            or codes.dtype.kind not in "iu"
            or codes.max(initial=0) > 0xFFFF
        ):
            raise InputError(f"{self.name}: {show(name)!r} is no text")
        rows = [row.astype("<u2").tobytes() for row in codes]
        return [one.decode("utf-16-le", "replace").rstrip(" ") for one in rows]

    def _class(self, name: str) -> str:
        value = self.variables[name].attrs.get("MATLAB_class", b"")
        return value.decode("latin-1") if isinstance(value, bytes) else str(value)

    def _read(self, path: str) -> NDArray[Any]:
        dataset = find(self._file, path, self.name)
        check_dataset(dataset, self.name)
        if dataset.dtype.kind not in REAL:
            raise InputError(f"{self.name}: {show(path)!r} holds no numbers")
        check_fits(dataset.nbytes, self.name, f"the array {show(path)!r}")
        found: NDArray[Any] = dataset[()]
        return found
