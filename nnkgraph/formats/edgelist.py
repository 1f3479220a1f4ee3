"""Edge list: one line per edge with source, target and weight."""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO, ClassVar, TextIO

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats import _graphs
from nnkgraph.formats._base import EXTRAS, MADE, Extras, Format, Note, Target, unfit
from nnkgraph.formats._columns import about_rows
from nnkgraph.formats._graphs import EdgeTable, Facts, with_lengths
from nnkgraph.runtime.files import Source, open_text, show, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nnkgraph.data import Answers, FloatArray, Graph, IndexArray

    Row = tuple[int, list[str]]


TITLES = {("source", "target"), ("from", "to"), ("src", "dst")}


def _fill(table: EdgeTable, rows: Iterator[Row], name: str, *, ours: bool) -> None:
    """Take in all rows."""
    labels, number = table.numbers, table.numbers.setdefault
    put_source, put_target = table.source.append, table.target.append
    put_weight, put_line = table.weights.append, table.lines.append
    for line, fields in rows:
        try:
            source, target, *rest = fields
            (weight,) = rest or ("1",)
            value = float(weight)
        except ValueError as error:
            foreign = not (ours or table.lines)
            raise InputError(_complaint(name, line, fields, foreign=foreign)) from error
        put_source(number(source, len(labels)))
        put_target(number(target, len(labels)))
        put_weight(value)
        put_line(line)


def _read_edges(text: TextIO, sep: str, name: str, extras: Extras, note: Note) -> Graph:
    """Read edges, name the nodes and put the graph together."""
    facts, table = Facts(), EdgeTable()
    rows = _rows(text, sep, name, facts)
    first = next(rows, None)
    if first is not None:
        if not facts.ours and tuple(f.strip().lower() for f in first[1][:2]) in TITLES:
            note(
                f"{name}: line {first[0]} was taken as a header: {show(str(first[1]))}"
            )
        else:
            what = "" if facts.ours or sep == " " else about_rows(first[1])
            if what:
                line = f"{name}: line {first[0]}"
                raise InputError(
                    f"{line} says that these are {what}, not a graph: name the graph"
                )
            rows = itertools.chain([first], rows)
        _fill(table, rows, name, ours=facts.ours)
    labels = list(table.numbers)
    return named_graph(labels, table.arrays(), facts, extras, name, table.where)


def named_graph(
    labels: list[str],
    edges: _graphs.Edges,
    facts: Facts,
    extras: Extras,
    name: str,
    where: Callable[[int], str],
    lengths: FloatArray | None = None,
) -> Graph:
    """Put together edges between labels: names of nodes, or their numbers."""
    ids, places = _places(labels, facts, extras, name)
    source, target, weights = edges
    edges = places[source], places[target], weights
    n, directed = facts.nodes, bool(facts.directed)
    if n is None:
        n = int(places.max(initial=-1)) + 1 if ids is None else len(ids)
    adjacency, lengths = with_lengths(
        n, *edges, lengths, directed=directed, name=name, where=where
    )
    if lengths is not None:
        extras = replace(extras, distances=lengths)
    extras = replace(extras, ids=ids)
    return _graphs.checked(adjacency, extras, directed, facts.provenance, name)


def _rows(text: TextIO, sep: str, name: str, facts: Facts) -> Iterator[Row]:
    """Yield the fields of each line with its number, after the leading comments."""
    start, first = 0, ""
    for start, first in enumerate(text, 1):
        if not first.startswith("#"):
            break
        facts.take(first[1:], name, start)
    else:
        return
    lines = itertools.chain([first], text)
    if sep == ",":
        # Quoted ids may hold line breaks, so that a row may have several lines.
        reader = csv.reader(lines, strict=True)
        try:
            for fields in reader:
                if fields:
                    yield start - 1 + reader.line_num, fields
        except csv.Error as error:
            line = start - 1 + reader.line_num
            raise InputError(f"{name}: line {line}: {error}") from error
        return
    for number, row in enumerate(lines, start):
        if not row.startswith("#") and row.strip():
            yield number, row.split() if sep == " " else row.rstrip("\n").split(sep)


def _places(
    labels: list[str], facts: Facts, extras: Extras, name: str
) -> tuple[tuple[str, ...] | None, IndexArray]:
    """Return the ids, and for each label the row of its node."""
    if extras.ids is not None:
        rows = {one: row for row, one in enumerate(extras.ids)}
        unknown = next((one for one in labels if one not in rows), None)
        if unknown is not None:
            raise InputError(
                f"{name}: the file beside it knows no id '{show(unknown)}'"
            )
        return extras.ids, np.array([rows[one] for one in labels], np.int64)
    numbers = None if facts.ids else _numbers(labels)
    if numbers is not None:
        return None, numbers
    if facts.ours and not facts.ids:
        odd = next(one for one in labels if _numbers([one]) is None)
        raise InputError(f"{name}: '{show(odd)}' is no number of a node")
    if facts.nodes is not None and len(labels) != facts.nodes:
        raise InputError(
            f"{name}: {len(labels)} of {facts.nodes} nodes have edges; the names of "
            "the others are in the file .nnk.npz that was written beside it"
        )
    return tuple(labels), np.arange(len(labels), dtype=np.int64)


def _numbers(labels: list[str]) -> IndexArray | None:
    """Return labels as node numbers, or None where one is a name."""
    if all(one.isascii() and one.isdigit() and len(one) < 19 for one in labels):
        return np.array([int(one) for one in labels], np.int64)
    return None


def _complaint(name: str, line: int, fields: list[str], *, foreign: bool) -> str:
    """Say what is wrong with a line; a foreign file's first may be no edge at all."""
    count = len(fields)
    if count == 1:  # it may have another separator
        count = 1 + max(fields[0].count(mark) for mark in ";,\t")
    if foreign and count > 3:
        return (
            f"{name}: line {line} is no edge, which has a source, a target and a "
            f"weight: this looks like a table of features, and {MADE}"
        )
    if len(fields) not in {2, 3}:
        return (
            f"{name}: line {line}: {len(fields)} field(s) where source, target and "
            "weight are needed; is it another separator?"
        )
    hint = f"; a header begins with source and target, and {MADE}" if foreign else ""
    weight = show(fields[2][:40])
    return f"{name}: line {line}: the weight '{weight}' is not a number{hint}"


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
    sidecar: ClassVar[tuple[str, ...]] = EXTRAS

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
        names = _names(graph.ids, graph.n_nodes, sep)
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write("".join(f"# {line}\n" for line in _graphs.fact_lines(graph)))
            write(f"# source{sep}target{sep}weight\n")
            for block in _graphs.edge_blocks(graph):
                lines = (
                    f"{names[i]}{sep}{names[j]}{sep}{w!r}\n"
                    for i, j, w in zip(*block, strict=True)
                )
                write("".join(lines))

    def write_answers(
        self, stream: BinaryIO, answers: Answers, target: Target, /
    ) -> None:
        """Write a line per neighbor, the heaviest of each query first.

        A query without any has one line as well.
        """
        sep = _SEPARATORS[target.suffix.removesuffix(".gz")]
        a, values = answers.weights, _per_neighbor(answers)
        row = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
        near = values.get("distance", values["weight"])
        order = np.lexsort((a.indices, near, -a.data, row))
        columns = [one[order].tolist() for one in (a.indices, *values.values())]
        queries = _names(answers.query_ids, a.shape[0], sep)
        rows = _names(answers.ids, a.shape[1], sep)
        errors = None if answers.errors is None else answers.errors.tolist()
        names = ["query", "neighbor", *values]
        names[3:3] = ["error"] if errors else []
        nothing = sep * (len(values) - 1)
        with write_text(stream, packed=target.suffix.endswith(".gz")) as write:
            write(f"# {sep.join(names)}\n")
            for i, query in enumerate(queries):
                error = f"{sep}{errors[i]!r}" if errors else ""
                span = slice(a.indptr[i], a.indptr[i + 1])
                lines = []
                for j, weight, *others in zip(*(c[span] for c in columns), strict=True):
                    more = "".join(f"{sep}{one!r}" for one in others)
                    lines.append(f"{query}{sep}{rows[j]}{sep}{weight!r}{error}{more}\n")
                write("".join(lines) or f"{query}{sep}{sep}0{error}{nothing}\n")

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read our own edge lists and those of other programs."""
        sep = _SEPARATORS[source.suffix.removesuffix(".gz")]
        newline = "" if sep == "," else None
        with open_text(source, "", "edgelist", newline=newline) as text:
            return _read_edges(text, sep, source.name, extras, note)


def _per_neighbor(answers: Answers) -> dict[str, FloatArray]:
    """Return what a table says of every neighbor, in the order of the weights."""
    values = {"weight": answers.weights.data}
    if answers.distances is not None:
        values["distance"] = answers.distances.data
        if answers.provenance.get("metric") == "chord":
            values["cosine"] = 1 - answers.distances.data**2 / 2
    return values


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
