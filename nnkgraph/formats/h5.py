"""HDF5 file: features and candidates by dataset name."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import Candidates, Features
from nnkgraph.data.labels import as_texts
from nnkgraph.errors import InputError, OutputError
from nnkgraph.formats import _base, _hdf5, _tenx
from nnkgraph.formats._base import (
    About,
    Column,
    Format,
    Neighbors,
    Target,
    TextOptions,
)
from nnkgraph.formats._columns import as_array, pick_column, pick_matrix, some
from nnkgraph.formats._graphs import parse_provenance, provenance_text
from nnkgraph.formats._hdf5 import check_dataset, datasets, find, open_h5
from nnkgraph.runtime.archive import REAL, as_distances, as_neighbors, check_real
from nnkgraph.runtime.arrays import check_fits, new_array, row_slices
from nnkgraph.runtime.files import Source, open_source, seekable, show

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            if _by_octave(file):
                return _octave().read_features(source, options)
            if (frame := _frame(file, source)) is not None:
                return _read_frame(frame, source, options)
            cells = _tenx.find_group(file, source)
            if cells is not None:
                matrix, names = _tenx.read_group(file, cells, source, options.note)
                from nnkgraph.formats.npz import sparse_features, sparse_rows

                rows = sparse_rows(matrix, source.name)
                return sparse_features(rows, names, source.name, options)
            dataset = find(file, source.item or _pick(file, source), source.name)
            x = read_array(dataset, source.name)
            ids = _ids(dataset, source, options) if x.ndim == 2 else None
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
            if _by_octave(file):
                return _octave().read_column(source, options)
            path = source.item
            if path is None:
                lists = [
                    one
                    for one, dataset in datasets(file).items()
                    if dataset.shape is not None
                    and dataset.ndim == 1
                    and one.rpartition("/")[2] != "ids"
                    and (not _by_pandas(dataset.parent) or one.endswith("/values"))
                ]
                path = pick_column(lists, source.name, "dataset", note=options.note)
            dataset = find(file, path, source.name)
            if _hdf5.is_text(dataset):
                texts = _hdf5.read_texts(dataset, source)
                values: Any = as_array(texts.ravel().tolist(), source.name)
                values = values.reshape(texts.shape)
            else:
                values = read_array(dataset, source.name)
            return values, _ids(dataset, source, options)

    def holds(self, source: Source, /) -> str:
        """Look for the dataset ``neighbors``."""
        with open_h5(source) as file:
            return "candidates" if _hdf5.has(file, "neighbors") else ""

    def describe_candidates(self, source: Source, /) -> About:
        """Read the dataset ``ids`` and the attribute ``provenance``, if there are."""
        with open_h5(source) as file:
            neighbors = find(file, source.item or "neighbors", source.name)
            ids = _ids(neighbors, source, TextOptions(), _base.NAMES[:1])
            _hdf5.check_heaps(source)
            text = file.attrs.get("provenance", "{}")
        about = parse_provenance(str(text), source.name)
        return ids, about

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


def _by_octave(file: h5py.File) -> bool:
    """Return whether Octave wrote a file: each of its variables says so."""
    first = next(iter(file), None)
    return isinstance(first, str) and _hdf5.is_octave(_hdf5.child(file, first))


def _octave() -> Format:
    """Return what reads variables of Octave: their columns are stored as rows."""
    from nnkgraph.formats.mat import MatLab

    return MatLab()


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
    held = _hdf5.contents(file)
    records = [path for path, one in datasets(file).items() if one.dtype.names]
    if records and not matrices:
        held += f"; {show(records[0])} has records: write their fields as one matrix"
    return pick_matrix(matrices, source.name, held)


_FRAMES = {"frame", "frame_table"}
_NUMBERS = {"float", "int", "uint", "bool"}
_ANEW = "write it anew with pandas.read_hdf(...).to_parquet(...)"


def _said(node: Any, name: str) -> str:
    """Return an attribute that is text of a fixed length, as PyTables writes it."""
    there = name in node.attrs and node.attrs.get_id(name).dtype.kind == "S"
    return bytes(node.attrs[name]).decode("utf-8", "replace") if there else ""


def _by_pandas(group: h5py.Group) -> str:
    """Return what pandas says that a group holds: a frame, a table, a series."""
    return _said(group, "pandas_type")


def _frame(file: h5py.File, source: Source) -> h5py.Group | None:
    """Return the data frame that is meant; None where there is none, or a dataset."""
    if source.item is not None:
        if not _hdf5.has(file, source.item):
            return None  # which is said later, with all that is there
        node = _hdf5.walk(file, source.item, source.name)
        return node if _by_pandas(node) in _FRAMES else None
    found = {one.parent.name: one.parent for one in datasets(file).values()}
    frames = [one for one in found if _by_pandas(found[one]) in _FRAMES]
    if len(frames) > 1:
        listed = ", ".join(show(one.lstrip("/")) for one in frames)
        first = show(frames[0].lstrip("/"))
        raise InputError(
            f"{source.name}: holds several data frames; name one as FILE::{first}: "
            f"{listed}"
        )
    return found[frames[0]] if frames else None


def _read_frame(frame: h5py.Group, source: Source, options: TextOptions) -> Features:
    """Read a data frame of pandas, and its index where that names the rows."""
    columns, index, kind = None, None, ""
    if _by_pandas(frame) == "frame_table":
        table = find(frame.file, f"{frame.name}/table", source.name)
        check_dataset(table, source.name, fields=True)
        check_fits(table.nbytes, source.name, f"the dataset {show(table.name)}")
        sort = _said(table, "values_block_0_dtype").rstrip("0123456789")
        if {*(table.dtype.names or ())} != {"index", "values_block_0"} or (
            sort not in _NUMBERS
        ):
            raise InputError(
                f"{source.name}: holds a table of pandas with columns of several kinds "
                f'or without numbers: {_ANEW}, or to_hdf(format="fixed")'
            )
        x = np.ascontiguousarray(table.fields("values_block_0")[()])
        kind, index = _said(table, "index_kind"), table.fields("index")[()]
    else:
        x, columns = _read_blocks(frame, source)
        axis = _hdf5.child(frame, "axis1")
        if _hdf5.is_dataset(axis) and not _said(axis, "index_class"):
            kind, index = _said(axis, "kind"), _axis(frame, "axis1", source)
    ids = None
    if kind in {"string", "integer"} and index is not None and not options.named:
        ids = _index_names(as_texts(index), source.name, options)
    features = Features.of(x, ids=ids, name=source.name, gaps=options.gaps)
    return replace(features, columns=columns)


def _index_names(
    index: Sequence[Any], name: str, options: TextOptions
) -> tuple[str, ...] | None:
    """Return the index of a frame as names of rows, unless it only counts them."""
    names = tuple(map(str, index))
    if names == tuple(map(str, range(len(names)))):
        return None
    unique = len(set(names)) == len(names)
    what = "names the rows" if unique else "has values that repeat: it names no rows"
    options.note(f"{name}: the index of pandas {what}")
    return names if unique else None


def _axis(frame: h5py.Group, name: str, source: Source) -> NDArray[Any]:
    """Read an index, or names of columns: text of a fixed length, or numbers."""
    dataset = find(frame.file, f"{frame.name}/{name}", source.name)
    check_dataset(dataset, source.name)
    check_fits(dataset.nbytes, source.name, f"the dataset {show(dataset.name)}")
    if dataset.ndim != 1 or dataset.dtype.kind not in "iufS":
        raise InputError(f"{source.name}: {show(dataset.name)} cannot be read: {_ANEW}")
    found: NDArray[Any] = dataset[()]
    return found


def _read_blocks(
    frame: h5py.Group, source: Source
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Read the values of a frame: columns of a kind stand together, in a block each."""
    names = tuple(map(str, as_texts(_axis(frame, "axis0", source))))
    place = {one: at for at, one in enumerate(names)}
    parts: list[tuple[list[int], NDArray[Any]]] = []
    while _hdf5.child(frame, f"block{len(parts)}_values") is not None:
        block = f"block{len(parts)}"
        items = [str(one) for one in as_texts(_axis(frame, f"{block}_items", source))]
        values = find(frame.file, f"{frame.name}/{block}_values", source.name)
        plain = values.dtype.kind in REAL and not _said(values, "value_type")
        if not plain or values.shape[1:] != (len(items),):
            raise InputError(
                f"{source.name}: the columns {some(items)} hold no numbers: leave them "
                'out with pandas.read_hdf(...).select_dtypes("number").to_parquet(...)'
            )
        parts.append(
            ([place.get(one, -1) for one in items], read_array(values, source.name))
        )
    found = sorted(at for places, _ in parts for at in places)
    if not parts or found != list(range(len(names))):
        raise InputError(f"{source.name}: the data frame cannot be read: {_ANEW}")
    if len({len(values) for _, values in parts}) > 1:
        raise InputError(f"{source.name}: the blocks of the data frame differ in rows")
    if len(parts) == 1 and parts[0][0] == found:
        return parts[0][1], names
    dtype = np.result_type(*(values.dtype for _, values in parts))
    shape = len(parts[0][1]), len(names)
    check_fits(math.prod(shape) * dtype.itemsize, source.name, "the data frame")
    x = np.empty(shape, dtype)
    for places, values in parts:
        x[:, places] = values
    return x, names


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
    for part in row_slices(-(-shape[0] // chunk), values[:chunk].nbytes):
        rows = np.s_[chunk * part.start : min(chunk * part.stop, shape[0])]
        dataset.read_direct(values, rows, rows)
    return values


def _ids(
    dataset: h5py.Dataset,
    source: Source,
    options: TextOptions,
    known: Sequence[str] = _base.NAMES,
) -> tuple[str, ...] | None:
    """Return the names of rows from an array that stands beside a dataset."""
    found = dict[str, Any]()
    for key in known if dataset.shape[0] else ():
        there = _hdf5.child(dataset.parent, key)
        if not _hdf5.is_dataset(there) or there == dataset:
            continue
        if there.shape == dataset.shape[:1] and _hdf5.is_text(there):
            found[key] = functools.partial(_hdf5.read_texts, there, source)
        elif there.shape == dataset.shape[:1] and there.dtype.kind in "iu":
            found[key] = functools.partial(read_array, there, source.name)
    return _base.row_names(found, dataset.shape, source.name, options)


plugin: type[Format] = H5
