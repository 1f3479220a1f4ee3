"""Reading for commands: remarks are said once the whole file was read well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnkgraph import formats
from nnkgraph.cli import say

if TYPE_CHECKING:
    from nnkgraph.data import Features, Graph


def read_features(
    spec: str,
    *,
    format_: str | None,
    delimiter: str | None,
    header: bool | None,
    id_column: str | None,
) -> Features:
    """Read features with the options of the command line."""
    remarks: list[str] = []
    features = formats.read_features(
        spec,
        format=format_,
        delimiter=delimiter,
        header=header,
        id_column=id_column,
        note=remarks.append,
    )
    for remark in remarks:
        say.summary(remark)
    return features


def read_graph(spec: str, *, format_: str | None = None) -> Graph:
    """Read a graph."""
    remarks: list[str] = []
    graph = formats.read_graph(spec, format=format_, note=remarks.append)
    for remark in remarks:
        say.summary(remark)
    return graph
