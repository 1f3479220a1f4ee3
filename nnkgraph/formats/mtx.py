"""Matrix Market file, as scipy.io.mmread and many others read it.

Matrices of features have their rows as they stand. A folder of 10x Genomics, in which
such a file is genes x cells, has cells as rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, TextIO

import numpy as np

from nnkgraph.data import Features, SparseGram
from nnkgraph.errors import InputError
from nnkgraph.formats import _graphs, _tenx
from nnkgraph.formats._base import EXTRAS, Extras, Format, Note, Target, TextOptions
from nnkgraph.formats._choose import FOLDER
from nnkgraph.formats._graphs import EdgeTable, Facts, from_edges
from nnkgraph.runtime.arrays import check_fits
from nnkgraph.runtime.files import Source, open_text, show, sniff, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Graph

    Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Mtx(Format):
    """Matrix Market file, also in a folder of 10x Genomics (features, graphs)."""

    suffixes: ClassVar[tuple[str, ...]] = (".mtx", ".mtx.gz")
    sidecar: ClassVar[tuple[str, ...]] = EXTRAS

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read a matrix by its rows, or the cells of a folder."""
        from nnkgraph.formats.npz import sparse_features, sparse_rows

        name, ids = source.name, None
        with open_text(source, "mtx") as text:
            kind, field, symmetry = _words(text.readline(), name)
            similar = options.sparse == "similarities"
            if symmetry != "general" and not (similar and symmetry == "symmetric"):
                raise InputError(
                    f"{name}: line 1: a matrix of features is general, and this one is "
                    f"{show(symmetry)}, as graphs and similarities are"
                )
            sizes, line = _sizes(text, 3 if kind == "coordinate" else 2, name)
            if kind == "array":
                if symmetry != "general":
                    raise InputError(f"{name}: line 1: half an array is not read")
                values = _array(text, sizes, source, line)
                return Features.of(values, name=name, gaps=options.gaps)
            matrix = _coordinates(text, sizes, source, line, pattern=field == "pattern")
        if similar:
            return _similarities(matrix, name, symmetric=symmetry == "symmetric")
        if source.suffix == FOLDER and source.path is not None:
            kinds = _tenx.column_beside(source.path, ("features", "genes"), 2)
            cells = _tenx.column_beside(source.path, ("barcodes",), 0)
            matrix, ids = _tenx.named_cells(matrix, kinds, cells, options.note, name)
        else:
            n, d = matrix.shape
            options.note(
                f"{name}: rows are taken as they stand, {n} x {d}; a folder of 10x "
                "Genomics is named itself, and has cells as rows"
            )
        rows = sparse_rows(matrix, name)
        return sparse_features(rows, ids, name, options)

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


def _words(line: str, name: str) -> tuple[str, str, str]:
    """Return the form, the field and the symmetry that the first line says."""
    words = line.lower().split()
    forms = ["coordinate", "array"]
    if words[1:2] != ["matrix"] or len(words) != 5 or words[2] not in forms:
        raise InputError(f"{name}: line 1: a matrix, coordinate or array, is needed")
    fields = {"real", "integer", "double"}
    if words[3] not in fields | ({"pattern"} if words[2] == "coordinate" else set()):
        raise InputError(f"{name}: line 1: the field {show(words[3])!r} is not real")
    return words[2], words[3], words[4]


def _sizes(text: TextIO, count: int, name: str) -> tuple[list[int], int]:
    """Return the sizes behind all remarks, and the number of their line."""
    for number, line in enumerate(text, 2):
        if line.startswith("%") or not line.strip():
            continue
        words = line.split()
        if len(words) != count or not all(w.isascii() and w.isdigit() for w in words):
            raise InputError(f"{name}: line {number}: {count} sizes are needed")
        return [int(word[:19]) for word in words], number
    raise InputError(f"{name}: ends before the size of the matrix")


_BLOCK = 1 << 20
"""Lines that are turned into numbers at once."""

_PACKED = 1040
"""No byte of gzip can stand for more bytes than this."""


def _numbers(
    text: TextIO, sizes: list[int], count: int, width: int, source: Source, line: int
) -> Iterator[Any]:
    """Yield so many lines of numbers after a line, in blocks."""
    name, there = source.name, 0
    most = source.size * (_PACKED if sniff(source.head) == "gz" else 1)
    if 2 * width * count > most:  # a digit and a blank each
        raise InputError(
            f"{name}: line {line}: {count:,} entries do not fit into {source.size:,} "
            "bytes; is the file truncated?"
        )
    check_fits(16 * (count + max(sizes)), name, "the matrix")
    while lines := list(islice(text, _BLOCK)):
        try:
            # What has no numbers at all is no line to NumPy, which would warn.
            some = [one for one in lines if not one.isspace()]
            block = np.loadtxt(some, comments=None, ndmin=2) if some else None
            good = block is None or block.shape[1] == width
        except ValueError:
            good = False
        if not good:
            wrong = (at for at, one in enumerate(lines) if not _is_line(one, width))
            at = next(wrong, 0)
            raise InputError(
                f"{name}: line {line + at + 1}: {show(lines[at].strip()[:40])!r} is no "
                f"entry of {_ENTRIES[width]}"
            )
        line += len(lines)
        if block is not None:
            there += len(block)
            yield block
    if there != count:
        raise InputError(
            f"{name}: {count} entries are announced, but there are {there}; is the "
            "file truncated?"
        )


_ENTRIES = {1: "a number", 2: "row and column", 3: "row, column and number"}


def _is_line(line: str, width: int) -> bool:
    """Return whether a line is blank, or has so many numbers."""
    if line.isspace():
        return True
    try:
        return bool(np.loadtxt([line], comments=None, ndmin=2).shape[1] == width)
    except ValueError:
        return False


def _array(text: TextIO, sizes: list[int], source: Source, line: int) -> Any:
    """Return the values of an array, which stand column by column."""
    n, d = sizes
    blocks = list(_numbers(text, sizes, n * d, 1, source, line))
    if not blocks:
        return np.zeros((n, d))
    return np.concatenate(blocks).reshape((n, d), order="F")


def _coordinates(
    text: TextIO, sizes: list[int], source: Source, line: int, *, pattern: bool
) -> Any:
    """Return the entries as a matrix of scipy; what is there twice is added up."""
    from scipy.sparse import coo_array

    name, (n, d, count) = source.name, sizes
    kind = np.int32 if max(n, d) <= np.iinfo(np.int32).max else np.int64
    rows, columns, values = list[Any](), list[Any](), list[Any]()
    first, before = line, 0
    for block in _numbers(text, sizes, count, 2 if pattern else 3, source, line):
        for ends, size, found in ((block[:, 0], n, rows), (block[:, 1], d, columns)):
            wrong = ~((ends >= 1) & (ends <= size) & (ends == np.trunc(ends)))
            if wrong.any():
                at = int(wrong.argmax())
                raise InputError(
                    f"{name}: entry {before + at + 1} after line "
                    f"{first} (row {block[at, 0]:g}, column {block[at, 1]:g}) is "
                    f"outside of the {n} x {d} matrix"
                )
            found.append((ends - 1).astype(kind))
        values.append(np.ones(len(block)) if pattern else block[:, 2].copy())
        before += len(block)
    if not values:
        return coo_array((n, d))
    ends = np.concatenate(rows), np.concatenate(columns)
    return coo_array((np.concatenate(values), ends), (n, d))


def _similarities(matrix: Any, name: str, *, symmetric: bool) -> Features:
    """Return a square matrix as similarities."""
    n, d = matrix.shape
    if n != d:
        raise InputError(f"{name}: similarities are a square matrix, not {n} x {d}")
    if not np.isfinite(matrix.data).all():
        raise InputError(f"{name}: some similarities are not finite")
    if symmetric:
        apart = matrix.row != matrix.col
        ends = matrix.col[apart], matrix.row[apart]
        matrix += type(matrix)((matrix.data[apart], ends), (n, d))
    gram: Any = SparseGram.of(matrix)
    return Features(gram, None, name, str(gram.dtype))


def _banner(line: str, name: str) -> tuple[bool, bool]:
    form, field, symmetry = _words(line, name)
    if form != "coordinate":
        raise InputError(f"{name}: line 1: a matrix in coordinate form is needed")
    if symmetry not in {"general", "symmetric"}:
        raise InputError(
            f"{name}: line 1: the symmetry {show(symmetry)!r} is no graph's"
        )
    return field == "pattern", symmetry == "symmetric"


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
