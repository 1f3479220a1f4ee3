"""File formats: one file each, reader and writer side by side.

The format is chosen by the file name's longest known ending, or by name. A format
that can only be read once (a pipe, standard input) is read into memory first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nnkgraph.errors import ParameterError
from nnkgraph.formats import _sidecar
from nnkgraph.formats._checks import (
    check_classes,
    check_file,
    check_ids,
    check_output,
)
from nnkgraph.formats._choose import is_known, reader, split_item
from nnkgraph.formats._format import Extras, TextOptions, ignore
from nnkgraph.formats._output import is_stream, write_file
from nnkgraph.formats._sidecar import file_beside
from nnkgraph.formats._write import write_answers, write_candidates, write_graph

if TYPE_CHECKING:
    from nnkgraph.data import Features, FloatArray, Graph, IndexArray
    from nnkgraph.labels import Labels

    AnyPath = str | os.PathLike[str]
    from nnkgraph.formats._format import Note, Sparse

__all__ = [
    "check_classes",
    "check_file",
    "check_ids",
    "check_output",
    "file_beside",
    "ignore",
    "is_known",
    "is_stream",
    "read_candidates",
    "read_features",
    "read_graph",
    "read_labels",
    "read_values",
    "split_item",
    "write_answers",
    "write_candidates",
    "write_file",
    "write_graph",
]


def read_features(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    sparse: Sparse = "",
    gaps: bool = False,
    note: Note = ignore,
) -> Features:
    """Read a feature matrix from ``FILE`` or ``FILE::ITEM``.

    Parameters
    ----------
    spec
        A path, ``FILE::ITEM``, or ``-`` for standard input, which needs `format`.
    format
        A format name or a suffix; by default the file name decides.
    header
        Whether the first row of a text table holds names; by default, found out.
    id_column
        The column of a text table with the row ids: its name, or its number from 0.
    delimiter
        What stands between the fields of a text table; by default, by suffix.
    sparse
        What a sparse matrix is taken for: "similarities", for kernel precomputed, or
        "rows" of features that stay sparse; by default features that become dense.
    gaps
        Whether NaN may stand for values that are not there, as in coordinates.
    note
        Called with remarks for the user, one line each.

    Raises
    ------
    InputError
        Where the file cannot be read or its values cannot be used.
    ParameterError
        For an unknown suffix or format.
    """
    plugin, source = reader("read_features", os.fspath(spec), format)
    options = TextOptions(header, id_column, delimiter, sparse, gaps, note)
    told = (header, delimiter, None if plugin.has_columns else id_column)
    if plugin.binary and told != (None, None, None):
        raise ParameterError(
            f"{source.name}: a header, an id column and a delimiter can be named for "
            "text tables only"
        )
    return plugin.read_features(source, options)


def read_graph(
    path: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    note: Note = ignore,
) -> Graph:
    """Read a graph and check it fully.

    Raises
    ------
    InputError
        Where the file cannot be read or does not hold a graph.
    """
    plugin, source = reader("read_graph", os.fspath(path), format)
    extras = _sidecar.read(source, note) if plugin.beside else Extras()
    return plugin.read_graph(source, extras, note)


def read_labels(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    missing: str | None = None,
    minus_one: bool = False,
    note: Note = ignore,
) -> Labels:
    """Read one class per row from ``FILE`` or ``FILE::ITEM``.

    An item is an array, a dataset or, in a text table, a column: its name, or its
    number from 0. See ``Labels.of`` for `missing` and `minus_one`.
    """
    from nnkgraph.formats._columns import read_column
    from nnkgraph.labels import Labels

    options = TextOptions(header, id_column, delimiter, note=note)
    values, ids, name = read_column(os.fspath(spec), format, options)
    labels = Labels.of(values, ids=ids, name=name, missing=missing, minus_one=minus_one)
    if labels.minus_one:
        note(f"{name}: -1 is taken for no label")
    return labels


def read_values(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    note: Note = ignore,
) -> Features:
    """Read one number per row from ``FILE`` or ``FILE::ITEM``, as a single column.

    Items are as for `read_labels`. NaN and empty fields stand for no value.
    """
    from nnkgraph.formats._columns import as_values, read_column

    options = TextOptions(header, id_column, delimiter, note=note)
    return as_values(*read_column(os.fspath(spec), format, options))


def read_candidates(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> tuple[IndexArray, FloatArray | None]:
    """Read ``neighbors`` and maybe ``distances``, or a bare array of neighbors."""
    plugin, source = reader("read_candidates", os.fspath(spec), format)
    return plugin.read_candidates(source)
