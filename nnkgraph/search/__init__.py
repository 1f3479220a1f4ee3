"""Searches: which nodes are candidates. One file each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from nnkgraph.data import pairs
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import new_array
from nnkgraph.runtime.jit import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.runtime.checkpoint import Checkpoint
    from nnkgraph.runtime.executors import Pool


@dataclass(frozen=True)
class Wanted:
    """What is searched: the k best candidates of every row, never itself.

    Best means the smallest distance or the largest product or similarity, summed in
    float64 in the order of :mod:`nnkgraph.data.sums`; ties go to the lower row number.
    """

    x: Any
    """(n, d) the rows as the kernel sees them."""

    k: int
    """How many, below n."""

    base: str
    """A name of ``pairs.BASES``, or ``"similarity"``."""

    pool: Pool
    """Where blocks may be computed."""

    seed: int = 0
    """For searches that draw at random."""

    origin: IndexArray | None = None
    """The row numbers in the input file, where repeated rows were left out."""

    first: IndexArray | None = None
    """For all rows of the input file, the lowest row with the same values."""

    ids: tuple[str, ...] | None = None
    """The names of the rows of the input file, where they have any."""

    block: int = 512
    """Rows that are searched at once; the result does not depend on it."""

    on_rows: Callable[[int], object] = lambda _: None
    """Hears how many rows were just done."""

    say: Callable[[str], object] = lambda _: None
    """Hears what is going to be done."""

    checkpoint: Checkpoint | None = None
    """Where finished blocks are kept, if they are."""

    similarity: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    """What says how similar two sets of rows are, where no base does."""

    span: range | None = None
    """The rows that ask, where only a part of them does: see ``Search.by_rows``."""

    @property
    def asking(self) -> range:
        """The rows whose candidates are wanted."""
        return range(len(self.x)) if self.span is None else self.span


@dataclass(frozen=True)
class Memory:
    """Bytes that a search takes besides the rows and the lists of candidates."""

    held: int = 0
    """In memory, whatever the limit is."""

    files: int = 0
    """In memory, or in temporary files where there is not enough of it."""


class Search(Protocol):
    """Finds candidates, and declares what others must know about it."""

    exact: ClassVar[bool]
    """Whether it finds the best by definition."""

    by_rows: ClassVar[bool]
    """Whether it finds the candidates of some rows, ``wanted.span``, by themselves."""

    by_groups: ClassVar[bool]
    """Whether parts of its work can be done apart and finished later: `find_part`."""

    answers_queries: ClassVar[bool]
    """Whether it finds candidates of new points."""

    takes_sparse: ClassVar[bool]
    """Whether it searches sparse rows."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The files it reads candidates from; ``()`` where it looks at features."""
        ...

    def identity(self) -> str:
        """Return a text that is the same for searches with the same result."""
        ...

    def chosen(self, x: Any, k: int, base: str, /) -> tuple[Search, str]:
        """Return the search that does the work for these rows, and the reason."""
        ...

    def memory(self, n: int, d: int, k: int, base: str, /, *, some: bool) -> Memory:
        """Estimate what it takes for all rows, or only for ``some`` of them."""
        ...

    def find(self, wanted: Wanted, /) -> Candidates:
        """Return n x k candidates, best first."""
        ...

    def query(self, wanted: Wanted, points: FloatArray, /) -> Candidates:
        """Return the k best rows for every one of some new points."""
        ...


class Plain:
    """What most searches share: approximate, for dense rows, all rows at once."""

    exact: ClassVar[bool] = False
    by_rows: ClassVar[bool] = False
    by_groups: ClassVar[bool] = False
    answers_queries: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False

    @property
    def reads(self) -> tuple[str, ...]:
        """Return nothing: it looks at features."""
        return ()

    def identity(self) -> str:
        """Return its name and parameters."""
        return registry.spec(self)

    def chosen(self, _x: Any, _k: int, _base: str, /) -> tuple[Any, str]:
        """Return itself."""
        return self, ""

    def memory(self, _n: int, _d: int, _k: int, _base: str, /, *, some: bool) -> Memory:
        """Return nothing worth counting."""
        del some
        return Memory()

    def query(self, _wanted: Wanted, _points: FloatArray, /) -> Candidates:
        """Refuse: it knows the rows only."""
        raise ParameterError(
            f"search {registry.spec(self)!r} does not answer queries: use 'exact'"
        )


def check_by_rows(search: Search) -> None:
    """Refuse a search that looks at all rows at once."""
    if not search.by_rows:
        raise ParameterError(
            f"search {registry.spec(search)!r} finds the candidates of all rows at "
            "once, not of a shard: use `search='exact'` or `search='kdtree'`"
        )


def index_dtype(n: int) -> Any:
    """Return the smallest integer type that counts n rows and knows -1."""
    return np.int32 if n <= np.iinfo(np.int32).max else np.int64


@compiled
def insert(value: float, j: int, score: Any, index: Any, q: int) -> None:
    """Put a candidate in its place in a sorted line; the last one falls out."""
    t = score.shape[1] - 1
    while t > 0 and score[q, t - 1] > value:
        score[q, t], index[q, t] = score[q, t - 1], index[q, t - 1]
        t -= 1
    score[q, t], index[q, t] = value, j


_NARROW = 200
"""Rows of candidates up to this length are sorted by insertion."""


@compiled
def _sort_rows(score: Any, index: Any) -> None:
    for i in range(score.shape[0]):
        for j in range(1, score.shape[1]):
            s, c = score[i, j], index[i, j]
            t = j
            while t > 0 and (
                score[i, t - 1] > s or (score[i, t - 1] == s and index[i, t - 1] > c)
            ):
                score[i, t] = score[i, t - 1]
                index[i, t] = index[i, t - 1]
                t -= 1
            score[i, t] = s
            index[i, t] = c


def ranked(
    x: FloatArray, queries: FloatArray, index: IndexArray, base: str
) -> tuple[IndexArray, FloatArray]:
    """Score candidates from the features and order them, best first.

    Returns
    -------
    index : (b, m) array of int
        The same candidates in order; -1 comes last.
    score : (b, m) array of float64
        Squared distances or negative inner products; inf where one is missing.
    """
    index = np.ascontiguousarray(index)
    score = pairs.cross_values(x, queries, index, base)
    if base not in pairs.DISTANCES:
        score[index >= 0] *= -1.0
    if index.shape[1] <= _NARROW:
        ordered = index.copy()
        _sort_rows(score, ordered)
        return ordered, score
    order = np.lexsort((index, score), axis=1)
    return (
        np.take_along_axis(index, order, axis=1),
        np.take_along_axis(score, order, axis=1),
    )


def ranked_blocks(wanted: Wanted, index: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the k best of the candidates of all rows, a block of rows at a time."""
    x, score = wanted.x, new_array((len(index), wanted.k), np.float64)
    ordered = new_array(score.shape, index.dtype)
    for start in range(0, len(index), 4096):
        rows = slice(start, start + 4096)
        best, value = ranked(x, x[rows], index[rows], wanted.base)
        ordered[rows], score[rows] = best[:, : wanted.k], value[:, : wanted.k]
    return ordered, score


def distance_of(score: FloatArray, base: str) -> FloatArray:
    """Turn scores into the distances that candidates carry, in their place."""
    return np.sqrt(score, out=score) if base in pairs.SQUARED else score
