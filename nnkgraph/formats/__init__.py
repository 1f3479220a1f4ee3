"""File formats: one file each, reader and writer side by side.

The format is chosen by the file name's longest known ending, or by name. A format
that can only be read once (a pipe, standard input) is read into memory first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nnkgraph.formats import _sidecar
from nnkgraph.formats._checks import check_file, check_ids, check_output
from nnkgraph.formats._choose import choose, reader, split_item, suffixes
from nnkgraph.formats._format import Extras, Target, ignore
from nnkgraph.formats._output import Outputs, is_stream
from nnkgraph.formats._reading import read_features, read_labels, read_values
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from nnkgraph.data import (
        Answers,
        Candidates,
        FloatArray,
        Graph,
        IndexArray,
    )
    from nnkgraph.formats._format import Note

    AnyPath = str | os.PathLike[str]

__all__ = [
    "check_file",
    "check_ids",
    "check_output",
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
    extras = _sidecar.read(source, note) if plugin.beside else Extras()
    return plugin.read_graph(source, extras, note)


def read_candidates(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> tuple[IndexArray, FloatArray | None]:
    """Read ``neighbors`` and maybe ``distances``, or a bare array of neighbors."""
    plugin, source = reader("read_candidates", os.fspath(spec), format)
    return plugin.read_candidates(source)


def write_graph(
    path: AnyPath,
    graph: Graph,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Write a graph, whole or not at all.

    What the format cannot carry goes to ``<path>.nnk.npz``, except for standard
    output, pipes and devices.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there before is untouched.
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    check_ids(target, graph.ids, format=format)
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_graph(stream, graph, Target(show(target), suffix))
        stream.flush()
        if plugin.beside and not is_stream(target):
            _sidecar.write(outputs, target, stream, graph, plugin.beside)


def write_candidates(
    path: AnyPath,
    candidates: Candidates,
    *,
    provenance: dict[str, Any],
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Write ``neighbors`` and ``distances``, whole or not at all."""
    target = os.fspath(path)
    plugin, _ = choose("write_candidates", target, format)
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_candidates(stream, candidates, provenance)
        stream.flush()


def write_answers(
    path: AnyPath,
    answers: Answers,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Write neighborhoods of queries, whole or not at all."""
    target = os.fspath(path)
    plugin, suffix = choose("write_answers", target, format)
    place = Target(show(target), suffix)
    plugin.check_ids([*(answers.ids or ()), *(answers.query_ids or ())], place)
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_answers(stream, answers, place)
        stream.flush()


def write_file(path: AnyPath, content: bytes) -> None:
    """Write any file, whole or not at all."""
    target = os.fspath(path)
    with Outputs(target) as outputs:
        outputs.open(target).write(content)


def is_known(path: AnyPath, role: str) -> bool:
    """Return whether a name says which format a file has, for a role."""
    name = split_item(os.fspath(path))[0].lower()
    return name.endswith(tuple(suffixes(role)))
