"""File formats: one file each, reader and writer side by side.

The format is chosen by the file name's longest known ending, or by name. A format
that can only be read once (a pipe, standard input) is read into memory first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nnkgraph.formats import _dispatch
from nnkgraph.formats._base import Extras, Format, Target, TextOptions, ignore
from nnkgraph.formats._dispatch import (
    check_classes,
    check_file,
    check_ids,
    check_output,
    file_beside,
    is_known,
    read_features,
    read_labels,
    read_values,
    reader,
    split_item,
    write_answers,
    write_candidates,
    write_graph,
)
from nnkgraph.runtime.files import is_stream, write_file

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.formats._base import Note
    from nnkgraph.formats._graphs import checked, edge_blocks, from_edges

    AnyPath = str | os.PathLike[str]

__all__ = [
    "Extras",
    "Format",
    "Target",
    "TextOptions",
    "check_classes",
    "check_file",
    "check_ids",
    "check_output",
    "checked",
    "edge_blocks",
    "file_beside",
    "from_edges",
    "ignore",
    "is_known",
    "is_stream",
    "read_candidates",
    "read_features",
    "read_graph",
    "read_labels",
    "read_values",
    "split_item",
    "write_answers",
    "write_candidates",
    "write_file",
    "write_graph",
]


def __getattr__(name: str) -> Any:
    """Import what formats of other packages may use when it is first used."""
    if name not in {"checked", "edge_blocks", "from_edges"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nnkgraph.formats import _graphs

    return getattr(_graphs, name)


def read_graph(
    path: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    note: Note = ignore,
) -> Graph:
    """Read a graph and check it fully.

    Raises
    ------
    InputError
        Where the file cannot be read or does not hold a graph.
    """
    plugin, source = reader("read_graph", os.fspath(path), format)
    extras = _dispatch.read(source, note) if plugin.sidecar else Extras()
    return plugin.read_graph(source, extras, note)


def read_candidates(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> tuple[IndexArray, FloatArray | None]:
    """Read ``neighbors`` and maybe ``distances``, or a bare array of neighbors."""
    plugin, source = reader("read_candidates", os.fspath(spec), format)
    return plugin.read_candidates(source)
