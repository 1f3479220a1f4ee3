"""Where scanpy looks for a graph, and how AnnData files store it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from nnkgraph.errors import OutputError, ParameterError
from nnkgraph.formats._anndata import has, has_field
from nnkgraph.formats._extras import provenance_text
from nnkgraph.formats._h5 import walk
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    import h5py

    from nnkgraph.data import FloatArray, Graph
    from nnkgraph.formats._source import Source

_USUAL = "neighbors"
_SLACK = 1 << 16
"""Bytes for the groups and the headers of a graph."""


@dataclass(frozen=True)
class Keys:
    """Names under which a graph is stored."""

    uns: str
    connectivities: str
    distances: str
    use_rep: str | None
    """What the graph was made from, in scanpy's words."""

    @classmethod
    def of(cls, key: str | None, item: str | None) -> Keys:
        """Return the names that scanpy gives for a ``key_added``."""
        rep = None
        if item is not None:
            folder, _, name = item.strip("/").rpartition("/")
            rep = name if folder == "obsm" or (folder, name) == ("", "X") else None
        if key is None:
            return cls(_USUAL, "connectivities", "distances", rep)
        if not key or "/" in key or not key.isprintable() or key in {".", ".."}:
            raise ParameterError(
                f"--key-added: {show(key)!r} cannot name a part of an AnnData file"
            )
        return cls(key, f"{key}_connectivities", f"{key}_distances", rep)

    @property
    def paths(self) -> tuple[str, str, str]:
        """Where the parts are in the file."""
        uns, obsp = f"uns/{self.uns}", "obsp"
        return f"{obsp}/{self.connectivities}", f"{obsp}/{self.distances}", uns


def check_room_for(file: h5py.File, keys: Keys, source: Source) -> str:
    """Return the first part of a graph that is there already, or nothing.

    Raises
    ------
    OutputError
        Where something else than a graph is in its place.
    """
    import h5py

    for folder in ("obsp", "uns"):
        if has(file, folder) and not isinstance(
            walk(file, folder, source.name), h5py.Group
        ):
            raise OutputError(f"{source.name}: {folder} is no group: a strange file")
    place = keys.paths[2]
    if has(file, place):
        old = walk(file, place, source.name)
        known = ("params", "connectivities_key", "connectivities")
        graph = any(has(file, f"{place}/{one}") for one in known)
        if not (isinstance(old, h5py.Group) and graph):
            raise OutputError(
                f"{source.name}: {show(place)} holds something else than a graph; "
                "choose another --key-added"
            )
    return next((path for path in keys.paths if has(file, path)), "")


def takes(nodes: int, entries: int) -> int:
    """Return the bytes of both matrices."""
    return 2 * (entries * (8 + 4) + 8 * (nodes + 1)) + _SLACK


def put(
    stream: BinaryIO,
    keys: Keys,
    graph: Graph,
    distances: FloatArray,
    metric: str,
    name: str,
) -> None:
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
            _put_matrix(obsp, keys.distances, weights, distances)
            _put_dict(uns, keys.uns, _neighbors(file, keys, graph, metric))
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        what = " ".join(str(error).split())
        raise OutputError(f"{name}: cannot be written: {what}") from error


def _neighbors(
    file: h5py.File, keys: Keys, graph: Graph, metric: str
) -> dict[str, Any]:
    """Return what ``scanpy.pp.neighbors`` would say, and how the graph was made."""
    facts = graph.provenance
    params: dict[str, Any] = {
        "n_neighbors": facts["k"],
        "method": facts["method"],
        "metric": metric,
        "random_state": facts["seed"],
    }
    rep = keys.use_rep
    if rep and (rep == "X" or has(file, f"obsm/{rep}") or has_field(file, "obsm", rep)):
        params["use_rep"] = rep
    return {
        "connectivities_key": keys.connectivities,
        "distances_key": keys.distances,
        "params": params,
        "nnkgraph": provenance_text(facts),
    }


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
    made["data"], made["indices"], made["indptr"] = (
        data,
        pattern.indices,
        pattern.indptr,
    )


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
