"""NumPy archive: features, candidates, and graphs that scipy.sparse.load_npz reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.data import Features, Graph
from nnkgraph.errors import InputError
from nnkgraph.formats._base import Extras, Format
from nnkgraph.formats._columns import pick_column
from nnkgraph.formats._graphs import (
    checked,
    is_directed,
    not_features,
    parse_provenance,
    provenance_text,
)
from nnkgraph.formats._sparsefile import (
    from_sparse,
    gram_from_sparse,
    rows_from_sparse,
    sparse_features,
)
from nnkgraph.runtime.archive import (
    REAL,
    Archive,
    as_distances,
    as_neighbors,
    index_dtype,
    open_archive,
    write_archive,
)
from nnkgraph.runtime.files import show

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data import Answers, Candidates, FloatArray, IndexArray
    from nnkgraph.formats._base import Note, Target, TextOptions
    from nnkgraph.runtime.files import Source


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
                ids = _ids(archive, len(rows), options)
                return sparse_features(rows, ids, source.name, options)
            key = _pick(archive, source)
            x = archive.read(key)
            named = x.ndim > 0 and key != "ids"  # a single number has no rows to name
            ids = _ids(archive, len(x), options) if named else None
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def read_column(
        self, source: Source, options: TextOptions, /
    ) -> tuple[NDArray[Any], tuple[str, ...] | None]:
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
                key = pick_column(others, source.name, "array")
                if len(others) > 1:
                    options.note(f"{source.name}: labels are in {show(key)!r}")
            _require(archive, key)
            if key not in lists:
                raise InputError(
                    f"{source.name}: {show(key)!r} is no list of numbers or text: "
                    f"{archive.headers[key]}"
                )
            values = archive.read(key)
            ids = archive.strings("ids") if {key, "ids"} <= set(lists) else None
        return values, ids if ids and len(ids) == len(values) != 0 else None

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read what `write_graph` or ``scipy.sparse.save_npz`` wrote."""
        del extras, note
        with open_archive(source) as archive:
            return finished(archive, from_sparse(archive))

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write so that ``scipy.sparse.load_npz`` gives the adjacency."""
        del target
        members = _sparse_members(graph.adjacency)
        extras = Extras(graph.ids, graph.errors, graph.candidates, graph.bridges)
        members |= extra_members(extras)
        members["directed"] = np.array(graph.directed)
        members["provenance"] = np.array(provenance_text(graph.provenance))
        write_archive(stream, members)

    def write_answers(
        self, stream: BinaryIO, answers: Answers, target: Target, /
    ) -> None:
        """Write so that ``scipy.sparse.load_npz`` gives queries x rows."""
        del target
        members = _sparse_members(answers.weights)
        members |= extra_members(Extras(answers.ids, answers.errors))
        if answers.query_ids is not None:
            members["query_ids"] = np.array(answers.query_ids, dtype=np.str_)
        members["provenance"] = np.array(provenance_text(answers.provenance))
        write_archive(stream, members)

    def read_candidates(
        self, source: Source, /
    ) -> tuple[IndexArray, FloatArray | None]:
        """Read ``neighbors`` and ``distances``, or the array that the item names."""
        with open_archive(source) as archive:
            key = source.item or "neighbors"
            _require(archive, key)
            neighbors = as_neighbors(archive.read(key), source.name)
            if source.item or "distances" not in archive:
                return neighbors, None
            distances = as_distances(archive.read("distances"), neighbors, source.name)
        return neighbors, distances

    def write_candidates(
        self, stream: BinaryIO, candidates: Candidates, provenance: dict[str, Any], /
    ) -> None:
        """Write ``neighbors``, ``distances`` and ``provenance``."""
        members = {
            "neighbors": candidates.index,
            "distances": candidates.distance.astype(np.float64, copy=False),
            "provenance": np.array(provenance_text(provenance)),
        }
        write_archive(stream, members)


def finished(archive: Archive, adjacency: csr_array) -> Graph:
    """Return the graph of a matrix and of what an archive says besides."""
    name = archive.name
    extra = read_extras(archive)
    directed = None
    if "directed" in archive:
        if archive.headers["directed"].dtype.kind not in "biu":
            raise InputError(f"{name}: 'directed' is no truth value")
        directed = bool(archive.read("directed").any())
    text = archive.text("provenance") if "provenance" in archive else "{}"
    directed = is_directed(adjacency, directed, name)
    return checked(adjacency, extra, directed, parse_provenance(text, name), name)


def _sparse_members(a: csr_array) -> dict[str, Any]:
    """Return a matrix as ``scipy.sparse.save_npz`` would write it."""
    dtype = index_dtype(max(a.shape), a.nnz)
    return {
        "format": np.array(b"csr"),
        "shape": np.array(a.shape, np.int64),
        "data": a.data.astype(np.float64, copy=False),
        "indices": a.indices.astype(dtype, copy=False),
        "indptr": a.indptr.astype(dtype, copy=False),
        "_is_array": np.array(True),
    }


def extra_members(extras: Extras) -> dict[str, Any]:
    """Return what a graph carries besides its edges as arrays to be written."""
    members: dict[str, Any] = {}
    if extras.ids is not None:
        members["ids"] = np.array(extras.ids, dtype=np.str_)
    if extras.errors is not None:
        members["errors"] = extras.errors.astype(np.float64, copy=False)
    if extras.candidates is not None:
        members["candidates"] = extras.candidates.astype(np.int32, copy=False)
    if extras.bridges is not None:
        members["bridges"] = extras.bridges.astype(np.int64, copy=False)
    return members


def read_extras(archive: Archive) -> Extras:
    """Read what `extra_members` wrote; it is checked elsewhere."""
    return Extras(
        archive.strings("ids") if "ids" in archive else None,
        archive.read("errors") if "errors" in archive else None,
        archive.read("candidates") if "candidates" in archive else None,
        archive.read("bridges") if "bridges" in archive else None,
    )


def _pick(archive: Archive, source: Source) -> str:
    """Return the name of the array with the features."""
    if _is_sparse(archive):
        raise InputError(f"{source.name}: holds a sparse matrix; leave out the item")
    if source.item is not None:
        _require(archive, source.item)
        return source.item
    if "edge_index" in archive:
        raise not_features(source.name, ours="provenance" in archive)
    matrices = [
        key
        for key, header in archive.headers.items()
        if len(header.shape) == 2 and header.dtype.kind in REAL
    ]
    if len(matrices) == 1:
        return matrices[0]
    if not matrices:
        raise InputError(
            f"{source.name}: there is no matrix inside; it holds {_contents(archive)}"
        )
    raise InputError(
        f"{source.name}: there are several matrices inside; name one as "
        f"FILE::{show(matrices[0])}: {_contents(archive)}"
    )


def _ids(archive: Archive, n: int, options: TextOptions) -> tuple[str, ...] | None:
    """Return the names of the rows, where there are any."""
    if "ids" not in archive:
        return None
    header = archive.headers["ids"]
    if header.shape == (n,) and header.dtype.kind in "US":
        return archive.strings("ids")
    options.note(f"{archive.name}: 'ids' are no row names: {header}")
    return None


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


plugin: type[Format] = Npz
