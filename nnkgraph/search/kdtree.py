"""Exact search in a k-d tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.data import Candidates
from nnkgraph.errors import ParameterError
from nnkgraph.search import distance_of, index_dtype, ranked

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted


@dataclass(frozen=True)
class Kdtree:
    """Exact, by scipy's k-d tree: the fastest way in few dimensions."""

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search all rows with as many threads as the pool grants."""
        from scipy.spatial import cKDTree

        if wanted.base != "squared-distance":
            raise ParameterError(
                "search 'kdtree' finds nearest rows only; a kernel of inner products "
                "needs search 'exact'"
            )
        n, k = len(wanted.x), wanted.k
        tree = cKDTree(wanted.x)
        index = np.empty((n, k), index_dtype(n))
        score = np.empty((n, k))
        block = 16 * wanted.block
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            index[rows], score[rows] = _search_rows(tree, wanted, rows)
            wanted.on_rows(len(rows))
        return Candidates(index, distance_of(score, wanted.base), backend="kdtree")


def _search_rows(
    tree: cKDTree, wanted: Wanted, rows: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """Ask the tree for more than k, until rounding and ties cannot matter."""
    x, k, n = wanted.x, wanted.k, len(wanted.x)
    index = np.empty((len(rows), k), index_dtype(n))
    score = np.empty((len(rows), k))
    # The tree adds squares up in an order of its own.
    slack = 1.0 - 4.0 * (x.shape[1] + 8) * 2.0**-53
    open_, asked = np.arange(len(rows)), k + 4
    while len(open_):
        asked = min(n, asked)
        part = rows[open_]
        answer = tree.query(x[part], asked, workers=wanted.pool.threads)
        bound = np.asarray(answer[0])[:, -1] ** 2 * slack
        near = np.asarray(answer[1]).astype(index_dtype(n))
        near[near == part[:, np.newaxis]] = -1
        best, value = ranked(x, x[part], near, wanted.base)
        index[open_], score[open_] = best[:, :k], value[:, :k]
        if asked == n:
            break
        open_ = open_[~(value[:, k - 1] < bound)]
        asked = 2 * asked + 8
    return index, score


plugin: type[Search] = Kdtree
