"""The comment lines at the top of a text file that say what its graph is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import InputError
from nnkgraph.formats._extras import parse_provenance, provenance_text

if TYPE_CHECKING:
    from nnkgraph.data import Graph

TITLE = "nnkgraph graph"


@dataclass(slots=True)
class Facts:
    """What the comment lines said; a file of another program says nothing."""

    ours: bool = False
    nodes: int | None = None
    directed: bool | None = None
    ids: bool = False
    provenance: dict[str, Any] = field(default_factory=dict)

    def take(self, comment: str, name: str, line: int) -> None:
        """Take in one comment, without its mark."""
        text = comment.strip()
        if text == TITLE:
            self.ours = True
        key, colon, value = text.partition(":")
        if not (self.ours and colon):
            return
        value = value.strip()
        if key == "nodes":
            if not (value.isascii() and value.isdigit() and len(value) < 19):
                raise InputError(
                    f"{name}: line {line}: {value!r} is no number of nodes"
                )
            self.nodes = int(value)
        elif key in {"directed", "ids"}:
            if value not in {"true", "false"}:
                raise InputError(f"{name}: line {line}: {value!r} is not true or false")
            setattr(self, key, value == "true")
        elif key == "provenance":
            self.provenance = parse_provenance(value, f"{name}: line {line}")


def fact_lines(graph: Graph) -> list[str]:
    """Return the comments for a graph, without their mark."""
    lines = [
        TITLE,
        f"nodes: {graph.nodes}",
        f"directed: {'true' if graph.directed else 'false'}",
    ]
    if graph.ids is not None:
        lines.append("ids: true")
    return [*lines, f"provenance: {provenance_text(graph.provenance)}"]
