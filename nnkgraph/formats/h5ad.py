"""AnnData file: matrices with one row per cell, and the columns of ``obs``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import Features, SparseRows
from nnkgraph.errors import InputError
from nnkgraph.formats import _hdf5
from nnkgraph.formats._columns import as_array, pick_column
from nnkgraph.formats._hdf5 import check_dataset, contents, find, has, open_h5, walk
from nnkgraph.formats._tenx import unique_names
from nnkgraph.formats.h5 import H5, read_array
from nnkgraph.formats.npz import sparse_features, sparse_rows
from nnkgraph.runtime.archive import check_real
from nnkgraph.runtime.arrays import check_fits
from nnkgraph.runtime.files import Source, show

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

    from nnkgraph.formats._base import Column, Format, Note, TextOptions


def is_anndata(file: h5py.File, source: Source) -> bool:
    """Return whether a file says that it is AnnData, or looks like an old one."""
    _hdf5.check_heaps(source)  # attributes are read from now on
    return attribute(file, "encoding-type") == "anndata" or (
        has(file, "obs") and has(file, "var")
    )


def require_anndata(file: h5py.File, source: Source) -> None:
    """Refuse a file that is not AnnData."""
    if not is_anndata(file, source):
        raise InputError(
            f"{source.name}: not an AnnData file: it has no obs and var; it holds "
            f"{contents(file)}"
        )


def usual_item(file: h5py.File) -> str | None:
    """Return where features are, where nobody says: the first that is there."""
    if has_part(file, "obsm", "X_pca"):
        return "obsm/X_pca"
    return "X" if has(file, "X") else None


def attribute(node: Any, name: str) -> str:
    """Return an attribute that is text, or nothing."""
    value = node.attrs.get(name)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def cell_names(file: h5py.File, source: Source) -> list[str] | None:
    """Return the names of the cells, or None where they have no names as text."""
    index = _index(file, source)
    if index.dtype.names is not None:  # before anndata 0.7: all columns in one
        return _old_names(index, source)
    if not _hdf5.is_text(index):
        return None
    return [str(one) for one in _hdf5.read_texts(index, source, heaps=False)]


def count_cells(file: h5py.File, source: Source) -> int:
    """Return the number of cells."""
    index = _index(file, source)
    if index.shape is None or index.ndim != 1:
        raise InputError(f"{source.name}: the index of obs is no list of names")
    return int(index.shape[0])


def _index(file: h5py.File, source: Source) -> h5py.Dataset:
    """Return the dataset with one entry per cell: the index of ``obs``."""
    obs = walk(file, "obs", source.name)
    if _hdf5.is_dataset(obs):
        return obs
    column = attribute(obs, "_index")
    if not column:
        raise InputError(f"{source.name}: obs does not say which column is its index")
    index = walk(file, f"obs/{column}", source.name)
    if _hdf5.is_dataset(index):
        return index
    # Text of which some may be missing.
    return find(file, f"obs/{column}/values", source.name)


def _old_names(index: h5py.Dataset, source: Source) -> list[str] | None:
    first = next(iter(index.dtype.names))
    if index.dtype[first].kind != "S":
        return None
    names = _field(index, first, source).ravel().tolist()
    return [one.decode("utf-8", "replace") for one in names]


def has_field(file: h5py.File, path: str, field: str) -> bool:
    """Return whether a compound dataset has a field, as in files before 0.7."""
    node = _hdf5.child(file, path)
    return _hdf5.is_dataset(node) and field in (node.dtype.names or ())


def has_part(file: h5py.File, path: str, name: str) -> bool:
    """Return whether there is something under a name, be it a field."""
    return has(file, f"{path}/{name}") or has_field(file, path, name)


def read_field(file: h5py.File, path: str, source: Source) -> NDArray[Any] | None:
    """Read numbers that are such a field; None where the path leads to none."""
    folder, _, field = path.strip("/").rpartition("/")
    if not (folder and has_field(file, folder, field)):
        return None
    check_real(file[folder].dtype[field].base, source.name)
    return _field(file[folder], field, source)


def _field(table: h5py.Dataset, field: str, source: Source) -> NDArray[Any]:
    check_dataset(table, source.name, fields=True)
    check_fits(table.nbytes, source.name, f"the dataset {show(table.name)}")
    return np.ascontiguousarray(table.fields(field)[()])


def read_category(
    file: h5py.File, path: str, numbers: NDArray[Any], source: Source
) -> list[str]:
    """Return the texts of a column that has the numbers of categories at a path."""
    categories = find(file, path, source.name)
    check_dataset(categories, source.name)
    if _hdf5.is_text(categories):
        values: Any = _hdf5.read_texts(categories, source, heaps=False)
    else:
        values = categories[()].ravel().tolist()
    names = [str(one) for one in values]
    good = numbers.dtype.kind in "iu" and numbers.ndim == 1
    if not good or (numbers.size and int(numbers.max()) >= len(names)):
        raise InputError(
            f"{source.name}: some cells have none of the categories in {show(path)}"
        )
    return [names[at] if at >= 0 else "" for at in numbers.tolist()]


def sparse_kind(group: h5py.Group) -> str:
    """Return ``"csr"``, ``"csc"`` or, for any other group, nothing."""
    kind = attribute(group, "encoding-type").removesuffix("_matrix")
    kind = kind or attribute(group, "h5sparse_format")  # before anndata 0.7
    return kind if kind in {"csr", "csc"} else ""


def read_sparse(group: h5py.Group, source: Source) -> SparseRows:
    """Return a sparse matrix, checked."""
    from scipy.sparse import csc_array, csr_array

    by_rows = sparse_kind(group) == "csr"
    known = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    shape = extents(known, group.name, source.name)
    parts = compressed(group, shape if by_rows else shape[::-1], source)
    kind: Any = csr_array if by_rows else csc_array
    return sparse_rows(kind(parts, shape, copy=False), source.name)


def compressed(
    group: h5py.Group, shape: tuple[int, int], source: Source
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return values, places and starts of so many lines of so many places, checked."""
    name, (lines, width) = source.name, shape
    parts = [
        find(group.file, f"{group.name}/{part}", name)
        for part in ("data", "indices", "indptr")
    ]
    for part in parts:
        check_dataset(part, name)
    check_real(parts[0].dtype, name)
    lists = all(part.ndim == 1 for part in parts)
    whole = all(part.dtype.kind in "iu" for part in parts[1:])
    if not (lists and whole and parts[0].shape == parts[1].shape):
        raise InputError(f"{name}: the parts of the sparse matrix do not fit together")
    if parts[2].shape != (lines + 1,):
        raise InputError(f"{name}: 'indptr' of the sparse matrix is damaged")
    # Values as float64, and their places, take more than what is stored.
    check_fits(parts[0].size * 16, name, f"the sparse matrix {show(group.name)}")
    data, indices, starts = (read_array(part, name) for part in parts)
    starts = starts.astype(np.int64)
    kind = np.int32 if max(width, len(data)) <= np.iinfo(np.int32).max else np.int64
    if starts[0] != 0 or starts[-1] != len(data) or (np.diff(starts) < 0).any():
        raise InputError(f"{name}: 'indptr' of the sparse matrix is damaged")
    if len(indices) and not (indices.min() >= 0 and indices.max() < width):
        raise InputError(f"{name}: 'indices' of the sparse matrix leave its shape")
    return data, indices.astype(kind, copy=False), starts.astype(kind)


def extents(known: Any, path: str, name: str) -> tuple[int, int]:
    """Return the two extents that a matrix says it has."""
    found = np.asarray(known)
    good = found.shape == (2,) and found.dtype.kind in "iu"
    if not good or found.min() < 0 or found.max() >= 2**40:
        raise InputError(f"{name}: {show(path)} has no two extents")
    return int(found[0]), int(found[1])


@dataclass(frozen=True, slots=True)
class H5ad(H5):
    """AnnData file (features, candidates)."""

    suffixes: ClassVar[tuple[str, ...]] = (".h5ad",)

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read the matrix that the item names, or else X_pca or X, and cell names."""
        with open_h5(source) as file:
            ours = is_anndata(file, source)
            if ours:
                x = _matrix(file, source, options.note)
                ids = _names_of(file, len(x), source, options.note)
        if not ours:
            return H5.read_features(self, source, options)
        if isinstance(x, SparseRows):
            return sparse_features(x, ids, source.name, options)
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def read_column(self, source: Source, options: TextOptions, /) -> Column:
        """Read the column of ``obs``, or the dataset, that the item names."""
        with open_h5(source) as file:
            ours = is_anndata(file, source)
            if ours:
                values = _column(file, source)
                ids = _names_of(file, len(values), source, options.note)
        if not ours:
            return H5.read_column(self, source, options)
        return values, ids


def _matrix(file: h5py.File, source: Source, note: Note) -> Any:
    """Read the matrix with one row per cell."""
    path = source.item
    if path is None:
        path = usual_item(file)
        if path is None:
            raise InputError(
                f"{source.name}: there is neither obsm/X_pca nor X inside; name a "
                f"matrix as FILE::PATH: {contents(file)}"
            )
        note(f"{source.name}: features are in {path}")
    field = read_field(file, path, source)
    if field is not None:
        return field
    node = walk(file, path, source.name)
    if _hdf5.is_dataset(node):
        return read_array(node, source.name)
    if not sparse_kind(node):
        raise InputError(
            f"{source.name}: {show(path)!r} is a group and no sparse matrix; the file "
            f"holds {contents(file)}"
        )
    return read_sparse(node, source)


def _names_of(file: Any, rows: int, source: Source, note: Note) -> list[str] | None:
    """Return the names of the cells, where they can name the rows."""
    if count_cells(file, source) != rows:
        return None  # a matrix of genes, or of something else
    names = cell_names(file, source)
    return None if names is None else unique_names(names, note, source.name)


def _column(file: h5py.File, source: Source) -> NDArray[Any]:
    """Read one value per cell."""
    path, name = source.item, source.name
    if path is None:
        obs = walk(file, "obs", name)
        found = [] if _hdf5.is_dataset(obs) else [f"obs/{one}" for one in obs]
        skipped = {f"obs/{obs.attrs.get('_index')}", "obs/__categories"}
        path = pick_column([one for one in found if one not in skipped], name, "column")
    folder, _, column = path.strip("/").rpartition("/")
    codes = read_field(file, path, source)
    if codes is not None:
        where = f"uns/{column}_categories"
        categorical = folder == "obs" and has(file, where)
    else:
        node, where = walk(file, path, name), f"{folder}/__categories/{column}"
        categorical = bool(folder) and has(file, where)  # anndata 0.7
        if not _hdf5.is_dataset(node):
            node, where = find(file, f"{path}/codes", name), f"{path}/categories"
            categorical = True
        elif _hdf5.is_text(node) and not categorical:
            texts = _hdf5.read_texts(node, source, heaps=False)
            return as_array(texts.ravel().tolist(), name)
        codes = read_array(node, name)
    if not categorical:
        return codes
    return as_array(read_category(file, where, codes, source), name)


plugin: type[Format] = H5ad
