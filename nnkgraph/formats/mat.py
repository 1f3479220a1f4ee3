"""MATLAB files: features, and graphs as the sparse matrix W that toolboxes expect."""

from __future__ import annotations

import contextlib
import functools
import math
import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import Features, Graph
from nnkgraph.errors import InputError, NnkGraphError, OutputError
from nnkgraph.formats import _base, _graphs, npz
from nnkgraph.formats._base import Extras, Format, Note, Target, TextOptions
from nnkgraph.formats._columns import as_array, pick_column, pick_matrix
from nnkgraph.formats._hdf5 import open_h5
from nnkgraph.formats._mat import Mat4File, Mat73File, MatFile, is_version_4
from nnkgraph.runtime.files import Source, expect, seekable, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Mat = Mat4File | MatFile | Mat73File


_HEAD = b"MATLAB 5.0 MAT-file, written by nnkgraph".ljust(116) + bytes(8)
"""What a file begins with: scipy would put the time here."""

_VERSION = struct.pack("=HH", 0x0100, 0x4D49)
"""The version, and two letters that show the order of bytes."""

_MOST = 2**31 - 1  # bytes of a variable: MATLAB counts no further


@contextlib.contextmanager
def open_mat(source: Source) -> Iterator[Mat]:
    """Open a file of any version; damage found in the block is an `InputError`."""
    is_old = is_version_4(source.head)
    if source.head.startswith((b"# Created by Octave", b"# name: ", b"Octave-1-")):
        raise InputError(
            f"{source.name}: is in a format of Octave's own, which is not read: write "
            "it with save -v7 (or save -hdf5)"
        )
    if not is_old:
        expect(source, "mat", "h5")
    if not is_old and not source.head.startswith(b"MATLAB 5"):
        # The text before the signature has been looked at.
        inner = replace(source, head=b"\x89HDF\r\n\x1a\n")
        with open_h5(inner) as file:
            yield Mat73File(file, source.name)
        return
    try:
        with source.open() as stream:
            yield (Mat4File if is_old else MatFile)(stream, source.name)
    except NnkGraphError:
        raise  # a ValueError too, but it says more
    except (ValueError, OSError, OverflowError, zlib.error) as error:
        raise InputError(f"{source.name}: damaged MATLAB file: {error}") from error


def _extents(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _contents(mat: Mat) -> str:
    parts = [
        " ".join(filter(None, (show(one), _extents(mat.shape(one)), mat.kind(one))))
        for one in list(mat.variables)[:10]
    ]
    return ", ".join(parts) or "nothing"


def require(mat: Mat, name: str, *kinds: str) -> None:
    """Refuse a variable that is missing or of another kind."""
    if name not in mat.variables:
        raise InputError(
            f"{mat.name}: there is no variable {show(name)!r} inside; it holds "
            f"{_contents(mat)}"
        )
    if mat.kind(name) not in kinds:
        raise InputError(
            f"{mat.name}: {show(name)!r} is of the kind {mat.kind(name)!r}, which is "
            f"not used here; the file holds {_contents(mat)}"
            f"{_ADVICE.get(mat.kind(name), '')}"
        )


_ADVICE = {
    "other": "; table2array and cellstr make plain arrays of tables and strings",
    "struct": "; name a field as FILE::STRUCT.FIELD",
}


def pick_features(mat: Mat) -> str:
    """Return the only matrix of more than one column and row."""
    found = [
        one
        for one in mat.variables
        if "." not in one  # a field of a structure is asked for by name
        and mat.kind(one) in {"number", "sparse"}
        and len(mat.shape(one)) == 2
        and min(mat.shape(one)) > 1
    ]
    return pick_matrix(found, mat.name, _contents(mat))


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
    """Return whether a variable is a list of values, of text or numbers."""
    shape = mat.shape(name)
    if mat.kind(name) == "text":
        return bool(shape) and shape[0] > 1
    return mat.kind(name) == "number" and len(shape) == 2 and min(shape) == 1


def ids_of(
    mat: Mat, shape: tuple[int, ...], options: TextOptions, used: str
) -> tuple[str, ...] | None:
    """Return the names of rows from a variable that stands beside the one `used`."""
    found, beside = dict[str, Any](), used.rpartition(".")[0]
    for key in () if options.named or not shape or not shape[0] else _base.NAMES:
        name = f"{beside}.{key}" if beside else key
        if name == used or name not in mat.variables:
            continue
        values: Any = []
        extents = mat.shape(name) or (0,)
        if mat.kind(name) == "text" and shape[0] in {extents[0], math.prod(extents)}:
            try:
                values = mat.texts(name)
            except InputError as error:  # cells may hold anything
                options.note(f"{error}, and names no rows")
        elif mat.kind(name) == "number" and math.prod(extents) == shape[0]:
            values = _base.as_whole(mat.numbers(name).ravel())
            values = values if values.dtype.kind in "iu" else []
        if len(values) == shape[0]:
            found[key] = functools.partial(list, values)  # read already
    return _base.row_names(found, shape, mat.name, options)


def square_entries(mat: Mat, name: str) -> tuple[int, Any, Any, Any]:
    """Return the size, rows, columns and values of a square matrix."""
    shape = mat.shape(name)
    if len(shape) != 2 or shape[0] != shape[1]:
        what = " x ".join(map(str, shape))
        raise InputError(f"{mat.name}: a graph's matrix is square, not {what}")
    _graphs.check_nodes(shape[0], mat.name)
    if mat.kind(name) == "number":
        dense = mat.numbers(name)
        rows, cols = np.nonzero(dense)
        values = dense[rows, cols]
    else:
        rows, cols, values = sparse_entries(mat, name)
        there = values != 0
        rows, cols, values = rows[there], cols[there], values[there]
    return shape[0], rows, cols, values.astype(np.float64)


def sparse_entries(mat: Mat, name: str) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of a sparse matrix, once they were checked."""
    shape = mat.shape(name)
    if len(shape) != 2:
        raise InputError(f"{mat.name}: {show(name)!r} is no matrix")
    height, width = shape
    parts = rows, starts, values = mat.sparse(name)
    wrong = InputError(f"{mat.name}: the sparse matrix {show(name)!r} is damaged")
    if any(part.ndim != 1 or part.dtype.kind not in "iuf" for part in parts):
        raise wrong
    with np.errstate(invalid="ignore"):  # version 4 keeps places as float64
        places = rows.astype(np.int64), starts.astype(np.int64)
    if not all(map(np.array_equal, places, (rows, starts))):
        raise wrong
    rows, starts = places
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


_OURS = {"W", "directed", "provenance"}
"""The variables of every graph that was written here."""


@dataclass(frozen=True, slots=True)
class MatLab(Format):
    """MATLAB file (features, graphs as a sparse matrix W)."""

    suffixes: ClassVar[tuple[str, ...]] = (".mat",)
    binary: ClassVar[bool] = True
    has_items: ClassVar[bool] = True
    sidecar: ClassVar[tuple[str, ...]] = ("candidates", "bridges", "distances")

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read the only matrix, or the variable that the item names."""
        with open_mat(source) as mat:
            if source.item is None and set(mat.variables) >= _OURS:
                raise _graphs.not_features(source.name)
            name = source.item or pick_features(mat)
            require(mat, name, "number", "sparse")
            if mat.kind(name) == "sparse":
                from scipy.sparse import coo_array

                rows, cols, values = sparse_entries(mat, name)
                matrix = coo_array((values, (rows, cols)), mat.shape(name))
                kept = npz.sparse_rows(matrix, mat.name)
                ids = ids_of(mat, kept.shape, options, name)
                return npz.sparse_features(kept, ids, source.name, options)
            x = mat.numbers(name)
            ids = ids_of(mat, x.shape, options, name) if x.ndim == 2 else None
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def read_column(self, source: Source, options: TextOptions, /) -> _base.Column:
        """Read the only list, or the variable that the item names."""
        with open_mat(source) as mat:
            name = source.item
            if name is None:
                lists = [one for one in mat.variables if is_list(mat, one)]
                lists = [one for one in lists if one != "ids"]
                name = pick_column(lists, source.name, "variable", note=options.note)
            require(mat, name, "number", "text")
            if mat.kind(name) == "text":
                values: Any = as_array(mat.texts(name), source.name)
            else:
                values = mat.numbers(name)
                values = values.ravel() if max(values.shape) == values.size else values
            return values, ids_of(mat, values.shape, options, name)

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read W, the matrix that the item names, or the only sparse one."""
        with open_mat(source) as mat:
            name = source.item or pick_graph(mat)
            require(mat, name, "number", "sparse")
            n, *edges = square_entries(mat, name)
            adjacency = _graphs.from_edges(
                n,
                *edges,
                directed=True,
                name=source.name,
                where=lambda entry: f"entry {entry} of {show(name)}",
            )
            known = {one: mat.kind(one) for one in mat.variables}
            directed = errors = None
            text = "{}"
            if known.get("directed") == "number":
                directed = bool(mat.numbers("directed").any())
            if known.get("errors") == "number":
                errors = mat.numbers("errors").ravel()
            if known.get("provenance") == "text":
                text = "".join(mat.texts("provenance"))
            ids = mat.texts("ids") if known.get("ids") == "text" else []
        named = tuple(ids) if len(ids) == n else None
        extras = replace(extras, ids=named, errors=errors)
        directed = _graphs.is_directed(adjacency, directed, source.name)
        provenance = _graphs.parse_provenance(text, source.name)
        return _graphs.checked(adjacency, extras, directed, provenance, source.name)

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that are no text."""
        super(MatLab, self).check_ids(ids, target)
        _base.check_unicode(ids, target)

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write W, and what is known about it, in variables of their own."""
        from scipy.sparse import csc_array

        a: Any = graph.adjacency
        if 12 * a.nnz + 4 * graph.n_nodes > _MOST:  # before it is turned around
            raise _too_large("W", target)
        # By columns; of a symmetric matrix the rows are the columns.
        symmetric = (a.data, a.indices, a.indptr)
        columns = a.tocsc() if graph.directed else csc_array(symmetric, a.shape)
        with seekable(stream) as file:
            # A file that has a beginning gets no other.
            file.write(_HEAD + _VERSION)
            _save(file, "W", columns, target)
            _save(file, "directed", np.array(graph.directed), target)
            if graph.errors is not None:
                _save(file, "errors", graph.errors, target)
            if graph.ids is not None:
                _save(file, "ids", np.array(graph.ids, object), target)
            _save(file, "provenance", _graphs.provenance_text(graph.provenance), target)


def _save(file: BinaryIO, name: str, value: Any, target: Target) -> None:
    """Write one variable: text as UTF-8, lists as columns."""
    from scipy.io import savemat
    from scipy.io.matlab import MatWriteError

    start = file.tell()
    try:
        savemat(file, {name: value}, oned_as="column")  # type: ignore[arg-type]
    except MatWriteError as error:
        raise _too_large(name, target) from error
    if file.tell() - start > _MOST:
        raise _too_large(name, target)


def _too_large(name: str, target: Target) -> OutputError:
    return OutputError(
        f"{target.name}: {name} takes more than the 2 GB that MATLAB files of version "
        "5 have room for; write .npz, .mtx or .parquet instead"
    )


plugin: type[Format] = MatLab
