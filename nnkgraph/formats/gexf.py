"""GEXF: the XML that Gephi knows best; networkx and others read it too."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from nnkgraph.formats._base import Format
from nnkgraph.formats._graphs import edge_blocks, provenance_text
from nnkgraph.formats._xml import (
    XmlReader,
    check_xml_ids,
    is_plain,
    node_attributes,
    node_blocks,
    xml_names,
)
from nnkgraph.runtime.files import open_bytes, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnkgraph.data import Graph
    from nnkgraph.formats._base import Extras, Note, Target
    from nnkgraph.runtime.files import Source


_ABOUT = {"description": "provenance", "keywords": "ids"}
"""Where our own files say what GEXF has no place for."""


class GexfReader(XmlReader):
    """Reads our own files and those of Gephi and networkx."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.titles: dict[tuple[str, str], str] = {}
        self.ours = False
        self.kind, self.key, self.weight, self.default = "", "", "", "1"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take in the beginning of an element."""
        if tag == "edge":
            self._start_edge(attributes)
        elif tag == "node":
            self.add_node(attributes["id"])
            self._value("name", attributes.get("label", ""))
        elif tag == "attvalue":
            # Files of version 1.0 say id where later ones say for.
            key = attributes["for"] if "for" in attributes else attributes["id"]
            self._value(self.titles.get((self.owner, key), key), attributes["value"])
        elif tag == "attributes":
            self.kind = attributes.get("class", "")
        elif tag == "attribute":
            self.key = attributes["id"]
            self.titles[self.kind, self.key] = attributes.get("title", self.key)
        elif tag == "graph":
            self._start_graph(attributes)

    def end(self, tag: str) -> None:
        """Take in the end of an element."""
        if tag == "edge":
            self.end_edge(self.weight or self.default)
        elif tag == "node":
            self.owner = "graph"
        elif tag == "creator":
            self.ours = self.text == "nnkgraph"
        elif tag in _ABOUT and self.ours:
            self.about[_ABOUT[tag]] = self.text
        elif tag == "default" and self.titles.get(("edge", self.key)) == "weight":
            self.default = self.text.strip()

    def ids(self) -> tuple[str, ...] | None:
        """Return the ids; labels where ids only number the nodes."""
        labels = list(self.values.pop("name").values())
        found = super().ids()
        if found is not None or len(set(labels)) != len(self.order) or self.ours:
            return found
        return None if is_plain(labels) else tuple(labels)

    def _value(self, title: str, text: str) -> None:
        if self.owner == "edge":
            if title == "weight":
                self.weight = self.weight or text.strip()
        elif title in self.values and text:
            self.values[title][len(self.order) - 1] = text

    def _start_graph(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:
            raise self.error("there is more than one graph inside")
        if attributes.get("mode") == "dynamic":
            raise self.error("the graph changes with time; export one moment of it")
        kind = attributes.get("defaultedgetype", "undirected")
        if kind not in {"directed", "undirected"}:
            raise self.error("the edges of a graph are all directed or all undirected")
        self.directed = kind == "directed"

    def _start_edge(self, attributes: dict[str, str]) -> None:
        self.add_edge(attributes["source"], attributes["target"])
        self.weight = attributes.get("weight", "")
        own = attributes.get("type", "")
        if own and (own == "directed") is not self.directed:
            raise self.error("directed and undirected edges are mixed")


# No date: equal graphs are equal bytes.
_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://www.gexf.net/1.2draft \
http://www.gexf.net/1.2draft/gexf.xsd" version="1.2">
"""


@dataclass(frozen=True, slots=True)
class Gexf(Format):
    """GEXF for Gephi, networkx and others (graphs)."""

    has_classes: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".gexf", ".gexf.gz")
    sidecar: ClassVar[tuple[str, ...]] = ("candidates", "bridges")

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that XML cannot carry."""
        check_xml_ids(ids, target)

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write every node, and each undirected edge once."""
        names = xml_names(graph)
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write(_HEAD)
            write("".join(_about(graph, target)))
            write("<nodes>\n")
            for block in node_blocks(graph, names, target):
                write("".join(_node(*one) for one in block))
            write("</nodes>\n<edges>\n")
            number = 0
            for rows, cols, weights in edge_blocks(graph):
                parts = enumerate(zip(rows, cols, weights, strict=True), number)
                write(
                    "".join(
                        f'<edge id="{at}" source="{names[i]}" target="{names[j]}" '
                        f'weight="{w!r}"/>\n'
                        for at, (i, j, w) in parts
                    )
                )
                number += len(rows)
            write("</edges>\n</graph>\n</gexf>\n")

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read our own files and those of Gephi and networkx."""
        del note
        with open_bytes(source, "gexf") as stream:
            return GexfReader(source.name).read(stream, extras)


def _about(graph: Graph, target: Target) -> Iterator[str]:
    text = html.escape(provenance_text(graph.provenance), quote=False)
    yield "<meta>\n<creator>nnkgraph</creator>\n"
    if graph.ids is not None:
        yield "<keywords>true</keywords>\n"
    yield f"<description>{text}</description>\n</meta>\n"
    kind = "directed" if graph.directed else "undirected"
    yield f'<graph defaultedgetype="{kind}" mode="static">\n'
    attributes = node_attributes(graph, target)
    if attributes:
        yield '<attributes class="node" mode="static">\n'
        for name, kind in attributes:
            yield f'<attribute id="{name}" title="{name}" type="{kind}"/>\n'
        yield "</attributes>\n"


def _node(name: str, attributes: list[tuple[str, str]]) -> str:
    if not attributes:
        return f'<node id="{name}" label="{name}"/>\n'
    values = "".join(
        f'<attvalue for="{key}" value="{text}"/>' for key, text in attributes
    )
    return f'<node id="{name}" label="{name}"><attvalues>{values}</attvalues></node>\n'


plugin: type[Format] = Gexf
