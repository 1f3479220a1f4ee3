"""NumPy archive: features, candidates, and graphs that scipy.sparse.load_npz reads."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, fields, replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import (
    Answers,
    Features,
    Graph,
    SparseGram,
    SparseRows,
    Updatable,
)
from nnkgraph.data.checks import check_ids
from nnkgraph.errors import InputError
from nnkgraph.formats import _base, _graphs
from nnkgraph.formats._base import Extras, Format, Note, Target, TextOptions
from nnkgraph.runtime import archive as archives
from nnkgraph.runtime.archive import REAL, Archive, open_archive, write_archive
from nnkgraph.runtime.arrays import check_fits, row_slices
from nnkgraph.runtime.files import Outputs, Source, open_source, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import coo_array, csr_array

    from nnkgraph.data import Candidates, IndexArray

_EMPTY, _EMPTY_SHARE = 10_000_000, 100
"""So many rows and columns need no values; beyond that, so many to a value."""


@dataclass(frozen=True, slots=True)
class Npz(Format):
    """NumPy archive (features, candidates, graphs as ``scipy.sparse`` writes them)."""

    suffixes: ClassVar[tuple[str, ...]] = (".npz",)
    binary: ClassVar[bool] = True
    has_items: ClassVar[bool] = True

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read the only matrix, or the one that the item names."""
        with open_archive(source) as archive:
            if _is_sparse(archive) and source.item is None:
                if options.sparse == "similarities":
                    gram: Any = gram_from_sparse(archive)
                    return Features(gram, None, source.name, str(gram.dtype))
                rows = rows_from_sparse(archive)
                ids = _ids(archive, rows.shape, options)
                return sparse_features(rows, ids, source.name, options)
            key = _pick(archive, source)
            x = archive.read(key)
            named = x.ndim > 0  # a single number has no rows to name
            ids = _ids(archive, x.shape, options, key) if named else None
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def read_column(self, source: Source, options: TextOptions, /) -> _base.Column:
        """Read the only list, or the one that the item names, and the ids beside it."""
        with open_archive(source) as archive:
            lists = [
                key
                for key, header in archive.headers.items()
                if len(header.shape) == 1 and header.dtype.kind in REAL + "US"
            ]
            key = source.item
            if key is None:
                others = [one for one in lists if one != "ids"]
                from nnkgraph.formats._columns import pick_column

                key = pick_column(others, source.name, "array", note=options.note)
            _require(archive, key)
            if key not in lists:
                raise InputError(
                    f"{source.name}: {show(key)!r} is no list of numbers or text: "
                    f"{archive.headers[key]}"
                )
            values = archive.read(key)
            return values, _ids(archive, values.shape, options, key)

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read what `write_graph` or ``scipy.sparse.save_npz`` wrote."""
        with open_archive(source) as archive:
            n, name = _square(archive), source.name
            ready = _ordered(archive, n)
            if ready is not None:
                return finished(archive, ready, read_extras(archive))
            edges, extras = _entries(archive, n, n), read_extras(archive)
            adjacency, lengths = _graphs.with_lengths(
                n,
                *edges,
                extras.distances,
                directed=True,
                name=name,
                where=lambda edge: f"entry {edge}",
            )
            return finished(archive, adjacency, replace(extras, distances=lengths))

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write so that ``scipy.sparse.load_npz`` gives the adjacency."""
        members = _sparse_members(graph.adjacency)
        write_archive(stream, members | graph_members(graph))

    def write_answers(
        self, stream: BinaryIO, answers: Answers, target: Target, /
    ) -> None:
        """Write so that ``scipy.sparse.load_npz`` gives queries x rows."""
        members = _sparse_members(answers.weights)
        far = None if answers.distances is None else answers.distances.data
        members |= extra_members(Extras(answers.ids, answers.errors, distances=far))
        if answers.query_ids is not None:
            members["query_ids"] = np.array(answers.query_ids, dtype=np.str_)
        members["provenance"] = np.array(_graphs.provenance_text(answers.provenance))
        write_archive(stream, members)

    def holds(self, source: Source, /) -> str:
        """Look at the members: graphs, candidates and answers have their own."""
        with open_archive(source) as archive:
            if "neighbors" in archive:
                return "candidates"
            return "answers" if "queries_sha256" in _about(archive) else "graph"

    def read_answers(self, source: Source, /) -> Answers:
        """Read what `write_answers` wrote."""
        with open_archive(source) as archive:
            name, (n, m) = source.name, _shape(archive)
            entries, extras = _inside(archive, n, m), read_extras(archive)
            weights, about = entries.tocsr(), _about(archive)
            order = np.lexsort((entries.col, entries.row))
            ids = archive.strings("query_ids") if "query_ids" in archive else None
        far, errors = extras.distances, extras.errors
        known = ((ids, n), (extras.ids, m), (errors, n), (far, entries.nnz))
        whole = len(entries.data) == weights.nnz
        if not whole or any(one is not None and len(one) != k for one, k in known):
            raise InputError(f"{name}: the answers to queries are damaged")
        numbers = [one for one in (entries.data, errors, far) if one is not None]
        if not all(v.dtype.kind == "f" and np.isfinite(v).all() for v in numbers):
            raise InputError(f"{name}: the answers have values that are no numbers")
        distances = None
        if far is not None:
            parts: Any = (far[order], weights.indices, weights.indptr)
            distances = type(weights)(parts, weights.shape)
        return Answers(weights, errors, ids, extras.ids, about, distances=distances)

    def describe_candidates(self, source: Source, /) -> _base.About:
        """Read ``ids`` and ``provenance``, where there are any."""
        with open_archive(source) as archive:
            rows = archive.headers[source.item or "neighbors"].shape[:1]
            return _own_ids(archive, sum(rows)), _about(archive)

    def read_candidates(self, source: Source, /) -> _base.Neighbors:
        """Read ``neighbors`` and ``distances``, or the array that the item names."""
        with open_archive(source) as archive:
            key = source.item or "neighbors"
            _require(archive, key)
            neighbors = archives.as_neighbors(archive.read(key), source.name)
            if source.item or "distances" not in archive:
                return neighbors, None
            values = archive.read("distances")
        return neighbors, archives.as_distances(values, neighbors, source.name)

    def write_candidates(
        self, stream: BinaryIO, candidates: Candidates, provenance: dict[str, Any], /
    ) -> None:
        """Write ``neighbors``, ``distances``, ``ids`` and ``provenance``."""
        members = {
            "neighbors": candidates.index,
            "distances": candidates.distance.astype(np.float64, copy=False),
            **extra_members(Extras(candidates.ids)),
            "provenance": np.array(_graphs.provenance_text(provenance)),
        }
        write_archive(stream, members)


def finished(archive: Archive, adjacency: csr_array, extras: Extras) -> Graph:
    """Return the graph of a matrix and of what an archive says besides."""
    name, directed = archive.name, None
    if "directed" in archive:
        if archive.headers["directed"].dtype.kind not in "biu":
            raise InputError(f"{name}: 'directed' is no truth value")
        directed = bool(archive.read("directed").any())
    directed = _graphs.is_directed(adjacency, directed, name)
    graph = _graphs.checked(adjacency, extras, directed, _about(archive), name)
    return replace(graph, updatable=_read_updatable(archive, graph.n_nodes))


def _about(archive: Archive) -> dict[str, Any]:
    """Return the provenance."""
    text = archive.text("provenance") if "provenance" in archive else "{}"
    return _graphs.parse_provenance(text, archive.name)


_UPDATABLE = "update_"
"""How the names of members begin that only updates need."""


def _updatable_members(kept: Updatable | None) -> dict[str, Any]:
    """Return what updates need as arrays to be written."""
    if kept is None:
        return {}
    every = {_UPDATABLE + one.name: getattr(kept, one.name) for one in fields(kept)}
    return {key: value for key, value in every.items() if value is not None}


def _read_updatable(archive: Archive, nodes: int) -> Updatable | None:
    """Read what `_updatable_members` wrote, and check it: compiled code trusts it."""
    names = [one.name for one in fields(Updatable)]
    there = {one for one in names if _UPDATABLE + one in archive}
    if not there:
        return None
    try:
        kept = Updatable(**{one: archive.read(_UPDATABLE + one) for one in there})
    except TypeError as error:
        raise InputError(f"{archive.name}: lacks what updates need: {error}") from error
    (n, k), first = kept.index.shape[:2], kept.first
    kinds = {"index": "i", "first": "i", "searched": "i"}
    shapes: dict[str, Any] = dict.fromkeys(("index", "distance", "weights"), (n, k))
    shapes |= dict.fromkeys(("errors", "certificate"), (n,))
    shapes |= {"first": (nodes,), "searched": ()}
    sane = (first is not None or n == nodes) and k < max(n, 2)
    for one in there:
        values = getattr(kept, one)
        sane = sane and values.shape == shapes[one]
        sane = sane and values.dtype.kind == kinds.get(one, "f")
    for rows in row_slices(n if sane else 0, 64 * max(1, k)):
        index, weights = kept.index[rows], kept.weights[rows]
        inside = (index >= 0) & (index < n)
        sane = sane and bool(inside.all() and (weights >= 0).all())
        sane = sane and bool(np.isfinite(weights).all())
    if sane and first is not None:
        every = np.arange(nodes)
        sane = bool(((first >= 0) & (first <= every)).all())
        sane = sane and bool((first[first] == first).all())
        distinct = int((first == every).sum())
        sane = sane and n in {distinct, nodes}
    if not sane:
        raise InputError(f"{archive.name}: what updates need is damaged")
    return kept


def _sparse_members(a: csr_array) -> dict[str, Any]:
    """Return a matrix as ``scipy.sparse.save_npz`` would write it."""
    dtype = archives.index_dtype(max(a.shape), a.nnz)
    return {
        "format": np.array(b"csr"),
        "shape": np.array(a.shape, np.int64),
        "data": a.data.astype(np.float64, copy=False),
        "indices": a.indices.astype(dtype, copy=False),
        "indptr": a.indptr.astype(dtype, copy=False),
        "_is_array": np.array(True),
    }


def graph_members(graph: Graph) -> dict[str, Any]:
    """Return all but the edges of a graph as arrays to be written."""
    members = extra_members(Extras(*(getattr(graph, one) for one in _base.EXTRAS)))
    members["directed"] = np.array(graph.directed)
    text = _graphs.provenance_text(graph.provenance)
    # NumPy's text takes four bytes a character: too many where components are in it.
    long = graph.provenance.get("pca") is not None
    members["provenance"] = np.array(text.encode() if long else text)
    return members | _updatable_members(graph.updatable)


_EXTRAS = dict(zip(_base.EXTRAS, ("U", "f8", "i4", "i8", "f8"), strict=True))


def extra_members(extras: Extras) -> dict[str, Any]:
    """Return what a graph carries besides its edges as arrays to be written."""
    found = {key: getattr(extras, key) for key in _EXTRAS}
    return {
        key: np.asarray(value, _EXTRAS[key])
        for key, value in found.items()
        if value is not None
    }


def read_extras(archive: Archive) -> Extras:
    """Read what `extra_members` wrote; it is checked elsewhere."""
    arrays = (archive.read(key) if key in archive else None for key in _base.EXTRAS[1:])
    return Extras(archive.strings("ids") if "ids" in archive else None, *arrays)


def _pick(archive: Archive, source: Source) -> str:
    """Return the name of the array with the features."""
    if _is_sparse(archive):
        raise InputError(f"{source.name}: holds a sparse matrix; leave out the item")
    if source.item is not None:
        _require(archive, source.item)
        return source.item
    if "edge_index" in archive:
        raise _graphs.not_features(source.name, ours="provenance" in archive)
    matrices = [
        key
        for key, header in archive.headers.items()
        if len(header.shape) == 2 and header.dtype.kind in REAL
    ]
    from nnkgraph.formats._columns import pick_matrix

    return pick_matrix(matrices, source.name, _contents(archive))


def _ids(
    archive: Archive, shape: tuple[int, ...], options: TextOptions, used: str = ""
) -> tuple[str, ...] | None:
    """Return the names of rows from an array that is not `used` for something else."""
    found = dict[str, Any]()
    for key in _base.NAMES if shape[0] else ():
        header = archive.headers.get(key)
        if key == used or header is None:
            continue
        if header.shape == shape[:1] and header.dtype.kind in "iuUS":
            text = header.dtype.kind in "US"
            read = archive.strings if text else archive.read
            found[key] = functools.partial(read, key)
        elif key == _base.NAMES[0] and not options.named:
            options.note(f"{archive.name}: {key!r} are no row names: {header}")
    return _base.row_names(found, shape, archive.name, options)


def _own_ids(archive: Archive, n: int) -> tuple[str, ...] | None:
    """Return the names of rows that were written here."""
    header = archive.headers.get(_base.NAMES[0])
    text = header is not None and header.dtype.kind in "US"
    there = text and header is not None and header.shape == (n,)
    return archive.strings(_base.NAMES[0]) if there else None


def _is_sparse(archive: Archive) -> bool:
    keys = archive.headers.keys()
    return "format" in archive and bool(keys & {"indptr", "row", "offsets"})


def _require(archive: Archive, key: str) -> None:
    if key not in archive:
        raise InputError(
            f"{archive.name}: there is no array {show(key)!r} inside; it holds "
            f"{_contents(archive)}"
        )


def _contents(archive: Archive) -> str:
    parts = [f"{show(key)} ({header})" for key, header in archive.headers.items()]
    return ", ".join(parts) or "no arrays"


def gram_from_sparse(archive: Archive) -> SparseGram:
    """Build similarities or distances from what ``scipy.sparse.save_npz`` wrote."""
    n = _square(archive)
    found = _inside(archive, n, n)
    wrong = ~np.isfinite(found.data)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{archive.name}: entry {at} (row {found.row[at]}, column {found.col[at]}, "
            f"value {found.data[at]:g}) is no finite number"
        )
    return SparseGram.of(found)


def rows_from_sparse(archive: Archive) -> SparseRows:
    """Build a matrix of features from what ``scipy.sparse.save_npz`` wrote."""
    if "directed" in archive or "provenance" in archive:
        raise _graphs.not_features(archive.name)
    return sparse_rows(_inside(archive, *_shape(archive)), archive.name)


def _inside(archive: Archive, n: int, d: int) -> coo_array:
    """Return a sparse matrix once none of its entries is outside of it."""
    from scipy.sparse import coo_array

    rows, cols, data = _entries(archive, n, d)
    wrong = (rows < 0) | (rows >= n) | (cols < 0) | (cols >= d)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{archive.name}: entry {at} (row {rows[at]}, column {cols[at]}) is outside"
            f" of the {n} x {d} matrix"
        )
    return coo_array((data, (rows, cols)), (n, d))


def sparse_features(
    rows: SparseRows, ids: Sequence[str] | None, name: str, options: TextOptions
) -> Features:
    """Return sparse features as they are, or dense where they have to be."""
    if ids is not None:
        ids = check_ids(ids, rows, name)  # type: ignore[arg-type]
    if options.sparse != "dense":
        return Features(rows, ids, name)
    n, d = rows.shape
    check_fits(16 * n * d, name, f"the dense form of {n:,} x {d:,} sparse features")
    features = Features.of(rows.dense(), ids=ids, name=name)
    # The hash is that of the same matrix, whether it stays sparse or not.
    vars(features)["sha256"] = rows.sha256()
    return features


def sparse_rows(matrix: coo_array, name: str) -> SparseRows:
    """Return a matrix of features; one that no memory holds, or a graph's, is refused.

    Extents that so few values do not have are not believed.
    """
    n, d = matrix.shape
    check_fits(32 * (n + d), name, f"a sparse matrix of {n:,} x {d:,}")
    if max(n, d) > max(_EMPTY, _EMPTY_SHARE * matrix.nnz):
        raise InputError(
            f"{name}: a matrix of {n:,} x {d:,} with {matrix.nnz:,} values is not "
            "believed: leave out empty rows and columns"
        )
    x = SparseRows.of(matrix, name, copy=False)
    if len(x) == x.columns > 1 and _graphs.is_symmetric(x.matrix()):
        raise InputError(
            f"{name}: holds a sparse matrix that is symmetric, as graphs and "
            "similarities are, not features (`kernel='precomputed'` takes similarities)"
        )
    return x


def _ordered(archive: Archive, n: int) -> csr_array | None:
    """Return a graph's matrix as it stands, where it is in the form written here.

    Any other is read entry by entry, which finds and says what is wrong with it.
    """
    from scipy.sparse import csr_array

    keys = ("data", "indices", "indptr")
    if any(key not in archive for key in keys) or archive.text("format") != "csr":
        return None
    heads = [archive.headers[key] for key in keys]
    kinds = [one.dtype.kind + str(len(one.shape)) for one in heads]
    if kinds != ["f1", "i1", "i1"] or heads[0].dtype != np.float64:
        return None
    data, columns, ends = (archive.read(key) for key in keys)
    _graphs.check_nodes(n, archive.name, len(data))
    ours = len(ends) == n + 1 and ends[0] == 0 and ends[-1] == len(data) == len(columns)
    ours = ours and not (np.diff(ends) < 0).any()
    for some in row_slices(len(data) if ours else 0, 64):
        before = slice(max(some.start - 1, 0), some.stop)
        values, line = data[some], columns[before]
        falls = before.start + 1 + np.flatnonzero(line[1:] <= line[:-1])
        starts = ends[np.searchsorted(ends, falls)]
        inside = line.min(initial=0) >= 0 and line.max(initial=0) < n
        ours = ours and inside and np.array_equal(starts, falls)
        ours = ours and bool((np.isfinite(values) & (values != 0)).all())
    if not ours:
        return None
    dtype = archives.index_dtype(n, len(data))
    parts = (one.astype(dtype, copy=False) for one in (columns, ends))
    matrix = csr_array((data, *parts), (n, n))
    return None if matrix.diagonal().any() else matrix


def _entries(archive: Archive, n: int, d: int) -> _graphs.Edges:
    """Return the rows, columns and values of a sparse matrix."""
    name, kind = archive.name, archive.text("format")
    keys = {"coo": ("row", "col")}.get(kind, ("indices", "indptr"))
    if kind not in {"csr", "csc", "coo"}:
        raise InputError(f"{name}: sparse format {kind!r}; save it as csr, csc or coo")
    if any(key not in archive for key in ("data", *keys)):
        raise InputError(f"{name}: the sparse matrix lacks one of data, {keys}")
    data = archive.read("data")
    if data.ndim != 1 or data.dtype.kind not in REAL:
        raise InputError(f"{name}: the values are no list of real numbers")
    first, second = _integers(archive, keys[0]), _integers(archive, keys[1])
    if kind == "coo":
        rows, cols = first, second
    else:
        lines, ends = n if kind == "csr" else d, [0, len(data)]
        if len(second) != lines + 1 or second[[0, -1]].tolist() != ends:
            what = f"{lines} rows and {len(data)} entries"
            raise InputError(f"{name}: 'indptr' does not fit {what}")
        if (np.diff(second) < 0).any():
            raise InputError(f"{name}: 'indptr' decreases")
        rows, cols = np.repeat(np.arange(lines), np.diff(second)), first
        if kind == "csc":
            rows, cols = cols, rows
    if not len(rows) == len(cols) == len(data):
        raise InputError(f"{name}: the parts of the sparse matrix differ in length")
    # Infinity is refused later, with its place.
    with np.errstate(over="ignore", invalid="ignore"):
        return rows, cols, data.astype(np.float64)


def _shape(archive: Archive) -> tuple[int, int]:
    if "format" not in archive or "shape" not in archive:
        raise InputError(
            f"{archive.name}: not a sparse matrix as scipy.sparse.save_npz writes it "
            f"for a graph; {_base.MADE}"
        )
    header = archive.headers["shape"]
    if header.shape != (2,) or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: the matrix has no two extents")
    n, m = archive.read("shape").tolist()
    if n < 0 or m < 0:
        raise InputError(f"{archive.name}: the matrix has impossible extents")
    return n, m


def _square(archive: Archive) -> int:
    n, m = _shape(archive)
    if n != m:
        raise InputError(
            f"{archive.name}: the matrix has to be square; this one is {n} x {m}"
        )
    _graphs.check_nodes(n, archive.name)
    return int(n)


def _integers(archive: Archive, key: str) -> IndexArray:
    header = archive.headers[key]
    if len(header.shape) != 1 or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: {key!r} is no list of integers")
    return archive.read(key).astype(np.int64)


def write_sidecar(
    outputs: Outputs, path: str, stream: Any, graph: Graph, fields: tuple[str, ...]
) -> None:
    """Write the fields that a graph has beside it, or remove a file out of date."""
    target = os.path.realpath(path) + _base.SIDECAR
    members = extra_members(Extras(**{one: getattr(graph, one) for one in fields}))
    if not members:
        outputs.remove(target)
        return
    stream.seek(0)
    members = {"sha256": np.array(file_digest(stream, "sha256").hexdigest()), **members}
    write_archive(outputs.open(target), members)


def read_sidecar(source: Source, note: Note) -> Extras:
    """Read the file beside a graph; an absent or foreign one holds nothing."""
    if source.path is None:
        return Extras()
    # A link may stand beside its own file, or beside that of what it points to.
    places = dict.fromkeys([source.path, os.path.realpath(source.path)])
    for path in filter(os.path.isfile, (one + _base.SIDECAR for one in places)):
        try:
            with open_archive(open_source(path)) as archive:
                wanted = archive.text("sha256") if "sha256" in archive else ""
                with Path(source.path).open("rb") as stream:
                    digest = file_digest(stream, "sha256").hexdigest()
                if wanted == digest:
                    return read_extras(archive)
        except InputError as error:
            note(f"{error}; ignored")
        else:
            note(f"{show(path)}: does not belong to {source.name}; ignored")
    return Extras()


plugin: type[Format] = Npz
