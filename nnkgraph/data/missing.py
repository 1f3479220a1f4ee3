"""Features in which values are missing: rows or columns left out, or means put in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from nnkgraph.data.checks import find_gaps
from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import new_array, row_slices, taken_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nnkgraph.data import Features, FloatArray

Missing: TypeAlias = Literal["drop-rows", "drop-columns", "mean"]
"""What is done about missing values."""

WAYS = ("drop-rows", "drop-columns", "mean")
_SHOWN = 5


@dataclass(frozen=True)
class Dropped:
    """Rows that were left out of features."""

    rows: NDArray[np.int64]
    """Their numbers, from 0."""

    ids: frozenset[str]
    """Their names; numbers where they have none."""

    total: int
    """Rows that there were before."""

    def others(self, n: int, ids: Sequence[str] | None) -> NDArray[np.int64]:
        """Return which of n things, one for each row that there was, are left.

        Where they are named, names decide. Of another number all are left.
        """
        every = np.arange(n)
        if ids is not None:
            return every[[one not in self.ids for one in ids]]
        return np.delete(every, self.rows) if n == self.total else every


def mended(features: Features, how: Missing) -> Features:
    """Return features in which no value is missing, with a warning of what was done.

    Rows that have no names get their numbers where some are left out. A column's mean
    is that of its known values.
    """
    x, name, gaps = features.x, features.name, find_gaps(features.x)
    if gaps is None:
        return features
    several = gaps.total > 1
    said = f"{name}: {gaps.total} value{'s are' if several else ' is'} missing"
    if how == "drop-rows":
        if gaps.rows == len(x):
            raise InputError(f"{said}, some in every row: no row is left")
        found, said = _without_rows(features, gaps.rows)
    elif gaps.hollow:
        raise InputError(
            f"{said}, and {gaps.hollow} rows have no value at all: leave them out with "
            "`missing='drop-rows'`, or remove them first"
        )
    elif how == "drop-columns":
        kept = np.flatnonzero(gaps.columns == 0)
        if not len(kept):
            raise InputError(f"{said}, some in every column: no column is left")
        found = _with_columns(features, kept)
        names = _named(features, np.flatnonzero(gaps.columns))
        said += f": columns that lack some were left out: {names}"
    else:
        places = np.flatnonzero(gaps.columns)
        empty = np.flatnonzero(gaps.columns == len(x))
        if len(empty):
            raise InputError(
                f"{said}, and columns have no value to take the mean of: "
                f"{_named(features, empty)}"
            )
        found = _filled(features, places)
        said += f": the mean of its column stands there now: {_named(features, places)}"
    return replace(found, warnings=(*found.warnings, said))


def _without_rows(features: Features, count: int) -> tuple[Features, str]:
    x, n = features.x, len(features.x)
    whole = np.ones(n, np.bool_)
    for rows in row_slices(n, 8 * x.shape[1]):
        whole[rows] = ~np.isnan(x[rows]).any(axis=1)
    kept, gone = np.flatnonzero(whole), np.flatnonzero(~whole)
    names = features.ids or tuple(map(str, range(n)))
    ids = tuple(names[row] for row in kept.tolist())
    lost = [names[row] for row in gone.tolist()]
    shown = ", ".join(lost[:_SHOWN]) + ", ..." * (len(lost) > _SHOWN)
    said = f"{features.name}: {count} of {n} rows lack values and were left out: "
    if features.ids is None:
        shown += " (counted from 0); the others keep their numbers as names"
    dropped = Dropped(gone, frozenset(lost), n)
    found = replace(features, x=taken_rows(x, kept), ids=ids, dropped=dropped)
    return found, said + shown


def _with_columns(features: Features, kept: NDArray[np.intp]) -> Features:
    x, names = features.x, features.columns
    new = new_array((len(x), len(kept)), x.dtype)
    for rows in row_slices(len(x), 8 * x.shape[1]):
        new[rows] = x[rows][:, kept]
    columns = None if names is None else tuple(names[at] for at in kept.tolist())
    return replace(features, x=new, columns=columns)


def _filled(features: Features, places: NDArray[np.intp]) -> Features:
    x = features.x
    total, count = np.zeros(len(places)), np.zeros(len(places), np.int64)
    # Fixed blocks: a sum depends on its order.
    for rows in row_slices(len(x), 8 * x.shape[1], fixed=True):
        block = x[rows][:, places].astype(np.float64)
        total += np.nansum(block, axis=0)
        count += (~np.isnan(block)).sum(axis=0)
    means: FloatArray = total / count
    new = new_array(x.shape, x.dtype)
    for rows in row_slices(len(x), 16 * x.shape[1]):
        new[rows] = x[rows]
        block = new[rows][:, places]
        new[rows, places] = np.where(np.isnan(block), means, block)
    return replace(features, x=new)


def _named(features: Features, columns: NDArray[np.intp]) -> str:
    names = features.columns
    some = columns[:_SHOWN].tolist()
    words = [repr(names[at]) if names else f"number {at} from 0" for at in some]
    return ", ".join(words) + ", ..." * (len(columns) > _SHOWN)
