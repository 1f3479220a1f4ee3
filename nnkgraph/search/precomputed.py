"""Candidates from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import formats
from nnkgraph.data import Candidates, SparseGram
from nnkgraph.data.pairs import cross_values
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.arrays import converted, new_array, row_slices, taken_rows
from nnkgraph.search import distance_of, index_dtype, ranked_blocks
from nnkgraph.search.exact import estimated_recall

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted


@dataclass(frozen=True)
class Precomputed:
    """``neighbors`` of an .npz or .h5 file; distances are derived from the features."""

    path: str = ""
    """The file, as ``search`` or an ANN benchmark writes it, or FILE::ARRAY."""

    def find(self, wanted: Wanted, /) -> Candidates:
        """Read, check, and rank by distances of our own."""
        if not self.path:
            raise ParameterError("search 'precomputed' needs path=FILE")
        if wanted.base == "similarity" or isinstance(wanted.x, SparseGram):
            raise ParameterError(
                "search 'precomputed' ranks by features: it works neither with a "
                "kernel function nor with a sparse matrix of similarities"
            )
        index, given = formats.read_candidates(self.path)
        notes = []
        index = self._checked(index, wanted)
        if given is not None and given.shape != index.shape:
            raise InputError(
                f"{self.path}: distances have shape {given.shape}, neighbors "
                f"{index.shape}"
            )
        if wanted.origin is not None and wanted.first is not None:
            index = _without_copies(index, wanted.origin, wanted.first)
            given = None if given is None else taken_rows(given, wanted.origin)
        if given is not None:
            notes += self._compared(index, given, wanted)
        index, score = ranked_blocks(wanted, _without_own(index))
        wanted.on_rows(len(index))
        missing = sum(
            int((index[rows] < 0).sum())
            for rows in row_slices(len(index), index.shape[1])
        )
        if missing:
            notes.append(
                f"{self.path}: {missing} of {index.size} candidates are missing "
                "(too few columns, -1, repeats, or the row itself)"
            )
        return Candidates(
            index,
            distance_of(score, wanted.base),
            backend="precomputed",
            exact=False,
            recall=estimated_recall(wanted, index),
            notes=tuple(notes),
        )

    def _checked(self, index: IndexArray, wanted: Wanted) -> IndexArray:
        n = len(wanted.x) if wanted.first is None else len(wanted.first)
        if len(index) != n:
            raise InputError(
                f"{self.path}: neighbors of {len(index)} rows, but the features have "
                f"{n}"
            )
        if index.shape[1] == 0:
            raise InputError(f"{self.path}: neighbors has no columns")
        low, high = int(index.min()), int(index.max())
        if low < -1 or high >= n:
            row, column = np.argwhere((index < -1) | (index >= n))[0]
            raise InputError(
                f"{self.path}: neighbor {index[row, column]} at row {row}, column "
                f"{column} is no row number; rows are counted from 0 to {n - 1}, and "
                "-1 means none"
            )
        if index.shape[1] < wanted.k:
            raise InputError(
                f"{self.path}: {index.shape[1]} neighbors a row, but k is {wanted.k}; "
                f"use `k={index.shape[1]}` or less"
            )
        return converted(index, index_dtype(n))

    def _compared(
        self, index: IndexArray, given: FloatArray, wanted: Wanted
    ) -> list[str]:
        """Say where the file's distances are not those of the features."""
        rows = np.linspace(0, len(index) - 1, min(len(index), 200)).astype(np.int64)
        value = cross_values(
            wanted.x, wanted.x[rows], np.ascontiguousarray(index[rows]), wanted.base
        )
        known = index[rows] >= 0
        value, given = value[known], np.asarray(given[rows], np.float64)[known]
        if wanted.base != "squared-distance":
            return []
        if np.allclose(np.sqrt(value), given, rtol=1e-4, atol=1e-6):
            return []
        squared = np.allclose(value, given, rtol=1e-3, atol=1e-6)
        what = "squared distances" if squared else "other distances than the features"
        return [f"{self.path} holds {what}; distances were derived from the features"]


def _without_copies(
    index: IndexArray, origin: IndexArray, first: IndexArray
) -> IndexArray:
    """Rename rows of the input file to rows of its distinct rows."""
    place = np.full(len(first), -1, index.dtype)
    place[origin] = np.arange(len(origin))
    renamed = taken_rows(index, origin)
    for rows in row_slices(len(renamed), 32 * renamed.shape[1]):
        kept = renamed[rows]
        renamed[rows] = np.where(kept >= 0, place[first[np.maximum(kept, 0)]], -1)
    return renamed


def _without_own(index: IndexArray) -> IndexArray:
    """Return candidates without the rows themselves, and without repeats."""
    cleaned = new_array(index.shape, index.dtype)
    for rows in row_slices(len(index), 64 * index.shape[1]):
        own = np.arange(rows.start, rows.stop)[:, np.newaxis]
        cleaned[rows] = without_repeats(np.where(index[rows] == own, -1, index[rows]))
    return cleaned


def without_repeats(index: IndexArray) -> IndexArray:
    """Put -1 in place of candidates that a row has twice."""
    order = np.argsort(index, axis=1, kind="stable")
    ordered = np.take_along_axis(index, order, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    cleaned = np.empty_like(index)
    np.put_along_axis(cleaned, order, ordered, axis=1)
    return cleaned


plugin: type[Search] = Precomputed
