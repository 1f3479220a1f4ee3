"""Refinement: the neighbors of a row's neighbors may be its own.

Every row gathers a small group around it: itself, its list, and the rows that have it
in theirs. All pairs of the group are compared, as in any other group, where they are
new: one of the two came into the group since the last pass. Groups are made from lists
as they were when a pass began, so that the result is one of sets again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import BASES
from nnkgraph.data.sums import parts, sparse_value
from nnkgraph.runtime.jit import compiled, frozen, inner
from nnkgraph.search._groups import score_of
from nnkgraph.search._lists import is_listed
from nnkgraph.search._reservoir import WIDTH, below, lowest_bit
from nnkgraph.search.exact import slack_of

if TYPE_CHECKING:
    from nnkgraph.data import IndexArray
    from nnkgraph.data.sparse import SharedRows
    from nnkgraph.runtime.executors import Pool, Shared
    from nnkgraph.search._lists import Findings, Lists

CORE = 32
"""Rows that have a row in their list, and are compared with its whole group. Others
that have it are compared with these and with its list only: some rows are in most
lists."""


_KNOWN = 1 << 16
"""Pairs that are remembered, so that they are not looked at twice in a short time."""


@compiled
def mark_new(before: Any, index: Any, new: Any) -> int:
    """Mark candidates that were not in the list before; return how many there are."""
    count = 0
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            j = index[i, t]
            new[i, t] = j >= 0 and not is_listed(before, i, j)
            count += new[i, t]
    return count


@compiled
def _count(index: Any, start: Any) -> None:
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if index[i, t] >= 0:
                start[index[i, t] + 1] += 1


@compiled
def _turn(index: Any, new: Any, place: Any, who: Any) -> None:
    """Put down who has a row in its list: new ones first, then by place in the list."""
    for old in range(2):
        for t in range(index.shape[1]):
            for i in range(index.shape[0]):
                j = index[i, t]
                if j >= 0 and new[i, t] == (old == 0):
                    who[place[j]] = 2 * i + new[i, t]
                    place[j] += 1


def turned(index: Any, new: Any, room: Any) -> tuple[Any, IndexArray]:
    """Return who has each row in its list, and where each row's begin.

    Of what is put down in the room, the half is the row and the rest whether it is new.
    """
    start = np.zeros(len(index) + 1, np.int64)
    _count(frozen(index), start)
    np.cumsum(start, out=start)
    _turn(frozen(index), frozen(new), start[:-1].copy(), np.asarray(room))
    return room, start


@dataclass(frozen=True)
class RefineInputs:
    """What a task needs; small, because it travels to the workers."""

    x: Shared | SharedRows
    order: Shared
    """The rows in an order in which neighbors are near each other."""

    index: Shared
    """The lists when the pass began."""

    new: Shared
    who: Shared
    start: Shared
    lists: Lists
    base: str
    exponent: int


def share_pass(
    pool: Pool,
    x: Any,
    order: Any,
    begun: tuple[Any, Any],
    turned_lists: tuple[Any, Any],
    lists: Lists,
    base: str,
    exponent: int,
) -> RefineInputs:
    """Share what a pass begins with: lists, what is new in them, and who has whom."""

    def share(array: Any) -> Shared:
        # Other machines would go on to see what was there in the last pass.
        return pool.share(array if pool.in_place else np.array(array))

    (index, new), (who, start) = begun, turned_lists
    return RefineInputs(
        x,
        share(order),
        share(index),
        share(new),
        share(who),
        share(start),
        lists.seen(pool),
        base,
        exponent,
    )


@inner
def _gather(  # noqa: C901, PLR0912 - short loops over one list
    v: int, index: Any, new: Any, who: Any, start: Any, room: Any
) -> Any:
    """Put the group of a row into room; return where its parts end.

    First the new ones of the core, then its old ones; then, of the others, the new ones
    and the old ones.
    """
    members, listed, fresh = room
    k = index.shape[1]
    size = 0
    for t in range(k):
        if index[v, t] >= 0:
            listed[size], fresh[size] = index[v, t], new[v, t]
            size += 1
    own = size
    for e in range(start[v], start[v + 1]):
        i, is_new = who[e] >> 1, who[e] & 1
        known = False
        for t in range(own):
            if listed[t] == i:
                fresh[t] |= is_new == 1
                known = True
        if not known:
            listed[size], fresh[size] = i, is_new == 1
            size += 1
    inside = min(size, own + CORE)
    q = 0
    for t in range(inside):
        if fresh[t]:
            members[q] = listed[t]
            q += 1
    m = q
    members[m] = v
    m += 1
    for t in range(inside):
        if not fresh[t]:
            members[m] = listed[t]
            m += 1
    end = m
    for t in range(inside, size):
        if fresh[t]:
            members[end] = listed[t]
            end += 1
    last = end
    for t in range(inside, size):
        if not fresh[t]:
            members[last] = listed[t]
            last += 1
    return q, m, end, last


@inner
def _see(x: Any, v: int, row: int, scale: Any, base: int, out: Any) -> Any:
    """Set a line to a row as seen from another; return its length.

    That is the squared length where distances are squared.
    """
    d = x.shape[1]
    for t in range(d):
        out[t] = np.float32((x[row, t] - x[v, t]) * scale)
    a = b = c = e = np.float32(0.0)  # sums that need not wait for each other
    for t in range(0, d - 3, 4):
        p, q, r, s = out[t], out[t + 1], out[t + 2], out[t + 3]
        a += p * p if base == 0 else abs(p)
        b += q * q if base == 0 else abs(q)
        c += r * r if base == 0 else abs(r)
        e += s * s if base == 0 else abs(s)
    for t in range(d - d % 4, d):
        a += out[t] * out[t] if base == 0 else abs(out[t])
    return (a + b) + (c + e)


@inner
def _lines(
    columns: Any, mine: Any, yours: Any, width: int, base: int, lines: Any
) -> None:
    """Set two lines to -2 times products of rows and columns, or to l1 distances.

    Two lines, because what is read serves both.
    """
    d, twice = columns.shape[0], np.float32(-2.0)
    for b in range(width):
        lines[0, b] = lines[1, b] = np.float32(0.0)
    if base == 0:
        for t in range(0, d - 3, 4):
            e, f = twice * mine[t], twice * mine[t + 1]
            g, h = twice * mine[t + 2], twice * mine[t + 3]
            p, q = twice * yours[t], twice * yours[t + 1]
            r, s = twice * yours[t + 2], twice * yours[t + 3]
            for b in range(width):
                i, j = columns[t, b], columns[t + 1, b]
                k, m = columns[t + 2, b], columns[t + 3, b]
                lines[0, b] += (e * i + f * j) + (g * k + h * m)
                lines[1, b] += (p * i + q * j) + (r * k + s * m)
        for t in range(d - d % 4, d):
            e, p = twice * mine[t], twice * yours[t]
            for b in range(width):
                lines[0, b] += e * columns[t, b]
                lines[1, b] += p * columns[t, b]
    else:
        for t in range(d):
            e, p = mine[t], yours[t]
            for b in range(width):
                lines[0, b] += abs(e - columns[t, b])
                lines[1, b] += abs(p - columns[t, b])


@inner
def _bound(size: Any, last: float, factors: Any) -> Any:
    """Return what a row adds to a bound, and what a bound for it must stay below."""
    share, unit, lost = factors
    limit = last * unit - share * size + lost
    top = np.nextafter(np.float32(limit), np.float32(np.inf))
    return np.float32(share * size), top


@inner
def _is_known(known: Any, i: int, j: int, n: int) -> bool:
    """Return whether a pair was looked at a short while ago, and remember it."""
    key = min(i, j) * n + max(i, j)
    place = ((key * 0x9E3779B97F4A7C1) >> 40) & (known.shape[0] - 1)
    found: bool = known[place] == key
    known[place] = key
    return found


@inner
def _of_interest(
    line: Any,
    width: int,
    bounds: Any,
    i: int,
    members: Any,
    known: Any,
    now: Any,
    near: Any,
) -> int:
    """Put down who may be among the best of row i, or it among theirs; count them.

    Of what is put down, 1 stands for the one and 2 for the other.
    """
    (offset, top, mine, high), count, n = bounds, 0, np.int64(now.shape[0])
    for first in range(0, width, WIDTH):
        for_me = below(line, first, offset, high)
        for_you = below(line, first, mine, top)
        mask = for_me | for_you
        if width - first < WIDTH:
            mask &= (np.uint32(1) << np.uint32(width - first)) - np.uint32(1)
        while mask != 0:
            bit = mask & -mask
            j = members[first + lowest_bit(mask)]
            mask ^= bit
            if i == j or _is_known(known, i, j, n):
                continue
            wanted = for_me & bit != 0 and not is_listed(now, i, j)
            asked = for_you & bit != 0 and not is_listed(now, j, i)
            if wanted or asked:
                near[0, count], near[1, count] = j, wanted + 2 * asked
                count += 1
    return count


@inner
def _put(
    i: int, j: int, value: float, sides: int, score: Any, out: Any, count: int
) -> int:
    """Put down the score of a pair for those that it is good enough for."""
    last = score.shape[1] - 1
    if sides & 1 and value <= score[i, last]:
        out[0][count], out[1][count], out[2][count] = i, j, value
        count += 1
    if sides & 2 and value <= score[j, last]:
        out[0][count], out[1][count], out[2][count] = j, i, value
        count += 1
    return count


@compiled
def _compare(  # noqa: C901, PLR0912 - one loop over one kind of groups
    x: Any,
    order: Any,
    begun: Any,
    turned_lists: Any,
    lists: Any,
    base: int,
    scale: Any,
    factors: Any,
    task: Any,
    room: Any,
    out: Any,
) -> Any:
    """Compare the pairs of the groups around some rows; put down what is found.

    Returns how much that is, and where to go on where there was no room for more.
    """
    (index, new), (who, start), (now, score) = begun, turned_lists, lists
    begin, stop, done = task
    d, last = x.shape[1], index.shape[1] - 1
    wide = -(-(2 + last + CORE) // WIDTH) * WIDTH
    columns, seen = np.zeros((d, wide), np.float32), np.zeros((wide, d), np.float32)
    offset, top = np.empty(wide, np.float32), np.empty(wide, np.float32)
    lines, others = np.empty((2, wide), np.float32), np.zeros((2, d), np.float32)
    mine, high = np.empty(2, np.float32), np.empty(2, np.float32)
    known, near = np.full(_KNOWN, np.int64(-1)), np.empty((2, wide), np.int64)
    members, count = room[0], 0
    for at in range(begin, stop):
        v = order[at]
        q, m, end, size_all = _gather(v, index, new, who, start, room)
        if q == 0 and end == m:
            continue
        for b in range(wide):
            offset[b], top[b] = np.float32(np.inf), -np.float32(np.inf)
        for b in range(m):
            size = _see(x, v, members[b], scale, base, seen[b])
            offset[b], top[b] = _bound(size, score[members[b], last], factors)
        for b in range(m):
            for t in range(d):
                columns[t, b] = seen[b, t]
        # Few new ones meet all; where there are many, all meet those before them.
        few = 2 * q < m
        a = done
        while a < size_all:
            if few and q <= a < m:
                a = m
                continue
            if count + 4 * wide > out[0].shape[0]:
                return count, at, a
            part = q if a < q else m if a < m else end if a < end else size_all
            both = min(2, part - a)  # no two that are compared with others
            if a < m:
                width = m if few else min(a + 1, q)
                rows = seen[a : a + 2]
                for o in range(both):
                    mine[o], high[o] = offset[a + o], top[a + o]
            else:
                width = m if a < end else q
                rows = others
                for o in range(both):
                    size = _see(x, v, members[a + o], scale, base, others[o])
                    far = score[members[a + o], last]
                    mine[o], high[o] = _bound(size, far, factors)
            padded = -(-width // WIDTH) * WIDTH
            _lines(columns, rows[0], rows[both - 1], padded, base, lines)
            for o in range(both):
                i = members[a + o]
                bounds = offset, top, mine[o], high[o]
                some = _of_interest(
                    lines[o], width, bounds, i, members, known, now, near
                )
                for e in range(some):
                    value = score_of(x, i, near[0, e], base)
                    count = _put(i, near[0, e], value, near[1, e], score, out, count)
            a += both
        done = 0
    return count, stop, 0


@inner
def _turn_columns(x: Any, members: Any, place: Any, columns: Any) -> int:
    """List members by the columns that they store; return how many columns there are.

    ``place`` has the number of a column in these lists, and -1 for all others.
    """
    (seen, start, who), value = columns
    count = total = 0
    for row in members:
        for s in range(x[0][row], x[0][row + 1]):
            if place[x[1][s]] < 0:
                place[x[1][s]], seen[count], start[count] = count, x[1][s], 0
                count += 1
            start[place[x[1][s]]] += 1
    for t in range(count):
        total += start[t]
        start[t] = total
    start[count] = total
    for b in range(len(members) - 1, -1, -1):  # what is left is where lists begin
        for s in range(x[0][members[b]], x[0][members[b] + 1]):
            t = place[x[1][s]]
            start[t] -= 1
            who[start[t]], value[start[t]] = b, -2.0 * x[2][s]
    return count


@inner
def _sparse_line(
    x: Any, row: int, width: int, place: Any, columns: Any, line: Any
) -> float:
    """Set a line to -2 times a row's products with members; return its length."""
    (_, start, who), value = columns
    length = 0.0
    line[:] = 0.0
    for s in range(x[0][row], x[0][row + 1]):
        length += x[2][s] * x[2][s]
        t = place[x[1][s]]
        if t >= 0:
            for e in range(start[t], start[t + 1]):
                if who[e] >= width:
                    break
                line[who[e]] += x[2][s] * value[e]
    return length


@compiled
def _compare_sparse(  # noqa: C901 - as `_compare`
    x: Any,
    order: Any,
    begun: Any,
    turned_lists: Any,
    lists: Any,
    slack: float,
    task: Any,
    room: Any,
    out: Any,
) -> Any:
    """Do for sparse rows what `_compare` does: bounds are products in float64."""
    (index, new), (who, start), (now, score) = begun, turned_lists, lists
    begin, stop, done = task
    last, members, count = index.shape[1] - 1, room[0], 0
    wide = -(-(2 + last + CORE) // WIDTH) * WIDTH
    offset, top, line = np.empty(wide), np.empty(wide), np.empty(wide)
    known, near = np.full(_KNOWN, np.int64(-1)), np.empty((2, wide), np.int64)
    place, size = np.full(x[3], np.int32(-1)), 0
    columns = np.empty((3, 0), np.int32), np.empty(0)
    for at in range(begin, stop):
        q, m, end, size_all = _gather(order[at], index, new, who, start, room)
        if q == 0 and end == m:
            continue
        entries = 1
        for b in range(m):
            entries += x[0][members[b] + 1] - x[0][members[b]]
        if entries > size:
            size = 2 * entries
            columns = np.empty((3, size), np.int32), np.empty(size)
        used = _turn_columns(x, members[:m], place, columns)
        offset[:], top[:] = np.inf, -np.inf
        for b in range(m):
            length = _sparse_line(x, members[b], 0, place, columns, line)
            offset[b] = length * (1.0 - slack)
            top[b] = score[members[b], last] - offset[b] + 1e-300
        few = 2 * q < m  # as in `_compare`
        for a in range(done, size_all):
            if few and q <= a < m:
                continue
            if count + 2 * wide > out[0].shape[0]:
                return count, at, a
            i, width = members[a], q if a >= end else m if few or a >= m else min(a, q)
            share = _sparse_line(x, i, width, place, columns, line) * (1.0 - slack)
            bounds = offset, top, share, score[i, last] - share + 1e-300
            some = _of_interest(line, width, bounds, i, members, known, now, near)
            for e in range(some):
                j = near[0, e]
                value = sparse_value(x, i, x, j, False)
                count = _put(i, j, value, near[1, e], score, out, count)
        for t in range(used):
            place[columns[0][0, t]] = -1
        done = 0
    return count, stop, 0


def _factors(d: int, base: str, exponent: int) -> tuple[float, float, float]:
    """Return what makes proven bounds of float32 sums: see `_bound`.

    A score, in units of ``2 ** exponent``, is never below what `_lines` gives for two
    rows plus what `_bound` says they add. With u the rounding of float32: what is seen
    of a row is off by u of each feature, which changes a squared distance by less than
    5 u of the sum of both squared lengths; -2 times a product is off by (d + 1) u of
    that sum, a length by d u of itself; and two additions by 3 u. For l1 distances it
    is less than (d + 4) u of the sum of both lengths. The margin is (2 d + 24) u.
    """
    steps = (2 * d + 24) * 2.0**-24
    margin = 1.02 * steps / (1.0 - min(steps, 0.5))
    power = _power(base)
    # What is lost where numbers vanish, in the score itself as well.
    lost = (d + 16) * (2.0**-140 + math.ldexp(1.0, -1074 - power * exponent))
    share = 1.0 - margin if base == "squared-distance" else -margin
    return share, 2.0 ** (-power * exponent), lost


def _power(base: str) -> int:
    return 2 if base == "squared-distance" else 1


def refine_rows(
    inputs: RefineInputs, task: tuple[int, int, int], found: Findings
) -> tuple[int, tuple[int, int, int] | None]:
    """Compare the groups around some rows, given by their places in the order."""
    x: Any = inputs.x.open()
    start = inputs.start.open()
    order, index = np.asarray(inputs.order.open()), inputs.index.open()
    rows = order[task[0] : task[1]]
    most = int((start[rows + 1] - start[rows]).max()) + index.shape[1] + 1
    room = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.bool_)
    state = (
        frozen(order),
        (frozen(index), frozen(inputs.new.open())),
        (frozen(inputs.who.open()), frozen(start)),
        tuple(map(frozen, inputs.lists.open())),
    )
    out = found.rows, found.others, found.scores
    if isinstance(x, SparseRows):
        rest = _compare_sparse(parts(x), *state, slack_of(x), task, room, out)
    else:
        rest = _compare(
            frozen(x),
            *state,
            BASES.index(inputs.base),
            x.dtype.type(2.0**-inputs.exponent),
            _factors(x.shape[1], inputs.base, inputs.exponent),
            task,
            room,
            out,
        )
    count, at, done = rest
    return count, None if at == task[1] else (at, task[1], done)
