"""Tables on disk that remember what was computed: a row that is there stays."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import nnkgraph
from nnkgraph.errors import InputError
from nnkgraph.formats import write_file
from paper.setting import watched

Row = dict[str, Any]


class Table:
    """A csv file with a row for every case that was computed.

    Parameters
    ----------
    path : Path
        The file; it need not be there.
    keys : sequence of str
        Columns that say which case a row is about.
    values : sequence of str
        Columns that were computed.
    """

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str]) -> None:
        self.path = path
        self._keys = (*keys, "version")
        self._columns = (*self._keys, *values)
        self._rows: dict[tuple[str, ...], Row] = {}
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                if tuple(reader.fieldnames or ()) != self._columns:
                    raise InputError(
                        f"{path}: it has other columns than this experiment writes: "
                        "move it away, or use another folder"
                    )
                for row in reader:
                    self._rows[self._key(row)] = {k: _value(v) for k, v in row.items()}

    def fill(
        self,
        cases: Sequence[Row],
        compute: Callable[[list[Row]], Iterable[Row]],
        *,
        group: Sequence[str] = (),
        also: Callable[[Row], bool] = lambda _: True,
        mapper: Callable[..., Iterable[Iterable[Row]]] = map,
    ) -> list[Row]:
        """Compute the cases whose rows are not there, and return the rows of all.

        Parameters
        ----------
        compute
            Is given cases that are missing, and returns the values of each. The file is
            written after every call.
        group : sequence of str
            Cases that agree in these columns are computed in one call.
        also
            Whether what else belongs to a case is there as well.
        mapper
            Calls ``compute`` for every group, in order: ``map``, or that of a pool.
        """
        cases = [{**case, "version": nnkgraph.__version__} for case in cases]
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for case in cases:
            key = self._key(case)
            if key not in self._rows or not also(case):
                mark = tuple(case[one] for one in group) if group else key
                groups.setdefault(mark, []).append(case)
        done = zip(groups.values(), mapper(compute, groups.values()), strict=True)
        for missing, found in watched(done, self.path.stem, len(groups)):
            for case, values in zip(missing, found, strict=True):
                row = {**case, **values}
                self._rows[self._key(case)] = {k: row[k] for k in self._columns}
            write_csv(self.path, self._columns, self._rows.values())
        return [self._rows[self._key(case)] for case in cases]

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(_text(row[one]) for one in self._keys)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a table, whole or not at all."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows([_text(row[one]) for one in columns] for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.getvalue().encode())


def mean(rows: Iterable[Row], column: str) -> float:
    """Return the mean of a column, of the rows that have a value there."""
    values = [row[column] for row in rows if row[column] is not None]
    return sum(values) / len(values) if values else float("nan")


def where(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows with these values."""
    return [row for row in rows if all(row[k] == v for k, v in wanted.items())]


def _text(value: Any) -> str:
    """Return a value as text that reads back as the same value."""
    if value is None or value != value:  # noqa: PLR0124 - NaN is no value
        return ""
    return str(value.item() if hasattr(value, "item") else value)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None
