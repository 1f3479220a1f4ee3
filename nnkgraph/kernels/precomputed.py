"""Similarities from a file."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nnkgraph.data import SparseGram
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Kernel, Plain

_BLOCK = 512
TOLERANCE = 1e-6
"""How far two sides may differ, relative to the largest value."""


def check_square(x: Any, name: str, what: str) -> None:
    """Refuse a matrix that has other columns than rows."""
    n, m = x.shape
    if n != m:
        raise InputError(
            f"{name}: a matrix of {what} has as many columns as rows; this one is "
            f"{n} x {m}"
        )


def check_gram(x: Any, name: str) -> None:
    """Refuse a matrix that is not square, not symmetric or not positive."""
    check_square(x, name, "similarities")
    sparse = isinstance(x, SparseGram)
    own = x.diagonal() if sparse else np.diagonal(x)
    if not (own >= 0).all():
        row = int(np.flatnonzero(~(own >= 0))[0])
        raise InputError(
            f"{name}: the similarity of row {row} with itself is {own[row]:g}; it "
            "cannot be negative"
        )
    if not own.any():
        raise InputError(
            f"{name}: no row is similar to itself, as in a matrix of distances: those "
            "are for `kernel='distance'`"
        )
    wrong = _asymmetric_sparse(x) if sparse else asymmetric(x, _largest(x))
    if wrong is not None:
        i, j, there, back = wrong
        raise InputError(
            f"{name}: similarities are not symmetric: row {i}, column {j} is "
            f"{there:g}, but row {j}, column {i} is {back:g}"
        )


def _largest(x: Any) -> float:
    return max(
        float(np.abs(x[at : at + _BLOCK]).max()) for at in range(0, len(x), _BLOCK)
    )


def asymmetric(x: Any, largest: float) -> tuple[int, int, float, float] | None:
    """Return the first place where the two sides differ; look at blocks of rows."""
    n = len(x)
    for at in range(0, n, _BLOCK):
        rows = slice(at, min(at + _BLOCK, n))
        there, back = x[rows, at:], x[at:, rows].T
        different = np.abs(there - back) > TOLERANCE * largest
        if different.any():
            i, j = (int(place) for place in np.argwhere(different)[0])
            return at + i, at + j, float(there[i, j]), float(back[i, j])
    return None


def _asymmetric_sparse(x: SparseGram) -> tuple[int, int, float, float] | None:
    matrix = x.matrix()
    difference = abs(matrix - matrix.T).tocoo()
    largest = np.abs(x.data).max(initial=0.0)
    places = np.flatnonzero(difference.data > TOLERANCE * largest)
    if not len(places):
        return None
    i, j = int(difference.row[places[0]]), int(difference.col[places[0]])
    return i, j, float(matrix[i, j]), float(matrix[j, i])


@dataclass(frozen=True)
class Precomputed(Plain):
    """The input is the N x N matrix of similarities itself, dense or sparse."""

    base: ClassVar[str] = "gram"
    form: ClassVar[str] = "affine"

    ridge: float = 0.0
    """Share of the diagonal that is added, for matrices of low rank: 1e-8."""

    def __post_init__(self) -> None:
        if not 0 <= self.ridge <= 1:
            raise ParameterError(
                f"kernel 'precomputed': ridge must be from 0 to 1, not {self.ridge:g}"
            )

    def prepare(self, x: Any, name: str, /) -> Any:
        """Check that the matrix can be one of similarities."""
        check_gram(x, name)
        return x


plugin: type[Kernel] = Precomputed
