"""One value per row: which array or column of a file holds the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError
from nnkgraph.formats._choose import reader
from nnkgraph.formats._format import TextOptions
from nnkgraph.formats._source import show
from nnkgraph.formats._table import (
    MISSING,
    NUMBER,
    check_line,
    find_delimiter,
    find_id_column,
    split_fields,
)
from nnkgraph.formats._text import open_text
from nnkgraph.labels import as_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nnkgraph.formats._source import Source

USUAL = ("y", "label", "labels", "target", "targets", "class", "classes", "category")
"""Names that labels go by, where nobody says which."""


_MOST_LETTERS, _MOST_BYTES = 200, 1 << 26


def read_column(
    spec: str, wanted: str | None, options: TextOptions
) -> tuple[NDArray[Any], Sequence[str] | None, str]:
    """Return one value per row, the ids of the rows or None, and the file's name."""
    plugin, source = reader("read_column", spec, wanted)
    # What is said about tables is meant for the other files of a command.
    used = options
    if plugin.binary:
        named = options.id_column if plugin.has_columns else None
        used = TextOptions(id_column=named, note=options.note)
    return *plugin.read_column(source, used), source.name


def pick_column(found: Sequence[str], name: str, what: str) -> str:
    """Return the name of the labels among those of all that could be them."""
    if len(found) == 1:
        return found[0]
    usual = [one for one in found if one.rpartition("/")[2].lower() in USUAL]
    if len(usual) == 1:
        return usual[0]
    some = ", ".join(map(show, found[:10])) + ", ..." * (len(found) > 10)
    if not found:
        raise InputError(f"{name}: there is no {what} of labels inside")
    raise InputError(
        f"{name}: which {what} holds the labels or values? Name it as "
        f"FILE::{show(found[0])}: {some}"
    )


def as_values(found: NDArray[Any], ids: Sequence[str] | None, name: str) -> Features:
    """Return one number per row as a column of features; NaN where there is none."""
    if found.ndim != 1:
        raise InputError(
            f"{name}: values are one number per row, but the shape is {found.shape}"
        )
    if found.dtype.kind in "US":
        texts = [one.strip().lower() for one in as_texts(found)]
        strange = [one for one in texts if one not in MISSING | {"nan"}]
        strange = [one for one in strange if not NUMBER.fullmatch(one)]
        if strange:
            raise InputError(
                f"{name}: {show(strange[0])!r} is no number; classes are named with "
                "--labels"
            )
        found = np.array([np.nan if t in MISSING else float(t) for t in texts])
    return Features.of(found[:, np.newaxis], ids=ids, name=name, gaps=True)


def as_array(texts: list[str], name: str) -> NDArray[np.str_]:
    """Return texts as an array, in which each takes as much room as the longest."""
    longest = max(map(len, texts), default=0)
    if longest > _MOST_LETTERS and 4 * longest * len(texts) > _MOST_BYTES:
        row = next(at for at, one in enumerate(texts) if len(one) == longest)
        raise InputError(
            f"{name}: row {row} (counted from 0) has a text of {longest:,} characters; "
            "labels are short"
        )
    return np.array(texts, np.str_)


def text_column(
    source: Source, options: TextOptions
) -> tuple[NDArray[np.str_], list[str] | None]:
    """Read one column of a table of text, and the ids beside it.

    A blank line of a single column is a row without a label.
    """
    rows: list[list[str]] = []
    skip, delimiter = 0, None
    with open_text(source, "") as text:
        for number, line in enumerate(text, 1):
            if not rows and line.startswith("#"):
                skip = number
                continue
            check_line(line, number, source.name)
            if not rows:
                delimiter = find_delimiter(line, source, options)
            fields = [one.strip() for one in split_fields(line, delimiter)] or [""]
            if rows and len(fields) != len(rows[0]):
                raise InputError(
                    f"{source.name}: line {number} has {len(fields)} field(s) where "
                    f"{len(rows[0])} are expected"
                )
            rows.append(fields)
    if skip:
        options.note(
            f"{source.name}: {skip} leading line(s) starting with '#' were skipped"
        )
    names = None
    if rows and _has_names(rows, source.item, options):
        names = rows.pop(0)
        if options.header is None:
            options.note(f"{source.name}: a header row was found in line {skip + 1}")
    if not rows:
        raise InputError(f"{source.name}: there are no labels inside")
    id_column = find_id_column(names, len(rows[0]), options.id_column, source.name)
    column = _column(names, len(rows[0]), id_column, source)
    ids = None if id_column is None else [row[id_column] for row in rows]
    names_rows = None if ids is not None else _id_like(names, rows, column)
    if names_rows is not None:
        options.note(
            f"{source.name}: rows are taken in order; --id-column {show(names_rows)} "
            "would match them by their ids"
        )
    return as_array([row[column] for row in rows], source.name), ids


def _id_like(names: list[str] | None, rows: list[list[str]], used: int) -> str | None:
    """Return the column that seems to hold names of rows: words, each only once."""
    for at, name in enumerate(names or ()):
        values = {row[at] for row in rows}
        words = len(values) == len(rows) and not any(map(NUMBER.fullmatch, values))
        if at != used and (name == "id" or words):
            return name
    return None


def _has_names(rows: list[list[str]], item: str | None, options: TextOptions) -> bool:
    """Return whether the first row holds names: it is told, or looks like it."""
    if options.header is not None:
        return options.header
    asked = (item, options.id_column)
    if any(one is not None and not one.isdecimal() for one in asked):
        return True
    first, rest = rows[0], rows[1:]
    for at, one in enumerate(first):
        others = {row[at] for row in rest} - {""}
        if one.lower() in USUAL and one not in others:
            return True
        numbers = others and all(map(NUMBER.fullmatch, others))
        if numbers and one and not NUMBER.fullmatch(one):
            return True
    return False


def _column(
    names: list[str] | None, width: int, id_column: int | None, source: Source
) -> int:
    known = names or [str(at) for at in range(width)]
    if source.item is None:
        rest = [one for at, one in enumerate(known) if at != id_column]
        return known.index(pick_column(rest, source.name, "column"))
    if known.count(source.item) == 1:
        return known.index(source.item)
    if source.item.isdecimal() and int(source.item) < width:
        return int(source.item)
    some = ", ".join(map(show, known[:10]))
    raise InputError(
        f"{source.name}: there is no single column {show(source.item)!r}; there are "
        f"{some}"
    )
