"""The file beside a graph: what the graph's own format has no room for."""

from __future__ import annotations

import os
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import InputError
from nnkgraph.formats._base import SIDECAR, Extras
from nnkgraph.runtime.files import open_source, show

if TYPE_CHECKING:
    from nnkgraph.data import Graph
    from nnkgraph.formats._base import Note
    from nnkgraph.runtime.files import Outputs, Source


def write_sidecar(
    outputs: Outputs,
    path: str,
    stream: Any,
    graph: Graph,
    fields: tuple[str, ...],
) -> None:
    """Write the fields that a graph has, or remove a file that is out of date."""
    import numpy as np

    from nnkgraph.formats.npz import extra_members
    from nnkgraph.runtime.archive import write_archive

    target = os.path.realpath(path) + SIDECAR
    members = extra_members(Extras(**{one: getattr(graph, one) for one in fields}))
    if not members:
        outputs.remove(target)
        return
    stream.seek(0)
    members = {"sha256": np.array(file_digest(stream, "sha256").hexdigest()), **members}
    write_archive(outputs.open(target), members)


def read_sidecar(source: Source, note: Note) -> Extras:
    """Read the file beside a graph; an absent or foreign one holds nothing."""
    if source.path is None:
        return Extras()
    # A link may stand beside its own file, or beside that of what it points to.
    paths = dict.fromkeys(
        [source.path + SIDECAR, os.path.realpath(source.path) + SIDECAR]
    )
    for path in filter(os.path.isfile, paths):
        found = _read_one(path, source, note)
        if found is not None:
            return found
    return Extras()


def _read_one(path: str, source: Source, note: Note) -> Extras | None:
    from nnkgraph.formats.npz import read_extras
    from nnkgraph.runtime.archive import open_archive

    try:
        with open_archive(open_source(path)) as archive:
            wanted = archive.text("sha256") if "sha256" in archive else ""
            with Path(source.path or "").open("rb") as stream:
                digest = file_digest(stream, "sha256").hexdigest()
            if wanted == digest:
                return read_extras(archive)
    except InputError as error:
        note(f"{error}; ignored")
        return None
    note(f"{show(path)}: does not belong to {source.name}; ignored")
    return None
