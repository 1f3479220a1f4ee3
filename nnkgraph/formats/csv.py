"""Table of text: comma, tab or blank separated numbers, compressed or not."""

from __future__ import annotations

import csv
import itertools
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TextIO

import numpy as np

from nnkgraph.data import Features, FloatArray
from nnkgraph.data.labels import is_missing
from nnkgraph.errors import InputError, NnkGraphError, ParameterError
from nnkgraph.formats import _columns
from nnkgraph.formats._base import Column, Format, TextOptions
from nnkgraph.formats._columns import NUMBER, Roles, as_word, is_word
from nnkgraph.runtime.arrays import row_slices, stacked
from nnkgraph.runtime.files import Source, open_text, show

if TYPE_CHECKING:
    from collections.abc import Iterator


_BY_NAME = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers stand in a table of text."""

    delimiter: str | None  # None is any run of blanks
    skip: int  # lines before the first row of numbers
    names: list[str] | None  # the fields of the header row, where there is one
    count: int  # fields of a line
    roles: Roles


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
        return options.for_nodes or (at < len(first) and is_word(first[at]))

    def values(at: int) -> Iterator[str]:
        # Most columns are told by their first field, without reading them.
        if not {*first[at : at + 1]} & options.known:
            return iter(("",))
        return _column(source, skip, delimiter, at)

    later: list[str] = []
    quiet = replace(options, note=later.append)
    columns = _columns.Columns(names, len(fields), quiet, name)
    roles = columns.roles(can_name, values)
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
    _note_skipped(skip, name, options)
    if not line.strip():
        what = f"line {skip + 1} is blank" if line else "there are no rows of numbers"
        raise InputError(f"{name}: {what}")
    check_line(line, skip + 1, name)
    return skip, line


def _note_skipped(skip: int, name: str, options: TextOptions) -> None:
    if skip:
        options.note(f"{name}: {skip} leading line(s) starting with '#' were skipped")


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
        if not layout.roles.others:
            yield line
            continue
        fields = split_fields(line, delimiter)
        if len(fields) != layout.count:
            what = _miscounted(fields, layout.count, line, delimiter)
            raise InputError(f"{name}: line {number} {what}")
        if column is not None:
            ids.append(fields[column])
        left = [fields[at] for at in kept]
        if delimiter:
            left = [f'"{one}"' if delimiter in one else one for one in left]
        yield (delimiter or " ").join(left)


def filled(lines: Iterator[str], delimiter: str | None) -> Iterator[str]:
    """Yield rows of numbers with ``nan`` for each field that is empty or says so."""
    for line in lines:
        yield (delimiter or " ").join(
            "nan" if is_missing(one) else one for one in split_fields(line, delimiter)
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
    told = [] if options.id_column is None else [options.id_column]
    told += _columns.drop_words(options)
    names = [one for one in told if not one.isdecimal()]
    if names and (options.absent is None or {one.strip() for one in fields} & {*names}):
        return True
    skipped = {int(one) for one in told if one.isdecimal()}
    return any(is_word(field) for at, field in enumerate(fields) if at not in skipped)


def _header_remark(names: list[str], name: str, line: int, roles: Roles) -> str:
    first = ", ".join(map(show, names[:5])) + ", ..." * (len(names) > 5)
    remark = f"{name}: a header row was found in line {line}: {first}"
    features, named = roles.features(len(names)), roles.ids is not None
    hint = _columns.key_hint(names, features, named=named)
    return f"{remark}; {hint}" if hint else remark


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
                    wrong, advice = _field(fields[column], column, line, number, layout)
                    advice = advice or _left_out(column, first, layout)
                    return InputError(f"{place}, column {column + 1} {wrong}{advice}")
            if len(fields) != expected:
                what = _miscounted(fields, expected, line, layout.delimiter)
                return InputError(f"{place} {what}")
    return InputError(f"{source.name}: cannot be read as a table of numbers: {said}")


def _field(
    field: str, column: int, line: str, number: int, layout: Layout
) -> tuple[str, str]:
    """Say what is wrong with one field, and what helps where that is plain."""
    if is_missing(field):
        what = f"is missing ('{show(field)}')" if field.strip() else "is an empty field"
        word = as_word(layout.names, column)
        return what, f": remove or fill it, or leave the column out: `drop={word}`"
    text = f"is not a number: '{show(field[:40])}'"
    other = _other_delimiter(line, layout.delimiter)
    if not other and _DECIMAL_COMMA.fullmatch(field):
        other = "; write decimal points, not decimal commas"
    if not other and number == 1 and layout.names is None:
        other = "; if the first line holds names, say `header=True`"
    return text, other


def _left_out(column: int, first: list[str], layout: Layout) -> str:
    """Offer to do without text; other columns that begin with some come along."""
    features = layout.roles.features(len(first))
    texts = [at for at in features if not NUMBER.fullmatch(first[at])]
    if column not in texts:
        word = as_word(layout.names, column)
        return f"; correct it, or leave the column out with `drop={word}`"
    texts.sort(key=lambda at: at != column)
    advice = _columns.leave_out(layout.names, texts, named=layout.roles.ids is not None)
    if any(map(NUMBER.fullmatch, layout.names or ())):
        advice += (
            f"; if line {layout.skip} holds no names, say `header=False` and numbers"
        )
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
            decimal = "; write decimal points" * ("," in line and mark == ";")
            return f"; try `delimiter={shown!r}`{decimal}"
    return "; try `delimiter=' '`" if lacks and len(line.split()) > 1 else ""


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
                what = _miscounted(fields, len(rows[0]), line, delimiter)
                raise InputError(f"{source.name}: line {number} {what}")
            rows.append(fields)
    _note_skipped(skip, source.name, options)
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
        with open_text(source, "") as text:
            layout = find_layout(text, source, options)
        ids: list[str] = []
        with open_text(source, "") as text, warnings.catch_warnings():
            # That there are no rows is said below, in our words.
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            try:
                # The C reader of NumPy: a tenth of the time of Python's float().
                lines = data_lines(text, layout, source.name, ids)
                if options.gaps:
                    lines = filled(lines, layout.delimiter)
                values = stacked(_blocks(lines, layout.delimiter))
            except (NnkGraphError, UnicodeDecodeError):
                raise  # ValueErrors too; the latter is explained by `open_text`
            except ValueError as error:
                raise explain(source, layout, str(error)) from error
        if not options.gaps:
            _check_finite(values, layout, source.name)
        names, others = layout.names, layout.roles.others
        fields = values.shape[1] + len(others)
        if names is not None and len(names) != fields:
            raise InputError(
                f"{source.name}: line {layout.skip} names {len(names)} columns, but "
                f"line {layout.skip + 1} has {fields} fields"
            )
        named = None if layout.roles.ids is None else ids
        _columns.check_own(ids, options, source.name)
        found = Features.of(values, ids=named, name=source.name, gaps=options.gaps)
        if names is None:
            return found
        kept = layout.roles.features(layout.count)
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

        columns = _columns.Columns(names, len(known), options, source.name)
        roles = columns.roles(can_name, values, asked)
        rest = [at for at in range(len(known)) if at != roles.ids]
        column = _pick(names, rows, rest, source) if asked is None else asked
        ids = None if roles.ids is None else [row[roles.ids] for row in rows]
        if ids is None:
            columns.say_unused(column, values)
        return _columns.as_array([row[column] for row in rows], source.name), ids


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


def _check_finite(values: FloatArray, layout: Layout, name: str) -> None:
    count, row, column = 0, 0, 0
    for rows in row_slices(len(values), 8 * values.shape[1]):
        bad = ~np.isfinite(values[rows])
        if not count and bad.any():
            row, column = divmod(int(bad.argmax()), values.shape[1])
            row += rows.start
        count += int(np.count_nonzero(bad))
    if not count:
        return
    what = "NaN" if np.isnan(values[row, column]) else "infinity or beyond float64"
    fields = values.shape[1] + len(layout.roles.others)
    column = layout.roles.features(fields)[column]
    raise InputError(
        f"{name}: line {layout.skip + 1 + row}, column {column + 1} is {what}; {count} "
        f"such value{'s' * (count > 1)} in all: remove or fill them"
    )


plugin: type[Format] = Csv
