"""Sparse matrices as ``scipy.sparse.save_npz`` writes them: graphs, and features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.data import Features, SparseGram, SparseRows
from nnkgraph.data.checks import check_ids
from nnkgraph.errors import InputError
from nnkgraph.formats._graphs import (
    MADE,
    check_nodes,
    from_edges,
    is_symmetric,
    not_features,
)
from nnkgraph.runtime.archive import REAL
from nnkgraph.runtime.arrays import check_fits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.formats._base import TextOptions
    from nnkgraph.runtime.archive import Archive

    IntArray = NDArray[np.int64]

_EMPTY, _EMPTY_SHARE = 10_000_000, 100
"""So many rows and columns need no values; beyond that, so many to a value."""


def from_sparse(archive: Archive) -> csr_array:
    """Build an adjacency matrix from what ``scipy.sparse.save_npz`` wrote."""
    n = _square(archive)
    rows, cols, data = _entries(archive, n, n)
    return from_edges(
        n,
        rows,
        cols,
        data,
        directed=True,
        name=archive.name,
        where=lambda edge: f"entry {edge}",
    )


def gram_from_sparse(archive: Archive) -> SparseGram:
    """Build a matrix of similarities from what ``scipy.sparse.save_npz`` wrote."""
    from scipy.sparse import coo_array

    n = _square(archive)
    rows, cols, data = _entries(archive, n, n)
    wrong = (rows < 0) | (rows >= n) | (cols < 0) | (cols >= n) | ~np.isfinite(data)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{archive.name}: entry {at} (row {rows[at]}, column {cols[at]}, value "
            f"{data[at]:g}) is no finite similarity of {n} rows"
        )
    return SparseGram.of(coo_array((data, (rows, cols)), (n, n)))


def rows_from_sparse(archive: Archive) -> SparseRows:
    """Build a matrix of features from what ``scipy.sparse.save_npz`` wrote."""
    from scipy.sparse import coo_array

    name = archive.name
    if "directed" in archive or "provenance" in archive:
        raise not_features(name)
    n, d = _shape(archive)
    rows, cols, data = _entries(archive, n, d)
    check_sparse_shape((n, d), len(data), name)
    wrong = (rows < 0) | (rows >= n) | (cols < 0) | (cols >= d)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{name}: entry {at} (row {rows[at]}, column {cols[at]}) is outside of the "
            f"{n} x {d} matrix"
        )
    found = SparseRows.of(coo_array((data, (rows, cols)), (n, d)), name)
    refuse_similarities(found, name)
    return found


def sparse_features(
    rows: SparseRows, ids: Sequence[str] | None, name: str, options: TextOptions
) -> Features:
    """Return sparse features as they are, or dense where nobody takes sparse ones."""
    if ids is not None:
        ids = check_ids(ids, rows, name)  # type: ignore[arg-type]
    if options.sparse == "rows":
        return Features(rows, ids, name)
    n, d = rows.shape
    check_fits(16 * n * d, name, f"the dense form of {n:,} x {d:,} sparse features")
    features = Features.of(rows.dense(), ids=ids, name=name)
    # The hash is that of the same matrix, whether it stays sparse or not.
    vars(features)["sha256"] = rows.sha256()
    return features


def check_sparse_shape(shape: tuple[int, ...], stored: int, name: str) -> None:
    """Refuse extents that no memory can hold, or that so few values do not have."""
    n, d = shape
    check_fits(32 * (n + d), name, f"a sparse matrix of {n:,} x {d:,}")
    if max(n, d) > max(_EMPTY, _EMPTY_SHARE * stored):
        raise InputError(
            f"{name}: a matrix of {n:,} x {d:,} with {stored:,} values is not "
            "believed: leave out empty rows and columns"
        )


def refuse_similarities(x: SparseRows, name: str) -> None:
    """Refuse a matrix that equals its transpose, as that of a graph does."""
    if len(x) == x.columns > 1 and is_symmetric(x.matrix()):
        raise InputError(
            f"{name}: holds a sparse matrix that is symmetric, as graphs and "
            "similarities are, not features (`kernel='precomputed'` takes similarities)"
        )


def _entries(
    archive: Archive, n: int, d: int
) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
    """Return the rows, columns and values of a sparse matrix."""
    name, kind = archive.name, archive.text("format")
    keys = {"coo": ("row", "col")}.get(kind, ("indices", "indptr"))
    if kind not in {"csr", "csc", "coo"}:
        raise InputError(f"{name}: sparse format {kind!r}; save it as csr, csc or coo")
    if any(key not in archive for key in ("data", *keys)):
        raise InputError(f"{name}: the sparse matrix lacks one of data, {keys}")
    data = archive.read("data")
    if data.ndim != 1 or data.dtype.kind not in REAL:
        raise InputError(f"{name}: the values are no list of real numbers")
    first, second = _integers(archive, keys[0]), _integers(archive, keys[1])
    if kind == "coo":
        rows, cols = first, second
    else:
        lines = n if kind == "csr" else d
        _check_pointers(second, lines, len(data), name)
        rows, cols = np.repeat(np.arange(lines), np.diff(second)), first
        if kind == "csc":
            rows, cols = cols, rows
    if not len(rows) == len(cols) == len(data):
        raise InputError(f"{name}: the parts of the sparse matrix differ in length")
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # infinity is refused later, with its place
        return rows, cols, data.astype(np.float64)


def _shape(archive: Archive) -> tuple[int, int]:
    if "format" not in archive or "shape" not in archive:
        raise InputError(
            f"{archive.name}: not a sparse matrix as scipy.sparse.save_npz writes it "
            f"for a graph; {MADE}"
        )
    header = archive.headers["shape"]
    if header.shape != (2,) or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: the matrix has no two extents")
    n, m = archive.read("shape").tolist()
    if n < 0 or m < 0:
        raise InputError(f"{archive.name}: the matrix has impossible extents")
    return n, m


def _square(archive: Archive) -> int:
    n, m = _shape(archive)
    if n != m:
        raise InputError(
            f"{archive.name}: the matrix has to be square; this one is {n} x {m}"
        )
    check_nodes(n, archive.name)
    return int(n)


def _integers(archive: Archive, key: str) -> IntArray:
    header = archive.headers[key]
    if len(header.shape) != 1 or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: {key!r} is no list of integers")
    return archive.read(key).astype(np.int64)


def _check_pointers(indptr: IntArray, n: int, nnz: int, name: str) -> None:
    if len(indptr) != n + 1 or indptr[0] != 0 or indptr[-1] != nnz:
        raise InputError(f"{name}: 'indptr' does not fit {n} rows and {nnz} entries")
    if (np.diff(indptr) < 0).any():
        raise InputError(f"{name}: 'indptr' decreases")
