"""Writing graphs, candidates and answers, whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nnkgraph.formats import _sidecar
from nnkgraph.formats._checks import check_classes, check_ids
from nnkgraph.formats._choose import choose
from nnkgraph.formats._format import Target
from nnkgraph.formats._output import Outputs, is_stream
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from nnkgraph.data import Answers, Candidates, Graph
    from nnkgraph.labels import Labels

    AnyPath = str | os.PathLike[str]


def write_graph(
    path: AnyPath,
    graph: Graph,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    labels: Labels | None = None,
) -> None:
    """Write a graph, whole or not at all.

    What the format cannot carry goes to ``<path>.nnk.npz``, except for standard
    output, pipes and devices. Labels are classes that GEXF and GraphML give to nodes,
    for programs that color them; no graph has them when it is read.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there before is untouched.
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    check_ids(target, graph.ids, format=format)
    classes = None
    if labels is not None:
        check_classes(target, format=format)
        classes = labels.for_rows(graph.nodes, graph.ids, "the graph").names()
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_graph(stream, graph, Target(show(target), suffix, classes))
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
