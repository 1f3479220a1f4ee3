"""Sparse matrices of features and of similarities, and how workers open them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data.checks import check_finite
from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import row_slices

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    FloatArray = NDArray[np.floating[Any]]
    IndexArray = NDArray[np.integer[Any]]
    from nnkgraph.runtime.executors import Pool, Shared


@dataclass(frozen=True, eq=False)
class SparseGram:
    """A sparse (n, n) matrix of similarities; what is not stored is zero."""

    indptr: IndexArray
    """(n + 1,) int64: where rows begin."""

    indices: IndexArray
    """Columns, sorted within each row."""

    data: FloatArray
    """Similarities, float64."""

    dtype: ClassVar[Any] = np.dtype(np.float64)

    @classmethod
    def of(cls, matrix: Any) -> SparseGram:
        """Return a scipy matrix in this form: rows sorted, no entry twice."""
        rows = matrix.tocsr()
        rows.sum_duplicates()
        kind = np.int32 if rows.shape[1] <= np.iinfo(np.int32).max else np.int64
        return cls(
            rows.indptr.astype(np.int64),
            rows.indices.astype(kind),
            rows.data.astype(np.float64),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, n)."""
        return len(self), len(self)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def matrix(self) -> csr_array:
        """Return it as scipy knows it, without a copy."""
        from scipy.sparse import csr_array

        return csr_array((self.data, self.indices, self.indptr), self.shape)

    def diagonal(self) -> FloatArray:
        """Return every row's similarity with itself."""
        diagonal: FloatArray = self.matrix().diagonal()
        return diagonal


_HASHED = 1 << 27
"""Values up to which a matrix is hashed as if it were dense."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse (n, d) matrix of features; what is not stored is zero.

    Make one with :meth:`of`, which checks; the constructor trusts. Slices and arrays of
    row numbers take rows out, as they do for arrays.
    """

    indptr: IndexArray
    """(n + 1,) int64: where rows begin."""

    indices: IndexArray
    """Columns, sorted within each row, none twice."""

    data: FloatArray
    """Values, float64, none of them zero."""

    columns: int
    """Number of columns, d."""

    dtype: ClassVar[Any] = np.dtype(np.float64)

    @classmethod
    def of(cls, matrix: Any, name: str, *, copy: bool = True) -> SparseRows:
        """Return a scipy matrix in this form, once its values were checked.

        Without a copy the matrix may be changed.

        Raises
        ------
        InputError
            For values that are no finite real numbers, and a matrix without rows or
            columns.
        """
        if matrix.dtype.kind not in "biuf":
            raise InputError(
                f"{name}: the values have dtype {matrix.dtype}, which is no real number"
            )
        if 0 in matrix.shape:
            raise InputError(f"{name}: the matrix {matrix.shape} has no values")
        with np.errstate(over="ignore", invalid="ignore"):
            rows = matrix.tocsr().astype(np.float64, copy=copy)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        bad = ~np.isfinite(rows.data)
        if bad.any():
            at = int(bad.argmax())
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            what = "NaN" if np.isnan(rows.data[at]) else "infinity"
            raise InputError(
                f"{name}: {what} at row {row}, column {rows.indices[at]} (counted from "
                f"0); {int(bad.sum())} such values in all: remove or fill them"
            )
        check_finite(rows.data[np.newaxis], name)
        kind = np.int32 if rows.shape[1] <= np.iinfo(np.int32).max else np.int64
        return cls(
            rows.indptr.astype(np.int64),
            rows.indices.astype(kind),
            rows.data,
            int(rows.shape[1]),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, d)."""
        return len(self), self.columns

    @property
    def nbytes(self) -> int:
        """Return the bytes that it takes."""
        parts = self.indptr, self.indices, self.data
        return sum(int(part.nbytes) for part in parts)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: slice | IndexArray) -> SparseRows:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            ends = self.indptr[start : max(start, stop) + 1]
            part = slice(ends[0], ends[-1])
            return SparseRows(
                ends - ends[0], self.indices[part], self.data[part], self.columns
            )
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        # Each stored value's place in the old arrays.
        place = np.arange(indptr[-1]) + np.repeat(
            self.indptr[:-1][rows] - indptr[:-1], counts
        )
        return SparseRows(indptr, self.indices[place], self.data[place], self.columns)

    def astype(self, _dtype: Any, *, copy: bool = True) -> SparseRows:  # noqa: ARG002
        """Return itself: the values are float64, whatever they are used with."""
        return self

    def stacked(self, below: SparseRows) -> SparseRows:
        """Return these rows with others below them."""
        return SparseRows(
            np.append(self.indptr, self.indptr[-1] + below.indptr[1:]),
            np.append(self.indices, below.indices),
            np.append(self.data, below.data),
            self.columns,
        )

    def matrix(self) -> csr_array:
        """Return it as scipy knows it, without a copy."""
        from scipy.sparse import csr_array

        return csr_array((self.data, self.indices, self.indptr), self.shape)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return every column's mean, least, largest and sum of squares off the mean.

        They follow from what is stored.
        """
        (n, d), matrix = self.shape, self.matrix()
        mean = np.bincount(self.indices, self.data, d) / n
        ends: Any = matrix.min(axis=0), matrix.max(axis=0)
        low, high = (np.ravel(one.toarray()) for one in ends)
        missing = n - np.bincount(self.indices, minlength=d)
        away = np.square(self.data - mean[self.indices])
        square = np.bincount(self.indices, away, d) + missing * mean**2
        return mean, low, high, square

    def transposed(self) -> SparseRows:
        """Return the columns as rows."""
        turned = self.matrix().T.tocsr()
        return SparseRows(
            turned.indptr.astype(np.int64), turned.indices, turned.data, len(self)
        )

    def dense(self) -> FloatArray:
        """Return it as an array with all its zeros."""
        full: FloatArray = self.matrix().toarray()
        return full

    def sha256(self) -> str:
        """Return the hash of the dense values, or of the stored ones of a large matrix.

        Zeros take time to be hashed: from 2**27 values on only what is stored counts.
        """
        digest = hashlib.sha256()
        if len(self) * self.columns <= _HASHED:
            for rows in row_slices(len(self), 8 * self.columns):
                values = np.ascontiguousarray(self[rows].dense(), dtype="<f8")
                digest.update(values.data)
            return digest.hexdigest()
        for part, kind in (
            (np.array(self.shape), "<i8"),
            (self.indptr, "<i8"),
            (self.indices, "<i8"),
            (self.data, "<f8"),
        ):
            digest.update(np.ascontiguousarray(part, dtype=kind).data)
        return digest.hexdigest()


def work_columns(x: Any) -> int:
    """Return over how many columns a sum of two rows takes as long as for these."""
    if isinstance(x, SparseRows):
        # A step through two sorted lists takes as long as some columns of arrays.
        return max(1, 16 * len(x.data) // max(1, len(x)))
    return int(x.shape[1])


@dataclass(frozen=True)
class SharedGram:
    """A sparse matrix of similarities: small to send, mapped where it is opened."""

    indptr: Shared
    indices: Shared
    data: Shared

    def open(self) -> SparseGram:
        """Return the matrix."""
        return SparseGram(self.indptr.open(), self.indices.open(), self.data.open())


@dataclass(frozen=True)
class SharedRows:
    """Sparse rows: small to send, mapped where they are opened."""

    indptr: Shared
    indices: Shared
    data: Shared
    columns: int

    def open(self) -> SparseRows:
        """Return the rows."""
        arrays = self.indptr.open(), self.indices.open(), self.data.open()
        return SparseRows(*arrays, self.columns)


@dataclass(frozen=True)
class HeldRows:
    """Sparse rows in the memory of this process."""

    x: SparseRows

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.x.columns

    def open(self) -> SparseRows:
        """Return the rows."""
        return self.x


def share_rows(pool: Pool, x: Any) -> Shared | SharedGram | SharedRows:
    """Return a handle under which every worker can open the rows."""
    if isinstance(x, SparseRows):
        arrays = pool.share(x.indptr), pool.share(x.indices), pool.share(x.data)
        return SharedRows(*arrays, x.columns)
    if isinstance(x, SparseGram):
        return SharedGram(
            pool.share(x.indptr), pool.share(x.indices), pool.share(x.data)
        )
    return pool.share(x)
