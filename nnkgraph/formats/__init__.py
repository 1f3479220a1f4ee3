"""File formats: one file each, reader and writer side by side.

The format is chosen by the file name's longest known ending, or by name. A format
that can only be read once (a pipe, standard input) is read into memory first.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nnkgraph.errors import (
    InputError,
    MissingValuesError,
    OutputError,
    ParameterError,
)
from nnkgraph.formats import _base
from nnkgraph.formats._base import Extras, Format, Sparse, Target, TextOptions, ignore
from nnkgraph.formats._choose import choose, is_known, reader, split_item
from nnkgraph.formats._parts import is_pattern, read_parts
from nnkgraph.runtime import files
from nnkgraph.runtime.files import Outputs, is_stream, show, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from nnkgraph.data import Answers, Candidates, Features, Graph
    from nnkgraph.data.labels import Labels
    from nnkgraph.data.missing import Missing
    from nnkgraph.formats._columns import is_key_name, leave_out
    from nnkgraph.formats._graphs import (
        checked,
        edge_blocks,
        from_edges,
        parse_provenance,
        provenance_text,
    )
    from nnkgraph.formats._into import Place, find_place

AnyPath: TypeAlias = "str | os.PathLike[str]"

__all__ = [
    "Extras",
    "Format",
    "Place",
    "Sparse",
    "Target",
    "TextOptions",
    "candidate_ids",
    "check_classes",
    "check_features",
    "check_file",
    "check_ids",
    "check_output",
    "checked",
    "edge_blocks",
    "file_beside",
    "find_place",
    "from_edges",
    "ignore",
    "is_key_name",
    "is_known",
    "is_stream",
    "leave_out",
    "parse_provenance",
    "provenance_text",
    "read_answers",
    "read_candidates",
    "read_features",
    "read_graph",
    "read_labels",
    "read_names",
    "read_result",
    "read_table",
    "read_values",
    "split_item",
    "write_answers",
    "write_candidates",
    "write_features",
    "write_file",
    "write_graph",
]

_HOMES = {
    "_columns": {"is_key_name", "leave_out"},
    "_graphs": {
        "checked",
        "edge_blocks",
        "from_edges",
        "parse_provenance",
        "provenance_text",
    },
    "_into": {"Place", "find_place"},
}


def __getattr__(name: str) -> Any:
    """Import what needs NumPy when it is first used: the start-up stays light."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def file_beside(path: str) -> str | None:
    """Return the name of the file beside a graph, where there is one."""
    name = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114
    beside = name + _base.SIDECAR
    return beside if os.path.isfile(beside) else None  # noqa: PTH113


def read_features(
    spec: AnyPath,
    *,
    format: str | None = None,
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    drop: Sequence[str] = (),
    ids: AnyPath | None = None,
    missing: Missing | None = None,
    sparse: Sparse = "rows",
    gaps: bool = False,
    dropped_before: bool = False,
    absent: Callable[[], None] | None = None,
    for_nodes: bool = False,
    known: Sequence[str] | None = None,
    note: _base.Note = ignore,
) -> Features:
    """Read a feature matrix from ``FILE`` or ``FILE::ITEM``.

    Parameters
    ----------
    spec
        A path, ``FILE::ITEM``, or ``-`` for standard input, which needs `format`. A
        pattern such as ``parts/*.npy`` stands for all files that it matches: their rows
        follow each other in the order of the names.
    format
        A format name or a suffix; by default the file name decides.
    header
        Whether the first row of a text table holds names; by default, found out.
    id_column
        The column of a table with the row ids: its name, or its number from 0. A
        column of words that is called id is taken without being named.
    delimiter
        What stands between the fields of a text table; by default, what the suffix
        says or the first lines have.
    decimal
        What stands before the decimals in a text table: a point, or a comma.
    drop
        Columns of a table that are left out: names, or numbers from 0; one text may
        hold several with commas between them.
    ids
        A file with the names of the rows, whatever names are in the matrix's own: text
        with one a line, or ``FILE::ITEM``, a column of a table or an array of text or
        whole numbers.
    missing
        What to do where values are missing, which is refused otherwise: leave out such
        rows (``"drop-rows"``) or columns (``"drop-columns"``), or take the ``"mean"``
        of the column. ``Features.warnings`` say what was done.
    sparse
        What a sparse matrix is taken for: "rows" of features that stay sparse, "dense"
        ones, or "similarities", for kernel precomputed.
    gaps
        Whether NaN may stand for values that are not there, as in coordinates.
    dropped_before, absent, for_nodes
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

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> np.save("points.npy", np.ones((5, 2)))
    >>> nnkgraph.read_features("points.npy")
    <Features: 5 x 2, points.npy>
    """
    path, item = split_item(os.fspath(spec))
    if ids is not None and id_column is not None:
        raise ParameterError(
            "rows are named by a file, `ids`, or by a column, `id_column`, not both"
        )
    if decimal not in {None, ".", ","}:
        raise ParameterError(f"the decimal mark {decimal!r} is neither '.' nor ','")
    if is_pattern(path):
        told: dict[str, Any] = {
            "header": header,
            "id_column": id_column,
            "delimiter": delimiter,
            "decimal": decimal,
        }
        told |= {"format": format, "drop": drop, "sparse": sparse}
        told |= {"dropped_before": dropped_before}

        def read(**how: Any) -> Features:
            one = functools.partial(read_features, **told, **how)
            parts = read_parts(path, item, one)
            return parts if ids is None else _named(parts, ids)

        how = {"gaps": gaps, "note": note, "absent": absent}
        return _complete(read, missing, how) if missing else read(**how)
    plugin, source = reader("read_features", os.fspath(spec), format)
    if plugin.binary and not plugin.has_columns and id_column is not None:
        raise ParameterError(
            f"{source.name}: has no columns with names for an `id_column`; `ids` takes "
            "names of rows from a file"
        )
    columns = None if plugin.has_columns else drop or None
    if plugin.binary and (header, delimiter, decimal, columns) != (None,) * 4:
        raise ParameterError(
            f"{source.name}: a header, a delimiter and a decimal mark can be named for "
            "text tables only, an id column and columns to drop also for Parquet"
        )
    options = TextOptions(
        header,
        id_column,
        delimiter,
        decimal or ".",
        (drop,) if isinstance(drop, str) else tuple(drop),
        dropped_before=dropped_before,
        for_nodes=for_nodes,
        known=frozenset(known or ()),
        sparse=sparse,
        named=ids is not None,
    )

    def read_one(**how: Any) -> Features:
        features = plugin.read_features(source, replace(options, **how))
        return features if ids is None else _named(features, ids)

    return _complete(read_one, missing, {"gaps": gaps, "note": note, "absent": absent})


def _named(features: Features, spec: AnyPath) -> Features:
    """Return features with the names of rows that a file has."""
    names, name = _read_names(spec)
    n, first = len(features.x), dict[str, int]()
    if len(names) != n:
        plain = split_item(os.fspath(spec))[1] is None and len(names) == n + 1
        head = "; if its first line is a header, name the column as FILE::NAME"
        raise InputError(
            f"{name}: {len(names):,} names for the {n:,} rows of {features.name}"
            f"{head * plain}"
        )
    for row, one in enumerate(names):
        place = f"{name}: row {row} (counted from 0)"
        if not one.strip():
            raise InputError(f"{place} has no name: it is empty")
        if first.setdefault(one, row) != row:
            raise InputError(
                f"{place} is called {show(one)!r}, as row {first[one]} is: names of "
                "rows must differ"
            )
    made = replace(features, ids=tuple(names))
    vars(made).update({k: v for k, v in vars(features).items() if k == "sha256"})
    return made


def _complete(
    read: Callable[..., Features], missing: Missing | None, how: dict[str, Any]
) -> Features:
    """Read features, for a second time where it is said what to do about gaps."""
    if missing is None:
        try:
            return read(**how)
        except MissingValuesError as error:
            from nnkgraph.data.missing import WAYS

            rows, columns, mean = (f"`missing={one!r}`" for one in WAYS)
            advice = f"or say {rows}, {columns} or {mean}"
            raise MissingValuesError(f"{error}, {advice}") from error
    from nnkgraph.data.missing import WAYS, mended

    if missing not in WAYS:
        raise ParameterError(f"missing={missing!r} is none of {', '.join(WAYS)}")
    with contextlib.suppress(MissingValuesError):
        return read(**how)
    # What there is to say was said, and counted, before.
    absent = None if how["absent"] is None else (lambda: None)
    return mended(read(gaps=True, note=ignore, absent=absent), missing)


def read_labels(
    spec: AnyPath,
    *,
    format: str | None = None,
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    missing: str | None = None,
    minus_one: bool = False,
    absent: Callable[[], None] | None = None,
    known: Sequence[str] | None = None,
    note: _base.Note = ignore,
) -> Labels:
    """Read one class per row from ``FILE`` or ``FILE::ITEM``.

    An item is an array, a dataset or, in a text table, a column: its name, or its
    number from 0. A column called id names the rows where no other does. See
    ``Labels.of`` for `missing` and `minus_one`, ``TextOptions`` for `absent`, and
    `read_features` for `known`.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> np.save("labels.npy", np.array([0, 1, 1]))
    >>> nnkgraph.read_labels("labels.npy").classes
    ('0', '1')
    """
    from nnkgraph.data.labels import Labels

    told = TextOptions(
        header, id_column, delimiter, decimal or ".", absent=absent, note=note
    )
    values, ids, name = _read_column(spec, format, told, known)
    labels = Labels.of(values, ids=ids, name=name, missing=missing, minus_one=minus_one)
    if labels.minus_one:
        note(f"{name}: -1 is taken for no label")
    return labels


def read_values(
    spec: AnyPath,
    *,
    format: str | None = None,
    header: bool | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    absent: Callable[[], None] | None = None,
    known: Sequence[str] | None = None,
    note: _base.Note = ignore,
) -> Features:
    """Read one number per row from ``FILE`` or ``FILE::ITEM``, as a single column.

    Items are as for `read_labels`. NaN and empty fields stand for no value.
    """
    from nnkgraph.formats._columns import as_values

    told = TextOptions(
        header, id_column, delimiter, decimal or ".", absent=absent, note=note
    )
    return as_values(*_read_column(spec, format, told, known))


def read_names(spec: AnyPath) -> list[str]:
    """Read ids or numbers of rows: one a line, or the items of an array or a column."""
    return [one for one in _read_names(spec)[0] if one.strip()]


def _read_names(spec: AnyPath) -> tuple[list[str], str]:
    """Return what `read_names` reads, with empty names but the last, and from where."""
    path, item = split_item(os.fspath(spec))
    table = path.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    plugin = None
    if is_known(path, "read_column"):
        plugin = choose("read_column", path, None)[0]
    binary = plugin is not None and plugin.binary
    if plugin and binary and plugin.has_items and item is None:
        raise InputError(f"{show(path)}: say which item holds the names: FILE::ITEM")
    if binary or item is not None:
        from nnkgraph.data.labels import as_texts

        values, _, name = _read_column(spec, None, TextOptions(), None)
        values = _base.as_whole(values)
        if values.ndim != 1 or values.dtype.kind not in "iuUSO":
            raise InputError(f"{name}: is no list of names or of whole numbers")
        return list(map(str, as_texts(values))), name
    source = files.open_source(path)
    if source.size == 0:
        return [], source.name
    with files.open_text(source, "") as text:
        lines = [line.strip("\r\n") for line in text]
    while lines and not lines[-1].strip():
        lines.pop()
    if table and any(mark in line for line in lines[:1] for mark in ",;\t"):
        raise InputError(f"{source.name}: say which column holds the names: FILE::NAME")
    return lines, source.name


def _read_column(
    spec: AnyPath, wanted: str | None, told: TextOptions, known: Sequence[str] | None
) -> tuple[NDArray[Any], Sequence[str] | None, str]:
    """Return one value per row, the ids of the rows or None, and the file's name."""
    plugin, source = reader("read_column", os.fspath(spec), wanted)
    if plugin.binary:  # what is said about text is meant for other files of a command
        ids = told.id_column if plugin.has_columns else None
        told = replace(told, header=None, id_column=ids, delimiter=None, decimal=".")
    options = replace(told, for_nodes=True, known=frozenset(known or ()))
    return *plugin.read_column(source, options), source.name


def read_table(path: AnyPath) -> tuple[dict[str, list[str]], str]:
    """Return the columns of a table that names them, as text, and the file's name."""
    import csv

    source, ending = files.open_source(os.fspath(path)), os.fspath(path).lower()
    if ending.endswith(".parquet"):
        from nnkgraph.formats.parquet import open_table

        with open_table(source) as found:
            return {one: found.texts(one, missing="") for one in found.columns}, (
                source.name
            )
    with files.open_text(source, "", "gz", newline="") as text:
        tab = "\t" if ending.removesuffix(".gz").endswith(".tsv") else ","
        try:
            rows = [row for row in csv.reader(text, delimiter=tab, strict=True) if row]
        except csv.Error as error:
            raise InputError(f"{source.name}: no table: {error}") from error
    head, lines = (rows[0], rows[1:]) if rows else ([], [])
    odd = next((at for at, row in enumerate(lines, 1) if len(row) != len(head)), 0)
    if odd or len(set(head)) < max(1, len(head)):
        what = f"row {odd} has not {len(head)} fields" if odd else "no names of columns"
        raise InputError(f"{source.name}: no table: {what}")
    columns = zip(*lines, strict=True) if lines else ((),) * len(head)
    return dict(zip(head, map(list, columns), strict=True)), source.name


def read_graph(
    path: AnyPath, *, format: str | None = None, note: _base.Note = ignore
) -> Graph:
    """Read a graph and check it fully.

    Raises
    ------
    InputError
        Where the file cannot be read or does not hold a graph.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> nnkgraph.write_graph("graph.graphml", nnkgraph.build_graph(x, k=10))
    >>> nnkgraph.read_graph("graph.graphml").n_nodes
    100
    """
    plugin, source = reader("read_graph", os.fspath(path), format)
    return _graph(plugin, source, note)


def _graph(plugin: Format, source: files.Source, note: Callable[[str], None]) -> Graph:
    extras = Extras()
    if plugin.sidecar:
        from nnkgraph.formats.npz import read_sidecar

        extras = read_sidecar(source, note)
    return plugin.read_graph(source, extras, note)


def read_result(
    path: AnyPath,
    *,
    format: str | None = None,
    note: Callable[[str], None] = ignore,
) -> tuple[Graph | Answers | Candidates, dict[str, Any]]:
    """Read a graph, candidates or answers, whatever is there, and its provenance."""
    spec, role = os.fspath(path), "read_graph"
    if not is_known(spec, role) and is_known(spec, "read_candidates"):
        role = "read_candidates"
    plugin, source = reader(role, spec, format)
    kind = plugin.holds(source)
    if kind == "answers":
        answers = plugin.read_answers(source)
        return answers, answers.provenance
    if kind == "candidates":
        from nnkgraph.data import Candidates

        index, distance = plugin.read_candidates(source)
        ids, about = plugin.describe_candidates(source)
        distance = index[:, :0].astype(float) if distance is None else distance
        return Candidates(index, distance, ids=ids), about
    if role != "read_graph":
        choose("read_graph", spec, format)  # says what is read as a graph
    graph = _graph(plugin, source, note)
    return graph, graph.provenance


def read_answers(path: AnyPath, *, format: str | None = None) -> Answers:
    """Read the neighborhoods of queries that `write_answers` wrote as ``.npz``.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> nnkgraph.write_answers("near.npz", nnkgraph.query(x, x[:4] + 0.1, k=10))
    >>> nnkgraph.read_answers("near.npz")
    <Answers: 4 queries among 100 rows>
    """
    plugin, source = reader("read_answers", os.fspath(path), format)
    return plugin.read_answers(source)


def read_candidates(spec: AnyPath, *, format: str | None = None) -> _base.Neighbors:
    """Read ``neighbors`` and maybe ``distances``, or a bare array of neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.find_candidates(x, k=5)
    >>> nnkgraph.write_candidates("knn.npz", found, provenance={})
    >>> index, distance = nnkgraph.read_candidates("knn.npz")
    >>> index.shape
    (100, 5)
    """
    plugin, source = reader("read_candidates", os.fspath(spec), format)
    return plugin.read_candidates(source)


def candidate_ids(spec: AnyPath) -> tuple[str, ...] | None:
    """Read the names of the rows from a file of candidates, where it has any."""
    plugin, source = reader("read_candidates", os.fspath(spec), None)
    return plugin.describe_candidates(source)[0]


def write_graph(
    path: AnyPath,
    graph: Graph,
    *,
    format: str | None = None,
    labels: Labels | None = None,
    first: Callable[[Outputs], object] | None = None,
) -> None:
    """Write a graph, whole or not at all.

    What the format cannot carry goes to ``<path>.nnk.npz``, except for standard
    output, pipes and devices. Labels are classes that GEXF and GraphML give to nodes,
    for programs that color them; no graph has them when it is read. Files that
    ``first`` opens are in place before the graph is, or none is.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there before is untouched.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> nnkgraph.write_graph("graph.tsv", nnkgraph.build_graph(x, k=10))
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    check_ids(target, graph.ids, format=format)
    classes = None
    if labels is not None:
        check_classes(target, format=format)
        classes = labels.for_rows(graph.n_nodes, graph.ids, "the graph").names()
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_graph(stream, graph, Target(show(target), suffix, classes))
        stream.flush()
        if plugin.sidecar and not is_stream(target):
            from nnkgraph.formats.npz import write_sidecar

            write_sidecar(outputs, target, stream, graph, plugin.sidecar)
        if first is not None:
            first(outputs)


def write_features(spec: AnyPath, features: Features, outputs: Outputs) -> None:
    """Write features to ``FILE`` or ``FILE::ITEM``, one of several files."""
    path, item = split_item(os.fspath(spec))
    plugin, suffix = choose("write_features", path, None)
    try:
        stream = outputs.open(path)
        plugin.write_features(stream, features, Target(show(path), suffix, item=item))
        stream.flush()
    except OSError as error:  # said of this file, not of the first of them
        what = files.reason(error)
        raise OutputError(f"{show(path)}: cannot be written: {what}") from error


def check_features(
    spec: AnyPath, features: Features | None = None, *, no_clobber: bool = False
) -> None:
    """Check before any computing that features can be written."""
    path, item = split_item(os.fspath(spec))
    plugin, suffix = choose("write_features", path, None)
    check_file(path, no_clobber=no_clobber)
    if is_stream(path):
        raise ParameterError(f"{show(path)}: features are written to a file only")
    if item is not None and not plugin.has_items:
        raise ParameterError(f"{show(path)}: leave out '::{show(item)}'")
    if features is not None:
        plugin.check_features(features, Target(show(path), suffix, item=item))


def write_candidates(
    path: AnyPath,
    candidates: Candidates,
    *,
    provenance: dict[str, Any],
    format: str | None = None,
) -> None:
    """Write ``neighbors`` and ``distances``, whole or not at all.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.find_candidates(x, k=5)
    >>> nnkgraph.write_candidates("knn.h5", found, provenance={})
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_candidates", target, format)
    plugin.check_ids(candidates.ids or (), Target(show(target), suffix))
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_candidates(stream, candidates, provenance)
        stream.flush()


def write_answers(
    path: AnyPath, answers: Answers, *, format: str | None = None
) -> None:
    """Write neighborhoods of queries, whole or not at all.

    Tables have a line for each neighbor, the heaviest of a query first.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> nnkgraph.write_answers("near.tsv", nnkgraph.query(x, x[:4] + 0.1, k=10))
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_answers", target, format)
    place = Target(show(target), suffix)
    plugin.check_ids([*(answers.ids or ()), *(answers.query_ids or ())], place)
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_answers(stream, answers, place)
        stream.flush()


def check_output(
    path: AnyPath,
    *,
    format: str | None = None,
    no_clobber: bool = False,
    inputs: Iterable[str] = (),
    kind: Literal["graph", "candidates", "answers"] = "graph",
) -> None:
    """Check before any computing that an output can be written.

    It may neither be an input nor, for binary formats, a terminal.
    """
    target = os.fspath(path)
    _check_not_an_input(target, inputs)
    if target.endswith("/") or os.path.isdir(target):  # noqa: PTH112 - any string
        _check_target(target, no_clobber=no_clobber)
    plugin, suffix = choose(f"write_{kind}", target, format)
    if files.is_stdout(target):
        name, binary = show(target), plugin.binary or suffix.endswith(".gz")
        files.stdout_stream(name)  # raises where it is closed
        if binary and sys.stdout.isatty():
            raise ParameterError(
                f"{name}: a binary format would garble the terminal; send it to a file "
                "or a pipe, or choose a text format"
            )
        return
    ending = _base.SIDECAR if plugin.sidecar else ""
    _check_target(target, no_clobber=no_clobber, longest_ending=ending)


def check_file(
    path: AnyPath,
    *,
    suffixes: Sequence[str] = (),
    no_clobber: bool = False,
    inputs: Iterable[str] = (),
) -> None:
    """Check like `check_output` for a file that is no graph: a picture or a report."""
    target = os.fspath(path)
    _check_not_an_input(target, inputs)
    if suffixes and not target.lower().endswith(tuple(suffixes)):
        raise ParameterError(
            f"{show(target)}: the file name ends in none of {', '.join(suffixes)}"
        )
    if not files.is_stdout(target):
        _check_target(target, no_clobber=no_clobber)


def check_ids(
    path: AnyPath, ids: Sequence[str] | None, *, format: str | None = None
) -> None:
    """Check before any computing that a graph's format can carry the row ids."""
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    plugin.check_ids(ids or (), Target(show(target), suffix))


def check_classes(path: AnyPath, *, format: str | None = None) -> None:
    """Check before anything is read that a graph's format can carry classes."""
    target = os.fspath(path)
    if not choose("write_graph", target, format)[0].has_classes:
        raise ParameterError(
            f"{show(target)}: this format has no room for classes; write .gexf or "
            ".graphml, or leave the labels out"
        )


def _check_not_an_input(path: str, inputs: Iterable[str]) -> None:
    """Refuse to replace what is read, also through a link."""
    if is_stream(path):
        return
    for one in inputs:
        try:
            # Either may be missing.
            same = os.path.samefile(path, split_item(one)[0])  # noqa: PTH121
        except (OSError, ValueError):
            same = False
        if same:
            raise ParameterError(
                f"{show(path)}: the output is also an input; choose another name"
            )


def _check_target(path: str, *, no_clobber: bool, longest_ending: str = "") -> None:
    """Refuse a target that cannot be created or replaced."""
    name = show(path)
    if not path or path.endswith("/"):
        raise OutputError(f"{name}: a file name is needed, not a directory")
    if files.is_special(path):
        if not os.access(path, os.W_OK, effective_ids=True):
            raise OutputError(f"{name}: permission denied")
        return
    try:
        # The longest name that will be made, so that nothing is computed in vain.
        for look, one in ((os.lstat, path + longest_ending), (os.stat, path)):
            with contextlib.suppress(FileNotFoundError):  # it is yet to be made
                look(one)
    except (OSError, ValueError) as error:
        raise OutputError(f"{name}: {files.reason(error)}") from error
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OutputError(f"{name}: is a directory; a file name is needed")
    if no_clobber and os.path.lexists(path):
        raise OutputError(f"{name}: exists already, and `no_clobber` keeps it")
    if not target.parent.is_dir():
        raise OutputError(f"{name}: there is no directory {show(str(target.parent))}")
    if not os.access(target.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise OutputError(f"{name}: the directory cannot be written to")
