"""Graphs as XML: what the readers and the writers of GraphML and GEXF share."""

from __future__ import annotations

import html
import itertools
import re
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, ClassVar
from xml.parsers import expat

import numpy as np

from nnkgraph.errors import InputError, NnkGraphError, OutputError
from nnkgraph.formats import _graphs
from nnkgraph.formats._base import Extras, Format, Note, Target, unfit
from nnkgraph.formats._graphs import with_lengths
from nnkgraph.runtime.arrays import row_slices
from nnkgraph.runtime.files import Source, open_bytes, show, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nnkgraph.data import FloatArray, Graph, IndexArray

    Attributes = list[tuple[str, str]]  # names and values, as they are written


_CHUNK = 1 << 20
_ENCODING = re.compile(
    r"utf-?(8|16)([bl]e)?|us-ascii|ascii|iso-?8859-?\d+|latin-?\d|(windows|cp)-?125\d",
    re.IGNORECASE,
)


def is_plain(names: Sequence[str]) -> bool:
    """Return whether names only count the nodes, as other programs write them."""
    return all(one in {str(i), f"n{i}"} for i, one in enumerate(names))


class XmlReader(ABC):
    """Collects nodes and edges while the parser walks over the file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.XmlDeclHandler = self._declare
        # Entities can name other files and grow without bound.
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.directed: bool | None = None
        self.edges = _graphs.EdgeTable()
        self.order: list[int] = []
        self.values: dict[str, dict[int, str]] = {"error": {}, "name": {}, "id": {}}
        self.about: dict[str, str] = {}
        self.owner, self.text = "graph", ""

    def read(self, stream: BinaryIO, extras: Extras) -> Graph:
        """Read a graph; `extras` may add candidates."""
        try:
            while chunk := stream.read(_CHUNK):
                self.parser.Parse(chunk, False)
            self.parser.Parse(b"", True)
        except NnkGraphError:
            raise  # a ValueError too, but it says more
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise InputError(f"{self.name}: not well-formed XML: {error}") from error
        return self._graph(extras)

    @abstractmethod
    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take in the beginning of an element; a KeyError is a missing attribute."""

    @abstractmethod
    def end(self, tag: str) -> None:
        """Take in the end of an element."""

    def error(self, what: str) -> InputError:
        """Return an error that names the line."""
        line = self.parser.CurrentLineNumber
        return InputError(f"{self.name}: line {line}: {what}")

    def number(self, text: str, what: str) -> float:
        """Return a text as a number."""
        try:
            return float(text)
        except ValueError as error:
            raise self.error(f"the {what} '{show(text[:40])}' is no number") from error

    def add_node(self, name: str) -> None:
        """Take in a node; what follows is about it."""
        self.owner = "node"
        self.order.append(self.edges.number(name))

    def add_edge(self, source: str, target: str) -> None:
        """Take in the ends of an edge; what follows is about it."""
        self.owner = "edge"
        self.edges.source.append(self.edges.number(source))
        self.edges.target.append(self.edges.number(target))

    def end_edge(self, weight: str, distance: str) -> None:
        """Take in the weight of an edge and its length, once all of it was seen."""
        self.edges.weights.append(self.number(weight, "weight"))
        if distance:
            self.edges.distances.append(self.number(distance, "distance"))
        self.edges.lines.append(self.parser.CurrentLineNumber)
        self.owner = "graph"

    def _refuse(self, *_: object) -> None:
        raise self.error("document type and entity declarations are refused")

    def _declare(self, _version: str, encoding: str | None, _alone: int) -> None:
        # Python would offer all of its codecs, some of which are no encodings.
        if encoding is not None and not _ENCODING.fullmatch(encoding):
            raise self.error(f"the encoding '{show(encoding)}' is none of XML files")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self.text = ""
        try:
            self.start(tag, attributes)
        except KeyError as error:
            raise self.error(f"<{tag}> lacks the attribute {error}") from error

    def _end(self, tag: str) -> None:
        self.end(tag.rpartition(":")[2])

    def _characters(self, text: str) -> None:
        self.text += text

    def _graph(self, extras: Extras) -> Graph:
        """Put the graph together once the file has ended."""
        if self.directed is None:
            raise InputError(f"{self.name}: there is no <graph> inside")
        rows = self._rows()
        source, target, weights = self.edges.arrays()
        edges = rows[source], rows[target], weights
        n, directed, name = len(rows), self.directed, self.name
        adjacency, lengths = with_lengths(
            n,
            *edges,
            self.edges.lengths(),
            directed=directed,
            name=name,
            where=self.edges.where,
        )
        errors = self._errors()
        extras = replace(extras, ids=self.ids(), errors=errors, distances=lengths)
        text = self.about.get("provenance", "{}")
        provenance = _graphs.parse_provenance(text, name)
        return _graphs.checked(adjacency, extras, directed, provenance, name)

    def _rows(self) -> IndexArray:
        """Return for the number of each name the place of its node."""
        count, order = len(self.edges.numbers), np.array(self.order, np.int64)
        times = np.bincount(order, minlength=count)
        if (times != 1).any():
            odd = int((times != 1).argmax())
            name = show(list(self.edges.numbers)[odd])
            what = "only edges name it" if times[odd] == 0 else "it stands there twice"
            raise InputError(f"{self.name}: the node '{name}' is wrong: {what}")
        rows = np.empty(count, np.int64)
        rows[order] = np.arange(count)
        return rows

    def ids(self) -> tuple[str, ...] | None:
        """Return the names of the nodes, or None where they are just numbers."""
        known = list(self.edges.numbers)
        names = [known[number] for number in self.order]
        if self.about.get("ids") == "true":
            return tuple(names)
        for title in ("name", "id"):
            # igraph calls nodes n0, n1, ... and keeps their names as an attribute.
            given = list(self.values.get(title, {}).values())
            if len(given) == len(set(given)) == len(names):
                names = given
                break
        return None if is_plain(names) else tuple(names)

    def _errors(self) -> FloatArray | None:
        found = self.values["error"]
        if not found or len(found) != len(self.order):
            return None
        return np.array([self.number(text, "error") for text in found.values()])


_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Attribute values would lose these, were they not written as references.
_SPACES = {ord("\t"): "&#9;", ord("\n"): "&#10;", ord("\r"): "&#13;"}


def _escaped(text: str) -> str:
    return html.escape(text).translate(_SPACES)


class XmlFormat(Format):
    """Reads and writes graphs as XML; a subclass has the words for it."""

    has_classes: ClassVar[bool] = True
    sidecar: ClassVar[tuple[str, ...]] = ("candidates", "bridges")
    name_key: ClassVar[str] = ""  # an attribute for the ids, where an id is not enough
    reader: ClassVar[type[XmlReader]]
    edge: ClassVar[str]  # an edge, by its number, its source, its target and its weight
    ends: ClassVar[tuple[str, str]]  # how it goes on, without a distance and with one
    between: ClassVar[str]  # what stands between the nodes and the edges
    tail: ClassVar[str]  # what stands after the edges

    @abstractmethod
    def head(self, graph: Graph, attributes: Attributes) -> Iterator[str]:
        """Yield what stands before the nodes, which have attributes of some types."""

    @abstractmethod
    def node(self, name: str, attributes: Attributes) -> str:
        """Return a node with its attributes."""

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that XML cannot carry."""
        for one in ids:
            if _ILLEGAL.search(one):
                why = "has a character that XML forbids; write .npz instead"
                raise unfit(one, target, why)

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write every node, and each undirected edge once."""
        names = [str(node) for node in range(graph.n_nodes)]
        if graph.ids is not None:
            names = [_escaped(one) for one in graph.ids]
        key = self.name_key if graph.ids is not None else ""
        attributes = [(key, "string")] if key else []
        attributes += [] if graph.errors is None else [("error", "double")]
        attributes += [] if target.classes is None else [("class", "string")]
        number, edge, far = 0, self.edge.format, self.ends[1].format
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write("".join(self.head(graph, attributes)))
            for block in _node_blocks(graph, names, target, key):
                write("".join(self.node(*one) for one in block))
            write(self.between)
            for rows, cols, weights, *lengths in _graphs.edge_blocks(
                graph, distances=True
            ):
                ends = (names[i] for i in rows), (names[j] for j in cols)
                numbers = range(number, number + len(rows))
                more = map(far, *lengths) if lengths else itertools.repeat(self.ends[0])
                write("".join(map(edge, numbers, *ends, weights, more)))
                number += len(rows)
            write(self.tail)

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read our own files and those of other programs."""
        with open_bytes(source, self.suffixes[0].removeprefix(".")) as stream:
            return self.reader(source.name).read(stream, extras)


def _node_blocks(
    graph: Graph, names: list[str], target: Target, key: str
) -> Iterator[Iterable[tuple[str, Attributes]]]:
    """Yield the names of nodes, each with its attributes, some at a time."""
    classes = _classes(target)
    for part in row_slices(len(names), _graphs.TEXT_BYTES):
        block = names[part]
        own: list[Attributes] = [[(key, one)] if key else [] for one in block]
        if graph.errors is not None:
            for one, error in zip(own, graph.errors[part].tolist(), strict=True):
                one.append(("error", repr(error)))
        if target.classes is not None:
            for one, kind in zip(own, target.classes[part], strict=True):
                if kind:
                    one.append(("class", classes[kind]))
        yield zip(block, own, strict=True)


def _classes(target: Target) -> dict[str, str]:
    """Return what every class is called in the file."""
    found = dict.fromkeys(target.classes or ())
    for one in found:
        if _ILLEGAL.search(one):
            raise OutputError(
                f"{target.name}: the class '{show(one)}' has a character that XML "
                "forbids; rename it"
            )
    return {one: _escaped(one) for one in found}
