"""A sparse matrix of similarities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    FloatArray = NDArray[np.floating[Any]]
    IndexArray = NDArray[np.integer[Any]]


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
