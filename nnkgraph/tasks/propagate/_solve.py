"""Solving (I - S) y = b for the nodes without a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ResourceError
from nnkgraph.tasks.laplacian import SMALL, block, can_factor, factor, pieces

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, IndexArray

SOLVERS = ("auto", "factor", "cg", "inverse")

_ACCURACY = 1e-10
"""Bound on the relative error at which the work is done."""

_FLOOR = 1e-15
"""A residual, relative to the degrees, that rounding does not let fall further."""

_WORST = 1e-6
_STEPS = 20_000
_COLUMNS = 16
"""Right sides that are solved at a time: they share every pass over the edges."""


@dataclass(frozen=True)
class Solved:
    """The solution, and how good it is."""

    y: FloatArray
    """(m, c), in units of the square root of the degree."""

    error: float
    """Bound on the error, relative to the largest value."""

    factored: int
    """Nodes whose equations were solved by a factorization, the others by steps."""

    steps: int
    """Steps of conjugate gradients in all."""


def solve(s: csr_array, b: FloatArray, root: FloatArray, solver: str) -> Solved:
    """Solve (I - S) y = b, each connected piece in the way that suits it.

    Parameters
    ----------
    s : csr_array
        Weights among the nodes without a label over the roots of their degrees.
    b : array
        One column per class.
    root : array
        Roots of the degrees, which include edges to labels.
    """
    if not len(b):
        return Solved(b, 0.0, 0, 0)
    direct, stepped = _divided(s, solver)
    y = np.empty_like(b)
    error, steps = 0.0, 0
    if len(direct):
        whole = len(direct) == len(b)
        inner = s if whole else block(s, direct, direct)
        y[direct], worst = _factored(inner, b[direct], root[direct])
        error = max(error, worst)
    for piece in stepped:
        whole = len(piece) == len(b)
        inner = s if whole else block(s, piece, piece)
        for start in range(0, b.shape[1], _COLUMNS):
            some = slice(start, start + _COLUMNS)
            found, worst, count = _descended(inner, b[piece, some], root[piece])
            y[piece, some] = found
            error, steps = max(error, worst), steps + count
    return Solved(y, error, len(direct), steps)


def judged(s: csr_array, b: FloatArray, root: FloatArray, y: FloatArray) -> Solved:
    """Return a solution found elsewhere with its bound; its last column is the walk."""
    left = _left(s, np.column_stack([b, root]), y)
    return Solved(y[:, :-1], _bound(left, y, root), len(b), 0)


def _divided(s: csr_array, solver: str) -> tuple[IndexArray, list[IndexArray]]:
    """Return the nodes to solve for by one factorization, and pieces for steps."""
    everything = np.arange(s.shape[0])
    if solver == "factor" or (solver == "auto" and len(everything) <= SMALL):
        return everything, []
    parts = pieces(s)
    if solver == "cg":
        return everything[:0], parts
    large = [
        part
        for part in parts
        if len(part) > SMALL and not can_factor(block(s, part, part))
    ]
    rest = np.ones(len(everything), bool)
    for part in large:
        rest[part] = False
    return np.flatnonzero(rest), large


def _factored(
    s: csr_array, b: FloatArray, root: FloatArray
) -> tuple[FloatArray, float]:
    """Solve by a factorization, and once more for what rounding has left."""
    lu = factor(s)
    sides = np.column_stack([b, root])
    y = lu.solve(sides)
    left = _left(s, sides, y)
    y += lu.solve(left)
    return y[:, :-1], _bound(_left(s, sides, y), y, root)


def _left(s: csr_array, sides: FloatArray, y: FloatArray) -> Any:
    return sides - (y - s @ y)


def _bound(left: FloatArray, y: FloatArray, root: FloatArray) -> float:
    """Bound the error of all columns but the last by their residuals.

    The last column is the mean number of steps of a random walk to a label. The
    inverse of an M-matrix is not negative, so that a residual of at most e times the
    degrees makes an error of at most e times the longest walk.
    """
    share = np.abs(left / root[:, np.newaxis]).max(axis=0)
    own = float(share[-1])
    values = y / root[:, np.newaxis]
    walk = float(values[:, -1].max())
    largest = float(np.abs(values[:, :-1]).max(initial=0.0))
    if not np.isfinite(walk) or own >= 0.5:
        return float("inf")
    worst = float(share[:-1].max(initial=0.0))
    return worst * walk / (1 - own) / largest if largest else worst


def _descended(
    s: csr_array, b: FloatArray, root: FloatArray
) -> tuple[FloatArray, float, int]:
    """Solve by conjugate gradients, all columns side by side."""
    sides = np.column_stack([b, root])
    y = np.zeros_like(sides)
    left, way, room = sides.copy(), sides.copy(), np.empty_like(sides)
    square = np.einsum("ij,ij->j", left, left)
    step = 0
    for step in range(1, _STEPS + 1):
        image = s @ way
        np.subtract(way, image, out=image)
        length = _ratio(square, np.einsum("ij,ij->j", way, image))
        y += np.multiply(length, way, out=room)
        left -= np.multiply(length, image, out=room)
        before, square = square, np.einsum("ij,ij->j", left, left)
        if step % 10 == 0 or not square.any():
            error = _bound(left, y, root)
            if error <= _ACCURACY or _at_floor(left, y, root):
                break
        way *= _ratio(square, before)
        way += left
    error = _bound(_left(s, sides, y), y, root)
    if error > _WORST and step == _STEPS:
        raise ResourceError(
            f"label propagation did not converge in {_STEPS} steps: the graph holds "
            "together by very weak edges; build it with a larger --min-weight"
        )
    return y[:, :-1], error, step


def _at_floor(left: FloatArray, y: FloatArray, root: FloatArray) -> bool:
    """Return whether residuals are as small as rounding allows."""
    scale = np.abs(y / root[:, np.newaxis]).max(axis=0)
    share = np.abs(left / root[:, np.newaxis]).max(axis=0)
    return bool((share <= _FLOOR * scale).all())


def _ratio(a: FloatArray, b: FloatArray) -> Any:
    """Divide, and give 0 where a column is done."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
