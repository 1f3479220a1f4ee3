"""Rows taken out of features, and rows put below others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features, SparseRows
from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import check_fits, new_array, row_slices, taken_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import FloatArray, IndexArray


def taken(features: Features, rows: IndexArray) -> Features:
    """Return some rows of features, in the order given."""
    x, ids = features.x, features.ids
    x = x[rows] if isinstance(x, SparseRows) else taken_rows(x, rows)
    return replace(features, x=x, ids=None if ids is None else _some(ids, rows))


def _some(ids: Sequence[str], rows: IndexArray) -> tuple[str, ...]:
    return tuple(ids[i] for i in rows.tolist())


def below(parts: Sequence[Features], name: str) -> Features:
    """Return features one below the other, under a name.

    Raises
    ------
    InputError
        Where the columns differ, an id is there twice, or only some rows have ids.
    """
    first = parts[0]
    for one in parts[1:]:
        _check_same_kind(first, one)
    ids: tuple[str, ...] | None = None
    if first.ids is not None:
        ids = tuple(name for one in parts for name in one.ids or ())
        _check_ids_differ(parts, len(ids))
    remarks = dict.fromkeys(text for one in parts for text in one.warnings)
    xs = [one.x for one in parts]
    return replace(first, x=_stacked(xs), ids=ids, name=name, warnings=tuple(remarks))


def _check_same_kind(first: Features, other: Features) -> None:
    d, width = first.x.shape[1], other.x.shape[1]
    if d != width:
        raise InputError(f"{other.name}: {width} columns, but {first.name} has {d}")
    if first.columns and other.columns and first.columns != other.columns:
        pairs = zip(first.columns, other.columns, strict=True)
        one, two = next((one, two) for one, two in pairs if one != two)
        raise InputError(
            f"{other.name}: has a column {two!r} where {first.name} has {one!r}"
        )
    if (first.ids is None) != (other.ids is None):
        named, bare = (first, other) if first.ids is not None else (other, first)
        raise InputError(
            f"{other.name}: the rows of {named.name} have names, and those of "
            f"{bare.name} have none: name all rows or none"
        )


def _check_ids_differ(parts: Sequence[Features], total: int) -> None:
    known: dict[str, Features] = {}
    for one in parts:
        for row in one.ids or ():
            before = known.setdefault(row, one)
            if before is not one:
                again = total - len({name for part in parts for name in part.ids or ()})
                raise InputError(
                    f"{one.name}: the id {row!r} is in {before.name} already; ids that "
                    f"are there twice: {again}"
                )


def _stacked(xs: list[Any]) -> Any:
    """Return matrices one below the other; sparse where the first is."""
    if len(xs) == 1:
        return xs[0]
    if isinstance(xs[0], SparseRows):
        found = xs[0]
        for x in xs[1:]:
            found = found.stacked(_sparse(x))
        return found
    xs = [x.dense() if isinstance(x, SparseRows) else x for x in xs]
    total, d = sum(map(len, xs)), xs[0].shape[1]
    both, start = new_array((total, d), np.result_type(*(x.dtype for x in xs))), 0
    for x in xs:
        for rows in row_slices(len(x), 8 * d):
            both[start + rows.start : start + rows.stop] = x[rows]
        start += len(x)
    return both


def dense_rows(x: Any) -> FloatArray:
    """Return rows as an array of float64, sparse ones with all their zeros."""
    return x.dense() if isinstance(x, SparseRows) else np.asarray(x, np.float64)


def in_form_of(like: Any, features: Features) -> Features:
    """Return features with sparse rows where others are sparse, or with dense ones."""
    sparse = isinstance(features.x, SparseRows)
    if isinstance(like, SparseRows) == sparse:
        return features
    n, d = features.x.shape
    if sparse:
        check_fits(8 * n * d, features.name, f"the dense form of {n:,} x {d:,} rows")
    x = features.x.dense() if sparse else _sparse(features.x)
    made = replace(features, x=x)
    vars(made)["sha256"] = features.sha256  # that of the file, whatever the form
    return made


def _sparse(x: Any) -> SparseRows:
    if isinstance(x, SparseRows):
        return x
    from scipy.sparse import csr_array

    return SparseRows.of(csr_array(x), "rows")
