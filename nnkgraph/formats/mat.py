"""MATLAB files: features, and graphs as the sparse matrix W that toolboxes expect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from nnkgraph.data import Features
from nnkgraph.formats import _matwrite as writer
from nnkgraph.formats._adjacency import from_edges, is_directed
from nnkgraph.formats._columns import as_array, pick_column
from nnkgraph.formats._extras import checked, parse_provenance, provenance_text
from nnkgraph.formats._format import Format, unfit
from nnkgraph.formats._matuse import (
    ids_of,
    is_list,
    open_mat,
    pick_graph,
    pick_matrix,
    require,
    sparse_rows,
    square_entries,
)
from nnkgraph.formats._notfeatures import not_features
from nnkgraph.formats._source import show
from nnkgraph.formats._sparsefile import sparse_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nnkgraph.data import Graph
    from nnkgraph.formats._format import Extras, Note, Target, TextOptions
    from nnkgraph.formats._source import Source

_OURS = {"W", "directed", "provenance"}
"""The variables of every graph that was written here."""


@dataclass(frozen=True, slots=True)
class MatLab(Format):
    """MATLAB file (features, graphs as a sparse matrix W)."""

    suffixes: ClassVar[tuple[str, ...]] = (".mat",)
    binary: ClassVar[bool] = True
    has_items: ClassVar[bool] = True
    beside: ClassVar[tuple[str, ...]] = ("candidates", "bridges")

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read the only matrix, or the variable that the item names."""
        with open_mat(source) as mat:
            if source.item is None and set(mat.variables) >= _OURS:
                raise not_features(source.name)
            name = source.item or pick_matrix(mat)
            require(mat, name, "number", "sparse")
            if mat.kind(name) == "sparse":
                rows = sparse_rows(mat, name)
                return sparse_features(
                    rows, ids_of(mat, len(rows)), source.name, options
                )
            x = mat.numbers(name)
            ids = ids_of(mat, len(x)) if x.ndim == 2 else None
        return Features.of(x, ids=ids, name=source.name, gaps=options.gaps)

    def read_column(
        self, source: Source, options: TextOptions, /
    ) -> tuple[NDArray[Any], list[str] | None]:
        """Read the only list, or the variable that the item names."""
        with open_mat(source) as mat:
            name = source.item
            if name is None:
                lists = [one for one in mat.variables if is_list(mat, one)]
                lists = [one for one in lists if one != "ids"]
                name = pick_column(lists, source.name, "variable")
                if len(lists) > 1:
                    options.note(f"{source.name}: labels are in {show(name)!r}")
            require(mat, name, "number", "text")
            if mat.kind(name) == "text":
                values: Any = as_array(mat.texts(name), source.name)
            else:
                values = mat.numbers(name)
                values = values.ravel() if max(values.shape) == values.size else values
            return values, None if name == "ids" else ids_of(mat, len(values))

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read W, the matrix that the item names, or the only sparse one."""
        del note
        with open_mat(source) as mat:
            name = source.item or pick_graph(mat)
            require(mat, name, "number", "sparse")
            n, rows, cols, weights = square_entries(mat, name)
            adjacency = from_edges(
                n,
                rows,
                cols,
                weights,
                directed=True,
                name=source.name,
                where=lambda entry: f"entry {entry} of {show(name)}",
            )
            known = {one: mat.kind(one) for one in mat.variables}
            told = None
            if known.get("directed") == "number":
                told = bool(mat.numbers("directed").any())
            errors = None
            if known.get("errors") == "number":
                errors = mat.numbers("errors").ravel()
            text = "{}"
            if known.get("provenance") == "text":
                text = "".join(mat.texts("provenance"))
            ids = ids_of(mat, n)
        extras = replace(extras, ids=None if ids is None else tuple(ids), errors=errors)
        directed = is_directed(adjacency, told, source.name)
        provenance = parse_provenance(text, source.name)
        return checked(adjacency, extras, directed, provenance, source.name)

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that are no text."""
        for one in ids:
            if not one.isascii() and any("\ud800" <= c <= "\udfff" for c in one):
                raise unfit(one, target, "is no valid text; write .npz instead")

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write W, and what is known about it, in variables of their own."""
        name = target.name
        # By columns; of a symmetric matrix the rows are the columns.
        a = graph.adjacency.tocsc() if graph.directed else graph.adjacency
        writer.write_header(stream)
        writer.write_sparse(stream, "W", a, name)
        writer.write_truth(stream, "directed", graph.directed, name)
        if graph.errors is not None:
            writer.write_column(stream, "errors", graph.errors, name)
        if graph.ids is not None:
            writer.write_texts(stream, "ids", graph.ids, name)
        writer.write_text(stream, "provenance", provenance_text(graph.provenance), name)


plugin: type[Format] = MatLab
