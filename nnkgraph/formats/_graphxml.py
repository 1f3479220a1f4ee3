"""Reading GraphML as a stream of XML events."""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO
from xml.parsers import expat

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._adjacency import from_edges
from nnkgraph.formats._extras import checked, parse_provenance
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, Graph
    from nnkgraph.formats._format import Extras

_CHUNK = 1 << 20
_ENCODING = re.compile(
    r"utf-?(8|16)([bl]e)?|us-ascii|ascii|iso-?8859-?\d+|latin-?\d|(windows|cp)-?125\d",
    re.IGNORECASE,
)


def parse(stream: BinaryIO, name: str, extras: Extras) -> Graph:
    """Read a graph; `extras` may add candidates."""
    reader = _Reader(name)
    try:
        while chunk := stream.read(_CHUNK):
            reader.parser.Parse(chunk, False)
        reader.parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise InputError(f"{name}: not well-formed XML: {error}") from error
    return reader.graph(extras)


class _Reader:
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
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[str, str] = {}
        self.directed: bool | None = None
        self.numbers: dict[str, int] = {}
        self.order = array("q")
        self.values: dict[str, dict[int, str]] = {"error": {}, "name": {}, "id": {}}
        self.about: dict[str, str] = {}
        self.source, self.target = array("q"), array("q")
        self.weights, self.lines = array("d"), array("q")
        self.owner, self.key, self.text = "graph", "", ""
        self.weight = ""

    def _refuse(self, *_: object) -> None:
        raise self._error("document type and entity declarations are refused")

    def _declare(self, _version: str, encoding: str | None, _alone: int) -> None:
        # Python would offer all of its codecs, some of which are no encodings.
        if encoding is not None and not _ENCODING.fullmatch(encoding):
            raise self._error(f"the encoding '{show(encoding)}' is none of XML files")

    def _error(self, what: str) -> InputError:
        line = self.parser.CurrentLineNumber
        return InputError(f"{self.name}: line {line}: {what}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2] if ":" in tag else tag
        self.text = ""
        try:
            if tag == "edge":
                self._start_edge(attributes)
            elif tag == "node":
                self.owner = "node"
                self.order.append(self._number_of(attributes["id"]))
            elif tag == "data":
                self.key = attributes["key"]
            elif tag == "key":
                self.key = attributes["id"]
                title = attributes.get("attr.name", self.key)
                self.keys[self.key] = (attributes.get("for", "all"), title)
            elif tag == "graph":
                if self.directed is not None:
                    raise self._error("there is more than one graph inside")
                self.directed = attributes.get("edgedefault") == "directed"
            elif tag == "hyperedge":
                raise self._error("edges join two nodes here, not more")
        except KeyError as error:
            raise self._error(f"<{tag}> lacks the attribute {error}") from error

    def _start_edge(self, attributes: dict[str, str]) -> None:
        self.owner, self.weight = "edge", ""
        self.source.append(self._number_of(attributes["source"]))
        self.target.append(self._number_of(attributes["target"]))
        own = attributes.get("directed", "")
        if own and (own in {"true", "1"}) is not self.directed:
            raise self._error("directed and undirected edges are mixed")

    def _number_of(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2] if ":" in tag else tag
        if tag == "data":
            self._datum()
        elif tag == "default":
            self.defaults[self.keys[self.key][1]] = self.text
        elif tag == "edge":
            text = self.weight or self.defaults.get("weight", "1")
            self.weights.append(self._number(text, "weight"))
            self.lines.append(self.parser.CurrentLineNumber)
            self.owner = "graph"
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

    def _characters(self, text: str) -> None:
        self.text += text

    def _number(self, text: str, what: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise self._error(f"the {what} '{show(text[:40])}' is no number") from error

    def graph(self, extras: Extras) -> Graph:
        """Put the graph together once the file has ended."""
        if self.directed is None:
            raise InputError(f"{self.name}: there is no <graph> inside")
        rows = self._rows()
        adjacency = from_edges(
            len(rows),
            rows[np.frombuffer(self.source, np.int64)],
            rows[np.frombuffer(self.target, np.int64)],
            np.frombuffer(self.weights, np.float64),
            directed=self.directed,
            name=self.name,
            where=lambda edge: f"line {self.lines[edge]}",
        )
        extras = replace(extras, ids=self._ids(), errors=self._errors())
        text = self.about.get("provenance", "{}")
        provenance = parse_provenance(text, self.name)
        return checked(adjacency, extras, self.directed, provenance, self.name)

    def _rows(self) -> NDArray[np.int64]:
        """Return for the number of each name the place of its node."""
        count, order = len(self.numbers), np.frombuffer(self.order, np.int64)
        times = np.bincount(order, minlength=count)
        if (times != 1).any():
            odd = int((times != 1).argmax())
            name = show(list(self.numbers)[odd])
            what = "only edges name it" if times[odd] == 0 else "it stands there twice"
            raise InputError(f"{self.name}: the node '{name}' is wrong: {what}")
        rows = np.empty(count, np.int64)
        rows[order] = np.arange(count)
        return rows

    def _ids(self) -> tuple[str, ...] | None:
        known = list(self.numbers)
        names = [known[number] for number in self.order]
        if self.about.get("ids") == "true":
            return tuple(names)
        for title in ("name", "id"):
            # igraph calls nodes n0, n1, ... and keeps their names as an attribute.
            given = list(self.values[title].values())
            if len(given) == len(set(given)) == len(names):
                names = given
                break
        plain = all(one in {str(i), f"n{i}"} for i, one in enumerate(names))
        return None if plain else tuple(names)

    def _errors(self) -> FloatArray | None:
        found = self.values["error"]
        if not found or len(found) != len(self.order):
            return None
        return np.array([self._number(text, "error") for text in found.values()])
