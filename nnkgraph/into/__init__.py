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
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import InputError, OutputError, ParameterError
from nnkgraph.formats import split_item
from nnkgraph.formats._anndata import (
    cell_names,
    count_cells,
    require_anndata,
    usual_item,
)
from nnkgraph.formats._h5 import open_h5
from nnkgraph.formats._output import Outputs, is_stream
from nnkgraph.formats._source import open_source, show
from nnkgraph.into._distances import check_distances, edge_distances
from nnkgraph.into._layout import Keys, check_room_for, put, takes

if TYPE_CHECKING:
    from nnkgraph.data import Features, Graph
    from nnkgraph.kernels import Kernel

__all__ = ["Place", "check_distances", "find_place"]

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
        """Refuse features of other cells.

        Raises
        ------
        InputError
            Where their number differs, or their names or the order of them.
        """
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

    def size(self, pairs: int) -> int:
        """Return the bytes that a copy with a graph of so many entries takes."""
        return self.identity[1] + takes(self.cells, pairs)

    def write(
        self, graph: Graph, features: Features, kernel: Kernel, scale: str
    ) -> None:
        """Put a graph into the file, whole or not at all.

        Raises
        ------
        OutputError
            Where it cannot be written, or was changed since it was looked at.
        """
        distances, metric = edge_distances(features, graph.adjacency, kernel, scale)
        source = open_source(self.path)
        with open_h5(source), Outputs(self.path) as outputs:  # locked for writers
            self._check_unchanged()
            stream: Any = outputs.open(self.path)
            _keep_owner(self.path, stream.name)
            with source.open() as original:
                shutil.copyfileobj(original, stream, _CHUNK)
            stream.flush()
            self._check_unchanged()
            put(stream, self.keys, graph, distances, metric, show(self.path))

    def _check_unchanged(self) -> None:
        if _identity(self.path) != self.identity:
            raise OutputError(
                f"{show(self.path)}: was changed while the graph was built, and stays "
                "as it is; run again"
            )


def find_place(path: str, key: str | None, features: str, *, no_clobber: bool) -> Place:
    """Look at an AnnData file before anything is computed.

    Parameters
    ----------
    key
        The name that scanpy calls ``key_added``.
    features
        What the graph is made from, ``FILE`` or ``FILE::ITEM``.
    no_clobber
        Whether a graph that is there already must stay.

    Raises
    ------
    ParameterError
        For a key that cannot be a name.
    InputError
        Where the file cannot be read, or is not AnnData.
    OutputError
        Where it cannot be replaced, or has something else in the graph's place.
    """
    keys = Keys.of(key, _item(features))
    if is_stream(path):
        raise ParameterError(f"{show(path)}: a graph is put into files only")
    source = open_source(path)
    identity = _identity(path)
    _check_writable(path)
    with open_h5(source) as file:
        require_anndata(file, source)
        cells = count_cells(file, source)
        names = cell_names(file, source)
        found = check_room_for(file, keys, source)
        if no_clobber and found:
            raise OutputError(
                f"{source.name}: has {found} already, and --no-clobber keeps it"
            )
    unique = names is not None and len(set(names)) == len(names)
    return Place(path, keys, cells, tuple(names or ()) if unique else None, identity)


def _item(features: str) -> str | None:
    """Return where features are in an AnnData file, if they are in one."""
    path, item = split_item(features)
    if item is not None or not path.lower().endswith(".h5ad"):
        return item if path.lower().endswith(".h5ad") else None
    with open_h5(open_source(path)) as file:
        return usual_item(file)


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
