"""The layout of AnnData files (.h5ad): where cells, their names and columns are.

Everything is read as plain HDF5. Files of anndata 0.7 and later say what each part is
in the attribute ``encoding-type``; older ones are known by their parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._arrays import check_real
from nnkgraph.formats._h5 import check_dataset, contents, find, read_texts, walk
from nnkgraph.formats._h5heap import check_heaps
from nnkgraph.formats._memory import check_fits
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

    from nnkgraph.formats._source import Source


def is_anndata(file: h5py.File, source: Source) -> bool:
    """Return whether a file says that it is AnnData, or looks like an old one."""
    check_heaps(source.open(), source.name)  # attributes are read from now on
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
    if has(file, "obsm/X_pca") or has_field(file, "obsm", "X_pca"):
        return "obsm/X_pca"
    return "X" if has(file, "X") else None


def attribute(node: Any, name: str) -> str:
    """Return an attribute that is text, or nothing."""
    value = node.attrs.get(name)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def has(file: h5py.File, path: str) -> bool:
    """Return whether there is something at a path; no link is followed on the way."""
    import h5py

    node: Any = file
    *folders, last = path.split("/")
    for part in folders:
        if not isinstance(node.get(part, getlink=True), h5py.HardLink):
            return False
        node = node[part]
        if not isinstance(node, h5py.Group):
            return False
    return bool(last) and node.get(last, getlink=True) is not None


def cell_names(file: h5py.File, source: Source) -> list[str] | None:
    """Return the names of the cells, or None where they have no names as text."""
    import h5py

    index = _index(file, source)
    if index.dtype.names is not None:  # before anndata 0.7: all columns in one
        return _old_names(index, source)
    if h5py.check_string_dtype(index.dtype) is None:
        return None
    return [str(one) for one in read_texts(index, source, heaps=False)]


def count_cells(file: h5py.File, source: Source) -> int:
    """Return the number of cells."""
    index = _index(file, source)
    if index.shape is None or index.ndim != 1:
        raise InputError(f"{source.name}: the index of obs is no list of names")
    return int(index.shape[0])


def _index(file: h5py.File, source: Source) -> h5py.Dataset:
    """Return the dataset with one entry per cell: the index of ``obs``."""
    import h5py

    obs = walk(file, "obs", source.name)
    if isinstance(obs, h5py.Dataset):
        return obs
    column = attribute(obs, "_index")
    if not column:
        raise InputError(f"{source.name}: obs does not say which column is its index")
    index = walk(file, f"obs/{column}", source.name)
    if isinstance(index, h5py.Group):  # of text in which some may be missing
        return find(file, f"obs/{column}/values", source.name)
    return index


def _old_names(index: h5py.Dataset, source: Source) -> list[str] | None:
    first = next(iter(index.dtype.names))
    if index.dtype[first].kind != "S":
        return None
    names = _field(index, first, source).ravel().tolist()
    return [one.decode("utf-8", "replace") for one in names]


def has_field(file: h5py.File, path: str, field: str) -> bool:
    """Return whether a compound dataset has a field, as in files before 0.7."""
    import h5py

    if not isinstance(file.get(path, getlink=True), h5py.HardLink):
        return False
    node = file[path]
    return isinstance(node, h5py.Dataset) and field in (node.dtype.names or ())


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
    """Return the texts of a column that stores numbers of categories.

    Parameters
    ----------
    path
        Where the categories are.
    """
    import h5py

    categories = find(file, path, source.name)
    check_dataset(categories, source.name)
    if h5py.check_string_dtype(categories.dtype) is None:
        names = [str(one) for one in categories[()].ravel().tolist()]
    else:
        names = [str(one) for one in read_texts(categories, source, heaps=False)]
    good = numbers.dtype.kind in "iu" and numbers.ndim == 1
    if not good or (numbers.size and int(numbers.max()) >= len(names)):
        raise InputError(
            f"{source.name}: some cells have none of the categories in {show(path)}"
        )
    return [names[at] if at >= 0 else "" for at in numbers.tolist()]
