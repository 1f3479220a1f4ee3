"""Graphs in files: edges, the checked adjacency matrix, and what is said about it."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nnkgraph.data import SCHEMA, FloatArray, Graph, IndexArray
from nnkgraph.errors import InputError
from nnkgraph.runtime.archive import index_dtype
from nnkgraph.runtime.arrays import check_fits, row_slices
from nnkgraph.runtime.files import Source, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.formats._base import Extras

    Edges = tuple[IndexArray, IndexArray, FloatArray]  # sources, targets and weights


def checked(
    adjacency: csr_array,
    extras: Extras,
    directed: bool,
    provenance: dict[str, Any],
    name: str,
) -> Graph:
    """Return the graph, once everything in it fits together."""
    n = adjacency.shape[0]
    ids, errors, candidates = extras.ids, extras.errors, extras.candidates
    if ids is not None:
        if len(ids) != n:
            raise InputError(f"{name}: {len(ids)} ids for {n} nodes")
        if len(set(ids)) != n:
            raise InputError(f"{name}: two nodes have the same id")
    if errors is not None:
        if errors.shape != (n,) or errors.dtype.kind not in "iuf":
            raise InputError(f"{name}: 'errors' is not one number per node")
        with np.errstate(over="ignore", invalid="ignore"):
            errors = errors.astype(np.float64, copy=False)
        if not np.isfinite(errors).all():
            raise InputError(f"{name}: 'errors' has values that are no finite number")
    if candidates is not None:
        good = candidates.ndim == 2 and candidates.dtype.kind in "iu"
        if not good or len(candidates) != n:
            raise InputError(f"{name}: 'candidates' is not one row of numbers per node")
        if candidates.size and not (candidates.min() >= -1 and candidates.max() < n):
            raise InputError(f"{name}: 'candidates' names nodes that do not exist")
        candidates = candidates.astype(np.int32, copy=False)
    known = errors, candidates, _checked_bridges(extras, n, name)
    lengths = _checked_lengths(extras, adjacency, directed, name)
    return Graph(adjacency, ids, directed, *known, provenance, distances=lengths)


def _checked_lengths(
    extras: Extras, a: csr_array, directed: bool, name: str
) -> FloatArray | None:
    lengths = extras.distances
    if lengths is None:
        return None
    if lengths.shape != (a.nnz,) or lengths.dtype.kind not in "iuf":
        raise InputError(f"{name}: 'distances' is not one number per edge")
    lengths = lengths.astype(np.float64, copy=False)
    if not (np.isfinite(lengths) & (lengths >= 0)).all():
        raise InputError(f"{name}: 'distances' has values that are no distances")
    there: Any = (lengths, a.indices, a.indptr)
    if not (directed or is_symmetric(type(a)(there, a.shape))):
        raise InputError(f"{name}: 'distances' are not the same from both sides")
    return lengths


def _checked_bridges(extras: Extras, n: int, name: str) -> IndexArray | None:
    bridges = extras.bridges
    if bridges is None:
        return None
    if bridges.ndim != 2 or bridges.shape[1] != 2 or bridges.dtype.kind not in "iu":
        raise InputError(f"{name}: 'bridges' is not two nodes per edge")
    if bridges.size and not (bridges.min() >= 0 and bridges.max() < n):
        raise InputError(f"{name}: 'bridges' names nodes that do not exist")
    return bridges.astype(np.int64, copy=False)


def provenance_text(provenance: dict[str, Any]) -> str:
    """Return provenance as one line of ASCII, equal for equal values."""
    return json.dumps(provenance, sort_keys=True, allow_nan=False)


def parse_provenance(text: str, name: str) -> dict[str, Any]:
    """Return provenance as it was written; what later versions mean is not guessed."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: the provenance is damaged: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{name}: the provenance is damaged: not an object")
    schema = value.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(
            f"{name}: was written by a later version of nnkgraph (schema {schema}; "
            f"this one reads up to {SCHEMA}): update nnkgraph"
        )
    return value


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number that JSON knows")


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
        f"nodes: {graph.n_nodes}",
        f"directed: {'true' if graph.directed else 'false'}",
    ]
    if graph.ids is not None:
        lines.append("ids: true")
    return [*lines, f"provenance: {provenance_text(graph.provenance)}"]


_ENDINGS = (".graphml", ".gexf", ".edgelist")  # names that no features have
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


TEXT_BYTES = 512  # what a node or an edge takes while it becomes text
_LONELY, _LONELY_SHARE = 4_000_000, 100
"""So many nodes need no edges; beyond that, so many to an edge are believed."""


class EdgeTable:
    """Edges between nodes that have names, as they are met in a file."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """What counts for a name in `source` and `target`."""

        self.source, self.target = array("q"), array("q")
        self.weights, self.lines = array("d"), array("q")
        self.distances = array("d")
        """Of all edges; those of some are no use."""

    def number(self, name: str) -> int:
        """Return the number of a name; a new one gets the next."""
        return self.numbers.setdefault(name, len(self.numbers))

    def arrays(self) -> Edges:
        """Return the edges so far."""
        ends = (
            np.frombuffer(self.source, np.int64),
            np.frombuffer(self.target, np.int64),
        )
        return *ends, np.frombuffer(self.weights, np.float64)

    def lengths(self) -> FloatArray | None:
        """Return how long the edges are, where all of them say it."""
        found = np.frombuffer(self.distances, np.float64)
        return found if len(found) and len(found) == len(self.weights) else None

    def where(self, edge: int) -> str:
        """Return where an edge stands in the file."""
        return f"line {self.lines[edge]}"


def from_edges(
    n: int,
    source: IndexArray,
    target: IndexArray,
    weights: FloatArray,
    *,
    directed: bool,
    name: str,
    where: Callable[[int], str],
) -> csr_array:
    """Build an adjacency matrix from a list of edges, each given once.

    See `with_lengths`, which also puts how long they are into the order of its entries.
    """
    edges = source, target, weights, None
    return with_lengths(n, *edges, directed=directed, name=name, where=where)[0]


def with_lengths(
    n: int,
    source: IndexArray,
    target: IndexArray,
    weights: FloatArray,
    lengths: FloatArray | None,
    *,
    directed: bool,
    name: str,
    where: Callable[[int], str],
) -> tuple[csr_array, FloatArray | None]:
    """Build an adjacency matrix from a list of edges, and order their lengths alike.

    Nodes that do not exist, loops, repeated edges, and weights that are zero or not
    finite are refused; `where` says for the number of an edge where it stands.
    """
    from scipy.sparse import csr_array

    check_nodes(n, name, len(weights))

    def refuse(bad: NDArray[np.bool_], what: str) -> None:
        if bad.any():
            first = int(bad.argmax())
            edge = f"{source[first]} to {target[first]}"
            raise InputError(f"{name}: {where(first)}: the edge from {edge} {what}")

    low, high = np.minimum(source, target), np.maximum(source, target)
    refuse((low < 0) | (high >= n), f"names a node that does not exist; there are {n}")
    refuse(low == high, "is a loop; nodes are not their own neighbors")
    refuse(~np.isfinite(weights), "has a weight that is no finite number")
    refuse(weights == 0, "has the weight zero; leave it out")
    if lengths is not None:
        if lengths.shape != weights.shape:
            raise InputError(f"{name}: 'distances' is not one number per edge")
        wrong = ~(np.isfinite(lengths) & (lengths >= 0))
        refuse(wrong, "has a distance that is no number from 0 on")
    key = source * n + target if directed else low * n + high
    order = np.argsort(key, kind="stable")
    again = np.zeros(len(key), np.bool_)
    again[order[1:]] = key[order[1:]] == key[order[:-1]]
    refuse(again, "stands in the file more than once")
    if not directed:
        source, target = np.concatenate([low, high]), np.concatenate([high, low])
        weights = np.concatenate([weights, weights])
        lengths = None if lengths is None else np.concatenate([lengths, lengths])
        order = np.argsort(source * n + target, kind="stable")
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=n), out=indptr[1:])
    dtype = index_dtype(n, len(order))
    columns: Any = target[order].astype(dtype)
    a = csr_array((weights[order], columns, indptr.astype(dtype)), shape=(n, n))
    a.check_format(full_check=True)
    return a, None if lengths is None else lengths[order]


def is_symmetric(a: csr_array) -> bool:
    """Return whether a canonical matrix equals its transpose to the bit."""
    t = a.T.tocsr()
    pairs = (a.indptr, t.indptr), (a.indices, t.indices), (a.data, t.data)
    return all(np.array_equal(*pair) for pair in pairs)


def is_directed(a: csr_array, told: bool | None, name: str) -> bool:
    """Return whether a matrix is that of a directed graph: as told, or as it looks."""
    symmetric = is_symmetric(a)
    if told is False and not symmetric:
        what = "the graph is undirected, but its matrix not symmetric"
        raise InputError(f"{name}: {what}")
    return not symmetric if told is None else told


def edge_arrays(
    graph: Graph, size: int, *, distances: bool = False
) -> Iterator[list[Any]]:
    """Yield sources, targets and weights; an undirected edge from its lower node.

    `size` is how many bytes one takes: it says how many come at a time. `distances`
    asks for a fourth array, where the graph has them.
    """
    a = graph.adjacency
    values = [a.data]
    if distances and graph.distances is not None:
        values.append(graph.distances)
    for some in row_slices(a.nnz, size, fixed=True):
        every = np.arange(some.start, some.stop)
        rows = np.searchsorted(a.indptr, every, side="right") - 1
        found: list[Any] = [rows, a.indices[some], *(one[some] for one in values)]
        if not graph.directed:
            keep = rows < found[1]
            found = [one[keep] for one in found]
        if len(found[0]):
            yield found


def edge_blocks(graph: Graph, *, distances: bool = False) -> Iterator[list[list[Any]]]:
    """Yield the same as lists."""
    for block in edge_arrays(graph, TEXT_BYTES, distances=distances):
        yield [one.tolist() for one in block]


def check_nodes(n: int, name: str, edges: int | None = None) -> None:
    """Refuse a number of nodes that is none, or that no memory can hold.

    Nodes without edges cost nothing in some files: where the number of edges is known,
    there may not be many more nodes.
    """
    if n < 1:
        raise InputError(f"{name}: the graph has no nodes")
    check_fits(16 * n, name, f"a graph of {n:,} nodes")
    if edges is not None and n > max(_LONELY, _LONELY_SHARE * edges):
        raise InputError(
            f"{name}: {n:,} nodes and {edges:,} edges; that so few have any is not "
            "believed: leave out nodes without edges"
        )
