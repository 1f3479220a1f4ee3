"""The rows that queries may choose from, and the bandwidth that the data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import formats
from nnkgraph.data import Candidates
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.find import wanted_of
from nnkgraph.pairs import DISTANCES, first_equal_rows
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search.auto import Auto
from nnkgraph.search.exact import nearest_to
from nnkgraph.search.precomputed import Precomputed, without_repeats

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.prepare import Plan
    from nnkgraph.search import Wanted
    from nnkgraph.stages import Stages


def twins(x: FloatArray, points: FloatArray) -> IndexArray:
    """Return, for every point, the row with the same values, or -1."""
    first = first_equal_rows(np.concatenate([x, points]))[len(x) :]
    return np.where(first < len(x), first, -1)


def fitted(plan: Plan, rows: Rows, pool: Pool, seed: int, stages: Stages) -> Kernel:
    """Return the kernel with a bandwidth rule applied to the data's own candidates."""
    rule = getattr(plan.kernel, "sigma", None)
    k = min(plan.k, len(rows.x) - 1)
    if not isinstance(rule, str) or rule == "local":
        return plan.kernel
    if k == 0:
        raise InputError("a single row has no distances to take sigma from: give one")
    with stages("search", len(rows.x)) as on_rows:
        own = wanted_of(plan, rows, k, pool, seed, on_rows)
        return plan.kernel.fit(Auto().find(own))


def candidates_of(
    plan: Plan,
    asked: Wanted,
    points: FloatArray,
    twin: IndexArray | None,
    rows: Rows,
) -> Candidates:
    """Return the k best rows for every point, without its twin where one is given."""
    k, n = asked.k, len(asked.x)
    if isinstance(plan.search, Precomputed):
        found = _from_file(plan.search.path, asked, points, rows)
    else:
        more = replace(asked, k=min(n, k + (twin is not None)))
        found = nearest_to(more, points)
    index, distance = np.array(found.index), np.array(found.distance)
    if twin is not None:
        out = index == twin[:, np.newaxis]
        index[out], distance[out] = -1, np.inf
        order = np.argsort(index < 0, axis=1, kind="stable")
        index = np.take_along_axis(index, order, axis=1)
        distance = np.take_along_axis(distance, order, axis=1)
    return replace(
        found,
        index=np.ascontiguousarray(index[:, :k]),
        distance=np.ascontiguousarray(distance[:, :k]),
    )


def _from_file(path: str, asked: Wanted, points: FloatArray, rows: Rows) -> Candidates:
    """Return candidates of a file, ranked by distances of our own."""
    index, _ = formats.read_candidates(path)
    total = len(asked.x) if rows.first is None else len(rows.first)
    if len(index) != len(points):
        raise InputError(
            f"{path}: neighbors of {len(index)} queries, but there are {len(points)}"
        )
    if index.size and (index.min() < -1 or index.max() >= total):
        raise InputError(
            f"{path}: neighbors must be row numbers of the data, 0 to {total - 1} or -1"
        )
    if rows.first is not None and rows.origin is not None:
        place = np.searchsorted(rows.origin, rows.first)
        index = np.where(index >= 0, place[np.maximum(index, 0)], -1)
    index = without_repeats(index.astype(index_dtype(len(asked.x))))
    if asked.base not in DISTANCES | {"inner-product", "absolute-product"}:
        raise ParameterError("search 'precomputed' does not know this kernel")
    index, score = ranked(asked.x, points, index, asked.base)
    asked.on_rows(len(points))
    distance = distance_of(score, asked.base)
    return Candidates(index, distance, backend="precomputed", exact=False)
