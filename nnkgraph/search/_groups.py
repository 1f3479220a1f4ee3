"""Exact search inside groups of rows: what an approximate search is made of.

A row's list is the k best among all rows that share a group with it. That is a
definition by sets, so neither the order of the groups nor who searches them can be
seen. Float32 products leave out what is proven to be too far, float64 decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.sparse import HeldRows
from nnkgraph.data.sums import squared_lengths
from nnkgraph.runtime.executors import Here
from nnkgraph.runtime.jit import compiled, frozen, inner
from nnkgraph.search._lists import is_listed
from nnkgraph.search._products import (
    ProductInputs,
    decide,
    factor_of,
    reservoir_size,
    scale_exponent,
    search_rows,
    terms,
    with_queries,
)
from nnkgraph.search._reservoir import scan, scan_both, settle
from nnkgraph.search.exact import DirectInputs, SparseInputs, select, select_sparse

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import SharedRows
    from nnkgraph.runtime.executors import Shared
    from nnkgraph.search._lists import Findings, Lists

_BLOCK = 256
"""Rows of a group that are multiplied at once with those after them."""


@dataclass(frozen=True)
class GroupInputs:
    """What a task needs; small, because it travels to the workers."""

    x: Shared | SharedRows
    members: Shared
    """Row numbers, group after group, ascending in each."""

    lists: Lists
    base: str
    k: int


@inner
def score_of(x: Any, i: int, j: int, base: int) -> float:
    """Return the score of two rows, added up as everywhere in `nnkgraph.data.sums`."""
    total = 0.0
    if base == 0:
        for t in range(x.shape[1]):
            u = np.float64(x[i, t]) - np.float64(x[j, t])
            total += u * u
    else:
        for t in range(x.shape[1]):
            total += abs(np.float64(x[i, t]) - np.float64(x[j, t]))
    return total


@inner
def _scores(x: Any, own: int, others: Any, count: int, out: Any) -> None:
    """Set the squared distances of a row and some others, four at a time."""
    for first in range(0, count, 4):
        last = count - 1
        a, b = others[first], others[min(first + 1, last)]
        c, d = others[min(first + 2, last)], others[min(first + 3, last)]
        r = s = u = v = 0.0
        for t in range(x.shape[1]):
            value = np.float64(x[own, t])
            e, f = np.float64(x[a, t]) - value, np.float64(x[b, t]) - value
            g, h = np.float64(x[c, t]) - value, np.float64(x[d, t]) - value
            r += e * e
            s += f * f
            u += g * g
            v += h * h
        found = (r, s, u, v)
        for j in range(first, min(first + 4, count)):
            out[j] = found[j - first]


@inner
def _kth(values: Any, count: int, k: int, room: Any) -> float:
    """Return the k-th smallest of some values."""
    filled = 0
    for e in range(count):
        if filled < k or values[e] < room[filled - 1]:
            t = filled if filled < k else k - 1
            while t > 0 and room[t - 1] > values[e]:
                room[t] = room[t - 1]
                t -= 1
            room[t] = values[e]
            filled = min(filled + 1, k)
    return room[k - 1] if filled == k else np.inf


@compiled
def _decide(
    local: Any,
    rows: Any,
    reservoirs: Any,
    begun: Any,
    own: Any,
    unit: float,
    index: Any,
    score: Any,
    undecided: Any,
    out: Any,
    count: int,
) -> int:
    """Value what is in the reservoirs; put down what rows do not have yet.

    Where a reservoir had to forget something, what it kept has to be proven the best.
    """
    _, nearby, filled, limit = reservoirs
    k = index.shape[1]
    others, values = np.empty(nearby.shape[1], np.int64), np.empty(nearby.shape[1])
    best = np.empty(k)
    for i in range(local.shape[0]):
        row = rows[i]
        forgot = limit[i] < begun[i]
        some = 0
        for e in range(filled[i]):
            j = nearby[i, e]
            if forgot or not is_listed(index, row, rows[j]):
                others[some] = j
                some += 1
        _scores(local, i, others, some, values)
        last = score[row, k - 1]
        if forgot:
            bound = (np.float64(limit[i]) + own[i]) * unit
            if not min(last, _kth(values, some, k, best)) < bound:
                undecided[i] = True
                continue
        for e in range(some):
            if values[e] <= last and not is_listed(index, row, rows[others[e]]):
                out[0][count] = row
                out[1][count] = rows[others[e]]
                out[2][count] = values[e]
                count += 1
    return count


@compiled
def put(rows: Any, nearby: Any, values: Any, score: Any, out: Any, count: int) -> int:
    """Put down candidates of some rows that may be better than their last one."""
    last = score.shape[1] - 1
    for i in range(nearby.shape[0]):
        for e in range(nearby.shape[1]):
            j = nearby[i, e]
            if j >= 0 and values[i, e] <= score[rows[i], last]:
                out[0][count] = rows[i]
                out[1][count] = j
                out[2][count] = values[i, e]
                count += 1
    return count


def search_groups(
    inputs: GroupInputs, task: list[tuple[int, int]], found: Findings
) -> tuple[int, None]:
    """Search some groups, given by where their members begin and end."""
    members, count = inputs.members.open(), 0
    for start, stop in task:
        count = search_group(inputs, np.asarray(members[start:stop]), found, count)
    return count, None


def search_group(
    inputs: GroupInputs, rows: IndexArray, found: Findings, count: int
) -> int:
    """Compare all pairs of a group; return how many findings there are now."""
    x = inputs.x.open()
    index, score = inputs.lists.open()
    out = found.rows, found.others, found.scores
    if isinstance(x, SparseRows) or inputs.base != "squared-distance":
        nearby, values = _nearest_within(x[rows], inputs, score[rows, -1])
        nearby = np.where(nearby >= 0, rows[nearby], -1)
        return int(put(frozen(rows), nearby, values, frozen(score), out, count))
    group = np.ascontiguousarray(x[rows])
    near = _prepared(group, inputs.base, inputs.k)
    reservoirs, begun, keep = _multiplied(near, score[rows, -1])
    settle(*reservoirs, keep)
    undecided = np.zeros(len(rows), np.bool_)
    own, unit = near.own.open(), 4.0**near.exponent
    lists = frozen(index), frozen(score)
    count = _decide(
        frozen(group),
        frozen(rows),
        reservoirs,
        begun,
        own,
        unit,
        *lists,
        undecided,
        out,
        count,
    )
    left = np.flatnonzero(undecided)
    if len(left):
        k = min(inputs.k, len(rows) - 1)
        nearby = np.full((len(left), k), -1, reservoirs[1].dtype)
        nothing = nearby, np.full(nearby.shape, np.inf), np.zeros(len(left), np.bool_)
        nearby, values = decide(near, left, *nothing)
        nearby = np.where(nearby >= 0, rows[nearby], -1)
        count = put(frozen(rows[left]), nearby, values, lists[1], out, count)
    return int(count)


def _nearest_within(
    x: Any, inputs: GroupInputs, last: FloatArray
) -> tuple[IndexArray, FloatArray]:
    """Return the k best among some rows for each of them, without products.

    Of sparse rows, only those that are not beyond a last score.
    """
    k, every = min(inputs.k, len(x) - 1), np.arange(len(x))
    if isinstance(x, SparseRows):
        columns, lengths = HeldRows(x.transposed()), Here(squared_lengths(x))
        sparse = SparseInputs(HeldRows(x), columns, lengths, inputs.base, k)
        return select_sparse(sparse, every, last)
    return select(DirectInputs(Here(x), inputs.base, k), x, every)


@dataclass(frozen=True)
class QueryInputs:
    """What a task of queries needs; small, because it travels to the workers."""

    x: Any
    points: Any
    members: Shared
    """Row numbers, group after group."""

    askers: Shared
    """Numbers of points, group after group."""

    lists: Lists
    base: str
    k: int


def answer_queries(
    inputs: QueryInputs, task: tuple[int, int, int, int], found: Findings
) -> tuple[int, None]:
    """Find the best members of a group for the points that ask it."""
    first, last, start, stop = task
    askers = np.asarray(inputs.askers.open()[first:last])
    rows = np.asarray(inputs.members.open()[start:stop])
    points, group = inputs.points.open()[askers], inputs.x.open()[rows]
    nearby, values = _nearest_to(group, points, inputs.base, min(inputs.k, len(rows)))
    nearby = np.where(nearby >= 0, rows[nearby], -1)
    out = found.rows, found.others, found.scores
    score = inputs.lists.open()[1]
    return int(put(frozen(askers), nearby, values, frozen(score), out, 0)), None


def _nearest_to(
    group: Any, points: Any, base: str, k: int
) -> tuple[IndexArray, FloatArray]:
    """Return the k best of some rows for points."""
    if isinstance(group, SparseRows):
        both = group.stacked(points)
        columns, lengths = HeldRows(group.transposed()), Here(squared_lengths(both))
        sparse = SparseInputs(HeldRows(both), columns, lengths, base, k)
        return select_sparse(sparse, np.arange(len(group), len(both)))
    if base != "squared-distance":
        nobody = np.full(len(points), -1)
        return select(DirectInputs(Here(group), base, k), points, nobody)
    near = replace(_prepared(np.ascontiguousarray(group), base, k), k=k)
    asking = with_queries(near, np.ascontiguousarray(points), Here)
    return search_rows(asking, np.arange(len(points)))


def _prepared(group: FloatArray, base: str, k: int) -> ProductInputs:
    """Return a group as products need it, seen from its middle."""
    # However far groups are from each other: float32 tells apart what is near.
    center = group.mean(axis=0, dtype=np.float64)
    exponent = scale_exponent(group, center)
    data = ((group - center) * 2.0**-exponent).astype(np.float32)
    offset, own = terms(data, base, 0.0, exponent)
    x, shared = Here(group), Here(data)
    return ProductInputs(
        x,
        x,
        Here(center),
        exponent,
        shared,
        shared,
        Here(offset.astype(np.float32)),
        Here(own),
        0.0,
        base,
        min(k, len(group) - 1),
    )


def _multiplied(
    inputs: ProductInputs, last: FloatArray
) -> tuple[tuple[Any, Any, Any, Any], Any, int]:
    """Return reservoirs that have seen all pairs, and the limits they began with.

    ``last`` is the score that a candidate must not exceed to be of interest.
    """
    data, own = inputs.data.open(), inputs.own.open()
    offset, g = frozen(inputs.offset.open()), len(data)
    keep, room = reservoir_size(g - 1, inputs.k)
    value = np.empty((g, room), np.float32)
    index = np.empty((g, room), np.int32)
    filled = np.zeros(g, np.int64)
    with np.errstate(over="ignore"):
        limit = (last * 0.25**inputs.exponent - own).astype(np.float32)
    limit = np.nextafter(np.nextafter(limit, np.float32(np.inf)), np.float32(np.inf))
    begun = limit.copy()
    queries = data * np.float32(factor_of(inputs.base))
    buffer = np.empty(_BLOCK * g, np.float32)
    every = np.arange(g)
    cuts = [slice(start, min(start + _BLOCK, g)) for start in range(0, g, _BLOCK)]
    for own_rows in cuts:  # first, because it gives all rows their limits
        product = _product(queries[own_rows], data[own_rows], buffer)
        mine = value[own_rows], index[own_rows], filled[own_rows], limit[own_rows]
        scan(product, offset[own_rows], own_rows.start, every[own_rows], *mine, keep)
    for own_rows in cuts[:-1]:
        others = slice(own_rows.stop, g)
        product = _product(queries[own_rows], data[others], buffer)
        mine = value[own_rows], index[own_rows], filled[own_rows], limit[own_rows]
        yours = value[others], index[others], filled[others], limit[others]
        places = own_rows.start, others.start
        offsets = offset[own_rows], offset[others]
        scan_both(product, *offsets, *places, *mine, *yours, keep)
    return (value, index, filled, limit), begun, keep


def _product(queries: FloatArray, rows: FloatArray, buffer: FloatArray) -> FloatArray:
    shape = len(queries), len(rows)
    out = buffer[: shape[0] * shape[1]].reshape(shape)
    return np.matmul(queries, rows.T, out=out)
