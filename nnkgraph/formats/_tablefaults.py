"""What is wrong with a table of text: a slow second look, for the message."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError
from nnkgraph.formats._source import show
from nnkgraph.formats._table import MISSING, NUMBER, Layout, split_fields
from nnkgraph.formats._text import open_text

if TYPE_CHECKING:
    from nnkgraph.formats._source import Source

_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*")


def explain(source: Source, layout: Layout, said: str) -> InputError:
    """Return an error that names the first bad line and column."""
    expected = 0
    with open_text(source, "") as text:
        lines = itertools.islice(text, layout.skip, None)
        for number, line in enumerate(lines, layout.skip + 1):
            if not line.strip():
                continue
            fields = split_fields(line, layout.delimiter)
            place = f"{source.name}: line {number}"
            expected = expected or len(fields)
            for column, field in enumerate(fields):
                if column != layout.id_column and not NUMBER.fullmatch(field):
                    what = _field(field, column, line, number, layout)
                    return InputError(f"{place}, column {column + 1} {what}")
            if len(fields) != expected:
                return InputError(
                    f"{place} has {len(fields)} field(s) where {expected} are expected"
                    + _other_delimiter(line, layout.delimiter)
                )
    return InputError(f"{source.name}: cannot be read as a table of numbers: {said}")


def _field(field: str, column: int, line: str, number: int, layout: Layout) -> str:
    """Say what is wrong with one field, and what may help."""
    if field.strip().lower() in MISSING:
        what = f"is missing ('{show(field)}')" if field.strip() else "is an empty field"
        return f"{what}: remove or fill it"
    text = f"is not a number: '{show(field[:40])}'"
    other = _other_delimiter(line, layout.delimiter)
    if other:
        return text + other
    if _DECIMAL_COMMA.fullmatch(field):
        return f"{text}; write decimal points, not decimal commas"
    if number == 1 and layout.names is None:
        return f"{text}; if the first line holds names, say --header"
    names = layout.names or ()
    name = show(names[column]) if column < len(names) else ""
    if layout.id_column is not None:
        return f"{text}; remove the column {name!r}" if name else text
    return f"{text}; if this column holds row ids, say --id-column {name or column}"


def _other_delimiter(line: str, delimiter: str | None) -> str:
    """Suggest a delimiter that the line has where it lacks the expected one."""
    lacks = delimiter is not None and delimiter not in line
    for mark, shown in ((";", "';'"), ("\t", "tab"), (",", "','")):
        if mark in line and mark != delimiter and (mark == ";" or lacks):
            decimal = "; write decimal points" * ("," in line and mark == ";")
            return f"; try --delimiter {shown}{decimal}"
    return "; try --delimiter ' '" if lacks and len(line.split()) > 1 else ""
