"""Candidates from a file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph import formats
from nnkgraph.data import Candidates, SparseGram
from nnkgraph.data.pairs import DISTANCES, cross_values
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import converted, new_array, row_slices, taken_rows
from nnkgraph.search import (
    Memory,
    Plain,
    distance_of,
    index_dtype,
    ranked,
    ranked_blocks,
)
from nnkgraph.search.exact import estimated_recall

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted


@dataclass(frozen=True)
class Precomputed(Plain):
    """``neighbors`` of an .npz or .h5 file; distances are derived from the features."""

    path: str = ""
    """The file, as ``search`` or an ANN benchmark writes it, or FILE::ARRAY."""

    given: tuple[Any, Any] | None = field(default=None, init=False, compare=False)
    """(n, m) row numbers and their distances or None: see :meth:`of`."""

    named: tuple[str, ...] | None = field(default=None, init=False, compare=False)
    """The names of the rows of those, where they have any."""

    by_rows: ClassVar[bool] = False
    answers_queries: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True

    @classmethod
    def of(cls, candidates: Candidates | tuple[Any, Any] | Any) -> Precomputed:
        """Return a search whose candidates are known already.

        Parameters
        ----------
        candidates : Candidates, or (indices, distances), or indices
            (n, m) row numbers, as other programs give them: a row itself may be among
            them, -1 stands for none, they need not be in order, and distances may be
            squared.
        """
        index, distance = candidates, None
        if isinstance(candidates, Candidates):
            index, distance = candidates.index, candidates.distance
        elif isinstance(candidates, tuple):
            index, distance = candidates
        index = np.asarray(index)
        if index.ndim != 2 or index.dtype.kind not in "iu":
            raise InputError(
                "candidates: a matrix of row numbers is needed, not shape "
                f"{index.shape} and dtype {index.dtype}"
            )
        made = cls()
        if isinstance(candidates, Candidates):
            object.__setattr__(made, "named", candidates.ids)
        distance = None if distance is None else np.asarray(distance)
        object.__setattr__(made, "given", (index, distance))
        return made

    @property
    def reads(self) -> tuple[str, ...]:
        """Return its file, or what stands for one."""
        return (self._name,)

    @property
    def _name(self) -> str:
        return "candidates" if self.given is not None else self.path

    def identity(self) -> str:
        """Return the hash of the row numbers: the name of a file does not count."""
        if not self.reads[0]:
            return registry.spec(self)
        index, _ = self._read()
        digest = hashlib.sha256()
        for rows in row_slices(len(index), 16 * index.shape[1]):
            digest.update(np.ascontiguousarray(index[rows], dtype="<i8").data)
        return f"precomputed, sha256 {digest.hexdigest()}"

    def memory(self, n: int, _d: int, k: int, _base: str, /, *, some: bool) -> Memory:
        """Return what lists from a file take."""
        del some
        return Memory(files=n * k * 24)

    def _read(self) -> tuple[IndexArray, FloatArray | None]:
        if self.given is not None:
            return self.given
        if not self.path:
            raise ParameterError("search 'precomputed' needs path=FILE")
        return formats.read_candidates(self.path)

    def find(self, wanted: Wanted, /) -> Candidates:
        """Read, check, and rank by distances of our own."""
        if wanted.base == "similarity" or isinstance(wanted.x, SparseGram):
            raise ParameterError(
                "search 'precomputed' ranks by features: it works neither with a "
                "kernel function nor with a sparse matrix of similarities"
            )
        index, given = self._read()
        notes = []
        index = self._checked(index, wanted)
        self._check_ids(wanted.ids)
        if given is not None and given.shape != index.shape:
            raise InputError(
                f"{self._name}: distances have shape {given.shape}, neighbors "
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
                f"{self._name}: {missing} of {index.size} candidates are missing "
                "(too few columns, -1, repeats, or the row itself)"
            )
        known = estimated_recall(wanted, score)
        return Candidates(
            index,
            distance_of(score, wanted.base),
            backend="precomputed",
            exact=False,
            **known,
            notes=tuple(notes),
        )

    def _checked(self, index: IndexArray, wanted: Wanted) -> IndexArray:
        n = len(wanted.x) if wanted.first is None else len(wanted.first)
        if len(index) != n:
            raise InputError(
                f"{self._name}: neighbors of {len(index)} rows, but the features have "
                f"{n}"
            )
        if index.shape[1] == 0:
            raise InputError(f"{self._name}: neighbors has no columns")
        low, high = int(index.min()), int(index.max())
        if low < -1 or high >= n:
            row, column = np.argwhere((index < -1) | (index >= n))[0]
            raise InputError(
                f"{self._name}: neighbor {index[row, column]} at row {row}, column "
                f"{column} is no row number; rows are counted from 0 to {n - 1}, and "
                "-1 means none"
            )
        if index.shape[1] < wanted.k:
            raise InputError(
                f"{self._name}: {index.shape[1]} neighbors a row, but k is {wanted.k}; "
                f"use `k={index.shape[1]}` or less"
            )
        return converted(index, index_dtype(n))

    def _check_ids(self, ids: tuple[str, ...] | None) -> None:
        """Refuse candidates of rows with other names, or in another order."""
        if ids is None:
            return
        known = self.named if self.given else formats.candidate_ids(self.path)
        if known is None or known == ids:
            return
        pairs = enumerate(zip(known, ids, strict=True))
        row, (one, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
        raise InputError(
            f"{self._name}: row {row} (counted from 0) is {one!r}, and {other!r} in "
            "the features: give the features that were searched"
        )

    def query(self, wanted: Wanted, points: FloatArray, /) -> Candidates:
        """Read the candidates of queries, and rank them by distances of our own."""
        index, _ = self._read()
        total = len(wanted.x) if wanted.first is None else len(wanted.first)
        if len(index) != len(points):
            raise InputError(
                f"{self._name}: neighbors of {len(index)} queries, but there are "
                f"{len(points)}"
            )
        if index.size and (index.min() < -1 or index.max() >= total):
            raise InputError(
                f"{self._name}: neighbors must be row numbers of the data, 0 to "
                f"{total - 1} or -1"
            )
        if wanted.first is not None and wanted.origin is not None:
            place = np.searchsorted(wanted.origin, wanted.first)
            index = np.where(index >= 0, place[np.maximum(index, 0)], -1)
        index = without_repeats(index.astype(index_dtype(len(wanted.x))))
        if wanted.base not in {*DISTANCES, "inner-product", "absolute-product"}:
            raise ParameterError("search 'precomputed' does not know this kernel")
        index, score = ranked(wanted.x, points, index, wanted.base)
        wanted.on_rows(len(points))
        index = np.ascontiguousarray(index[:, : wanted.k])
        distance = distance_of(np.ascontiguousarray(score[:, : wanted.k]), wanted.base)
        return Candidates(index, distance, backend="precomputed", exact=False)

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
        return [f"{self._name} holds {what}; distances were derived from the features"]


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
