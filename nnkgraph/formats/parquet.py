"""Parquet: columns of numbers as features, edge lists as graphs."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.formats._adjacency import edge_arrays
from nnkgraph.formats._arrow import arrow, open_table
from nnkgraph.formats._arrowtable import read_graph, read_matrix, read_values
from nnkgraph.formats._facts import TITLE, fact_lines
from nnkgraph.formats._format import Format, unfit
from nnkgraph.formats._notfeatures import not_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph
    from nnkgraph.formats._format import Extras, Note, Target, TextOptions
    from nnkgraph.formats._source import Source

_GROUP = 1 << 20
"""Edges that are written at once."""


@dataclass(frozen=True, slots=True)
class Parquet(Format):
    """Parquet for pandas, polars, R and others (features, graphs as edge lists)."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    binary: ClassVar[bool] = True
    has_items: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True
    beside: ClassVar[tuple[str, ...]] = (
        "ids",
        "errors",
        "candidates",
        "bridges",
    )

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read all columns of numbers, or the column of lists that the item names."""
        with open_table(source) as table:
            if TITLE.encode() in (table.schema.metadata or {}):
                raise not_features(source.name)
            return read_matrix(table, source.item, options)

    def read_column(
        self, source: Source, options: TextOptions, /
    ) -> tuple[NDArray[Any], list[str] | None]:
        """Read the only column, or the one that the item names."""
        with open_table(source) as table:
            return read_values(table, source.item, options)

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read our own edge lists and those of other programs."""
        del note
        with open_table(source) as table:
            return read_graph(table, extras)

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that are no text, or that the file beside cannot carry."""
        arrow()
        super(Parquet, self).check_ids(ids, target)
        for one in ids:
            if not one.isascii() and any("\ud800" <= c <= "\udfff" for c in one):
                raise unfit(one, target, "is no valid text; write .npz instead")

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write the columns source, target and weight, each undirected edge once."""
        del target
        pa = arrow()
        kind = pa.int64() if graph.ids is None else pa.string()
        schema = pa.schema(
            [("source", kind), ("target", kind), ("weight", pa.float64())],
            metadata={TITLE: "\n".join(fact_lines(graph))},
        )
        names = None if graph.ids is None else np.array(graph.ids, object)
        # A pipe does not say where it stands, which the footer has to tell.
        file = stream if stream.seekable() else io.BytesIO()
        with pa.parquet.ParquetWriter(
            file, schema, compression="snappy", write_page_checksum=True
        ) as writer:
            for rows, cols, weights in edge_arrays(graph, _GROUP):
                ends = (rows, cols) if names is None else (names[rows], names[cols])
                columns = [pa.array(one, kind) for one in ends]
                writer.write_table(
                    pa.Table.from_arrays([*columns, pa.array(weights)], schema=schema)
                )
        if file is not stream:
            stream.write(file.getbuffer())  # type: ignore[attr-defined]


plugin: type[Format] = Parquet
