"""Matrix Market coordinate file, as scipy.io.mmread and many others read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from nnkgraph.errors import InputError
from nnkgraph.formats import _graphs
from nnkgraph.formats._base import EXTRAS, Extras, Format, Note, Target
from nnkgraph.formats._graphs import EdgeTable, Facts, from_edges
from nnkgraph.runtime.files import Source, open_text, show, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Graph

    Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Mtx(Format):
    """Matrix Market coordinate file (graphs)."""

    suffixes: ClassVar[tuple[str, ...]] = (".mtx", ".mtx.gz")
    sidecar: ClassVar[tuple[str, ...]] = EXTRAS

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write a symmetric matrix by its lower triangle, a directed one in full."""
        kind = "general" if graph.directed else "symmetric"
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write(f"%%MatrixMarket matrix coordinate real {kind}\n")
            write("".join(f"% {line}\n" for line in _graphs.fact_lines(graph)))
            write(f"{graph.n_nodes} {graph.n_nodes} {graph.n_edges}\n")
            for rows, cols, weights in _graphs.edge_blocks(graph):
                if not graph.directed:
                    rows, cols = cols, rows  # noqa: PLW2901 - the lower triangle
                parts = zip(rows, cols, weights, strict=True)
                write("".join(f"{i + 1} {j + 1} {w!r}\n" for i, j, w in parts))

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read a square matrix of real numbers."""
        name, facts = source.name, Facts()
        with open_text(source, "mtx") as text:
            lines = enumerate(text, 1)
            pattern, symmetric = _banner(next(lines)[1], name)
            n, count, first = _size(lines, facts, name)
            rows, cols, weights = _entries(lines, count, name, pattern=pattern)

        def where(entry: int) -> str:
            return f"entry {entry + 1} after line {first}"

        edges, directed = (rows - 1, cols - 1, weights), not symmetric
        adjacency = from_edges(n, *edges, directed=directed, name=name, where=where)
        directed = _graphs.is_directed(adjacency, facts.directed, name)
        if facts.nodes not in {None, n}:
            raise InputError(f"{name}: {facts.nodes} nodes, but a matrix of {n} rows")
        if facts.ids and extras.ids is None:
            note(f"{name}: the ids are in a file .nnk.npz that is not beside it")
        return _graphs.checked(adjacency, extras, directed, facts.provenance, name)


def _banner(line: str, name: str) -> tuple[bool, bool]:
    words = line.lower().split()
    if words[1:3] != ["matrix", "coordinate"] or len(words) != 5:
        raise InputError(f"{name}: line 1: a matrix in coordinate form is needed")
    if words[3] not in {"real", "integer", "double", "pattern"}:
        raise InputError(f"{name}: line 1: the field {show(words[3])!r} is not real")
    if words[4] not in {"general", "symmetric"}:
        raise InputError(
            f"{name}: line 1: the symmetry {show(words[4])!r} is no graph's"
        )
    return words[3] == "pattern", words[4] == "symmetric"


def _size(lines: Iterator[Line], facts: Facts, name: str) -> tuple[int, int, int]:
    """Return the number of nodes, of entries, and of the line that said so."""
    for number, line in lines:
        if line.startswith("%"):
            facts.take(line[1:], name, number)
        elif line.strip():
            words = line.split()
            if len(words) != 3 or not all(w.isascii() and w.isdigit() for w in words):
                raise InputError(f"{name}: line {number}: three sizes are needed")
            n, m, count = (int(word[:19]) for word in words)
            if n != m:
                raise InputError(f"{name}: a graph's matrix is square, not {n} x {m}")
            _graphs.check_nodes(n, name)
            return n, count, number
    raise InputError(f"{name}: ends before the size of the matrix")


def _entries(
    lines: Iterator[Line], count: int, name: str, *, pattern: bool
) -> _graphs.Edges:
    table = EdgeTable()
    rows, cols, weights = table.source, table.target, table.weights
    for number, line in lines:
        words = line.split()
        if not words:
            continue
        try:
            row, col, *rest = words
            (weight,) = rest or (["1"] if pattern else [])
            rows.append(int(row))
            cols.append(int(col))
            weights.append(float(weight))
        except (ValueError, OverflowError) as error:
            raise InputError(
                f"{name}: line {number}: {show(line.strip()[:40])!r} is no entry "
                "of row, column and number"
            ) from error
    if len(weights) != count:
        raise InputError(
            f"{name}: {count} entries are announced, but there are {len(weights)}; is "
            "the file truncated?"
        )
    return table.arrays()


plugin: type[Format] = Mtx
