"""How a table of text is laid out, and its lines ready to be read as numbers."""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._columnnames import key_hint
from nnkgraph.formats._fields import MISSING, is_word
from nnkgraph.formats._roles import Roles, drop_words, find_roles
from nnkgraph.formats._source import show
from nnkgraph.formats._text import open_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.formats._format import TextOptions
    from nnkgraph.formats._source import Source

_BY_NAME = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers stand in a table of text."""

    delimiter: str | None
    """What stands between two fields; None is any run of blanks."""

    skip: int
    """Lines before the first row of numbers."""

    names: list[str] | None
    """The fields of the header row, where there is one."""

    count: int
    """Fields of a line."""

    roles: Roles
    """Which columns are no features."""


def find_layout(text: TextIO, source: Source, options: TextOptions) -> Layout:
    """Look at the first lines of a table."""
    name = source.name
    skip, line = _first_line(text, name, options)
    delimiter = find_delimiter(line, source, options)
    fields = split_fields(line, delimiter)
    names, first = None, fields
    if _has_header(fields, options):
        names = [field.strip() for field in fields]
        skip += 1
        line = next(text, "")
        if not line.strip():
            raise InputError(f"{name}: there are no rows of numbers after the header")
        first = split_fields(line, delimiter)

    def can_name(at: int) -> bool:
        # Words can only be names; numbers may be a feature, unless nodes are known.
        return options.beside or (at < len(first) and is_word(first[at]))

    def values(at: int) -> Iterator[str]:
        # Most columns are told by their first field, without reading them.
        if not {*first[at : at + 1]} & options.known:
            return iter(("",))
        return _column(source, skip, delimiter, at)

    later: list[str] = []
    quiet = replace(options, note=later.append)
    roles = find_roles(names, len(fields), quiet, name, can_name, values)
    if names is not None and options.header is None:
        options.note(_header_remark(names, name, skip, roles))
    for remark in later:
        options.note(remark)
    return Layout(delimiter, skip, names, len(fields), roles)


def _first_line(text: TextIO, name: str, options: TextOptions) -> tuple[int, str]:
    """Return how many lines of remarks come first, and the line after them."""
    skip, line = 0, ""
    for line in text:
        if not line.startswith("#"):
            break
        skip += 1
    else:
        line = ""
    if skip:
        options.note(f"{name}: {skip} leading line(s) starting with '#' were skipped")
    if not line.strip():
        what = f"line {skip + 1} is blank" if line else "there are no rows of numbers"
        raise InputError(f"{name}: {what}")
    check_line(line, skip + 1, name)
    return skip, line


def _column(source: Source, skip: int, delimiter: str | None, at: int) -> Iterator[str]:
    """Yield the fields of one column, row by row."""
    with open_text(source, "") as text:
        for line in itertools.islice(text, skip, None):
            if line.strip():
                yield from split_fields(line, delimiter)[at : at + 1]


def data_lines(
    text: TextIO, layout: Layout, name: str, ids: list[str]
) -> Iterator[str]:
    """Yield the rows of numbers; what stands in the id column goes to `ids`."""
    delimiter, column = layout.delimiter, layout.roles.ids
    kept = layout.roles.features(layout.count)
    blank = 0
    numbered = enumerate(itertools.islice(text, layout.skip, None), layout.skip + 1)
    for number, line in numbered:
        if line.isspace() and (delimiter != "\t" or not line.strip(" \r\n")):
            blank = blank or number
            continue
        if blank:
            raise InputError(
                f"{name}: line {blank} is blank, but rows follow; remove blank lines"
            )
        check_line(line, number, name)
        if layout.roles.dropped:
            fields = _fields(line, number, layout, name)
            if column is not None:
                ids.append(fields[column])
            yield (delimiter or " ").join(_quoted(fields[at], delimiter) for at in kept)
            continue
        if column is None:
            yield line
            continue
        parts = _parts(line.rstrip("\r\n"), delimiter, column)
        if len(parts) <= column:
            raise InputError(
                f"{name}: line {number} has {len(parts)} field(s); the ids should be "
                f"in column {column + 1}"
            )
        ids.append(parts.pop(column))
        yield (delimiter or " ").join(parts)


def _fields(line: str, number: int, layout: Layout, name: str) -> list[str]:
    """Return the fields of a line, which are as many as the first line has."""
    fields = split_fields(line, layout.delimiter)
    if len(fields) != layout.count:
        raise InputError(
            f"{name}: line {number} has {len(fields)} field(s) where {layout.count} "
            "are expected"
        )
    return fields


def filled(lines: Iterator[str], delimiter: str | None) -> Iterator[str]:
    """Yield rows of numbers with ``nan`` for each field that is empty or says so."""
    for line in lines:
        yield (delimiter or " ").join(
            "nan" if one.strip().lower() in MISSING else one
            for one in split_fields(line, delimiter)
        )


def check_line(line: str, number: int, name: str) -> None:
    """Refuse what no line of text has."""
    if "\0" in line:
        raise InputError(f"{name}: line {number} has a NUL byte; it is not plain text")
    if '"' in line and line.count('"') % 2:
        raise InputError(
            f"{name}: line {number} has a quotation mark that is not closed"
        )


def split_fields(line: str, delimiter: str | None) -> list[str]:
    """Return the fields of one line, without their quotation marks."""
    line = line.rstrip("\r\n")
    if delimiter is None:
        return [field.strip('"') for field in line.split()]
    if '"' not in line:
        return line.split(delimiter)
    # A field may be as long as its line, whatever Python's limit was meant for.
    csv.field_size_limit(max(csv.field_size_limit(), len(line)))
    return next(csv.reader([line], delimiter=delimiter), [])


def _parts(line: str, delimiter: str | None, column: int) -> list[str]:
    """Split off the fields up to a column; the rest of the line is the last part."""
    if '"' not in line:
        return line.split(delimiter, column + 1)
    fields = split_fields(line, delimiter)
    return [
        one if at == column else _quoted(one, delimiter)
        for at, one in enumerate(fields)
    ]


def _quoted(field: str, delimiter: str | None) -> str:
    return f'"{field}"' if delimiter and delimiter in field else field


def find_delimiter(line: str, source: Source, options: TextOptions) -> str | None:
    """Return what stands between two fields; None is any run of blanks."""
    if options.delimiter is not None:
        wanted = _BY_NAME.get(options.delimiter, options.delimiter)
        if len(wanted) != 1 or wanted in '"\r\n.+-' or wanted.isalnum():
            raise ParameterError(
                f"the delimiter {options.delimiter!r} cannot stand between numbers; "
                "use one character such as ',' ';' or tab"
            )
        return None if wanted == " " else wanted
    stem = source.suffix.removesuffix(".gz")
    if stem != ".txt":
        return "\t" if stem == ".tsv" else ","
    return next((mark for mark in "\t;," if mark in line), None)


def _has_header(fields: list[str], options: TextOptions) -> bool:
    if options.header is not None:
        return options.header
    told = named_columns(options)
    names = [one for one in told if not one.isdecimal()]
    if names and (options.absent is None or {one.strip() for one in fields} & {*names}):
        return True
    skipped = {int(one) for one in told if one.isdecimal()}
    return any(is_word(field) for at, field in enumerate(fields) if at not in skipped)


def named_columns(options: TextOptions) -> list[str]:
    """Return the columns that the user spoke of, by name or number."""
    ids = [] if options.id_column is None else [options.id_column]
    return [*ids, *drop_words(options)]


def _header_remark(names: list[str], name: str, line: int, roles: Roles) -> str:
    some = ", ".join(show(one) for one in names[:5]) + ", ..." * (len(names) > 5)
    remark = f"{name}: a header row was found in line {line}: {some}"
    hint = key_hint(names, roles.features(len(names)), named=roles.ids is not None)
    return f"{remark}; {hint}" if hint else remark
