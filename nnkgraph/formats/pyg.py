"""NumPy archive with the arrays that PyTorch Geometric makes a graph from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._base import MADE, Extras, Format, Note, Target
from nnkgraph.formats._graphs import with_lengths
from nnkgraph.formats.npz import finished, graph_members, read_extras
from nnkgraph.runtime.archive import REAL, Archive, open_archive, write_archive

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.runtime.files import Source


@dataclass(frozen=True, slots=True)
class Pyg(Format):
    """``edge_index`` and ``edge_weight`` for PyTorch Geometric (graphs)."""

    suffixes: ClassVar[tuple[str, ...]] = (".pyg.npz",)
    binary: ClassVar[bool] = True

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write every edge in both directions, sorted as ``coalesce`` sorts them."""
        a = graph.adjacency
        index = np.empty((2, a.nnz), np.int64)
        index[0] = np.repeat(np.arange(graph.n_nodes), np.diff(a.indptr))
        index[1] = a.indices
        members: dict[str, Any] = {
            "edge_index": index,
            # In full: whoever wants float32 has it at once, nobody gets bits back.
            "edge_weight": a.data.astype(np.float64, copy=False),
            "num_nodes": np.array(graph.n_nodes, np.int64),
        }
        write_archive(stream, members | graph_members(graph))

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read what `write_graph` wrote, or the same arrays of another program."""
        with open_archive(source) as archive:
            (index, weights), extras = _edges(archive), read_extras(archive)
            adjacency, lengths = with_lengths(
                _count(archive, index),
                index[0],
                index[1],
                weights,
                extras.distances,
                directed=True,
                name=source.name,
                where=lambda edge: f"column {edge} of edge_index",
            )
            return finished(archive, adjacency, replace(extras, distances=lengths))


def _edges(archive: Archive) -> tuple[IndexArray, FloatArray]:
    name = archive.name
    if "edge_index" not in archive:
        raise InputError(f"{name}: there is no array 'edge_index' inside; {MADE}")
    header = archive.headers["edge_index"]
    if len(header.shape) != 2 or header.shape[0] != 2 or header.dtype.kind not in "iu":
        raise InputError(f"{name}: edge_index is no 2 x E matrix of integers: {header}")
    edges = header.shape[1]
    index = archive.read("edge_index").astype(np.int64)
    key = next((one for one in ("edge_weight", "edge_attr") if one in archive), "")
    if not key:
        return index, np.ones(edges)
    header = archive.headers[key]
    if header.dtype.kind not in REAL or header.shape not in {(edges,), (edges, 1)}:
        raise InputError(f"{name}: {key} is not one number per edge: {header}")
    with np.errstate(over="ignore", invalid="ignore"):  # refused later, with its place
        return index, archive.read(key).astype(np.float64).reshape(edges)


def _count(archive: Archive, index: IndexArray) -> int:
    if "num_nodes" not in archive:
        return int(index.max(initial=-1)) + 1
    header = archive.headers["num_nodes"]
    if header.shape not in {(), (1,)} or header.dtype.kind not in "iu":
        raise InputError(f"{archive.name}: num_nodes is no whole number: {header}")
    return int(archive.read("num_nodes").item())


plugin: type[Format] = Pyg
