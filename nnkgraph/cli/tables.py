"""What was said about tables, for each of the files of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph import formats
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

_TEXT = (".csv", ".tsv", ".txt", ".gz")
_COLUMNS = (".parquet",)


def _kind(spec: str, format_: str | None = None) -> str:
    """Return whether a file is text, has columns without being text, or neither."""
    name = formats.split_item(spec)[0].lower() if format_ is None else f".{format_}"
    if name.endswith(_COLUMNS):
        return "columns"
    known = formats.is_known(name, "read_features") and not name.endswith(_TEXT)
    return "" if known else "text"


def label_columns(train: str, *others: str | None) -> list[str]:
    """Return the columns of a table that are no features: labels are in them."""
    table, _ = formats.split_item(train)
    found = []
    for path, item in (formats.split_item(one) for one in others if one):
        if path == "-" or path != table or not _kind(path):
            continue
        if item is None:
            raise ParameterError(
                f"{path}: features and labels are in one table: say which column the "
                "labels are, as FILE::NAME, so that it is not taken for a feature"
            )
        found.append(item)
    return found


class Tables:
    """Options for tables, handed out file by file.

    They are meant for the tables among the files; FEATURES that come first must have
    the columns that are spoken of. Other tables may lack them: their rows go by a
    column called id, or by their order. One table must have the id column, though.
    """

    def __init__(
        self,
        files: Iterable[str | None],
        *,
        delimiter: str | None,
        header: bool | None,
        id_column: str | None,
        drop: tuple[str, ...] = (),
    ) -> None:
        self._kinds = [_kind(one) for one in files if one is not None]
        self._left = len(self._kinds) - self._kinds.count("")
        self._text = {"delimiter": delimiter, "header": header}
        self._columns: dict[str, Any] = {"id_column": id_column, "drop": drop}
        self._named = 0
        self._dropped = False

    def features(self, spec: str, format_: str | None = None) -> dict[str, Any]:
        """Return the options for the file that has to have the columns."""
        return self._taken(spec, format_, strict=True)

    def others(
        self, spec: str, format_: str | None = None, *, beside: bool = False
    ) -> dict[str, Any]:
        """Return the options for further rows, or for what stands beside nodes."""
        before = self._dropped
        said = self._taken(spec, format_)
        return {**said, "dropped_before": before, "beside": beside}

    def labels(self, spec: str) -> dict[str, Any]:
        """Return the options for labels or values, which are one column."""
        said = self._taken(spec, None)
        return {name: one for name, one in said.items() if name != "drop"}

    def _taken(
        self, spec: str, format_: str | None, *, strict: bool = False
    ) -> dict[str, Any]:
        kind = _kind(spec, format_)
        self._left -= kind != ""
        last = self._left <= 0 and not self._named
        absent = None if strict or last else self._absent
        self._named += kind != ""
        text, columns = dict(self._text), dict(self._columns)
        # Where no file is a table, all is handed out to be refused by name.
        if kind != "text" and "text" in self._kinds:
            text = dict.fromkeys(text)
        if kind == "" and any(self._kinds):
            text, columns = dict.fromkeys(text), {"id_column": None, "drop": ()}
        self._dropped = self._dropped or bool(kind)
        return {**text, **columns, "absent": absent}

    def _absent(self) -> None:
        """Count a table that has no such id column."""
        self._named -= 1
