"""NumPy array file: one matrix, mapped into memory instead of read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import Features, FloatArray, IndexArray
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._base import Format, Target, TextOptions
from nnkgraph.runtime import arrays
from nnkgraph.runtime.archive import as_neighbors, check_real, check_text, read_header
from nnkgraph.runtime.files import Source, expect

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Npy(Format):
    """NumPy array file (features, candidates)."""

    suffixes: ClassVar[tuple[str, ...]] = (".npy",)
    binary: ClassVar[bool] = True

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Map a matrix; nothing is read before its header has been checked."""
        features = Features.of(_map(source), name=source.name, gaps=options.gaps)
        # The values were looked at in full: what changed meanwhile is not them.
        if source.path is not None and os.path.getsize(source.path) != source.size:  # noqa: PTH202
            raise InputError(f"{source.name}: the file changed while it was read")
        return features

    def write_features(
        self, stream: BinaryIO, features: Features, target: Target, /
    ) -> None:
        """Write a matrix, a block of rows at a time."""
        del target
        x = features.x
        about = {"descr": x.dtype.str, "fortran_order": False, "shape": x.shape}
        np.lib.format.write_array_header_1_0(stream, about)
        blocks = arrays.row_slices(len(x), x.itemsize * x.shape[1])
        stream.writelines(np.ascontiguousarray(x[rows]).data for rows in blocks)

    def check_features(self, features: Features, target: Target, /) -> None:
        """Refuse names of rows, for which there is no room."""
        super(Npy, self).check_features(features, target)
        if features.ids is not None:
            raise ParameterError(
                f"{target.name}: .npy has no room for the names of rows; write .h5 or "
                ".parquet"
            )

    def read_column(
        self, source: Source, options: TextOptions, /
    ) -> tuple[NDArray[Any], None]:
        """Read a bare array of labels: numbers or text."""
        del options
        mapped = _map(source, text=True)
        arrays.check_fits(mapped.nbytes, source.name, "a column")
        values = np.array(mapped)
        check_text(values, source.name)
        return values, None

    def read_candidates(
        self, source: Source, /
    ) -> tuple[IndexArray, FloatArray | None]:
        """Read a bare array of neighbors."""
        return as_neighbors(_map(source), source.name), None


def _map(source: Source, *, text: bool = False) -> NDArray[Any]:
    expect(source, "npy")
    with source.open() as stream:
        header = read_header(stream, source.name)
    if not (text and header.dtype.kind in "US"):
        check_real(header.dtype, source.name)
    if header.size != source.size:
        what = "truncated" if header.size > source.size else "followed by other bytes"
        raise InputError(
            f"{source.name}: the array is {what}: its header ({header}) makes "
            f"{header.size:,} bytes, the file has {source.size:,}"
        )
    if source.path is None:
        values = np.frombuffer(source.data, header.dtype, offset=header.offset)
        return values.reshape(header.shape, order=header.order)
    if header.size == header.offset:
        return np.empty(header.shape, header.dtype)
    try:
        mapped: NDArray[Any] = np.memmap(
            Path(source.path),
            header.dtype,
            mode="r",
            offset=header.offset,
            shape=header.shape,
            order=header.order,
        )
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"{source.name}: cannot be mapped: {error}") from error
    arrays.watch(mapped)
    return mapped


plugin: type[Format] = Npy
