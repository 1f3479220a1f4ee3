"""GraphML: XML that networkx, igraph, Gephi and Cytoscape read."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nnkgraph.formats._graphs import provenance_text
from nnkgraph.formats._xml import XmlFormat, XmlReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Graph


class GraphMlReader(XmlReader):
    """Reads our own files and those of networkx and igraph."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[str, str] = {}
        self.key, self.own = "", dict[str, str]()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take in the beginning of an element."""
        if tag == "edge":
            self.own = {}
            self.add_edge(attributes["source"], attributes["target"])
            own = attributes.get("directed", "")
            if own and (own in {"true", "1"}) is not self.directed:
                raise self.error("directed and undirected edges are mixed")
        elif tag == "node":
            self.add_node(attributes["id"])
        elif tag == "data":
            self.key = attributes["key"]
        elif tag == "key":
            self.key = attributes["id"]
            title = attributes.get("attr.name", self.key)
            self.keys[self.key] = (attributes.get("for", "all"), title)
        elif tag == "graph":
            if self.directed is not None:
                raise self.error("there is more than one graph inside")
            self.directed = attributes.get("edgedefault") == "directed"
        elif tag == "hyperedge":
            raise self.error("edges join two nodes here, not more")

    def end(self, tag: str) -> None:
        """Take in the end of an element."""
        if tag == "data":
            self._datum()
        elif tag == "default":
            self.defaults[self.keys[self.key][1]] = self.text
        elif tag == "edge":
            known = self.defaults | self.own
            self.end_edge(known.get("weight") or "1", known.get("distance", ""))
        elif tag == "node":
            self.owner = "graph"

    def _datum(self) -> None:
        title = self.keys.get(self.key, ("", ""))[1]
        if self.owner == "edge":
            self.own[title] = self.text.strip()
        elif self.owner == "node":
            if title in self.values:
                self.values[title][len(self.order) - 1] = self.text
        else:
            self.about[title] = self.text


_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


@dataclass(frozen=True, slots=True)
class GraphMl(XmlFormat):
    """GraphML for networkx, igraph, Gephi and others (graphs)."""

    suffixes: ClassVar[tuple[str, ...]] = (".graphml", ".graphml.gz")
    name_key: ClassVar[str] = "name"  # what igraph looks names up by
    reader: ClassVar[type[XmlReader]] = GraphMlReader
    edge: ClassVar[str] = (
        '<edge source="{1}" target="{2}"><data key="weight">{3!r}</data>{4}\n'
    )
    ends: ClassVar[tuple[str, str]] = (
        "</edge>",
        '<data key="distance">{!r}</data></edge>',
    )
    between: ClassVar[str] = ""
    tail: ClassVar[str] = "</graph>\n</graphml>\n"

    def head(self, graph: Graph, attributes: list[tuple[str, str]]) -> Iterator[str]:
        """Yield what nodes, edges and the graph carry, and the graph's own data."""
        keys = [("weight", "edge", "double"), ("provenance", "graph", "string")]
        if graph.distances is not None:
            keys.append(("distance", "edge", "double"))
        keys += [(key, "node", kind) for key, kind in attributes]
        if graph.ids is not None:
            keys.append(("ids", "graph", "boolean"))
        yield _HEAD
        for key, owner, kind in keys:
            yield f'<key id="{key}" for="{owner}" attr.name="{key}" '
            yield f'attr.type="{kind}"/>\n'
        kind = "directed" if graph.directed else "undirected"
        text = html.escape(provenance_text(graph.provenance), quote=False)
        yield f'<graph edgedefault="{kind}">\n<data key="provenance">{text}</data>\n'
        if graph.ids is not None:
            yield '<data key="ids">true</data>\n'

    def node(self, name: str, attributes: list[tuple[str, str]]) -> str:
        """Return a node."""
        data = "".join(f'<data key="{key}">{text}</data>' for key, text in attributes)
        return f'<node id="{name}"' + (f">{data}</node>\n" if data else "/>\n")


plugin: type[XmlFormat] = GraphMl
