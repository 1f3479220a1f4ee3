"""The layout of AnnData files (.h5ad): where cells, their names and columns are.

Everything is read as plain HDF5. Files of anndata 0.7 and later say what each part is
in the attribute ``encoding-type``; older ones are known by their parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._h5 import check_dataset, contents, find, read_texts, walk
from nnkgraph.formats._h5heap import check_heaps
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    import h5py

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
    return next((one for one in ("obsm/X_pca", "X") if has(file, one)), None)


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
    return node.get(last, getlink=True) is not None


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
    import h5py

    first = next(iter(index.dtype.names))
    text = h5py.check_string_dtype(index.dtype[first])
    if index.dtype[first].kind != "S" or (text and text.length is None):
        return None
    if index.external or index.is_virtual:
        raise InputError(f"{source.name}: obs keeps its values in other files")
    values = np.asarray(index.fields(first)[:])
    return [one.decode("utf-8", "replace") for one in values.ravel().tolist()]


def read_category(
    file: h5py.File, path: str, codes: h5py.Dataset, source: Source
) -> list[str]:
    """Return the texts of a column that stores numbers of categories.

    Parameters
    ----------
    path
        Where the categories are.
    """
    import h5py

    check_dataset(codes, source.name)
    categories = find(file, path, source.name)
    check_dataset(categories, source.name)
    if h5py.check_string_dtype(categories.dtype) is None:
        names = [str(one) for one in categories[()].ravel().tolist()]
    else:
        names = [str(one) for one in read_texts(categories, source, heaps=False)]
    numbers = codes[()]
    good = numbers.dtype.kind in "iu" and numbers.ndim == 1
    if not good or (numbers.size and int(numbers.max()) >= len(names)):
        raise InputError(
            f"{source.name}: {show(codes.name)} is no list of numbers of categories"
        )
    return [names[at] if at >= 0 else "" for at in numbers.tolist()]
