"""Reading GraphML."""

from __future__ import annotations

from nnkgraph.formats._xml import XmlReader


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
