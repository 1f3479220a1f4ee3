"""Exact search in a k-d tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Candidates
from nnkgraph.data.pairs import GEOMETRIC
from nnkgraph.errors import ParameterError
from nnkgraph.runtime.arrays import new_array
from nnkgraph.search import Memory, Plain, distance_of, index_dtype, ranked

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted


_ROWS = 8192
"""Rows that the tree is asked about at once."""

_ANSWERS = 1 << 22
"""Candidates that it may return at once where it is asked again."""


@dataclass(frozen=True)
class Kdtree(Plain):
    """Exact, by scipy's k-d tree: the fastest way in few dimensions."""

    exact: ClassVar[bool] = True
    by_rows: ClassVar[bool] = True

    def memory(self, n: int, d: int, _k: int, _base: str, /, *, some: bool) -> Memory:
        """Return what the tree takes, which is never in files."""
        del some
        return Memory(held=n * (8 * d + 24))

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search with as many threads as the pool grants."""
        from scipy.spatial import cKDTree

        if wanted.base not in GEOMETRIC:
            raise ParameterError(
                "search 'kdtree' knows distances between points only; this kernel "
                "needs search 'exact'"
            )
        asking, k = wanted.asking, wanted.k
        tree = cKDTree(wanted.x)
        index = new_array((len(asking), k), index_dtype(len(wanted.x)))
        score = new_array((len(asking), k), np.float64)
        for start in range(0, len(asking), _ROWS):
            rows = np.array(asking[start : start + _ROWS])
            _search_rows(tree, wanted, rows, k + 4, index, score)
            wanted.on_rows(len(rows))
        return Candidates(index, distance_of(score, wanted.base), backend="kdtree")


def _search_rows(
    tree: cKDTree,
    wanted: Wanted,
    rows: IndexArray,
    asked: int,
    index: IndexArray,
    score: FloatArray,
) -> None:
    """Fill the lines of some rows.

    The tree is asked for more than k, and asked again for twice as many where rounding
    or ties at the k-th place could matter.
    """
    x, k, n = wanted.x, wanted.k, len(wanted.x)
    asked = min(n, asked)
    squared = wanted.base == "squared-distance"
    p = 2.0 if squared else 1.0
    answer = tree.query(x[rows], asked, p=p, workers=wanted.pool.threads)
    near = np.asarray(answer[1]).astype(index_dtype(n))
    near[near == rows[:, np.newaxis]] = -1
    best, value = ranked(x, x[rows], near, wanted.base)
    place = rows - wanted.asking.start
    index[place], score[place] = best[:, :k], value[:, :k]
    if asked == n:
        return
    # The tree adds up in an order of its own.
    slack = 1.0 - 4.0 * (x.shape[1] + 8) * 2.0**-53
    bound = np.asarray(answer[0])[:, -1] ** (2 if squared else 1) * slack
    open_ = rows[~(value[:, k - 1] < bound)]
    more = 2 * asked + 8
    some = max(1, _ANSWERS // min(n, more))
    for start in range(0, len(open_), some):
        _search_rows(tree, wanted, open_[start : start + some], more, index, score)


plugin: type[Search] = Kdtree
