"""Checks of feature matrices: shape, dtype, values and ids."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import converted, row_slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph

    FloatArray = NDArray[np.floating[Any]]

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
    if count:
        value = x[first]
        what = "NaN" if np.isnan(value) else "infinity (or a value beyond the dtype)"
        raise InputError(
            f"{name}: {what} at row {first[0]}, column {first[1]} (counted from 0); "
            f"{count} such value{'s' * (count > 1)} in all: remove or fill them"
        )
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise InputError(
            f"{name}: values up to {largest:.3g} leave the range of squared distances; "
            "divide all values by a common factor"
        )


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
