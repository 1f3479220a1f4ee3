"""Which variable of a MATLAB file is meant, and what it means."""

from __future__ import annotations

import contextlib
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.errors import InputError
from nnkgraph.formats._adjacency import check_nodes
from nnkgraph.formats._h5 import open_h5
from nnkgraph.formats._mat73 import Mat73File
from nnkgraph.formats._matread import MatFile
from nnkgraph.formats._source import expect, show
from nnkgraph.formats._sparsefile import check_sparse_shape, refuse_similarities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.formats._source import Source

    Mat = MatFile | Mat73File


@contextlib.contextmanager
def open_mat(source: Source) -> Iterator[Mat]:
    """Open a file of either version; damage found in the block is an `InputError`."""
    expect(source, "mat", "h5")
    if not source.head.startswith(b"MATLAB 5"):
        # The text before the signature has been looked at.
        inner = replace(source, head=b"\x89HDF\r\n\x1a\n")
        with open_h5(inner) as file:
            yield Mat73File(file, source.name)
        return
    try:
        with source.open() as stream:
            yield MatFile(stream, source.name)
    except (ValueError, OSError, OverflowError, zlib.error) as error:
        raise InputError(f"{source.name}: damaged MATLAB file: {error}") from error


def _contents(mat: Mat) -> str:
    parts = [
        f"{show(one)} {' x '.join(map(str, mat.shape(one)))} {mat.kind(one)}"
        for one in list(mat.variables)[:10]
    ]
    return ", ".join(parts) or "nothing"


def require(mat: Mat, name: str, *kinds: str) -> None:
    if name not in mat.variables:
        raise InputError(
            f"{mat.name}: there is no variable {show(name)!r} inside; it holds "
            f"{_contents(mat)}"
        )
    if mat.kind(name) not in kinds:
        raise InputError(
            f"{mat.name}: {show(name)!r} is of the kind {mat.kind(name)!r}, which is "
            f"not used here; it holds {_contents(mat)}"
        )


def pick_matrix(mat: Mat) -> str:
    """Return the only matrix of more than one column and row."""
    found = [
        one
        for one in mat.variables
        if "." not in one  # a field of a structure is asked for by name
        and mat.kind(one) in {"number", "sparse"}
        and len(mat.shape(one)) == 2
        and min(mat.shape(one)) > 1
    ]
    if len(found) == 1:
        return found[0]
    what = "are several matrices" if found else "is no matrix"
    hint = f"; name one as FILE::{show(found[0])}" if found else ""
    raise InputError(f"{mat.name}: there {what} inside{hint}: {_contents(mat)}")


def pick_graph(mat: Mat) -> str:
    """Return W, also as a field of a structure, or the only sparse matrix."""
    named = [one for one in mat.variables if one == "W" or one.endswith(".W")]
    found = named or [one for one in mat.variables if mat.kind(one) == "sparse"]
    if "W" in named or len(found) == 1:
        return "W" if "W" in named else found[0]
    raise InputError(
        f"{mat.name}: a graph is a sparse matrix W; the file holds {_contents(mat)}"
    )


def is_list(mat: Mat, name: str) -> bool:
    shape = mat.shape(name)
    if mat.kind(name) == "text":
        return bool(shape) and shape[0] > 1
    return mat.kind(name) == "number" and len(shape) == 2 and min(shape) == 1


def ids_of(mat: Mat, n: int) -> list[str] | None:
    """Return the names of the rows, where the variable ids holds them."""
    if "ids" not in mat.variables or mat.kind("ids") != "text":
        return None
    ids = mat.texts("ids")
    return ids if len(ids) == n else None


def square_entries(mat: Mat, name: str) -> tuple[int, Any, Any, Any]:
    """Return the size, rows, columns and values of a square matrix."""
    shape = mat.shape(name)
    if len(shape) != 2 or shape[0] != shape[1]:
        what = " x ".join(map(str, shape))
        raise InputError(f"{mat.name}: a graph's matrix is square, not {what}")
    check_nodes(shape[0], mat.name)
    if mat.kind(name) == "number":
        dense = mat.numbers(name)
        rows, cols = np.nonzero(dense)
        values = dense[rows, cols]
    else:
        rows, cols, values = sparse_entries(mat, name)
        there = values != 0
        rows, cols, values = rows[there], cols[there], values[there]
    return shape[0], rows, cols, values.astype(np.float64)


def sparse_rows(mat: Mat, name: str) -> SparseRows:
    """Return a sparse matrix of features."""
    from scipy.sparse import coo_array

    shape = mat.shape(name)
    rows, cols, values = sparse_entries(mat, name)
    check_sparse_shape(shape, len(values), mat.name)
    found = SparseRows.of(coo_array((values, (rows, cols)), shape), mat.name)
    refuse_similarities(found, mat.name)
    return found


def sparse_entries(mat: Mat, name: str) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of a sparse matrix, once they were checked."""
    shape = mat.shape(name)
    if len(shape) != 2:
        raise InputError(f"{mat.name}: {show(name)!r} is no matrix")
    height, width = shape
    rows, starts, values = mat.sparse(name)
    wrong = InputError(f"{mat.name}: the sparse matrix {show(name)!r} is damaged")
    if any(
        part.ndim != 1 or part.dtype.kind not in "iuf"
        for part in (rows, starts, values)
    ):
        raise wrong
    rows, starts = rows.astype(np.int64), starts.astype(np.int64)
    count = int(starts[-1]) if len(starts) else -1
    if len(starts) != width + 1 or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise wrong
    # There may be room for more.
    if not 0 <= count <= min(len(rows), len(values)):
        raise wrong
    rows, values = rows[:count], values[:count]
    if count and not (rows.min() >= 0 and rows.max() < height):
        raise wrong
    return rows, np.repeat(np.arange(width), np.diff(starts)), values
