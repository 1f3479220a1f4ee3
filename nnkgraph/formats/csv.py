"""Table of text: comma, tab or blank separated numbers, compressed or not."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.blockwise import stacked
from nnkgraph.checks import row_blocks
from nnkgraph.data import Features
from nnkgraph.errors import InputError
from nnkgraph.formats._format import Format
from nnkgraph.formats._roles import check_own
from nnkgraph.formats._table import Layout, data_lines, filled, find_layout
from nnkgraph.formats._tablefaults import explain
from nnkgraph.formats._text import open_text
from nnkgraph.formats._textcolumn import text_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nnkgraph.formats._format import TextOptions
    from nnkgraph.formats._source import Source


_TEXT = 1 << 24
"""Characters that are read as numbers at once."""


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
            except UnicodeDecodeError:
                raise  # A ValueError too, but explained where the text was opened.
            except ValueError as error:
                raise explain(source, layout, str(error)) from error
        if not options.gaps:
            _check_finite(values, layout, source.name)
        _check_names(values, layout, source.name)
        named = None if layout.roles.ids is None else ids
        check_own(ids, options, source.name)
        found = Features.of(values, ids=named, name=source.name, gaps=options.gaps)
        return replace(found, columns=_names(layout))

    def read_column(
        self, source: Source, options: TextOptions, /
    ) -> tuple[NDArray[np.str_], list[str] | None]:
        """Read the only column, or the one that the item names or numbers."""
        return text_column(source, options)


def _blocks(
    lines: Iterator[str], delimiter: str | None
) -> Iterator[NDArray[np.float64]]:
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


def _check_finite(values: NDArray[np.float64], layout: Layout, name: str) -> None:
    count, start, row, column = 0, 0, 0, 0
    for block in row_blocks(values):
        bad = ~np.isfinite(block)
        if not count and bad.any():
            row, column = divmod(int(bad.argmax()), values.shape[1])
            row += start
        count += int(np.count_nonzero(bad))
        start += len(block)
    if not count:
        return
    what = "NaN" if np.isnan(values[row, column]) else "infinity or beyond float64"
    fields = values.shape[1] + len(layout.roles.others)
    column = layout.roles.features(fields)[column]
    raise InputError(
        f"{name}: line {layout.skip + 1 + row}, column {column + 1} is {what}; {count} "
        f"such value{'s' * (count > 1)} in all: remove or fill them"
    )


def _check_names(values: NDArray[np.float64], layout: Layout, name: str) -> None:
    fields = values.shape[1] + len(layout.roles.others)
    if layout.names is not None and len(layout.names) != fields:
        raise InputError(
            f"{name}: line {layout.skip} names {len(layout.names)} columns, but line "
            f"{layout.skip + 1} has {fields} fields"
        )


def _names(layout: Layout) -> tuple[str, ...] | None:
    """Return the names of the features, where there is a header."""
    if layout.names is None:
        return None
    return tuple(layout.names[at] for at in layout.roles.features(layout.count))


plugin: type[Format] = Csv
