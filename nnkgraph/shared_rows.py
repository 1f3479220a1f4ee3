"""Rows that workers can open, whether they are an array or a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnkgraph.data import SparseGram, SparseRows

if TYPE_CHECKING:
    from nnkgraph.executors import Pool, Shared


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
