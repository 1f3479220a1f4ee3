"""Jaccard kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.errors import InputError
from nnkgraph.kernels import Kernel, Plain
from nnkgraph.runtime.arrays import row_slices


@dataclass(frozen=True)
class Jaccard(Plain):
    """Sum of minima / sum of maxima of two rows; of 0 and 1: Tanimoto, for sets."""

    # Positive definite for rows that differ: the weight of what two sets have in common
    # over that of all they have, with the columns' values as stacks of such sets.
    base: ClassVar[str] = "jaccard-distance"
    ridge: ClassVar[float] = 0.0
    dense: ClassVar[bool] = False
    form: ClassVar[str] = "affine"
    terms: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def prepare(self, x: Any, name: str, /) -> Any:
        """Refuse negative values; keep what is not zero."""
        if isinstance(x, SparseRows):
            negative = np.flatnonzero(x.data < 0)
            if len(negative):
                row = int(np.searchsorted(x.indptr, negative[0], side="right")) - 1
                column = int(x.indices[negative[0]])
                _refuse(name, row, column, x.data[negative[0]], len(negative))
            return x
        kept, count, first = [], 0, (0, 0)
        from scipy.sparse import csr_array, vstack

        for rows in row_slices(len(x), 32 * x.shape[1]):
            block = x[rows]
            if block.min() < 0:
                where = np.argwhere(block < 0)
                row, column = where[0]
                first = first if count else (rows.start + int(row), int(column))
                count += len(where)
            kept.append(csr_array(block))
        if count:
            _refuse(name, *first, float(x[first]), count)
        return SparseRows.of(vstack(kept, "csr"), name)


def _refuse(name: str, row: int, column: int, value: float, count: int) -> None:
    raise InputError(
        f"{name}: {value:g} at row {row}, column {column} (counted from 0); {count} "
        "negative values in all: kernel jaccard compares counts and sets, which have "
        "none; remove them, or use another kernel or scale"
    )


plugin: type[Kernel] = Jaccard
