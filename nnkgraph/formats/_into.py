"""A graph put into an AnnData file, where scanpy looks for it.

The file is never changed in place: a copy of it gets the graph and then takes its
name, so that it is complete at every moment, as it was or with the graph.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from nnkgraph.errors import InputError, NnkGraphError, OutputError, ParameterError
from nnkgraph.formats import h5ad
from nnkgraph.formats._choose import split_item
from nnkgraph.formats._graphs import provenance_text
from nnkgraph.formats._hdf5 import has, is_dataset, open_h5, walk
from nnkgraph.runtime.files import Outputs, Source, is_stream, open_source, show

if TYPE_CHECKING:
    import h5py

    from nnkgraph.data import Features, FloatArray, Graph


@dataclass(frozen=True)
class Keys:
    """Names under which a graph is stored."""

    uns: str
    connectivities: str
    distances: str
    use_rep: str | None  # what the graph was made from, in scanpy's words

    @classmethod
    def of(cls, key: str | None, item: str | None) -> Keys:
        """Return the names that scanpy gives for a ``key_added``."""
        rep = None
        if item is not None:
            folder, _, name = item.strip("/").rpartition("/")
            rep = name if folder == "obsm" or (folder, name) == ("", "X") else None
        if key is None:
            return cls("neighbors", "connectivities", "distances", rep)
        if not key or "/" in key or not key.isprintable() or key in {".", ".."}:
            raise ParameterError(
                f"`key_added={show(key)!r}` cannot name a part of an AnnData file"
            )
        return cls(key, f"{key}_connectivities", f"{key}_distances", rep)

    @property
    def paths(self) -> tuple[str, str, str]:
        """Where the parts are in the file."""
        uns = f"uns/{self.uns}"
        return f"obsp/{self.connectivities}", f"obsp/{self.distances}", uns


def _first_part(file: h5py.File, keys: Keys, source: Source) -> str:
    """Return the first part of a graph that is there already, or nothing.

    Something else than a graph in its place is refused.
    """
    for folder in ("obsp", "uns"):
        if has(file, folder) and is_dataset(walk(file, folder, source.name)):
            raise OutputError(f"{source.name}: {folder} is no group: a strange file")
    place = keys.paths[2]
    if has(file, place):
        old = walk(file, place, source.name)
        known = ("params", "connectivities_key", "connectivities")
        graph = any(has(file, f"{place}/{one}") for one in known)
        if is_dataset(old) or not graph:
            raise OutputError(
                f"{source.name}: {show(place)} holds something else than a graph; "
                "choose another `key_added`"
            )
    return next((path for path in keys.paths if has(file, path)), "")


def _put(stream: BinaryIO, keys: Keys, graph: Graph, name: str) -> None:
    """Write a graph into an open AnnData file, in place of an older one."""
    import h5py

    try:
        with h5py.File(stream, "r+") as file:
            # What is removed first leaves room for what comes.
            for path in keys.paths:
                if has(file, path):
                    del file[path]
            weights = graph.adjacency
            obsp, uns = _folder(file, "obsp", name), _folder(file, "uns", name)
            _put_matrix(obsp, keys.connectivities, weights, weights.data)
            metric, lengths = _metric(graph)
            if lengths is not None:
                _put_matrix(obsp, keys.distances, weights, lengths)
            _put_dict(uns, keys.uns, _neighbors(file, keys, graph, metric))
    except NnkGraphError:
        raise  # a ValueError too, but it says more
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        what = " ".join(str(error).split())
        raise OutputError(f"{name}: cannot be written: {what}") from error


def _metric(graph: Graph) -> tuple[str | None, FloatArray | None]:
    """Return the metric in scanpy's words, and distances by its definition."""
    metric, lengths = graph.provenance["metric"], graph.distances
    if lengths is None or metric != "chord":
        return metric, lengths
    kernel = graph.provenance["kernel"]
    if kernel in {"cosine", "correlation"}:
        return kernel, lengths**2 / 2  # 1 - cos
    return "euclidean", lengths  # of rows that were scaled to length 1


def _neighbors(
    file: Any, keys: Keys, graph: Graph, metric: str | None
) -> dict[str, Any]:
    """Return what ``scanpy.pp.neighbors`` would say, and how the graph was made."""
    facts = graph.provenance
    params: dict[str, Any] = {
        "n_neighbors": facts["k"],
        "method": facts["method"],
        "random_state": facts["seed"],
    }
    found = {"connectivities_key": keys.connectivities, "params": params}
    if metric is not None:
        params["metric"], found["distances_key"] = metric, keys.distances
    rep = keys.use_rep
    if rep and (rep == "X" or h5ad.has_part(file, "obsm", rep)):
        params["use_rep"] = rep
    return {**found, "nnkgraph": provenance_text(facts)}


def _folder(file: h5py.File, path: str, name: str) -> h5py.Group:
    if has(file, path):
        return walk(file, path, name)
    group = file.create_group(path)
    _mark(group, "dict", "0.1.0")
    return group


def _mark(node: Any, kind: str, version: str) -> None:
    node.attrs["encoding-type"] = kind
    node.attrs["encoding-version"] = version


def _put_matrix(group: h5py.Group, name: str, pattern: Any, data: FloatArray) -> None:
    made = group.create_group(name)
    _mark(made, "csr_matrix", "0.1.0")
    made.attrs["shape"] = np.array(pattern.shape, np.int64)
    made["data"] = data
    made["indices"], made["indptr"] = pattern.indices, pattern.indptr


def _put_dict(group: h5py.Group, name: str, values: dict[str, Any]) -> None:
    import h5py

    made = group.create_group(name)
    _mark(made, "dict", "0.1.0")
    for key, value in values.items():
        if isinstance(value, dict):
            _put_dict(made, key, value)
        elif isinstance(value, str):
            text = made.create_dataset(key, data=value, dtype=h5py.string_dtype())
            _mark(text, "string", "0.2.0")
        else:
            number = made.create_dataset(key, data=np.int64(value))
            _mark(number, "numeric-scalar", "0.2.0")


_CHUNK = 1 << 24


@dataclass(frozen=True)
class Place:
    """An AnnData file that can take a graph; make one with `find_place`."""

    path: str
    keys: Keys
    cells: int
    names: tuple[str, ...] | None
    identity: tuple[int, int, int]
    """Which file it is, how long, and when it was changed."""

    def check(self, features: Features) -> None:
        """Refuse features of other cells: their number, names and order must agree."""
        name = show(self.path)
        if len(features.x) != self.cells:
            raise InputError(
                f"{name}: has {self.cells} cells, but {features.name} has "
                f"{len(features.x)} rows"
            )
        if None in (features.ids, self.names) or features.ids == self.names:
            return
        pairs = enumerate(zip(features.ids or (), self.names or (), strict=True))
        at, (there, here) = next(one for one in pairs if one[1][0] != one[1][1])
        raise InputError(
            f"{name}: cell {at} (counted from 0) is '{show(here)}', but row {at} of "
            f"{features.name} is '{show(there)}'; bring the rows into the order of obs"
        )

    def write(self, graph: Graph) -> None:
        """Put a graph into the file, whole or not at all."""
        source = open_source(self.path)
        with open_h5(source), Outputs(self.path) as outputs:  # locked for writers
            self._check_unchanged()
            stream: Any = outputs.open(self.path)
            _keep_owner(self.path, stream.name)
            with source.open() as original:
                shutil.copyfileobj(original, stream, _CHUNK)
            stream.flush()
            self._check_unchanged()
            _put(stream, self.keys, graph, show(self.path))

    def _check_unchanged(self) -> None:
        if _identity(self.path) != self.identity:
            raise OutputError(
                f"{show(self.path)}: was changed while the graph was built, and stays "
                "as it is; run again"
            )


def find_place(path: str, key: str | None, features: str, *, no_clobber: bool) -> Place:
    """Look at an AnnData file before anything is computed.

    `key` is what scanpy calls ``key_added``, `features` what the graph is made from,
    ``FILE`` or ``FILE::ITEM``; with `no_clobber` a graph that is there must stay.
    """
    keys = Keys.of(key, _item(features))
    if is_stream(path):
        raise ParameterError(f"{show(path)}: a graph is put into files only")
    source = open_source(path)
    identity = _identity(path)
    _check_writable(path)
    with open_h5(source) as file:
        h5ad.require_anndata(file, source)
        cells = h5ad.count_cells(file, source)
        names = h5ad.cell_names(file, source)
        found = _first_part(file, keys, source)
        if no_clobber and found:
            raise OutputError(
                f"{source.name}: has {found} already, and `no_clobber` keeps it"
            )
    unique = names is not None and len(set(names)) == len(names)
    return Place(path, keys, cells, tuple(names or ()) if unique else None, identity)


def _item(features: str) -> str | None:
    """Return where features are in an AnnData file, if they are in one."""
    path, item = split_item(features)
    if not path.lower().endswith(".h5ad"):
        return None
    if item is not None:
        return item
    with open_h5(open_source(path)) as file:
        return h5ad.usual_item(file)


def _identity(path: str) -> tuple[int, int, int]:
    try:
        found = Path(path).stat()
    except OSError as error:
        raise OutputError(f"{show(path)}: is gone") from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_writable(path: str) -> None:
    """Refuse a file that is protected: renaming would not even notice."""
    name, target = show(path), Path(os.path.realpath(path))
    if not target.stat().st_mode & 0o222 or not os.access(
        target, os.W_OK, effective_ids=True
    ):
        raise OutputError(f"{name}: is read-only; chmod u+w would let it be changed")
    if not os.access(target.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise OutputError(
            f"{name}: the directory cannot be written to, where the new file is made "
            "beside the old one"
        )


def _keep_owner(path: str, copy: str) -> None:
    """Give the copy, still empty, the owner, mode and attributes of the file."""
    target = os.path.realpath(path)
    found = Path(target).stat()
    with contextlib.suppress(PermissionError):  # the group may still be kept
        os.chown(copy, -1, found.st_gid)
    with contextlib.suppress(PermissionError):  # only root gives files away
        os.chown(copy, found.st_uid, -1)
    shutil.copystat(target, copy)
