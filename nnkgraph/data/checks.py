"""Checks of feature matrices: shape, dtype, values and ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, MissingValuesError
from nnkgraph.runtime.arrays import check_fits, converted, row_slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph

    FloatArray = NDArray[np.floating[Any]]

_SHOWN_COLUMNS, _SHOWN_ROWS = 5, 3
"""Of what lacks values so many columns are named, and rows of each."""

_LARGEST, _SMALLEST = 1e150, 1e-150
"""Beyond these the square of a value leaves the range of float64."""


def check_shape(array: NDArray[Any], name: str) -> None:
    """Refuse what is no matrix of real numbers."""
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: the values have dtype {array.dtype}, which is no real number; "
            "convert them to float32 or float64"
        )
    if array.ndim == 1:
        raise InputError(
            f"{name}: the array is 1-dimensional ({array.size} values); a feature "
            "matrix has one row per node: reshape it to (n, 1) or (1, d)"
        )
    if array.ndim != 2:
        raise InputError(
            f"{name}: the array has shape {array.shape}; a matrix with one row per "
            "node and one column per feature is needed"
        )
    if array.shape[0] == 0:
        raise InputError(f"{name}: the matrix has no rows")
    if array.shape[1] == 0:
        raise InputError(f"{name}: the matrix has no columns")


def as_float(array: NDArray[Any]) -> FloatArray:
    """Convert to native float32 where that is exact, else to float64; C order."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    small = kind == "b" or (kind in "iu" and size <= 2) or (kind == "f" and size <= 4)
    target = np.dtype(np.float32 if small else np.float64)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # infinity is refused later, with its place
        return converted(array, target)


def check_finite(x: FloatArray, name: str, *, gaps: bool = False) -> None:
    """Refuse NaN, infinity and values whose squares leave the range of float64.

    With `gaps`, NaN stands for a value that is not there, and passes.
    """
    # A few rows are in memory at a time, with copies.
    check_fits(4 * x.itemsize * x.shape[1], name, "a row that is looked at")
    count, first, largest = 0, (0, 0), 0.0
    for rows in row_slices(len(x), 8 * x.shape[1]):
        block = x[rows]
        bad = np.isinf(block) if gaps else ~np.isfinite(block)
        if bad.any():
            where = np.argwhere(bad)
            first = (
                first if count else (rows.start + int(where[0, 0]), int(where[0, 1]))
            )
            count += len(where)
        elif block.size:
            # fmax and fmin pass over NaN, and start from what changes nothing.
            largest = max(
                largest,
                float(np.fmax.reduce(block, axis=None, initial=0.0)),
                -float(np.fmin.reduce(block, axis=None, initial=0.0)),
            )
    if count and np.isnan(x[first]) and (found := find_gaps(x)):
        place = f"{name}: NaN at row {first[0]}, column {first[1]} (counted from 0)"
        infinite = count - found.total
        all_of_them = found.text() + f"; and {infinite} infinite" * (infinite > 0)
        raise MissingValuesError(f"{place}; {all_of_them}: remove or fill them")
    if count:
        raise InputError(
            f"{name}: infinity (or a value beyond the dtype) at row {first[0]}, column "
            f"{first[1]} (counted from 0); {count} such value{'s' * (count > 1)} in "
            "all: remove or fill them"
        )
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise InputError(
            f"{name}: values up to {largest:.3g} leave the range of squared distances; "
            "divide all values by a common factor"
        )


@dataclass(frozen=True)
class Gaps:
    """Where values are missing: what is NaN."""

    total: int
    """Missing values."""
    rows: int
    """Rows that lack some."""
    shape: tuple[int, int]
    """That of the matrix."""
    columns: NDArray[np.int64]
    """(d,) missing values of every column."""
    first_rows: dict[int, list[int]]
    """The first rows of the first columns that lack some."""
    hollow: int
    """Rows in which every value is missing."""
    hollow_end: int
    """How many of them are the last rows."""

    def text(self, names: Sequence[str] = (), line: int | None = None) -> str:
        """Return how many there are and where, for a message.

        Columns are called by names, or by their numbers from 0; rows by the numbers
        of their lines, where the first has one, or by theirs from 0.
        """
        count = f"{self.total} such value{'s' * (self.total > 1)} in all"
        parts, start = [], line or 0
        for at, rows in sorted(self.first_rows.items())[:_SHOWN_COLUMNS]:
            lacks = int(self.columns[at])
            word = f"{'row' if line is None else 'line'}{'s' * (lacks > 1)}"
            places = ", ".join(str(start + row) for row in rows)
            more = ", ..." * (lacks > len(rows))
            name = names[at] if names else f"column {at}"
            parts.append(f"{name} ({lacks}: {word} {places}{more})")
        others = int(np.count_nonzero(self.columns)) - len(parts)
        where = ", ".join(parts) + f" and {others} more columns" * (others > 0)
        return f"{count}, in {self.rows} of {self.shape[0]} rows: {where}"


def find_gaps(x: FloatArray) -> Gaps | None:
    """Return where values are missing, or None where none is."""
    n, d = x.shape
    columns, lacking, hollow, end = np.zeros(d, np.int64), 0, 0, 0
    first_rows: dict[int, list[int]] = {}
    for rows in row_slices(n, 8 * d):
        bad = np.isnan(x[rows])
        columns += bad.sum(axis=0)
        lacking += int(bad.any(axis=1).sum())
        for at in np.flatnonzero(columns)[:_SHOWN_COLUMNS].tolist():
            seen = first_rows.setdefault(at, [])
            found = np.flatnonzero(bad[:, at])[: _SHOWN_ROWS - len(seen)]
            seen += (rows.start + found).tolist()
        empty: NDArray[np.bool_] = np.all(bad, axis=1)
        hollow += int(empty.sum())
        end = end + len(empty) if empty.all() else int(np.argmin(empty[::-1]))
    total = int(columns.sum())
    if not total:
        return None
    return Gaps(total, lacking, (n, d), columns, first_rows, hollow, end)


def check_ids(ids: Sequence[str], x: FloatArray, name: str) -> tuple[str, ...]:
    """Return ids as text; refuse repeated ones, or too few."""
    names = tuple(str(one) for one in ids)
    if len(names) != len(x):
        raise InputError(f"{name}: {len(names)} ids for {len(x)} rows")
    if len(set(names)) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(
            f"{name}: the id {twice!r} stands in more than one row; ids name nodes "
            "and must differ"
        )
    return names


def mismatch(graph: Graph, features: Features) -> str:
    """Return why features are not those that a graph was built from, or nothing."""
    shape, known = tuple(features.x.shape), graph.provenance
    stored = tuple(known.get("shape", ()))
    if shape != stored or shape[0] != graph.n_nodes:
        text = f"shape {shape}, the graph has {graph.n_nodes} nodes of {stored}"
        if shape[0] == graph.n_nodes:
            text += "; give the same `drop` and `id_column` as to build"
        return text
    if features.sha256 != known.get("sha256"):
        return "other values, or rows in another order: sha256 differs"
    if features.ids and graph.ids and features.ids != graph.ids:
        return "other row names, or another order"
    return ""
