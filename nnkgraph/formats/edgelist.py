"""Edge list: one line per edge with source, target and weight."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from nnkgraph.formats._adjacency import edge_blocks
from nnkgraph.formats._edgelines import read_edges
from nnkgraph.formats._facts import fact_lines
from nnkgraph.formats._format import Format, unfit
from nnkgraph.formats._text import open_text, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import Answers, Graph
    from nnkgraph.formats._format import Extras, Note, Target
    from nnkgraph.formats._source import Source

_SEPARATORS = {".tsv": "\t", ".csv": ",", ".edgelist": " "}

# Readers of these two split at every separator and cut at every '#'.
_UNFIT = {
    "\t": re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\"'#]|^ | $|^$"),
    " ": re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\"'#]|\\s|^$"),
    ",": re.compile("[\x00\ud800-\udfff]"),
}
_NEEDS_QUOTES = re.compile('[,"\r\n]|^#|^\\s|\\s$|^$')


@dataclass(frozen=True, slots=True)
class EdgeList(Format):
    """Edge list, one ``source target weight`` a line (graphs)."""

    suffixes: ClassVar[tuple[str, ...]] = tuple(
        stem + packed for stem in _SEPARATORS for packed in ("", ".gz")
    )
    beside: ClassVar[tuple[str, ...]] = (
        "ids",
        "errors",
        "candidates",
        "bridges",
    )

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that would be split, cut or mistaken by a reader."""
        sep = _SEPARATORS[target.suffix.removesuffix(".gz")]
        better = ".graphml" if sep == "," else ".csv or .graphml"
        search = _UNFIT[sep].search
        for one in ids:
            if search(one):
                why = f"cannot be written to this format; write {better} instead"
                raise unfit(one, target, why)

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write each undirected edge once, from the node that comes first."""
        sep = _SEPARATORS[target.suffix.removesuffix(".gz")]
        names = _names(graph.ids, graph.nodes, sep)
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write("".join(f"# {line}\n" for line in fact_lines(graph)))
            write(f"# source{sep}target{sep}weight\n")
            for rows, cols, weights in edge_blocks(graph):
                parts = zip(rows, cols, weights, strict=True)
                write(
                    "".join(
                        f"{names[i]}{sep}{names[j]}{sep}{w!r}\n" for i, j, w in parts
                    )
                )

    def write_answers(
        self, stream: BinaryIO, answers: Answers, target: Target, /
    ) -> None:
        """Write a line per neighbor; a query without any has one line as well."""
        sep = _SEPARATORS[target.suffix.removesuffix(".gz")]
        a = answers.weights
        queries = _names(answers.query_ids, a.shape[0], sep)
        rows = _names(answers.ids, a.shape[1], sep)
        errors = None if answers.errors is None else answers.errors.tolist()
        head = sep.join(["query", "neighbor", "weight", "error"][: 4 if errors else 3])
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write(f"# {head}\n")
            for i, query in enumerate(queries):
                end = f"{sep}{errors[i]!r}\n" if errors else "\n"
                span = slice(a.indptr[i], a.indptr[i + 1])
                pairs = zip(
                    a.indices[span].tolist(), a.data[span].tolist(), strict=True
                )
                lines = [f"{query}{sep}{rows[j]}{sep}{w!r}{end}" for j, w in pairs]
                write("".join(lines) or f"{query}{sep}{sep}0{end}")

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read our own edge lists and those of other programs."""
        sep = _SEPARATORS[source.suffix.removesuffix(".gz")]
        with open_text(
            source, "", "edgelist", newline="" if sep == "," else None
        ) as text:
            return read_edges(text, sep, source.name, extras, note)


def _names(ids: Sequence[str] | None, count: int, sep: str) -> Sequence[str]:
    """Return what nodes are called in the file."""
    if ids is None:
        return [str(node) for node in range(count)]
    if sep != ",":
        return ids
    return [
        '"' + one.replace('"', '""') + '"' if _NEEDS_QUOTES.search(one) else one
        for one in ids
    ]


plugin: type[Format] = EdgeList
