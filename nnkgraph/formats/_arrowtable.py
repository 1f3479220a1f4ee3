"""What a Parquet table means: a matrix, one value per row, or edges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError
from nnkgraph.formats._arrow import as_texts, numbers
from nnkgraph.formats._arrowvalues import read_lists, read_numbers
from nnkgraph.formats._columnnames import item_of, key_hint, leave_out, some
from nnkgraph.formats._columns import as_array, likely_labels, pick_column
from nnkgraph.formats._edgelines import TITLES, named_graph
from nnkgraph.formats._facts import TITLE, Facts
from nnkgraph.formats._notgraph import MADE
from nnkgraph.formats._roles import check_own, drop_words, find_roles, say_unused
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from nnkgraph.data import Graph
    from nnkgraph.formats._arrow import Table
    from nnkgraph.formats._format import Extras, TextOptions
    from nnkgraph.formats._roles import Roles


def read_matrix(table: Table, item: str | None, options: TextOptions) -> Features:
    """Read the columns of numbers, or the column that is named."""
    roles = _roles(table, options)
    features, named = roles.features(len(table.columns)), roles.ids is not None
    columns = [table.columns[at] for at in features]
    if item is not None:
        columns = [_named(table, item)]
    kinds = {one: table.kind(one) for one in columns}
    if item is not None and kinds[columns[0]] == "list":
        values = read_lists(table, columns[0], gaps=options.gaps)
    else:
        _refuse_others(table, kinds, named=named)
        values = read_numbers(table, columns, gaps=options.gaps)
    hint = key_hint(table.columns, features, named=named) if item is None else ""
    if hint:
        options.note(f"{table.name}: {hint}")
    ids = _ids(table, roles)
    check_own(ids or (), options, table.name)
    found = Features.of(values, ids=ids, name=table.name, gaps=options.gaps)
    whole = len(columns) == values.shape[1]
    return replace(found, columns=tuple(columns) if whole else None)


def read_values(
    table: Table, item: str | None, options: TextOptions
) -> tuple[NDArray[Any], list[str] | None]:
    """Read one column of numbers or text, and the ids beside it."""
    asked = None if item is None else table.columns.index(_named(table, item))
    roles = _roles(table, options, asked)
    if item is None:
        usable = [one for one in table.columns if table.kind(one) in {"number", "text"}]
        rest = [one for one in usable if table.columns.index(one) != roles.ids]
        item = pick_column(
            rest,
            table.name,
            "column",
            lambda: likely_labels(rest, lambda one: table.texts(one, missing="")),
        )
        if len(usable) > 1:
            options.note(f"{table.name}: labels are in {show(item)!r}")
    column = _named(table, item)
    names = _ids(table, roles)
    if names is None:
        used, values = table.columns.index(column), _values(table, options)
        say_unused(table.columns, used, values, options, table.name)
    if table.kind(column) == "text":
        return as_array(table.texts(column, missing=""), table.name), names
    if table.kind(column) != "number":
        raise InputError(
            f"{table.name}: column {show(column)!r} ({table.type_of(column)})"
            " holds neither numbers nor text"
        )
    parts = [numbers(values) for _, (values,) in table.batches([column])]
    return np.concatenate(parts) if parts else np.empty(0), names


def read_graph(table: Table, extras: Extras) -> Graph:
    """Read the columns source and target, and weight where there is one."""
    facts = Facts()
    about = (table.schema.metadata or {}).get(TITLE.encode(), b"")
    for number, line in enumerate(about.decode("utf-8", "replace").split("\n"), 1):
        facts.take(line, table.name, number)
    columns = _edge_columns(table)
    labels: dict[str, int] = {}
    sources: list[NDArray[Any]] = []
    targets: list[NDArray[Any]] = []
    weights: list[NDArray[Any]] = []
    for start, batch in table.batches(columns):
        for values, column in zip(batch, columns, strict=True):
            if values.null_count:
                raise table.null(start, values, column)
        for values, places in zip(batch, (sources, targets), strict=False):
            texts = as_texts(values, "")
            places.append(
                np.array([labels.setdefault(t, len(labels)) for t in texts], np.int64)
            )
        found = numbers(batch[2]) if len(columns) > 2 else np.ones(len(batch[0]))
        weights.append(found.astype(np.float64))
    return named_graph(
        list(labels),
        np.concatenate([np.empty(0, np.int64), *sources]),
        np.concatenate([np.empty(0, np.int64), *targets]),
        np.concatenate([np.empty(0), *weights]),
        facts=facts,
        extras=extras,
        name=table.name,
        where=lambda edge: f"row {edge} (counted from 0)",
    )


def _edge_columns(table: Table) -> list[str]:
    known = {one.lower(): one for one in table.columns}
    pair = next((p for p in sorted(TITLES) if {*p} <= known.keys()), None)
    if pair is None:
        raise InputError(
            f"{table.name}: an edge list has columns source and target; these are "
            f"{some(table.columns)}; {MADE}"
        )
    columns = [known[one] for one in pair]
    for one in columns:
        kind = table.type_of(one)
        if table.kind(one) != "text" and not kind.startswith(("int", "uint")):
            raise InputError(
                f"{table.name}: column {show(one)!r} ({kind}) holds neither names nor "
                "numbers of nodes"
            )
    if "weight" in known:
        if table.kind(known["weight"]) != "number":
            raise InputError(f"{table.name}: the weights are no numbers")
        columns.append(known["weight"])
    return columns


def _roles(table: Table, options: TextOptions, asked: int | None = None) -> Roles:
    """Return which columns are no features: as told, or as pandas has marked it."""
    index = table.index_column()
    marked = index is not None and index not in drop_words(options, table.columns)
    if options.id_column is None and marked:
        options.note(f"{table.name}: the index of pandas names the rows")
        options = replace(options, id_column=index)

    def can_name(at: int) -> bool:
        return options.beside or table.kind(table.columns[at]) == "text"

    names, values = table.columns, _values(table, options)
    return find_roles(names, len(names), options, table.name, can_name, values, asked)


def _values(table: Table, options: TextOptions) -> Callable[[int], Iterator[str]]:
    """Return what reads a column of text; none is read where no ids are known."""

    def values(at: int) -> Iterator[str]:
        column = table.columns[at]
        if options.known and table.kind(column) == "text":
            for _, (batch,) in table.batches([column]):
                yield from as_texts(batch, "")

    return values


def _ids(table: Table, roles: Roles) -> list[str] | None:
    return None if roles.ids is None else table.texts(table.columns[roles.ids])


def _named(table: Table, item: str) -> str:
    if item in table.columns:
        return item
    if item.isdecimal() and int(item) < len(table.columns):
        return table.columns[int(item)]
    raise InputError(
        f"{table.name}: there is no column {show(item)!r}; there are "
        f"{some(table.columns)}"
    )


def _refuse_others(table: Table, kinds: dict[str, str], *, named: bool) -> None:
    odd = [one for one, kind in kinds.items() if kind != "number"]
    if not odd:
        return
    lists = [one for one in odd if kinds[one] == "list"]
    places = [table.columns.index(one) for one in odd]
    if lists:
        hint = f"name a column of lists as {item_of(table.name, lists[0])}"
    elif kinds[odd[0]] == "text":
        hint = leave_out(table.columns, places, named=named)
    else:
        advice = leave_out(table.columns, places[:1], named=True)
        hint = f"convert it to numbers, or {advice}"
    raise InputError(
        f"{table.name}: column {show(odd[0])!r} ({table.type_of(odd[0])}) "
        f"holds no numbers; {hint}"
    )
