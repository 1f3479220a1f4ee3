"""Graphs that are given where features are asked for."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError
from nnkgraph.formats._facts import TITLE
from nnkgraph.formats._source import sniff

if TYPE_CHECKING:
    from nnkgraph.formats._source import Source

_ENDINGS = (".graphml", ".gexf", ".edgelist")
"""Names that no features have."""

_MARKS = {
    "edgelist": f"# {TITLE}".encode(),
    "mtx": f"% {TITLE}".encode(),
    "graphml": b'<key id="provenance" for="graph"',
    "gexf": b"<creator>nnkgraph</creator>",
}
"""What only files have that were written here."""


def not_features(name: str, *, ours: bool = True) -> InputError:
    """Return the error for a graph, which says who reads it."""
    what = "a graph that nnkgraph wrote" if ours else "a graph"
    return InputError(
        f"{name}: holds {what}, not features: name the file that it was built from; "
        "info, plot, report, convert, embed and propagate read graphs"
    )


def refuse_graph(source: Source, *, by_name: bool) -> None:
    """Refuse text that is a graph, by its first bytes or by its name."""
    head = source.head
    if sniff(head) == "gz":
        head = _unpacked(source)
    kind = sniff(head)
    mark = _MARKS.get(kind)
    ours = mark is not None and mark in head
    name = source.name.lower().removesuffix(".gz")
    named = by_name and name.endswith(_ENDINGS)
    if ours or named or kind in {"graphml", "gexf"}:
        raise not_features(source.name, ours=ours)


def _unpacked(source: Source) -> bytes:
    """Return the first bytes behind the compression; what is damaged is said later."""
    try:
        with source.open() as raw, gzip.GzipFile(fileobj=raw, mode="rb") as stream:
            return stream.read(len(source.head))
    except (EOFError, OSError, zlib.error):
        return b""
