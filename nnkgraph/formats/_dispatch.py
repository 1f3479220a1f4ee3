"""Writing graphs, candidates and answers, whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from nnkgraph.errors import InputError, OutputError, ParameterError
from nnkgraph.formats._base import Extras, Target, TextOptions, ignore
from nnkgraph.formats._graphs import MADE, SPREADSHEETS
from nnkgraph.runtime import registry
from nnkgraph.runtime.files import (
    Outputs,
    is_special,
    is_stdout,
    is_stream,
    open_source,
    reason,
    show,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nnkgraph.data import Features, Graph
    from nnkgraph.data.labels import Labels
    from nnkgraph.formats._base import Format, Note, Sparse
    from nnkgraph.runtime.files import Source

    AnyPath = str | os.PathLike[str]
    from nnkgraph.data import Answers, Candidates


def split_item(spec: str) -> tuple[str, str | None]:
    """Split ``FILE::ITEM``; a path that exists as a whole wins."""
    path, item = spec, ""
    while not (path == "-" or os.path.exists(path)):  # noqa: PTH110 - any string
        path, mark, tail = path.rpartition("::")
        if not mark:
            # Nothing exists: the last mark is the likeliest to be ours.
            path, _, item = spec.rpartition("::") if "::" in spec else (spec, "", "")
            break
        item = f"{tail}::{item}" if item else tail
    return path, item or None


@cache
def suffixes(role: str) -> dict[str, str]:
    """Return every suffix that serves a role, and the name of its format."""
    return {
        suffix: name
        for name in registry.names("formats")
        if registry.load("formats", name).can(role)
        for suffix in registry.load("formats", name).suffixes
    }


def _namesake(path: str, role: str) -> Any:
    """Return the format called like the ending of x.npy: no other need be loaded."""
    stem, dot, ending = os.path.basename(path).lower().partition(".")  # noqa: PTH119
    if stem and dot and ending in registry.names("formats"):
        found = registry.load("formats", ending)
        return found if f".{ending}" in found.suffixes and found.can(role) else None
    return None


def is_known(path: str | os.PathLike[str], role: str) -> bool:
    """Return whether a name says which format a file has, for a role."""
    name = split_item(os.fspath(path))[0].lower()
    return _namesake(name, role) is not None or name.endswith(tuple(suffixes(role)))


def choose(role: str, path: str, wanted: str | None) -> tuple[Format, str]:
    """Return the format for a path, and the suffix that stands for it."""
    lower = os.path.basename(path).lower()  # noqa: PTH119 - any string
    if wanted is None and (found := _namesake(path, role)):
        return found(), lower[lower.index(".") :]
    known = suffixes(role)
    ending = max((s for s in known if lower.endswith(s)), key=len, default="")
    if wanted is not None:
        suffix = "." + wanted.lower().removeprefix(".")
        if suffix not in known:
            suffix = next((s for s in known if known[s] == suffix[1:]), "")
        # A name such as graph.txt.gz asks for compression whatever the format is.
        if suffix + ".gz" in known and lower.endswith(".gz"):
            suffix += ".gz"
    else:
        suffix = ending
    if suffix in known:
        return registry.load("formats", known[suffix])(), suffix
    choices = ", ".join(known)
    if wanted is not None:
        raise ParameterError(f"unknown format {wanted!r}; choose from {choices}")
    if is_stdout(path):
        raise ParameterError(f"{show(path)}: name its `format`")
    _refuse_others(role, path, lower)
    raise ParameterError(
        f"{show(path)}: the file name ends in none of {choices}; rename it or name "
        "its `format`"
    )


def _refuse_others(role: str, path: str, lower: str) -> None:
    """Say what helps where a name belongs to a kind of file that is no use here."""
    what = ""
    if lower.endswith(SPREADSHEETS) and role.startswith("read"):
        what = "spreadsheets are not read: save it as CSV (or Parquet)"
    elif lower.endswith(SPREADSHEETS):
        what = "spreadsheets are not written: write .csv, which they open"
    elif role == "read_graph" and lower.endswith(tuple(suffixes("read_features"))):
        what = f"such files hold features, not a graph: {MADE}"
    if what:
        raise ParameterError(f"{show(path)}: {what}")


def reader(role: str, spec: str, wanted: str | None) -> tuple[Format, Source]:
    """Open ``FILE::ITEM`` and return the format that reads it, and the source."""
    path, item = split_item(spec)
    if path == "-":
        choose(role, path, wanted)  # before anything is waited for
    source = open_source(path, item=item, name=spec)
    if role == "read_features":
        from nnkgraph.formats._graphs import refuse_graph

        refuse_graph(source, by_name=wanted is None)
    plugin, suffix = choose(role, path, wanted)
    columns = role == "read_column" and not plugin.binary  # of a table of text
    if source.item is not None and not (plugin.has_items or columns):
        raise ParameterError(
            f"{source.name}: this format holds a single array; leave out "
            f"'::{show(source.item)}'"
        )
    return plugin, dataclasses.replace(source, suffix=suffix)


def is_binary(plugin: Format, suffix: str) -> bool:
    """Return whether what is written would garble a terminal."""
    return plugin.binary or suffix.endswith(".gz")


SUFFIX = ".nnk.npz"

_CHUNK = 1 << 20


def write(
    outputs: Outputs,
    path: str,
    stream: BinaryIO,
    graph: Graph,
    fields: tuple[str, ...],
) -> None:
    """Write the fields that a graph has, or remove a file that is out of date."""
    import numpy as np

    from nnkgraph.formats.npz import extra_members
    from nnkgraph.runtime.archive import write_archive

    target = os.path.realpath(path) + SUFFIX
    members = extra_members(Extras(**{one: getattr(graph, one) for one in fields}))
    if not members:
        outputs.remove(target)
        return
    stream.seek(0)
    members = {"sha256": np.array(_digest(stream)), **members}
    write_archive(outputs.open(target), members)


def file_beside(path: str) -> str | None:
    """Return the name of the file beside a graph, where there is one."""
    name = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114
    return name + SUFFIX if os.path.isfile(name + SUFFIX) else None  # noqa: PTH113


def read(source: Source, note: Note) -> Extras:
    """Read the file beside a graph; an absent or foreign one holds nothing."""
    if source.path is None:
        return Extras()
    # A link may stand beside its own file, or beside that of what it points to.
    paths = dict.fromkeys(
        [source.path + SUFFIX, os.path.realpath(source.path) + SUFFIX]
    )
    for path in filter(os.path.isfile, paths):
        found = _read_one(path, source, note)
        if found is not None:
            return found
    return Extras()


def _read_one(path: str, source: Source, note: Note) -> Extras | None:
    from nnkgraph.formats.npz import read_extras
    from nnkgraph.runtime.archive import open_archive

    try:
        with open_archive(open_source(path)) as archive:
            wanted = archive.text("sha256") if "sha256" in archive else ""
            with Path(source.path or "").open("rb") as stream:
                digest = _digest(stream)
            if wanted == digest:
                return read_extras(archive)
    except InputError as error:
        note(f"{error}; ignored")
        return None
    note(f"{show(path)}: does not belong to {source.name}; ignored")
    return None


def _digest(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def check_output(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    no_clobber: bool = False,
    inputs: Iterable[str] = (),
    kind: Literal["graph", "candidates", "answers"] = "graph",
) -> None:
    """Check before any computing that an output can be written.

    Raises
    ------
    ParameterError
        For an unknown format, binary data to a terminal, or an output that is an
        input.
    OutputError
        Where the target cannot be created or must not be replaced.
    """
    target = os.fspath(path)
    _check_not_an_input(target, (split_item(one)[0] for one in inputs))
    if target.endswith("/") or os.path.isdir(target):  # noqa: PTH112 - any string
        _check_target(target, no_clobber=no_clobber, longest_ending="")
    plugin, suffix = choose(f"write_{kind}", target, format)
    if is_stdout(target):
        _check_stdout(show(target), binary=is_binary(plugin, suffix))
        return
    ending = SUFFIX if plugin.sidecar else ""
    _check_target(target, no_clobber=no_clobber, longest_ending=ending)


def check_file(
    path: str | os.PathLike[str],
    *,
    suffixes: Sequence[str] = (),
    no_clobber: bool = False,
    inputs: Iterable[str] = (),
) -> None:
    """Check like `check_output` for a file that is no graph: a picture or a report."""
    target = os.fspath(path)
    _check_not_an_input(target, (split_item(one)[0] for one in inputs))
    if suffixes and not target.lower().endswith(tuple(suffixes)):
        raise ParameterError(
            f"{show(target)}: the file name ends in none of {', '.join(suffixes)}"
        )
    if not is_stdout(target):
        _check_target(target, no_clobber=no_clobber, longest_ending="")


def check_ids(
    path: str | os.PathLike[str],
    ids: Sequence[str] | None,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Check before any computing that a graph's format can carry the row ids.

    Raises
    ------
    OutputError
        For an id that the format would garble; the message names it.
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    plugin.check_ids(ids or (), Target(show(target), suffix))


def check_classes(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Check before anything is read that a graph's format can carry classes."""
    target = os.fspath(path)
    if not choose("write_graph", target, format)[0].has_classes:
        raise ParameterError(
            f"{show(target)}: this format has no room for classes; write .gexf or "
            ".graphml, or leave the labels out"
        )


def _check_stdout(name: str, *, binary: bool) -> None:
    """Refuse bytes that would garble a terminal."""
    stream: object = sys.stdout
    if stream is None:
        raise OutputError(f"{name}: standard output is closed")
    if binary and sys.stdout.isatty():
        raise ParameterError(
            f"{name}: a binary format would garble the terminal; send it to a file or "
            "a pipe, or choose a text format"
        )


def _check_not_an_input(path: str, inputs: Iterable[str]) -> None:
    """Refuse to replace what is read, also through a link."""
    if is_stdout(path) or is_special(path):
        return
    for one in inputs:
        try:
            same = os.path.samefile(path, one)  # noqa: PTH121 - either may be missing
        except (OSError, ValueError):
            same = False
        if same:
            raise ParameterError(
                f"{show(path)}: the output is also an input; choose another name"
            )


def _check_target(path: str, *, no_clobber: bool, longest_ending: str) -> None:
    """Refuse a target that cannot be created or replaced."""
    name = show(path)
    if not path or path.endswith("/"):
        raise OutputError(f"{name}: a file name is needed, not a directory")
    if is_special(path):
        if not os.access(path, os.W_OK, effective_ids=True):
            raise OutputError(f"{name}: permission denied")
        return
    try:
        # The longest name that will be made, so that nothing is computed in vain.
        os.lstat(path + longest_ending)
    except FileNotFoundError:
        pass  # The usual case: it is yet to be made.
    except (OSError, ValueError) as error:
        raise OutputError(f"{name}: {reason(error)}") from error
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OutputError(f"{name}: is a directory; a file name is needed")
    if no_clobber and os.path.lexists(path):
        raise OutputError(f"{name}: exists already, and `no_clobber` keeps it")
    if not target.parent.is_dir():
        raise OutputError(f"{name}: there is no directory {show(str(target.parent))}")
    if not os.access(target.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise OutputError(f"{name}: the directory cannot be written to")


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
    for_nodes: bool = False,
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
        (drop,) if isinstance(drop, str) else tuple(drop),
        dropped_before=dropped_before,
        absent=absent,
        for_nodes=for_nodes,
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
    from nnkgraph.data.labels import Labels
    from nnkgraph.formats._columns import read_column

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


def write_graph(
    path: AnyPath,
    graph: Graph,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    labels: Labels | None = None,
) -> None:
    """Write a graph, whole or not at all.

    What the format cannot carry goes to ``<path>.nnk.npz``, except for standard
    output, pipes and devices. Labels are classes that GEXF and GraphML give to nodes,
    for programs that color them; no graph has them when it is read.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there before is untouched.
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    check_ids(target, graph.ids, format=format)
    classes = None
    if labels is not None:
        check_classes(target, format=format)
        classes = labels.for_rows(graph.nodes, graph.ids, "the graph").names()
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_graph(stream, graph, Target(show(target), suffix, classes))
        stream.flush()
        if plugin.sidecar and not is_stream(target):
            write(outputs, target, stream, graph, plugin.sidecar)


def write_candidates(
    path: AnyPath,
    candidates: Candidates,
    *,
    provenance: dict[str, Any],
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Write ``neighbors`` and ``distances``, whole or not at all."""
    target = os.fspath(path)
    plugin, _ = choose("write_candidates", target, format)
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_candidates(stream, candidates, provenance)
        stream.flush()


def write_answers(
    path: AnyPath,
    answers: Answers,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Write neighborhoods of queries, whole or not at all."""
    target = os.fspath(path)
    plugin, suffix = choose("write_answers", target, format)
    place = Target(show(target), suffix)
    plugin.check_ids([*(answers.ids or ()), *(answers.query_ids or ())], place)
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        plugin.write_answers(stream, answers, place)
        stream.flush()
