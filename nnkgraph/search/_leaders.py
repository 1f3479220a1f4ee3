"""Leaders, and the groups of rows that are near them.

Who leads follows from hashes of row numbers, not from a random generator, whose numbers
may change from one version of a library to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import cross_values
from nnkgraph.data.sparse import share_rows
from nnkgraph.data.sums import parts, squared_lengths
from nnkgraph.runtime import blocks
from nnkgraph.runtime.executors import Here
from nnkgraph.runtime.jit import compiled, frozen
from nnkgraph.search import Wanted, insert
from nnkgraph.search._products import prepare, search_rows, with_queries
from nnkgraph.search.exact import (
    DirectInputs,
    SparseInputs,
    add_products,
    direct_inputs,
    select,
    sparse_inputs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.sparse import SharedRows
    from nnkgraph.runtime.executors import Pool, Shared


_GOLDEN = 0x9E3779B97F4A7C15


def hashed(*words: Any) -> Any:
    """Return 64-bit hashes of whole numbers: splitmix64, a step for every word.

    Words may be arrays, which are taken element by element. The hash of different last
    words is different.
    """
    state = np.zeros(1, np.uint64)
    with np.errstate(over="ignore"):
        for word in words:
            if isinstance(word, int):
                word = np.array([word % 2**64], np.uint64)  # noqa: PLW2901
            state = state + np.asarray(word).astype(np.uint64) + np.uint64(_GOLDEN)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state


def drawn(count: int, rows: IndexArray, *words: int) -> IndexArray:
    """Return so many of the rows, those with the smallest hashes, in their order."""
    if count >= len(rows):
        return rows
    order = np.argpartition(hashed(*words, rows), count - 1)[:count]
    return np.sort(rows[order])


@dataclass(frozen=True)
class LeaderInputs:
    """What a block of rows needs; small, because it travels to the workers."""

    x: Shared | SharedRows
    leaders: Any
    """The leaders as a search needs them."""

    rows: Shared | None
    """The rows that ask, where not all do."""

    first: int
    """The number of the first row: new points are counted after the rows."""

    many: int
    """How many leaders are wanted for each row."""

    words: tuple[int, ...]
    """What the hashes that break ties are made from, besides row and leader."""

    base: str


def nearest_leaders(
    wanted: Wanted,
    leaders: IndexArray,
    many: int,
    words: tuple[int, ...],
    rows: IndexArray | None = None,
    points: Any = None,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Any:
    """Return the numbers of the nearest leaders of rows, the nearest first.

    That is for all rows, for some of them, or for new points.

    Ties go by a hash of row and leader: rows that are equally far from all leaders
    would else all come to the same.
    """
    pool, asked = wanted.pool, wanted.x if points is None else points
    n = len(asked) if rows is None else len(rows)
    many = min(many, len(leaders))
    x: Any = share_rows(pool, asked)
    led = leader_rows(wanted.x, leaders, wanted.base, many, pool)
    found = pool.output((n, many), np.int32)
    asking = None if rows is None else pool.share(rows)
    first = 0 if points is None else len(wanted.x)
    inputs = LeaderInputs(x, led, asking, first, many, words, wanted.base)
    blocks.run(
        pool, _assign_block, inputs, (found,), rows=n, block=1024, on_rows=on_rows
    )
    return found.open()


def leader_rows(x: Any, leaders: IndexArray, base: str, many: int, pool: Pool) -> Any:
    """Return leaders as a search needs them that is asked for more than are wanted."""
    # Products of counts tie often, which a few more of them settle.
    more = 8 if isinstance(x, SparseRows) else 1
    k = min(many + more, len(leaders))
    asked = Wanted(x[leaders], k, base, pool)
    if isinstance(x, SparseRows):
        return sparse_inputs(replace(asked, x=_directions(asked.x)))
    if base == "squared-distance":
        return prepare(asked, pool)
    return direct_inputs(asked)


def _assign_block(inputs: LeaderInputs, start: int, stop: int) -> tuple[IndexArray]:
    x, rows = inputs.x.open(), slice(start, stop)
    numbers = np.arange(start, stop)
    if inputs.rows is not None:
        numbers = rows = np.asarray(inputs.rows.open()[start:stop])  # type: ignore[assignment]
    return (assigned(inputs, x[rows], numbers + inputs.first),)


def assigned(inputs: LeaderInputs, points: Any, numbers: IndexArray) -> IndexArray:
    """Return the nearest leaders of some points; their numbers break ties."""
    index, score, rows = _best(inputs, points)
    many, width = inputs.many, index.shape[1]
    among = (score[:, 1:] == score[:, :-1]).any(axis=1)
    if len(rows) > many:
        # One that is not among the best may tie with the last of them.
        beyond = (score[:, many - 1] == score[:, -1]) & (width < len(rows))
        among &= ~beyond
        for some in _few(np.flatnonzero(beyond), len(rows)):
            every = np.tile(np.arange(len(rows)), (len(some), 1))
            values = _all_scores(inputs, rows, points[some], every)
            index[some, :many] = _ordered(inputs, numbers[some], every, values)
    some = np.flatnonzero(among)
    index[some, :many] = _ordered(inputs, numbers[some], index[some], score[some])
    return index[:, :many].astype(np.int32)


def _few(rows: IndexArray, each: int) -> Iterator[IndexArray]:
    """Yield some rows after the other: so many that a few values for each fit."""
    count = max(1, (1 << 20) // each)
    for start in range(0, len(rows), count):
        yield rows[start : start + count]


def _ordered(
    inputs: LeaderInputs, numbers: IndexArray, near: IndexArray, values: FloatArray
) -> IndexArray:
    """Return the best of some leaders, ties by the hash of row and leader."""
    draw = hashed(*inputs.words, numbers[:, np.newaxis], near)
    order = np.lexsort((draw, values), axis=-1)[:, : inputs.many]
    return np.take_along_axis(near, order, axis=1)


def _directions(x: SparseRows) -> SparseRows:
    """Return rows of length 1, and rows of zeros as they are.

    Sparse rows go to the leaders whose direction is nearest: short ones would lead most
    rows by their length, and numbers that count something would tie.
    """
    length = np.sqrt(squared_lengths(x))
    each = np.repeat(np.where(length > 0.0, length, 1.0), np.diff(x.indptr))
    return replace(x, data=x.data / each)


@compiled
def _product_lines(points: Any, columns: Any, out: Any) -> None:
    for q in range(out.shape[0]):
        add_products(points, columns, q, out[q])


def _all_scores(
    inputs: LeaderInputs, rows: Any, points: Any, every: IndexArray
) -> FloatArray:
    """Return the scores of points and all leaders."""
    if not isinstance(points, SparseRows):
        values: FloatArray = cross_values(rows, points, every, inputs.base)
        return values
    out = np.empty(every.shape)
    _product_lines(parts(points), parts(inputs.leaders.columns.open()), out)
    return -out


@compiled
def _most_similar(points: Any, columns: Any, line: Any, index: Any, score: Any) -> None:
    last = score.shape[1] - 1
    for q in range(score.shape[0]):
        add_products(points, columns, q, line)
        for j in range(line.shape[0]):
            if -line[j] < score[q, last]:
                insert(-line[j], j, score, index, q)


def _best(inputs: LeaderInputs, points: Any) -> tuple[IndexArray, FloatArray, Any]:
    """Return the best leaders of some points and more, scores, and all leaders."""
    leaders: Any = inputs.leaders
    if isinstance(leaders, SparseInputs):
        rows, k = leaders.x.open(), leaders.k
        index, score = np.full((len(points), k), -1), np.full((len(points), k), np.inf)
        columns = parts(leaders.columns.open())
        _most_similar(parts(points), columns, np.empty(len(rows)), index, score)
        return index, score, rows
    if isinstance(leaders, DirectInputs):
        nobody = np.full(len(points), -1)
        return *select(leaders, points, nobody), leaders.x.open()
    asking = with_queries(leaders, np.ascontiguousarray(points), Here)
    return *search_rows(asking, np.arange(len(points))), leaders.x.open()


@compiled
def _count(member: Any, many: int, sizes: Any) -> None:
    for i in range(member.shape[0]):
        for t in range(many):
            sizes[member[i, t] + 1] += 1


@compiled
def _collect(member: Any, many: int, place: Any, rows: Any) -> None:
    for i in range(member.shape[0]):
        for t in range(many):
            c = member[i, t]
            rows[place[c]] = i
            place[c] += 1


def groups_of(member: Any, many: int, count: int) -> tuple[IndexArray, IndexArray]:
    """Return the rows of all groups one after the other, and where each begins.

    ``member`` has the nearest leaders of every row, of which so many count.
    """
    edges = np.zeros(count + 1, np.int64)
    _count(frozen(member), many, edges)
    np.cumsum(edges, out=edges)
    rows = np.empty(edges[-1], np.int32)
    _collect(frozen(member), many, edges[:-1].copy(), rows)
    return rows, edges


_WITHIN = 1024
"""Rows that groups should have which are made of one that is too large."""

_TRIES = 2
"""How often leaders are drawn inside a group before it is cut by row numbers."""


def cut_groups(
    wanted: Wanted,
    rows: IndexArray,
    edges: IndexArray,
    most: int,
    words: tuple[int, ...],
) -> tuple[IndexArray, IndexArray]:
    """Return groups of at most so many rows: larger ones are divided among leaders."""
    sizes = np.diff(edges)
    if sizes.max(initial=0) <= most:
        return rows, edges
    pieces: list[IndexArray] = []
    for number, (start, stop) in enumerate(pairwise(edges)):
        members = rows[start:stop]
        pieces += _pieces(wanted, members, most, (*words, number))
    lengths = np.array([0, *map(len, pieces)])
    return np.concatenate(pieces), np.cumsum(lengths)


def _pieces(
    wanted: Wanted, rows: IndexArray, most: int, words: tuple[int, ...], tries: int = 0
) -> list[IndexArray]:
    if len(rows) <= most:
        return [rows]
    if tries == _TRIES:  # copies, or ties without end
        return [rows[at : at + most] for at in range(0, len(rows), most)]
    leaders = drawn(-(-2 * len(rows) // _WITHIN), rows, *words, tries)
    found = nearest_leaders(wanted, leaders, 2, (*words, tries), rows)
    inside, edges = groups_of(found, found.shape[1], len(leaders))
    return [
        piece
        for start, stop in pairwise(edges)
        for piece in _pieces(
            wanted, rows[inside[start:stop]], most, (*words, int(start)), tries + 1
        )
    ]
