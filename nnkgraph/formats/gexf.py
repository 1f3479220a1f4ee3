"""GEXF: the XML that Gephi knows best; networkx and others read it too."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from nnkgraph.formats._adjacency import edge_blocks
from nnkgraph.formats._extras import provenance_text
from nnkgraph.formats._format import Format
from nnkgraph.formats._gexfxml import GexfReader
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
    beside: ClassVar[tuple[str, ...]] = ("candidates", "bridges")

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
