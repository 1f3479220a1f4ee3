"""Counts of cells as Cell Ranger (10x Genomics) writes them: HDF5, or three files.

Both hold genes x cells: cells become rows, known by their barcodes. Of several kinds of
features the genes are kept.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats import _hdf5
from nnkgraph.runtime.files import open_source, open_text, show

if TYPE_CHECKING:
    import h5py

    from nnkgraph.formats._base import Note
    from nnkgraph.runtime.files import Source

_GENES = "Gene Expression"


def named_cells(
    matrix: Any, kinds: list[str], barcodes: list[str], note: Note, name: str
) -> tuple[Any, list[str] | None]:
    """Return genes x cells as cells x genes, and the names of the cells."""
    genes, cells = matrix.shape
    if len(barcodes) != cells or len(kinds) not in {0, genes}:
        raise InputError(
            f"{name}: the matrix has {genes} features x {cells} cells, but there are "
            f"{len(kinds)} features and {len(barcodes)} barcodes"
        )
    rows, kept = matrix.T.tocsr(), np.array([one == _GENES for one in kinds], bool)
    if kept.any() and not kept.all():
        others = ", ".join(sorted({*kinds} - {_GENES}))
        note(f"{name}: {kept.sum()} genes are kept, and others left out: {others}")
        rows = rows[:, np.flatnonzero(kept)]
    return rows, unique_names(barcodes, note, name)


def unique_names(names: list[str], note: Note, name: str) -> list[str] | None:
    """Return the names of cells, where they can name the rows."""
    if len(set(names)) == len(names):
        return names
    note(f"{name}: names of cells repeat; cells are known by their numbers")
    return None


def column_beside(matrix: str, stems: tuple[str, ...], at: int) -> list[str]:
    """Return a column of the first table of some names beside a matrix.

    A table that is not there has no lines, and a line without such a column is empty.
    """
    folder = os.path.dirname(matrix)  # noqa: PTH120 - any string
    names = (f"{stem}.tsv{end}" for stem in stems for end in ("", ".gz"))
    paths = (os.path.join(folder, one) for one in names)  # noqa: PTH118 - any string
    path = next(filter(os.path.isfile, paths), None)
    if path is None:
        return []
    source = open_source(path)
    if source.size == 0:
        return []
    with open_text(source, "") as text:
        lines = [line.rstrip("\r\n").split("\t") for line in text]
    return [line[at] if at < len(line) else "" for line in lines]


def find_group(file: h5py.File, source: Source) -> str | None:
    """Return the group of a Cell Ranger matrix in a file, or None.

    It is ``matrix``; before version 3 it was called like the genome.
    """
    if source.item is not None:
        found = [source.item] if _is_matrix(file, source.item.strip("/")) else []
    else:
        found = [one for one in file if isinstance(one, str) and _is_matrix(file, one)]
    if len(found) > 1:
        names = ", ".join(show(one) for one in found)
        raise InputError(
            f"{source.name}: holds cells of several genomes, name one as FILE::GENOME: "
            f"{names}"
        )
    return found[0] if found else None


def _is_matrix(file: h5py.File, path: str) -> bool:
    parts = ("barcodes", "data", "indices", "indptr", "shape")
    return all(_hdf5.has(file, f"{path}/{one}") for one in parts)


def read_group(
    file: h5py.File, path: str, source: Source, note: Note
) -> tuple[Any, list[str] | None]:
    """Return the cells of such a group, as a matrix of scipy, and their names."""
    from scipy.sparse import csc_array

    from nnkgraph.formats.h5ad import compressed, extents

    group, name = _hdf5.walk(file, path, source.name), source.name
    shape = _hdf5.find(file, f"{path}/shape", name)
    _hdf5.check_dataset(shape, name)
    genes, cells = extents(shape[()] if shape.size == 2 else None, path, name)
    parts = compressed(group, (cells, genes), source)
    texts = [_texts(file, f"{path}/barcodes", source), list[str]()]
    if _hdf5.has(file, f"{path}/features/feature_type"):
        texts[1] = _texts(file, f"{path}/features/feature_type", source)
    matrix = csc_array(parts, (genes, cells), copy=False)
    return named_cells(matrix, texts[1], texts[0], note, name)


def _texts(file: h5py.File, path: str, source: Source) -> list[str]:
    dataset = _hdf5.find(file, path, source.name)
    if not _hdf5.is_text(dataset):
        raise InputError(f"{source.name}: {show(path)} holds no names")
    return [str(one) for one in _hdf5.read_texts(dataset, source).ravel()]
