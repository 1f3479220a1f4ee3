"""HDF5 file: features and candidates by dataset name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import Candidates, Features
from nnkgraph.errors import OutputError
from nnkgraph.formats import _hdf5, _tenx
from nnkgraph.formats._base import (
    About,
    Column,
    Format,
    Neighbors,
    Target,
    TextOptions,
)
from nnkgraph.formats._columns import as_array, pick_column, pick_matrix
from nnkgraph.formats._graphs import parse_provenance, provenance_text
from nnkgraph.formats._hdf5 import datasets, find, open_h5
from nnkgraph.runtime.archive import REAL, as_distances, as_neighbors, check_real
from nnkgraph.runtime.arrays import check_fits, new_array, row_slices
from nnkgraph.runtime.files import Source, open_source, seekable, show

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray


_FEATURES = "features"
"""The dataset that features are written to where none is named."""


@dataclass(frozen=True, slots=True)
class H5(Format):
    """HDF5 file (features, candidates)."""

    suffixes: ClassVar[tuple[str, ...]] = (".h5", ".hdf5")
    binary: ClassVar[bool] = True
    has_items: ClassVar[bool] = True

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read the only matrix, the dataset that the item names, or cells of 10x."""
        with open_h5(source) as file:
            cells = _tenx.find_group(file, source)
            if cells is not None:
                matrix, ids = _tenx.read_group(file, cells, source, options.note)
                from nnkgraph.formats.npz import sparse_features, sparse_rows

                rows = sparse_rows(matrix, source.name)
                return sparse_features(rows, ids, source.name, options)
            dataset = find(file, source.item or _pick(file, source), source.name)
            x = read_array(dataset, source.name)
            ids = _ids(dataset, source) if x.ndim == 2 else None
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def write_features(
        self, stream: BinaryIO, features: Features, target: Target, /
    ) -> None:
        """Write a dataset, and ``ids`` beside it."""
        import h5py

        x, path = features.x, _place(target)[0]
        with seekable(stream) as file, h5py.File(file, "w") as made:
            dataset = made.create_dataset(path, x.shape, x.dtype)
            for rows in row_slices(len(x), x.itemsize * x.shape[1]):
                dataset[rows] = x[rows]
            if features.ids is not None:
                beside = dataset.parent
                kind = h5py.string_dtype()
                beside.create_dataset("ids", data=features.ids, dtype=kind)

    def check_features(self, features: Features, target: Target, /) -> None:
        """Refuse to replace a file that holds something else as well."""
        super(H5, self).check_features(features, target)
        path, there = _place(target)
        ours = {path, f"{path.rpartition('/')[0]}/ids"}
        others = {one.lstrip("/") for one in there} - {one.lstrip("/") for one in ours}
        if others:
            first = show(min(others))
            raise OutputError(
                f"{target.name}: holds {first!r} as well, which would be lost; write "
                "features to a file of their own"
            )

    def read_column(self, source: Source, options: TextOptions, /) -> Column:
        """Read the only list, or the dataset that the item names."""
        with open_h5(source) as file:
            path = source.item
            if path is None:
                lists = [
                    one
                    for one, dataset in datasets(file).items()
                    if dataset.shape is not None
                    and dataset.ndim == 1
                    and one.rpartition("/")[2] != "ids"
                ]
                path = pick_column(lists, source.name, "dataset", note=options.note)
            dataset = find(file, path, source.name)
            if _hdf5.is_text(dataset):
                texts = _hdf5.read_texts(dataset, source)
                values: Any = as_array(texts.ravel().tolist(), source.name)
                values = values.reshape(texts.shape)
            else:
                values = read_array(dataset, source.name)
            return values, _ids(dataset, source)

    def holds(self, source: Source, /) -> str:
        """Look for the dataset ``neighbors``."""
        with open_h5(source) as file:
            return "candidates" if _hdf5.has(file, "neighbors") else ""

    def describe_candidates(self, source: Source, /) -> About:
        """Read the dataset ``ids`` and the attribute ``provenance``, if there are."""
        with open_h5(source) as file:
            ids = _ids(find(file, source.item or "neighbors", source.name), source)
            _hdf5.check_heaps(source)
            text = file.attrs.get("provenance", "{}")
        about = parse_provenance(str(text), source.name)
        return None if ids is None else tuple(ids), about

    def read_candidates(self, source: Source, /) -> Neighbors:
        """Read ``neighbors`` and ``distances``, or the dataset that the item names."""
        name = source.name
        with open_h5(source) as file:
            dataset = find(file, source.item or "neighbors", name)
            neighbors = as_neighbors(read_array(dataset, name), name)
            if source.item or "distances" not in file:
                return neighbors, None
            values = read_array(find(file, "distances", name), name)
        return neighbors, as_distances(values, neighbors, name)

    def write_candidates(
        self, stream: BinaryIO, candidates: Candidates, provenance: dict[str, Any], /
    ) -> None:
        """Write ``neighbors``, ``distances``, ``ids`` and attribute ``provenance``."""
        import h5py

        with seekable(stream) as file, h5py.File(file, "w") as target:
            target["neighbors"] = candidates.index
            target["distances"] = candidates.distance.astype(np.float64, copy=False)
            if candidates.ids is not None:
                kind = h5py.string_dtype()
                target.create_dataset("ids", data=list(candidates.ids), dtype=kind)
            target.attrs["provenance"] = provenance_text(provenance)


def _place(target: Target) -> tuple[str, list[str]]:
    """Return the path that features are written to, and all that are there now."""
    there: list[str] = []
    if Path(target.name).is_file():
        source = open_source(target.name)
        with open_h5(source) as file:
            there = list(datasets(file))
            if target.item is None:
                return _pick(file, source), there
    return target.item or _FEATURES, there


def _pick(file: h5py.File, source: Source) -> str:
    """Return the path of the only matrix."""
    matrices = [
        path
        for path, one in datasets(file).items()
        if one.shape is not None and one.ndim == 2 and one.dtype.kind in REAL
    ]
    return pick_matrix(matrices, source.name, _hdf5.contents(file))


def read_array(dataset: h5py.Dataset, name: str) -> NDArray[Any]:
    """Read a dataset by blocks of rows that end where its chunks do."""
    _hdf5.check_dataset(dataset, name)
    check_real(dataset.dtype, name)
    shape, dtype = dataset.shape, dataset.dtype
    check_fits(dataset.nbytes, name, f"the dataset {show(dataset.name)}", mapped=True)
    if not shape or 0 in shape:
        return np.zeros(shape, dtype)
    values = new_array(shape, dtype)
    chunk = dataset.chunks[0] if dataset.chunks else 1
    for some in row_slices(-(-shape[0] // chunk), values[:chunk].nbytes):
        rows = np.s_[chunk * some.start : min(chunk * some.stop, shape[0])]
        dataset.read_direct(values, rows, rows)
    return values


def _ids(dataset: h5py.Dataset, source: Source) -> list[str] | None:
    """Return the row names that stand beside a matrix."""
    if _hdf5.child(dataset.parent, "ids") is None:
        return None
    ids = find(dataset.file, f"{dataset.parent.name}/ids", source.name)
    if not _hdf5.is_text(ids) or ids.shape != dataset.shape[:1]:
        return None
    return [str(one) for one in _hdf5.read_texts(ids, source)]


plugin: type[Format] = H5
