"""GEXF: the XML that Gephi knows best; networkx and others read it too."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nnkgraph.formats._graphs import provenance_text
from nnkgraph.formats._xml import XmlFormat, XmlReader, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Graph


_ABOUT = {"description": "provenance", "keywords": "ids"}
"""Where our own files say what GEXF has no place for."""


class GexfReader(XmlReader):
    """Reads our own files and those of Gephi and networkx."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.titles: dict[tuple[str, str], str] = {}
        self.ours = False
        self.kind, self.key, self.weight, self.default = "", "", "", "1"
        self.distance = ""

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
            self.end_edge(self.weight or self.default, self.distance)
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
            elif title == "distance":
                self.distance = text.strip()
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
        self.weight, self.distance = attributes.get("weight", ""), ""
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
class Gexf(XmlFormat):
    """GEXF for Gephi, networkx and others (graphs)."""

    suffixes: ClassVar[tuple[str, ...]] = (".gexf", ".gexf.gz")
    reader: ClassVar[type[XmlReader]] = GexfReader
    edge: ClassVar[str] = '<edge id="{}" source="{}" target="{}" weight="{!r}"{}\n'
    ends: ClassVar[tuple[str, str]] = (
        "/>",
        '><attvalues><attvalue for="distance" value="{!r}"/></attvalues></edge>',
    )
    between: ClassVar[str] = "</nodes>\n<edges>\n"
    tail: ClassVar[str] = "</edges>\n</graph>\n</gexf>\n"

    def head(self, graph: Graph, attributes: list[tuple[str, str]]) -> Iterator[str]:
        """Yield what the file and the graph are, and what nodes and edges carry."""
        text = html.escape(provenance_text(graph.provenance), quote=False)
        yield f"{_HEAD}<meta>\n<creator>nnkgraph</creator>\n"
        if graph.ids is not None:
            yield "<keywords>true</keywords>\n"
        yield f"<description>{text}</description>\n</meta>\n"
        kind = "directed" if graph.directed else "undirected"
        yield f'<graph defaultedgetype="{kind}" mode="static">\n'
        own = [("distance", "double")] if graph.distances is not None else []
        for owner, found in (("node", attributes), ("edge", own)):
            if found:
                yield f'<attributes class="{owner}" mode="static">\n'
                for name, kind in found:
                    yield f'<attribute id="{name}" title="{name}" type="{kind}"/>\n'
                yield "</attributes>\n"
        yield "<nodes>\n"

    def node(self, name: str, attributes: list[tuple[str, str]]) -> str:
        """Return a node; Gephi shows its label."""
        values = "".join(
            f'<attvalue for="{key}" value="{text}"/>' for key, text in attributes
        )
        inside = f"><attvalues>{values}</attvalues></node>" if values else "/>"
        return f'<node id="{name}" label="{name}"{inside}\n'


plugin: type[XmlFormat] = Gexf
