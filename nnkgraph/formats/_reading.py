"""Reading features, labels and values: what the user said goes to the format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nnkgraph.errors import ParameterError
from nnkgraph.formats._choose import reader
from nnkgraph.formats._format import TextOptions, ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnkgraph.data import Features
    from nnkgraph.formats._format import Note, Sparse
    from nnkgraph.labels import Labels

    AnyPath = str | os.PathLike[str]


def read_features(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    drop: Sequence[str] = (),
    sparse: Sparse = "",
    gaps: bool = False,
    dropped_before: bool = False,
    absent: Callable[[], None] | None = None,
    beside: bool = False,
    known: Sequence[str] | None = None,
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
        The column of a table with the row ids: its name, or its number from 0. A
        column of words that is called id is taken without being named.
    delimiter
        What stands between the fields of a text table; by default, by suffix.
    drop
        Columns of a table that are left out: names, or numbers from 0; one text may
        hold several with commas between them.
    sparse
        What a sparse matrix is taken for: "similarities", for kernel precomputed, or
        "rows" of features that stay sparse; by default features that become dense.
    gaps
        Whether NaN may stand for values that are not there, as in coordinates.
    dropped_before, absent, beside
        How the file stands to others that are read with it: see ``TextOptions``.
    known
        Ids of the nodes that the rows describe: a column of a table that holds nothing
        else names the rows where no other does.
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
    columns = None if plugin.has_columns else id_column or (drop or None)
    if plugin.binary and (header, delimiter, columns) != (None, None, None):
        raise ParameterError(
            f"{source.name}: a header and a delimiter can be named for text tables "
            "only, an id column and columns to drop also for Parquet"
        )
    options = TextOptions(
        header,
        id_column,
        delimiter,
        tuple(drop),
        dropped_before=dropped_before,
        absent=absent,
        beside=beside,
        known=frozenset(known or ()),
        sparse=sparse,
        gaps=gaps,
        note=note,
    )
    return plugin.read_features(source, options)


def read_labels(
    spec: AnyPath,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    missing: str | None = None,
    minus_one: bool = False,
    absent: Callable[[], None] | None = None,
    known: Sequence[str] | None = None,
    note: Note = ignore,
) -> Labels:
    """Read one class per row from ``FILE`` or ``FILE::ITEM``.

    An item is an array, a dataset or, in a text table, a column: its name, or its
    number from 0. A column called id names the rows where no other does. See
    ``Labels.of`` for `missing` and `minus_one`, ``TextOptions`` for `absent`, and
    `read_features` for `known`.
    """
    from nnkgraph.formats._columns import read_column
    from nnkgraph.labels import Labels

    options = TextOptions(
        header,
        id_column,
        delimiter,
        absent=absent,
        known=frozenset(known or ()),
        note=note,
    )
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
    absent: Callable[[], None] | None = None,
    known: Sequence[str] | None = None,
    note: Note = ignore,
) -> Features:
    """Read one number per row from ``FILE`` or ``FILE::ITEM``, as a single column.

    Items are as for `read_labels`. NaN and empty fields stand for no value.
    """
    from nnkgraph.formats._columns import as_values, read_column

    options = TextOptions(
        header,
        id_column,
        delimiter,
        absent=absent,
        known=frozenset(known or ()),
        note=note,
    )
    return as_values(*read_column(os.fspath(spec), format, options))
