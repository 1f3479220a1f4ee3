"""Table of text: comma, tab or blank separated numbers, compressed or not."""

from __future__ import annotations

import contextlib
import itertools
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

import numpy as np

from nnkgraph.data import Features, FloatArray
from nnkgraph.data.checks import Gaps, find_gaps
from nnkgraph.data.labels import is_missing
from nnkgraph.errors import InputError, MissingValuesError, NnkGraphError
from nnkgraph.formats import _columns, _fast
from nnkgraph.formats._base import Column, Format, TextOptions
from nnkgraph.formats._columns import NUMBER, as_word
from nnkgraph.formats._layout import (
    DECIMAL_COMMA,
    Layout,
    check_line,
    find_delimiter,
    find_layout,
    find_start,
    in_points,
    is_short,
    split_fields,
)
from nnkgraph.runtime.arrays import row_slices, stacked
from nnkgraph.runtime.files import Source, open_text, show

if TYPE_CHECKING:
    from collections.abc import Iterator


def data_lines(
    text: TextIO, layout: Layout, name: str, ids: list[str], *, gaps: bool = False
) -> Iterator[str]:
    """Yield the rows of numbers; what stands in the id column goes to `ids`.

    With `gaps` each field that is empty, or says that it is missing, becomes ``nan``.
    """
    delimiter, column = layout.delimiter, layout.roles.ids
    kept = layout.roles.features(layout.count)
    whole = not (layout.roles.others or gaps or delimiter == layout.decimal)
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
        if whole and (layout.decimal == "." or '"' not in line):
            yield layout.plain(line)
            continue
        fields = split_fields(line, delimiter)
        if len(fields) != layout.count:
            what = _miscounted(fields, layout.count, line, delimiter)
            raise InputError(f"{name}: line {number} {what}")
        if column is not None:
            # A line that holds nothing has no name, and may be left out later.
            hollow = gaps and not any(map(str.strip, fields))
            ids.append(f"line {number}" if hollow else fields[column])
        left = [layout.plain(fields[at]) for at in kept]
        if gaps:
            left = ["nan" if is_missing(one) else one for one in left]
        if delimiter:
            left = [f'"{one}"' if delimiter in one else one for one in left]
        if not any(left):
            left = ['""']  # no blank line, which would be passed over
        yield (delimiter or " ").join(left)


def explain(source: Source, layout: Layout, said: str) -> InputError:
    """Return an error that names the first bad line and column.

    Missing values are no reason: those are counted by themselves.
    """
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
                field = layout.plain(fields[column])
                if not NUMBER.fullmatch(field) and not is_missing(field):
                    wrong, advice = _field(fields[column], line, number, layout)
                    advice = advice or _left_out(column, first, layout)
                    return InputError(f"{place}, column {column + 1} {wrong}{advice}")
            if len(fields) != expected:
                what = _miscounted(fields, expected, line, layout.delimiter)
                return InputError(f"{place} {what}")
    return InputError(f"{source.name}: cannot be read as a table of numbers: {said}")


def _field(field: str, line: str, number: int, layout: Layout) -> tuple[str, str]:
    """Say what is wrong with one field, and what helps where that is plain."""
    text = f"is not a number: '{show(field[:40])}'"
    comma = layout.decimal == "." and DECIMAL_COMMA.fullmatch(field)
    other = "; say `decimal=','`" if comma else ""
    if layout.decimal == "," and NUMBER.fullmatch(field):
        other = "; it has a decimal point, where `decimal=','` asks for a comma"
    other = other or _other_delimiter(line, layout.delimiter)
    if not other and number == 1 and layout.names is None:
        other = "; if the first line holds names, say `header=True`"
    return text, other


def _left_out(column: int, first: list[str], layout: Layout) -> str:
    """Offer to do without text; other columns that begin with some come along."""
    features = layout.roles.features(len(first))
    numbers = [at for at in features if NUMBER.fullmatch(first[at])]
    commas = [at for at in features if DECIMAL_COMMA.fullmatch(first[at])]
    if layout.delimiter == ",":
        commas = []  # quoted ones may well be thousands
    known = {*numbers, *commas}
    texts = [at for at in features if at not in known and not is_missing(first[at])]
    if column not in texts:
        word = as_word(layout.names, column)
        return f"; correct it, or leave the column out with `drop={word}`"
    texts.sort(key=lambda at: at != column)
    advice = _columns.leave_out(layout.names, texts, named=layout.roles.ids is not None)
    if any(map(NUMBER.fullmatch, layout.names or ())):
        advice += (
            f"; if line {layout.skip} holds no names, say `header=False` and numbers"
        )
    points = next((at for at in numbers if "." in first[at]), None)
    if commas and points is not None:
        a, b = (show(first[at].strip()) for at in (commas[0], points))
        advice += f"; write all numbers alike: there are '{a}' and '{b}'"
    elif commas and layout.decimal == ".":
        advice += "; numbers have decimal commas here: say `decimal=','`"
    return f"; {advice}"


def _miscounted(
    fields: list[str], expected: int, line: str, delimiter: str | None
) -> str:
    hint = _other_delimiter(line, delimiter)
    return f"has {len(fields)} field(s) where {expected} are expected{hint}"


def _other_delimiter(line: str, delimiter: str | None) -> str:
    """Suggest a delimiter that the line has where it lacks the expected one."""
    lacks = delimiter is not None and delimiter not in line
    for mark, shown in ((";", ";"), ("\t", "tab"), (",", ",")):
        if mark in line and mark != delimiter and (mark == ";" or lacks):
            return f"; try `delimiter={shown!r}`"
    return "; try `delimiter=' '`" if lacks and len(line.split()) > 1 else ""


def _read(source: Source, options: TextOptions) -> tuple[list[list[str]], int]:
    """Return the fields of every line, and how many lines were skipped before."""
    rows: list[list[str]] = []
    start = find_start(source, options)
    delimiter = find_delimiter(start, source, options) if start.lines else None
    short = bool(start.lines) and is_short(start.lines, delimiter)
    with open_text(source, "") as text:
        lines = itertools.islice(text, start.skip, None)
        for number, line in enumerate(lines, start.skip + 1):
            check_line(line, number, source.name)
            fields = [one.strip() for one in split_fields(line, delimiter)] or [""]
            if not rows and short and _columns.may_be_header(fields, options):
                fields.insert(0, "")
            if rows and len(fields) != len(rows[0]):
                what = _miscounted(fields, len(rows[0]), line, delimiter)
                raise InputError(f"{source.name}: line {number} {what}")
            rows.append(fields)
    return rows, start.skip


def _has_names(rows: list[list[str]], item: str | None, options: TextOptions) -> bool:
    """Return whether the first row holds names: it is told, or looks like it."""
    if options.header is not None:
        return options.header
    first, rest = rows[0], rows[1:]
    if item is not None and not item.isdecimal():
        return True
    named = options.id_column
    # The column of R's names of rows has none.
    unnamed = not first[0] and len(first) > 1 and all(map(_columns.is_word, first[1:]))
    must = options.absent is None or named in first
    if unnamed or (named is not None and not named.isdecimal() and must):
        return True
    for at, one in enumerate(first):
        others = {_plain(row[at], options.decimal) for row in rest} - {""}
        if one.lower() in {*_columns.USUAL, _columns.OWN} and one not in others:
            return True
        numbers = all(map(NUMBER.fullmatch, others)) and not NUMBER.fullmatch(one)
        ids = others <= options.known and one not in options.known
        if others and one and (numbers or ids):
            return True
    return False


def _pick(
    names: list[str] | None, rows: list[list[str]], rest: list[int], source: Source
) -> int:
    """Return the number of the column that can only be the labels."""
    if len(rest) == 1:
        return rest[0]

    def likely() -> int:
        every = [str(at) for at in rest]
        found = _columns.likely_labels(every, lambda at: [row[int(at)] for row in rows])
        return int(found)

    name = source.name
    if names is None:
        at = likely()
        number, word = (_columns.item_of(name, one) for one in (str(at), rows[0][at]))
        raise InputError(
            f"{name}: which column holds the labels or values? Name it as {number}, or "
            f"as {word} where the first line holds names: {_columns.some(rows[0])}"
        )
    known = [names[at] for at in rest]
    picked = _columns.pick_column(known, name, "column", lambda: names[likely()])
    return names.index(picked)


_TEXT = 1 << 24  # characters that are read as numbers at once


@dataclass(frozen=True, slots=True)
class Csv(Format):
    """Table of text with one row per node (features)."""

    suffixes: ClassVar[tuple[str, ...]] = tuple(
        stem + packed for stem in (".csv", ".tsv", ".txt") for packed in ("", ".gz")
    )

    def read_features(self, source: Source, options: TextOptions, /) -> Features:
        """Read all columns but those of ids and those dropped as numbers."""
        layout = find_layout(source, options)
        try:
            values, ids = _numbers(source, layout, gaps=options.gaps)
        except NnkGraphError:
            raise  # a ValueError too, but it says more
        except ValueError as error:
            values, ids = _with_gaps(source, layout, str(error), options)
        names, others = layout.names, layout.roles.others
        fields = values.shape[1] + len(others)
        if names is not None and len(names) != fields:
            raise InputError(
                f"{source.name}: line {layout.skip} names {len(names)} columns, but "
                f"line {layout.skip + 1} has {fields} fields"
            )
        if not options.gaps:
            _check_finite(values, layout, source)
        unnamed = names is not None and layout.roles.ids == 0 and not names[0]
        own = ("",) if unnamed else ()
        _columns.check_own(ids or (), options, source.name, *own)
        found = Features.of(values, ids=ids, name=source.name, gaps=options.gaps)
        kept = layout.roles.features(layout.count)
        told: Any = {"name": source.name, "named": ids is not None}
        if kept[0] == 0 and (said := _columns.counts_rows(values, names, **told)):
            found = replace(found, warnings=(*found.warnings, said))
        if names is None:
            return found
        return replace(found, columns=tuple(names[at] for at in kept))

    def read_column(self, source: Source, options: TextOptions, /) -> Column:
        """Read the only column, or the one that the item names or numbers.

        A blank line of a single column is a row without a label.
        """
        rows, skip = _read(source, options)
        names = None
        if rows and _has_names(rows, source.item, options):
            names = rows.pop(0)
            if options.header is None:
                where = f"{source.name}: a header row was found in line"
                options.note(f"{where} {skip + 1}")
        if not rows:
            raise InputError(f"{source.name}: there are no labels inside")
        known, item = names or [str(at) for at in range(len(rows[0]))], source.item
        asked = None if item is None else _columns.asked(known, item, source.name)

        def can_name(at: int) -> bool:
            return len({row[at] for row in rows}) == len(rows)

        def values(at: int) -> Iterator[str]:
            return (row[at] for row in rows)

        own = names is not None and not names[0] and _name_rows(rows, options)
        columns = _columns.Columns(names, len(known), options, source.name, own)
        roles = columns.roles(can_name, values, asked)
        rest = [at for at in range(len(known)) if at != roles.ids]
        column = _pick(names, rows, rest, source) if asked is None else asked
        ids = None if roles.ids is None else [row[roles.ids] for row in rows]
        if ids is None:
            columns.say_unused(column, values)
        texts = [row[column] for row in rows]
        texts = [_plain(one, options.decimal) for one in texts]
        return _columns.as_array(texts, source.name), ids


_NUMERIC = re.compile(r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?", re.IGNORECASE)


def _plain(text: str, decimal: str) -> str:
    """Return a label or value, with a decimal point where it is a number."""
    return in_points(text, decimal) if _NUMERIC.fullmatch(text) else text


def _name_rows(rows: list[list[str]], options: TextOptions) -> bool:
    """Return whether the first fields, of a column without a name, are names."""
    first = {row[0] for row in rows}
    numbers = any(map(NUMBER.fullmatch, first))
    return first <= options.known or (not numbers and len(first) == len(rows))


def _numbers(
    source: Source, layout: Layout, *, gaps: bool
) -> tuple[FloatArray, list[str] | None]:
    """Read the values and, where a column has them, the ids.

    Raises `ValueError` where a field is no number.
    """
    if not gaps and (found := _fast.read(source, layout)):
        return found
    ids: list[str] = []
    with open_text(source, "") as text, warnings.catch_warnings():
        # That there are no rows is said later, in our words.
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        # The C reader of NumPy: a tenth of the time of Python's float().
        lines = data_lines(text, layout, source.name, ids, gaps=gaps)
        blocks = _blocks(lines, layout.delimiter)
        values = stacked(blocks, _fast.most_rows(source, layout))
    return values, None if layout.roles.ids is None else ids


def _with_gaps(
    source: Source, layout: Layout, said: str, options: TextOptions
) -> tuple[FloatArray, list[str] | None]:
    """Read a table again in which missing values may be all that is wrong."""
    if not options.gaps:
        with contextlib.suppress(ValueError):  # said below, by its place
            return _numbers(source, layout, gaps=True)
    raise explain(source, layout, said)


def _blocks(lines: Iterator[str], delimiter: str | None) -> Iterator[FloatArray]:
    """Read lines as numbers, some millions of characters at a time."""
    columns, some, size = 0, list[str](), 0
    for line in itertools.chain(lines, [None]):
        if line is not None:
            some.append(line)
            size += len(line)
        if some and size < _TEXT and line is not None:
            continue
        if some or not columns:
            block = np.loadtxt(
                some,
                dtype=np.float64,
                comments=None,
                delimiter=delimiter,
                quotechar='"',
                ndmin=2,
                encoding="utf-8",
            )
            if columns and block.shape[1] != columns:
                raise ValueError("the number of columns changed")
            columns, some, size = block.shape[1], [], 0
            yield block


def _check_finite(values: FloatArray, layout: Layout, source: Source) -> None:
    """Refuse infinity by its place, and missing values by all of their places."""
    count, row, column = 0, 0, 0
    for rows in row_slices(len(values), 8 * values.shape[1]):
        bad = ~np.isfinite(values[rows])
        if not count and bad.any():
            row, column = divmod(int(bad.argmax()), values.shape[1])
            row += rows.start
        count += int(np.count_nonzero(bad))
    if not count:
        return
    first, names = layout.skip + 1, layout.names
    kept = layout.roles.features(values.shape[1] + len(layout.roles.others))
    place = f"{source.name}: line {first + row}, column {kept[column] + 1}"
    if np.isinf(values[row, column]) or not (gaps := find_gaps(values)):
        raise InputError(
            f"{place} is infinity or beyond float64; {count} such "
            f"value{'s' * (count > 1)} in all: remove or fill them"
        )
    # A row of numbers is a line: blank ones are the last.
    with open_text(source, "") as text:
        line = next(itertools.islice(text, first + row - 1, None))
    field = split_fields(line, layout.delimiter)[kept[column]].strip()
    words = f"is missing ({show(field)!r})" if field else "is an empty field"
    what = "is NaN" if NUMBER.fullmatch(field) else words
    titles = [
        repr(show(names[at])) if names and names[at] else f"column {at + 1}"
        for at in kept
    ]
    advice = _hollow(gaps, kept, titles, first)
    raise MissingValuesError(
        f"{place} {what}; {gaps.text(titles, first)}{advice}: remove or fill them"
    )


def _hollow(gaps: Gaps, kept: list[int], titles: list[str], first: int) -> str:
    """Say what can be left out because it holds nothing: spreadsheets add such."""
    empty = np.flatnonzero(gaps.columns == gaps.shape[0]).tolist()
    said = ""
    if empty and len(empty) < len(kept):
        some = ", ".join(titles[at] for at in empty[:5]) + ", ..." * (len(empty) > 5)
        words = ",".join(str(kept[at]) for at in empty)
        said = f"; without any value: {some}, left out by `drop={words!r}`"
    if gaps.hollow_end:
        start = first + gaps.shape[0] - gaps.hollow_end
        end = first + gaps.shape[0] - 1
        lines = f"lines {start} to {end}" if start < end else f"line {end}"
        said += f"; without any value at the end: {lines}"
    return said


plugin: type[Format] = Csv
