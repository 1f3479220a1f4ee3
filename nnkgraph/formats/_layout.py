"""How a table of text is laid out: found by looking at its first lines."""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats import _columns
from nnkgraph.formats._columns import Roles, is_word
from nnkgraph.runtime.files import Source, open_text, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnkgraph.formats._base import TextOptions

_BY_NAME = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_SEP = re.compile(r"""\ufeff?"?sep=([^\w"'.+-])"?""", re.IGNORECASE)
"""The first line of a table that Excel is told about its delimiter by."""

_QUOTED = re.compile('"[^"]*"')
_QUOTED_COMMA = re.compile('"[+-]?[0-9]+,[0-9]+"')
_SAMPLE = 4
"""Lines that are looked at."""

DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+(e[+-]?[0-9]+)?\s*", re.IGNORECASE)
_SWAP = str.maketrans(",.", ".,")


@dataclass(frozen=True, slots=True)
class Start:
    """The first lines of a table."""

    skip: int  # lines before the first row
    declared: str | None  # the delimiter that the file itself names
    lines: list[str]  # the first rows, a header among them


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers stand in a table of text."""

    delimiter: str | None  # None is any run of blanks
    skip: int  # lines before the first row of numbers
    names: list[str] | None  # the fields of the header row, where there is one
    count: int  # fields of a line
    roles: Roles
    decimal: str = "."

    def plain(self, field: str) -> str:
        """Return a field, or a whole line, with decimal points."""
        return in_points(field, self.decimal)


def in_points(text: str, decimal: str) -> str:
    """Return numbers with decimal points; points among commas become no numbers."""
    return text if decimal == "." else text.translate(_SWAP)


def find_start(source: Source, options: TextOptions) -> Start:
    """Read the first lines; those of remarks, and Excel's ``sep=;``, are skipped."""
    remarks, declared, lines = 0, None, list[str]()
    with open_text(source, "") as text:
        for line in text:
            if not lines and declared is None and line.startswith("#"):
                remarks += 1
            elif not lines and declared is None and (found := _SEP.match(line)):
                declared = found[1]
            else:
                lines.append(line)
            if len(lines) == _SAMPLE:
                break
    name = source.name
    if remarks:
        options.note(
            f"{name}: {remarks} leading line(s) starting with '#' were skipped"
        )
    if declared is not None:
        place = f"{name}: line {remarks + 1}"
        options.note(f"{place} says that fields are split at {_shown(declared)}")
    return Start(remarks + (declared is not None), declared, lines)


def _shown(delimiter: str | None) -> str:
    return "tabs" if delimiter == "\t" else repr(show(delimiter or " "))


def find_layout(source: Source, options: TextOptions) -> Layout:
    """Look at the first lines of a table of numbers."""
    name, start = source.name, find_start(source, options)
    skip, lines = start.skip, start.lines
    if not (lines and lines[0].strip()):
        what = f"line {skip + 1} is blank" if lines else "there are no rows of numbers"
        raise InputError(f"{name}: {what}")
    check_line(lines[0], skip + 1, name)
    delimiter = find_delimiter(start, source, options)
    fields = split_fields(lines[0], delimiter)
    names, first, named = None, fields, False
    if _has_header(fields, options):
        names = [field.strip() for field in fields]
        skip += 1
        row = lines[1] if len(lines) > 1 else ""
        if not row.strip():
            raise InputError(f"{name}: there are no rows of numbers after the header")
        first = split_fields(row, delimiter)
        short = is_short(lines, delimiter)
        names = [""] * short + names
        # R names its rows in a column without a name, and quotes them.
        named = short or (not names[0] and (row[0] == '"' or is_word(first[0])))

    def can_name(at: int) -> bool:
        # Words can only be names; numbers may be a feature, unless nodes are known.
        return options.for_nodes or (at < len(first) and is_word(first[at]))

    def values(at: int) -> Iterator[str]:
        # Most columns are told by their first field, without reading them.
        if not {*first[at : at + 1]} & options.known:
            return iter(("",))
        return _column(source, skip, delimiter, at)

    later: list[str] = []
    quiet = replace(options, note=later.append)
    count = len(names or fields)
    columns = _columns.Columns(names, count, quiet, name, row_names=named)
    roles = columns.roles(can_name, values)
    if names is not None and options.header is None:
        options.note(_header_remark(names, name, skip, roles))
    for remark in later:
        options.note(remark)
    return Layout(delimiter, skip, names, count, roles, options.decimal)


def is_short(lines: Sequence[str], delimiter: str | None) -> bool:
    """Return whether rows have one field more than their header: names, as R writes."""
    head, *rows = [split_fields(one, delimiter) for one in lines if one.strip()] or [[]]
    sure = len(rows) > 1 or (lines and lines[0].startswith('"'))
    longer = {len(row) for row in rows} == {len(head) + 1}
    return bool(sure) and longer and all(row[-1].strip() for row in rows)


def _column(source: Source, skip: int, delimiter: str | None, at: int) -> Iterator[str]:
    """Yield the fields of one column, row by row."""
    with open_text(source, "") as text:
        for line in itertools.islice(text, skip, None):
            if line.strip():
                yield from split_fields(line, delimiter)[at : at + 1]


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


def find_delimiter(start: Start, source: Source, options: TextOptions) -> str | None:
    """Return what stands between two fields; None is any run of blanks."""
    told = start.declared if options.delimiter is None else options.delimiter
    if told is not None:
        wanted = _BY_NAME.get(told, told)
        if len(wanted) != 1 or wanted in '"\r\n.+-' or wanted.isalnum():
            raise ParameterError(
                f"the delimiter {told!r} cannot stand between numbers; "
                "use one character such as ',' ';' or tab"
            )
        return None if wanted == " " else wanted
    stem = source.suffix.removesuffix(".gz")
    usual = {".txt": None, ".tsv": "\t"}.get(stem, ",")
    found = _likeliest(start.lines, usual, options)
    if usual is None:
        return found
    if found != usual and any(f"{found}" in line for line in start.lines):
        options.note(f"{source.name}: fields are split at {_shown(found)}, as found")
    return found


def _likeliest(lines: list[str], usual: str | None, options: TextOptions) -> str | None:
    """Return the usual delimiter unless only another one makes fields of the lines."""
    marks = [one for one in (usual, "\t", ";", ",") if one is not None]
    first = _QUOTED.sub('""', lines[0]) if lines else ""
    if options.decimal == "," and not any(map(_QUOTED_COMMA.search, lines)):
        marks = [one for one in marks if one != ","]  # it stands within numbers
        usual = ";" if usual == "," else usual
    filled = [line for line in lines if line.strip()]
    for mark in marks:
        fields = [split_fields(line, mark) for line in filled]
        counts = {len(one) for one in fields}
        fits = (len(counts) == 1 and counts != {1}) or is_short(filled, mark)
        if fits and not any(map(_mixed, fields[0] + fields[-1])):
            return mark
    there = [mark for mark in marks if mark in first]
    return there[0] if there else usual


def _mixed(field: str) -> bool:
    """Return whether a field looks like several, with another delimiter."""
    return bool({*field} & {*"\t;,"}) and not DECIMAL_COMMA.fullmatch(field)


def _has_header(fields: list[str], options: TextOptions) -> bool:
    if options.header is not None:
        return options.header
    told = [] if options.id_column is None else [options.id_column]
    told += _columns.drop_words(options)
    names = [one for one in told if not one.isdecimal()]
    if names and (options.absent is None or {one.strip() for one in fields} & {*names}):
        return True
    skipped = {int(one) for one in told if one.isdecimal()}
    return any(is_word(field) for at, field in enumerate(fields) if at not in skipped)


def _header_remark(names: list[str], name: str, line: int, roles: Roles) -> str:
    some = [show(one) or "''" for one in names[:5]]
    first = ", ".join(some) + ", ..." * (len(names) > 5)
    remark = f"{name}: a header row was found in line {line}: {first}"
    features, named = roles.features(len(names)), roles.ids is not None
    hint = _columns.key_hint(names, features, named=named)
    return f"{remark}; {hint}" if hint else remark
