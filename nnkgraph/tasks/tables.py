"""Small result files: tables of text with a row per node, and archives."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from nnkgraph.formats._zip import write_archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nnkgraph.data import FloatArray, Graph


def text_table(
    path: str, header: Sequence[str], columns: Sequence[Iterable[Any]]
) -> bytes:
    """Return columns as a table with commas, or with tabs where the name ends so."""
    delimiter = "\t" if path.lower().endswith(".tsv") else ","
    text = io.StringIO()
    table = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    table.writerow(header)
    table.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def numbers(values: FloatArray) -> Iterable[str]:
    """Return numbers as text that reads back to the same bits; NaN is empty."""
    return ("" if one != one else repr(one) for one in values.tolist())  # noqa: PLR0124


def names(graph: Graph) -> Sequence[str | int]:
    """Return the ids of the nodes, or their numbers."""
    return range(graph.nodes) if graph.ids is None else graph.ids


def archive(members: Mapping[str, Any]) -> bytes:
    """Return arrays as an .npz file, the same bytes every time."""
    buffer = io.BytesIO()
    write_archive(buffer, members)
    return buffer.getvalue()
