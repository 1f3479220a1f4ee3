"""The four values that cross the stages: nothing else does.

``Features`` are read, ``Candidates`` are found, ``Neighborhoods`` are solved,
a ``Graph`` is written.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    FloatArray = NDArray[np.floating[Any]]
    IndexArray = NDArray[np.integer[Any]]

_BLOCK_VALUES = 1 << 22
"""Values looked at in one go when a whole matrix is walked over."""

_LARGEST, _SMALLEST = 1e150, 1e-150
"""Beyond these the square of a value leaves the range of float64."""


@dataclass(frozen=True)
class Features:
    """A feature matrix whose values were checked.

    Make one with :meth:`of`, which checks and converts; the constructor trusts.
    """

    x: FloatArray
    """(n, d), float32 or float64, C order, finite; may be a read-only memory map."""

    ids: tuple[str, ...] | None = None
    """Row names, unique, or None where rows are known by their number."""

    name: str = "array"
    """Where the values came from, for messages and reports."""

    dtype: str = "float64"
    """The dtype the values had before they were converted."""

    warnings: tuple[str, ...] = ()
    """What was lost when they were converted."""

    @classmethod
    def of(
        cls,
        x: ArrayLike,
        /,
        *,
        ids: Sequence[str] | None = None,
        name: str = "array",
    ) -> Features:
        """Check a matrix and return it as features.

        float32 and float64 in C order are taken as they are, without a copy.
        Every other real dtype is converted without loss (long double and 64-bit
        integers: to the nearest float64).

        Raises
        ------
        InputError
            For values that are no real numbers, shapes that are no matrix, NaN and
            infinity (with row, column and count), and repeated ids.
        """
        array = np.asanyarray(x)
        dtype = str(array.dtype)
        _check_shape(array, name)
        wide = array.dtype.kind in "iu" and array.dtype.itemsize == 8
        array = _as_float(array)
        _check_finite(array, name)
        warnings: tuple[str, ...] = ()
        if wide and max(float(array.max()), -float(array.min())) >= 2**53:
            warnings = (f"{name}: integers beyond 2**53 were rounded to float64",)
        checked = None if ids is None else _check_ids(ids, array, name)
        return cls(array, checked, name, dtype, warnings)

    @cached_property
    def sha256(self) -> str:
        """Hash of the values in C order as float64, whatever the dtype."""
        digest = hashlib.sha256()
        for block in _row_blocks(self.x):
            digest.update(np.ascontiguousarray(block, dtype="<f8").data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Candidates:
    """For every node, the nodes it may be joined to, nearest first."""

    index: IndexArray
    """(n, m) row numbers, -1 where a candidate is missing."""

    distance: FloatArray
    """(n, m) float64 distances, inf where a candidate is missing."""

    backend: str = "exact"
    """The search that found them, as ``name:key=value,...``."""

    exact: bool = True
    """Whether these are by definition the nearest ones."""

    threads: int = 1
    """Threads that influenced the result; 1 where none could."""

    recall: float | None = None
    """Share of the true nearest nodes that were found, estimated on a sample."""

    notes: tuple[str, ...] = ()
    """What the user should know about how they were found."""


@dataclass(frozen=True)
class Neighborhoods:
    """The weight of every candidate edge, and how well it explains its node."""

    weights: FloatArray
    """(n, m) float64, aligned with the candidates; zero means no edge."""

    errors: FloatArray | None = None
    """(n,) the objective J at the solution, where the method has one."""

    certificate: FloatArray | None = None
    """(n,) relative violation of the optimality conditions, where there are any."""


@dataclass(frozen=True)
class Graph:
    """A weighted graph and what is known about how it came to be."""

    adjacency: csr_array
    """(n, n) float64, canonical CSR: sorted, no duplicates, no zeros, no diagonal."""

    ids: tuple[str, ...] | None = None
    """Node names, or None where nodes are known by their number."""

    directed: bool = False
    """False promises an adjacency that is symmetric to the bit."""

    errors: FloatArray | None = None
    """(n,) J of every node, where the method has one."""

    candidates: IndexArray | None = None
    """(n, m) int32 candidates, kept when the search was approximate."""

    provenance: dict[str, Any] = field(default_factory=dict)
    """Parameters and fingerprints that determine the result; plain JSON values."""

    report: dict[str, Any] = field(default_factory=dict, compare=False)
    """What happened while it was built; never stored with the graph."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.adjacency.shape[0])

    @property
    def edges(self) -> int:
        """Number of edges: each undirected one counts once."""
        return self.adjacency.nnz if self.directed else self.adjacency.nnz // 2


def _row_blocks(x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    rows = max(1, _BLOCK_VALUES // max(1, x.shape[1]))
    for start in range(0, len(x), rows):
        yield x[start : start + rows]


def _check_shape(array: NDArray[Any], name: str) -> None:
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


def _as_float(array: NDArray[Any]) -> FloatArray:
    """Convert to native float32 where that is exact, else to float64; C order."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    small = kind == "b" or (kind in "iu" and size <= 2) or (kind == "f" and size <= 4)
    target = np.dtype(np.float32 if small else np.float64)
    if array.dtype == target and array.dtype.isnative and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array, dtype=target)


def _check_finite(x: FloatArray, name: str) -> None:
    """Refuse NaN, infinity and values whose squares leave the range of float64."""
    count, first, row, largest = 0, (0, 0), 0, 0.0
    for block in _row_blocks(x):
        bad = ~np.isfinite(block)
        if bad.any():
            where = np.argwhere(bad)
            first = first if count else (row + int(where[0, 0]), int(where[0, 1]))
            count += len(where)
        elif block.size:
            largest = max(largest, float(block.max()), -float(block.min()))
        row += len(block)
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


def _check_ids(ids: Sequence[str], x: FloatArray, name: str) -> tuple[str, ...]:
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
