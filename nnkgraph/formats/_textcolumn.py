"""One value per row in a table of text: which column, and by which names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError
from nnkgraph.formats._columnnames import OWN, item_of, some
from nnkgraph.formats._columns import USUAL, as_array, likely_labels, pick_column
from nnkgraph.formats._fields import NUMBER
from nnkgraph.formats._roles import find_roles, say_unused
from nnkgraph.formats._source import show
from nnkgraph.formats._table import check_line, find_delimiter, split_fields
from nnkgraph.formats._text import open_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from nnkgraph.formats._format import TextOptions
    from nnkgraph.formats._source import Source


def text_column(
    source: Source, options: TextOptions
) -> tuple[NDArray[np.str_], list[str] | None]:
    """Read one column of a table of text, and the ids beside it.

    A blank line of a single column is a row without a label.
    """
    rows, skip = _read(source, options)
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
    known = names or [str(at) for at in range(len(rows[0]))]
    asked = None if source.item is None else _asked(known, source)

    def can_name(at: int) -> bool:
        return len({row[at] for row in rows}) == len(rows)

    def values(at: int) -> Iterator[str]:
        return (row[at] for row in rows)

    roles = find_roles(names, len(known), options, source.name, can_name, values, asked)
    rest = [at for at in range(len(known)) if at != roles.ids]
    column = _pick(names, rows, rest, source) if asked is None else asked
    ids = None if roles.ids is None else [row[roles.ids] for row in rows]
    if ids is None:
        say_unused(names, column, values, options, source.name)
    return as_array([row[column] for row in rows], source.name), ids


def _read(source: Source, options: TextOptions) -> tuple[list[list[str]], int]:
    """Return the fields of every line, and how many lines were skipped before."""
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
    return rows, skip


def _has_names(rows: list[list[str]], item: str | None, options: TextOptions) -> bool:
    """Return whether the first row holds names: it is told, or looks like it."""
    if options.header is not None:
        return options.header
    first, rest = rows[0], rows[1:]
    if item is not None and not item.isdecimal():
        return True
    named = options.id_column
    must = options.absent is None or named in first
    if named is not None and not named.isdecimal() and must:
        return True
    for at, one in enumerate(first):
        others = {row[at] for row in rest} - {""}
        if one.lower() in {*USUAL, OWN} and one not in others:
            return True
        numbers = all(map(NUMBER.fullmatch, others)) and not NUMBER.fullmatch(one)
        ids = others <= options.known and one not in options.known
        if others and one and (numbers or ids):
            return True
    return False


def _asked(known: list[str], source: Source) -> int:
    """Return the number of the column that the item names or numbers."""
    item = source.item or ""
    if known.count(item) == 1:
        return known.index(item)
    if item.isdecimal() and int(item) < len(known):
        return int(item)
    near = get_close_matches(item, known, n=1)
    hint = f"; did you mean {show(near[0])!r}?" if near and near[0] != item else ""
    raise InputError(
        f"{source.name}: there is no single column {show(item)!r}; there are "
        f"{some(known)}{hint}"
    )


def _pick(
    names: list[str] | None, rows: list[list[str]], rest: list[int], source: Source
) -> int:
    """Return the number of the column that can only be the labels."""

    def likely() -> str:
        return likely_labels(numbers, lambda at: [row[int(at)] for row in rows])

    numbers = [str(at) for at in rest]
    if names is None and len(rest) > 1:
        at = likely()
        word = item_of(source.name, rows[0][int(at)])
        raise InputError(
            f"{source.name}: which column holds the labels or values? Name it as "
            f"{item_of(source.name, at)}, or as {word} where the first line holds "
            f"names: {some(rows[0])}"
        )
    if names is None:
        return rest[0]
    own = names
    picked = pick_column(
        [own[at] for at in rest], source.name, "column", lambda: own[int(likely())]
    )
    return own.index(picked)
