"""What is wrong with a table of text: a slow second look, for the message."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError
from nnkgraph.formats._columnnames import as_word, leave_out
from nnkgraph.formats._fields import MISSING, NUMBER
from nnkgraph.formats._source import show
from nnkgraph.formats._table import Layout, split_fields
from nnkgraph.formats._text import open_text

if TYPE_CHECKING:
    from nnkgraph.formats._source import Source

_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*")


def explain(source: Source, layout: Layout, said: str) -> InputError:
    """Return an error that names the first bad line and column."""
    expected, first = 0, list[str]()
    with open_text(source, "") as text:
        lines = itertools.islice(text, layout.skip, None)
        for number, line in enumerate(lines, layout.skip + 1):
            if not line.strip():
                continue
            fields = split_fields(line, layout.delimiter)
            place = f"{source.name}: line {number}"
            first = first or fields
            expected = expected or len(fields)
            for column in layout.roles.features(len(fields)):
                if not NUMBER.fullmatch(fields[column]):
                    what = _field(fields[column], column, line, number, layout)
                    advice = what[1] or _left_out(column, first, layout)
                    return InputError(f"{place}, column {column + 1} {what[0]}{advice}")
            if len(fields) != expected:
                return InputError(
                    f"{place} has {len(fields)} field(s) where {expected} are expected"
                    + _other_delimiter(line, layout.delimiter)
                )
    return InputError(f"{source.name}: cannot be read as a table of numbers: {said}")


def _field(
    field: str, column: int, line: str, number: int, layout: Layout
) -> tuple[str, str]:
    """Say what is wrong with one field, and what helps where that is plain."""
    if field.strip().lower() in MISSING:
        what = f"is missing ('{show(field)}')" if field.strip() else "is an empty field"
        word = as_word(layout.names, column)
        return what, f": remove or fill it, or leave the column out with --drop {word}"
    text = f"is not a number: '{show(field[:40])}'"
    other = _other_delimiter(line, layout.delimiter)
    if not other and _DECIMAL_COMMA.fullmatch(field):
        other = "; write decimal points, not decimal commas"
    if not other and number == 1 and layout.names is None:
        other = "; if the first line holds names, say --header"
    return text, other


def _left_out(column: int, first: list[str], layout: Layout) -> str:
    """Offer to do without text; other columns that begin with some come along."""
    features = layout.roles.features(len(first))
    texts = [at for at in features if not NUMBER.fullmatch(first[at])]
    if column not in texts:
        word = as_word(layout.names, column)
        return f"; correct it, or leave the column out with --drop {word}"
    texts.sort(key=lambda at: at != column)
    advice = leave_out(layout.names, texts, named=layout.roles.ids is not None)
    if any(map(NUMBER.fullmatch, layout.names or ())):
        advice += f"; if line {layout.skip} holds no names, say --no-header and numbers"
    return f"; {advice}"


def _other_delimiter(line: str, delimiter: str | None) -> str:
    """Suggest a delimiter that the line has where it lacks the expected one."""
    lacks = delimiter is not None and delimiter not in line
    for mark, shown in ((";", "';'"), ("\t", "tab"), (",", "','")):
        if mark in line and mark != delimiter and (mark == ";" or lacks):
            decimal = "; write decimal points" * ("," in line and mark == ";")
            return f"; try --delimiter {shown}{decimal}"
    return "; try --delimiter ' '" if lacks and len(line.split()) > 1 else ""
