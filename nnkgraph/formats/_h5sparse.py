"""Sparse matrices of AnnData files, made dense block by block."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from nnkgraph.checks import as_float
from nnkgraph.errors import InputError, ResourceError
from nnkgraph.formats._anndata import attribute
from nnkgraph.formats._arrays import check_real
from nnkgraph.formats._h5 import check_dataset, find
from nnkgraph.formats._memory import check_fits
from nnkgraph.formats._source import show
from nnkgraph.memory import available_memory, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    import h5py
    from numpy.typing import NDArray

    from nnkgraph.formats._format import Note
    from nnkgraph.formats._source import Source

_BLOCK_BYTES = 1 << 24
_SHARE = 4
"""A matrix may take one part in so many of the memory; a larger one goes to a file."""


def sparse_kind(group: h5py.Group) -> str:
    """Return ``"csr"``, ``"csc"`` or, for any other group, nothing."""
    kind = attribute(group, "encoding-type").removesuffix("_matrix")
    kind = kind or attribute(group, "h5sparse_format")  # before anndata 0.7
    return kind if kind in {"csr", "csc"} else ""


def read_dense(group: h5py.Group, source: Source, note: Note) -> NDArray[Any]:
    """Return a sparse matrix as a dense one, in memory or mapped from a file."""
    shape = _shape(group, source)
    parts = [
        find(group.file, f"{group.name}/{part}", source.name)
        for part in ("data", "indices", "indptr")
    ]
    for part in parts:
        check_dataset(part, source.name)
    check_real(parts[0].dtype, source.name)
    across = shape if sparse_kind(group) == "csr" else shape[::-1]
    starts = _starts(parts, across[0], source.name)
    dtype = as_float(np.empty(0, parts[0].dtype)).dtype
    size = shape[0] * shape[1] * dtype.itemsize
    filled = parts[0].size / max(1, shape[0] * shape[1])
    mapped = size > available_memory() // _SHARE
    note(
        f"{source.name}: the sparse matrix ({filled:.1%} of {shape[0]} x {shape[1]}) "
        f"takes {in_words(size)} as a dense one"
        + (", kept in a temporary file" if mapped else "")
    )
    blocks = _blocks(parts, starts, shape, dtype, source.name)
    if mapped:
        return _mapped(blocks, shape, dtype, source)
    dense, start = np.empty(shape, dtype), 0
    for block in blocks:
        dense[start : start + len(block)] = block
        start += len(block)
    return dense


def _shape(group: h5py.Group, source: Source) -> tuple[int, int]:
    known = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    extents = np.asarray(known)
    good = extents.shape == (2,) and extents.dtype.kind in "iu"
    if not good or extents.min() < 0 or extents.max() >= 2**40:
        raise InputError(f"{source.name}: {show(group.name)} has no two extents")
    return int(extents[0]), int(extents[1])


def _blocks(
    parts: list[h5py.Dataset],
    starts: NDArray[np.int64],
    shape: tuple[int, int],
    dtype: Any,
    name: str,
) -> Iterator[NDArray[Any]]:
    """Yield dense blocks of rows, from first to last."""
    from scipy.sparse import csc_array, csr_array

    data, indices, _ = parts
    rows: Any = None
    if sparse_kind(data.parent) == "csc":  # rows are all over it: sorted in memory
        check_fits(2 * data.nbytes + 2 * indices.nbytes, name, show(data.parent.name))
        whole = (data[()].astype(dtype), _checked(indices[()], shape[0], name), starts)
        turned: Any = csc_array(whole, shape)
        rows = turned.tocsr()
    most = max(1, _BLOCK_BYTES // max(1, shape[1] * dtype.itemsize))
    for start in range(0, shape[0], most):
        stop = min(start + most, shape[0])
        if rows is not None:
            yield rows[start:stop].toarray()
            continue
        here = slice(int(starts[start]), int(starts[stop]))
        columns = _checked(indices[here], shape[1], name)
        inside = starts[start : stop + 1] - here.start
        block = (data[here].astype(dtype), columns, inside)
        yield csr_array(block, shape=(stop - start, shape[1])).toarray()


def _starts(parts: list[h5py.Dataset], count: int, name: str) -> NDArray[np.int64]:
    """Return where each row, or column, begins, checked."""
    data, indices, indptr = parts
    lists = all(part.ndim == 1 for part in parts)
    whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
    if not (lists and whole and data.shape == indices.shape):
        raise InputError(f"{name}: the parts of the sparse matrix do not fit together")
    starts: NDArray[np.int64] = indptr[()].astype(np.int64)
    good = len(starts) == count + 1 and starts[0] == 0 and starts[-1] == data.size
    if not good or (np.diff(starts) < 0).any():
        raise InputError(f"{name}: 'indptr' of the sparse matrix is damaged")
    return starts


def _checked(indices: NDArray[Any], stop: int, name: str) -> NDArray[np.int64]:
    if indices.size and not (indices.min() >= 0 and indices.max() < stop):
        raise InputError(f"{name}: 'indices' of the sparse matrix leave its shape")
    return indices.astype(np.int64)


def _mapped(
    blocks: Iterator[NDArray[Any]], shape: tuple[int, int], dtype: Any, source: Source
) -> NDArray[Any]:
    """Write blocks to a file that is gone when nobody uses the matrix any more."""
    size = shape[0] * shape[1] * dtype.itemsize
    _check_room(size, source)
    # Named so that a later run finds what a killed one has left.
    name = f"nnkgraph-{platform.node()}-{os.getpid()}-"
    folder = tempfile.mkdtemp(prefix=name)
    path = Path(folder, "dense.bin")
    try:
        with path.open("xb") as file:
            for block in blocks:
                _append(file, block)
        mapped: NDArray[Any] = np.memmap(path, dtype, mode="r", shape=shape)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(mapped.base, shutil.rmtree, folder, ignore_errors=True)
    return mapped


def _append(file: BinaryIO, block: NDArray[Any]) -> None:
    try:
        file.write(np.ascontiguousarray(block).data)
    except OSError as error:
        raise ResourceError(
            f"{file.name}: the dense matrix cannot be written "
            f"({error.strerror or error}); set TMPDIR to a directory with room"
        ) from error


def _check_room(size: int, source: Source) -> None:
    folder = tempfile.gettempdir()
    total, _, free = shutil.disk_usage(folder)
    if size > free and total:  # some file systems do not know
        raise ResourceError(
            f"{source.name}: as a dense matrix it takes {in_words(size)}; memory is "
            f"too small, and {folder} has {in_words(free)}: set TMPDIR to a directory "
            "with room, or use obsm/X_pca"
        )
