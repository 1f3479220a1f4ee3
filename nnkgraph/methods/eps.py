"""All nodes within a radius."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.data import Candidates, Neighborhoods
from nnkgraph.data.pairs import (
    BASES,
    GEOMETRIC,
    SQUARED,
    TILE,
    copy_tile,
    tile_room,
    tile_values,
)
from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.methods import Plain, need_distances, need_zeros
from nnkgraph.runtime import blocks
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import distance_of, index_dtype, ranked

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.kernels import Kernel, Problem
    from nnkgraph.methods import Method
    from nnkgraph.runtime.executors import Shared
    from nnkgraph.search import Wanted


_MOST_BYTES = 4 << 30
"""What candidates and weights may take: a radius that joins everything is a mistake."""

_BYTES = 24
"""Bytes that a candidate takes on its way to an edge."""

_TREE_COLUMNS = 8
"""Up to so many columns a k-d tree counts faster than a look at all pairs."""


@dataclass(frozen=True)
class _RadiusInputs:
    x: Shared
    base: str
    radius: float
    width: int = 0


def within_radius(wanted: Wanted, radius: float) -> Candidates:
    """Return every row's neighbors up to a distance, nearest first.

    Raises
    ------
    ResourceError
        Where there are too many of them.
    """
    pool, n = wanted.pool, len(wanted.asking)
    inputs = _RadiusInputs(pool.share(wanted.x), wanted.base, radius)
    tree = wanted.base in GEOMETRIC and wanted.x.shape[1] <= _TREE_COLUMNS
    count = pool.output((n,), np.int64)
    _run(wanted, _counts_in_tree if tree else _counts, inputs, (count,))
    width = int(count.open().max(initial=0))
    needed = n * width * _BYTES
    if needed > _MOST_BYTES:
        row = wanted.asking[int(np.argmax(count.open()))]
        raise ResourceError(
            f"eps: radius {radius:g} gives row {row} {width} neighbors, and all rows "
            f"{int(count.open().sum())}; {needed / 2**30:.0f} GB would be needed: use "
            "a smaller radius"
        )
    inputs = _RadiusInputs(inputs.x, wanted.base, radius, width)
    index = pool.output((n, width), index_dtype(len(wanted.x)))
    distance = pool.output((n, width), np.float64)
    _run(wanted, _lists_of_tree if tree else _lists, inputs, (index, distance))
    return Candidates(index.open(), distance.open(), backend="radius")


def _run(wanted: Wanted, function: Any, inputs: _RadiusInputs, outputs: Any) -> None:
    n, first, block = len(wanted.asking), wanted.asking.start, wanted.block
    blocks.run(wanted.pool, function, inputs, outputs, rows=n, first=first, block=block)


@compiled
def _is_within(value: float, radius: float, squared: bool) -> bool:
    return np.sqrt(value) <= radius if squared else value <= radius


@compiled
def _pairs(
    x: Any,
    start: int,
    base: int,
    radius: float,
    squared: bool,
    room: Any,
    count: Any,
    out: Any,
) -> None:
    """Count the rows within the radius; list them as far as there is room for them."""
    count[:] = 0
    for first in range(0, x.shape[0], TILE):
        stop = min(first + TILE, x.shape[0])
        copy_tile(x, first, stop, base, room)
        for q in range(count.shape[0]):
            values = tile_values(x, first, stop, x, start + q, base, room)
            for j in range(first, stop):
                near = _is_within(values[0, j - first], radius, squared)
                if near and j != start + q:
                    if count[q] < out.shape[1]:
                        out[q, count[q]] = j
                    count[q] += 1


def _find_pairs(inputs: _RadiusInputs, start: int, out: IndexArray) -> IndexArray:
    x, base = inputs.x.open(), BASES.index(inputs.base)
    count = np.empty(len(out), np.int64)
    task = (
        frozen(x),
        start,
        base,
        inputs.radius,
        inputs.base in SQUARED,
        tile_room(x.shape[1]),
    )
    _pairs(*task, count, out)
    return count


def _counts(inputs: _RadiusInputs, start: int, stop: int) -> tuple[IndexArray]:
    return (_find_pairs(inputs, start, np.empty((stop - start, 0), np.int32)),)


def _lists(
    inputs: _RadiusInputs, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    x = inputs.x.open()
    index = np.full((stop - start, inputs.width), -1, index_dtype(len(x)))
    _find_pairs(inputs, start, index)
    return _in_order(inputs, start, stop, index)


def _in_order(
    inputs: _RadiusInputs, start: int, stop: int, index: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Rank by distances of our own, and drop what is beyond the radius by them."""
    x = inputs.x.open()
    index, score = ranked(x, x[start:stop], index, inputs.base)
    distance = distance_of(score, inputs.base)
    beyond = ~(distance <= inputs.radius)
    index[beyond], distance[beyond] = -1, np.inf
    return index, distance


@lru_cache(maxsize=1)
def _tree(shared: _Same) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(np.asarray(shared.rows.open(), np.float64))


@dataclass(frozen=True)
class _Same:
    """Rows that are the same where their handle is: a tree is grown once."""

    rows: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.rows.open() is other.rows.open()

    def __hash__(self) -> int:
        return id(self.rows.open())


def _answers(inputs: _RadiusInputs, start: int, stop: int, **how: Any) -> Any:
    """Ask a tree of all rows, about a radius that rounding cannot make too small."""
    p = 2.0 if inputs.base in SQUARED else 1.0
    reach, x = inputs.radius * (1.0 + 1e-12), inputs.x.open()
    return _tree(_Same(inputs.x)).query_ball_point(x[start:stop], reach, p=p, **how)


def _counts_in_tree(inputs: _RadiusInputs, start: int, stop: int) -> tuple[IndexArray]:
    found = _answers(inputs, start, stop, return_length=True)
    return (np.asarray(found) - 1,)  # without the row itself


def _lists_of_tree(
    inputs: _RadiusInputs, start: int, stop: int
) -> tuple[IndexArray, FloatArray]:
    found = _answers(inputs, start, stop, return_sorted=True)
    size = np.fromiter(map(len, found), np.int64, len(found))
    near = np.concatenate(found) if len(found) else np.empty(0)
    row = np.repeat(np.arange(len(found)), size)
    other = near != row + start
    row, near = row[other], near[other].astype(np.int64)
    place = np.arange(len(row)) - np.searchsorted(row, row)
    index = np.full((len(found), inputs.width), -1, index_dtype(len(inputs.x.open())))
    index[row, place] = near
    return _in_order(inputs, start, stop, index)


@dataclass(frozen=True)
class Eps(Plain):
    """Every node within a radius is a neighbor, weighted by its kernel similarity."""

    dense: ClassVar[bool] = True

    radius: float = 0.0
    """The radius in the features' unit; 0 takes 3 sigma."""

    def __post_init__(self) -> None:
        if not 0 <= self.radius < math.inf:
            raise ParameterError(
                f"method 'eps': radius must be a number of at least 0, not "
                f"{self.radius:g}"
            )

    def check(self, kernel: Kernel, /) -> None:
        """Refuse kernels without distances, and a radius that nothing sets."""
        need_distances("eps", kernel)
        need_zeros("eps", kernel)
        if getattr(kernel, "sigma", None) == "local":
            raise ParameterError(
                "method 'eps' needs one sigma for all nodes: use another than 'local'"
            )
        if not self.radius and not hasattr(kernel, "sigma"):
            raise ParameterError(
                "method 'eps' needs radius=R: this kernel has no sigma to take it from"
            )

    def gather(
        self, wanted: Wanted, candidates: Candidates, kernel: Kernel, /
    ) -> Candidates:
        """Search again, by radius."""
        radius = self.radius or 3.0 * (kernel.bandwidth(candidates) or 0.0)
        found = within_radius(wanted, radius)
        note = f"eps: radius {radius:.6g}"
        return replace(found, notes=(*candidates.notes, note))

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the similarities."""
        return Neighborhoods(np.maximum(problem.cross(), 0.0))


plugin: type[Method] = Eps
