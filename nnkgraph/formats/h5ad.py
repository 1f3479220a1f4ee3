"""AnnData file: matrices with one row per cell, and the columns of ``obs``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.data import Features
from nnkgraph.errors import InputError
from nnkgraph.formats._anndata import (
    cell_names,
    count_cells,
    has,
    is_anndata,
    read_category,
    read_field,
    usual_item,
)
from nnkgraph.formats._columns import as_array, pick_column
from nnkgraph.formats._h5 import contents, find, open_h5, read_texts, walk
from nnkgraph.formats._h5sparse import read_dense, sparse_kind
from nnkgraph.formats._source import show
from nnkgraph.formats.h5 import H5, read_array

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

    from nnkgraph.formats._format import Format, Note, TextOptions
    from nnkgraph.formats._source import Source


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
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def read_column(
        self, source: Source, options: TextOptions, /
    ) -> tuple[NDArray[Any], list[str] | None]:
        """Read the column of ``obs``, or the dataset, that the item names."""
        with open_h5(source) as file:
            ours = is_anndata(file, source)
            if ours:
                values = _column(file, source)
                ids = _names_of(file, len(values), source, options.note)
        if not ours:
            return H5.read_column(self, source, options)
        return values, ids


def _matrix(file: h5py.File, source: Source, note: Note) -> NDArray[Any]:
    """Read the matrix with one row per cell."""
    import h5py

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
    if isinstance(node, h5py.Dataset):
        return read_array(node, source.name)
    if not sparse_kind(node):
        raise InputError(
            f"{source.name}: {show(path)!r} is a group and no sparse matrix; the file "
            f"holds {contents(file)}"
        )
    return read_dense(node, source, note)


def _names_of(
    file: h5py.File, rows: int, source: Source, note: Note
) -> list[str] | None:
    """Return the names of the cells, where they can name the rows."""
    if count_cells(file, source) != rows:
        return None  # a matrix of genes, or of something else
    names = cell_names(file, source)
    if names is not None and len(set(names)) != len(names):
        note(f"{source.name}: names of cells repeat; cells are known by their numbers")
        return None
    return names


def _column(file: h5py.File, source: Source) -> NDArray[Any]:
    """Read one value per cell."""
    import h5py

    path = source.item
    if path is None:
        obs = walk(file, "obs", source.name)
        found = [] if isinstance(obs, h5py.Dataset) else [f"obs/{one}" for one in obs]
        skipped = {f"obs/{obs.attrs.get('_index')}", "obs/__categories"}
        found = [one for one in found if one not in skipped]
        path = pick_column(found, source.name, "column")
    folder, _, name = path.strip("/").rpartition("/")
    values = read_field(file, path, source)
    if values is not None:
        where = f"uns/{name}_categories"
        if not (folder == "obs" and has(file, where)):
            return values
        return as_array(read_category(file, where, values, source), source.name)
    node = walk(file, path, source.name)
    if isinstance(node, h5py.Group):
        codes = read_array(find(file, f"{path}/codes", source.name), source.name)
        texts = read_category(file, f"{path}/categories", codes, source)
        return as_array(texts, source.name)
    where = f"{folder}/__categories/{name}"
    if folder and has(file, where):  # anndata 0.7
        codes = read_array(node, source.name)
        return as_array(read_category(file, where, codes, source), source.name)
    if h5py.check_string_dtype(node.dtype) is None:
        return read_array(node, source.name)
    return as_array(read_texts(node, source, heaps=False).ravel().tolist(), source.name)


plugin: type[Format] = H5ad
