"""GraphML: XML that networkx, igraph, Gephi and Cytoscape read."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from nnkgraph.formats._adjacency import edge_blocks
from nnkgraph.formats._extras import provenance_text
from nnkgraph.formats._format import Format
from nnkgraph.formats._graphxml import GraphMlReader
from nnkgraph.formats._text import open_bytes, write_text
from nnkgraph.formats._xmlnodes import (
    check_xml_ids,
    node_attributes,
    node_blocks,
    xml_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnkgraph.data import Graph
    from nnkgraph.formats._format import Extras, Note, Target
    from nnkgraph.formats._source import Source

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
    beside: ClassVar[tuple[str, ...]] = ("candidates", "bridges")

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
