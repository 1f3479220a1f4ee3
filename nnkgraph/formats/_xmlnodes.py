"""Nodes as XML: what the writers of GraphML and GEXF share."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from nnkgraph.errors import OutputError
from nnkgraph.formats._format import unfit
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nnkgraph.data import Graph
    from nnkgraph.formats._format import Target

    Attributes = list[tuple[str, str]]
    """Names and values, as they are written."""

_BLOCK = 1 << 16
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Attribute values would lose these, were they not written as references.
_SPACES = {ord("\t"): "&#9;", ord("\n"): "&#10;", ord("\r"): "&#13;"}


def check_xml_ids(ids: Sequence[str], target: Target) -> None:
    """Refuse ids that XML cannot carry."""
    for one in ids:
        if _ILLEGAL.search(one):
            why = "has a character that XML forbids; write .npz instead"
            raise unfit(one, target, why)


def xml_classes(target: Target) -> dict[str, str]:
    """Return what every class is called in the file."""
    found = dict.fromkeys(target.classes or ())
    for one in found:
        if _ILLEGAL.search(one):
            raise OutputError(
                f"{target.name}: the class '{show(one)}' has a character that XML "
                "forbids; rename it"
            )
    return {one: _escaped(one) for one in found}


def xml_names(graph: Graph) -> Sequence[str]:
    """Return what nodes are called in the file."""
    if graph.ids is None:
        return [str(node) for node in range(graph.nodes)]
    return [_escaped(one) for one in graph.ids]


def _escaped(text: str) -> str:
    return html.escape(text).translate(_SPACES)


def node_blocks(
    graph: Graph, names: Sequence[str], target: Target
) -> Iterator[Iterable[tuple[str, Attributes]]]:
    """Yield the names of nodes, each with its attributes, some at a time."""
    classes = xml_classes(target)
    for start in range(0, len(names), _BLOCK):
        part = slice(start, start + _BLOCK)
        block = names[part]
        own: list[Attributes] = [[] for _ in block]
        if graph.errors is not None:
            for one, error in zip(own, graph.errors[part].tolist(), strict=True):
                one.append(("error", repr(error)))
        if target.classes is not None:
            for one, kind in zip(own, target.classes[part], strict=True):
                if kind:
                    one.append(("class", classes[kind]))
        yield zip(block, own, strict=True)


def node_attributes(graph: Graph, target: Target) -> list[tuple[str, str]]:
    """Return the names and types of what nodes carry."""
    found = []
    if graph.errors is not None:
        found.append(("error", "double"))
    if target.classes is not None:
        found.append(("class", "string"))
    return found
