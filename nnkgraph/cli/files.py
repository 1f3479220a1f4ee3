"""Reading for commands: remarks are said once the whole file was read well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nnkgraph import formats
from nnkgraph.cli import mapped, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import Features, Graph
    from nnkgraph.formats._format import Sparse
    from nnkgraph.labels import Labels


_TEXT = (".csv", ".tsv", ".txt", ".gz")


def is_table(spec: str) -> bool:
    """Return whether a file is a table of text, by its name."""
    return formats.split_item(spec)[0].lower().endswith(_TEXT)


def split_format(
    given: str | None, inputs: Sequence[str], output: str, *, kind: str = "graph"
) -> tuple[str | None, str | None]:
    """Return what --format says about the input and about the output.

    ``IN,OUT`` says both. One name belongs to the side that needs it: '-' or a file
    whose name says nothing; to the input where both do or neither does.
    """
    if given is None or "," in given:
        read, _, write = (given or "").partition(",")
        return read or None, write or None
    needed = not formats.is_known(output, f"write_{kind}")
    if needed and all(formats.is_known(one, "read_features") for one in inputs):
        return None, given
    return given, None


def folder_of(output: str) -> str | None:
    """Return the directory that a file is written to; a stream has none."""
    return None if formats.is_stream(output) else str(Path(output).absolute().parent)


def read_features(
    spec: str,
    *,
    format: str | None,  # noqa: A002 - the option's name
    delimiter: str | None,
    header: bool | None,
    id_column: str | None,
    sparse: Sparse = "",
    gaps: bool = False,
) -> Features:
    """Read features with the options of the command line."""
    remarks: list[str] = []
    mapped.guard()
    features = formats.read_features(
        spec,
        format=format,
        delimiter=delimiter,
        header=header,
        id_column=id_column,
        sparse=sparse,
        gaps=gaps,
        note=remarks.append,
    )
    mapped.remember(features)
    for remark in remarks:
        say.summary(remark)
    return features


def read_labels(
    spec: str,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
    delimiter: str | None = None,
    header: bool | None = None,
    id_column: str | None = None,
    missing: str | None = None,
    minus_one: bool = False,
) -> Labels:
    """Read labels with the options of the command line."""
    remarks: list[str] = []
    labels = formats.read_labels(
        spec,
        format=format,
        delimiter=delimiter,
        header=header,
        id_column=id_column,
        missing=missing,
        minus_one=minus_one,
        note=remarks.append,
    )
    for remark in remarks:
        say.summary(remark)
    return labels


def read_values(
    spec: str,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
    delimiter: str | None = None,
    header: bool | None = None,
    id_column: str | None = None,
) -> Features:
    """Read one number per row with the options of the command line."""
    remarks: list[str] = []
    values = formats.read_values(
        spec,
        format=format,
        delimiter=delimiter,
        header=header,
        id_column=id_column,
        note=remarks.append,
    )
    for remark in remarks:
        say.summary(remark)
    return values


def read_graph(
    spec: str,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
) -> Graph:
    """Read a graph."""
    remarks: list[str] = []
    graph = formats.read_graph(spec, format=format, note=remarks.append)
    for remark in remarks:
        say.summary(remark)
    return graph
