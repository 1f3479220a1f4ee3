"""GraphML: XML that networkx, igraph, Gephi and Cytoscape read."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from nnkgraph.formats._base import Format
from nnkgraph.formats._graphs import edge_blocks, provenance_text
from nnkgraph.formats._xml import (
    XmlReader,
    check_xml_ids,
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


class GraphMlReader(XmlReader):
    """Reads our own files and those of networkx and igraph."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[str, str] = {}
        self.key, self.weight = "", ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take in the beginning of an element."""
        if tag == "edge":
            self.weight = ""
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
            self.end_edge(self.weight or self.defaults.get("weight", "1"))
        elif tag == "node":
            self.owner = "graph"

    def _datum(self) -> None:
        title = self.keys.get(self.key, ("", ""))[1]
        if self.owner == "edge":
            if title == "weight":
                self.weight = self.text.strip()
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
class GraphMl(Format):
    """GraphML for networkx, igraph, Gephi and others (graphs)."""

    has_classes: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".graphml", ".graphml.gz")
    sidecar: ClassVar[tuple[str, ...]] = ("candidates", "bridges")

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that XML cannot carry."""
        check_xml_ids(ids, target)

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write every node, and each undirected edge once."""
        names = xml_names(graph)
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write(_HEAD)
            write("".join(_keys(graph, target)))
            for block in node_blocks(graph, names, target):
                write("".join(_node(*one) for one in block))
            for rows, cols, weights in edge_blocks(graph):
                parts = zip(rows, cols, weights, strict=True)
                write(
                    "".join(
                        f'<edge source="{names[i]}" target="{names[j]}">'
                        f'<data key="weight">{w!r}</data></edge>\n'
                        for i, j, w in parts
                    )
                )
            write("</graph>\n</graphml>\n")

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read our own files and those of networkx and igraph."""
        del note
        with open_bytes(source, "graphml") as stream:
            return GraphMlReader(source.name).read(stream, extras)


def _keys(graph: Graph, target: Target) -> Iterator[str]:
    keys = [("weight", "edge", "double"), ("provenance", "graph", "string")]
    keys += [(key, "node", kind) for key, kind in node_attributes(graph, target)]
    if graph.ids is not None:
        keys.append(("ids", "graph", "boolean"))
    for key, owner, kind in keys:
        yield f'<key id="{key}" for="{owner}" attr.name="{key}" attr.type="{kind}"/>\n'
    yield f'<graph edgedefault="{"directed" if graph.directed else "undirected"}">\n'
    text = html.escape(provenance_text(graph.provenance), quote=False)
    yield f'<data key="provenance">{text}</data>\n'
    if graph.ids is not None:
        yield '<data key="ids">true</data>\n'


def _node(name: str, attributes: list[tuple[str, str]]) -> str:
    if not attributes:
        return f'<node id="{name}"/>\n'
    data = "".join(f'<data key="{key}">{text}</data>' for key, text in attributes)
    return f'<node id="{name}">{data}</node>\n'


plugin: type[Format] = GraphMl
