"""Approximate search by nearest neighbor descent."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import registry
from nnkgraph.data import Candidates
from nnkgraph.errors import ParameterError
from nnkgraph.resources import granted_cpus
from nnkgraph.search import distance_of, index_dtype, ranked, ranked_blocks
from nnkgraph.search.exact import estimated_recall, nearest

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted


@dataclass(frozen=True)
class Pynndescent:
    """Approximate, by pynndescent: for many rows; recall is estimated and reported."""

    threads: int = 0
    """Threads, which influence the result; 0 takes all that are granted."""

    n_trees: int = 0
    """Random projection trees to start from; 0 leaves it to pynndescent."""

    n_iters: int = 0
    """Rounds of descent; 0 leaves it to pynndescent."""

    def __post_init__(self) -> None:
        if min(self.threads, self.n_trees, self.n_iters) < 0:
            raise ParameterError(
                "search 'pynndescent': parameters must not be negative"
            )

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search, mend what is missing, add what the other side saw, rank exactly."""
        if wanted.base != "squared-distance":
            raise ParameterError(
                "search 'pynndescent' finds nearest rows only; a kernel of inner "
                "products needs search 'exact'"
            )
        resolved = dataclasses.replace(self, threads=self.threads or granted_cpus())
        x, k, n = wanted.x, wanted.k, len(wanted.x)
        index = resolved._descend(wanted)
        wanted.on_rows(n)
        index[index == np.arange(n)[:, np.newaxis]] = -1
        short = np.flatnonzero((index >= 0).sum(axis=1) < k)
        index, score = ranked_blocks(wanted, index)
        index, score = index[:, :k].copy(), score[:, :k].copy()
        if len(short):
            index[short] = nearest(wanted, short)
            index[short], score[short] = ranked(x, x[short], index[short], wanted.base)
        index, score = repair(index, score)
        return Candidates(
            index,
            distance_of(score, wanted.base),
            backend=registry.spec(resolved),
            exact=False,
            threads=resolved.threads,
            recall=estimated_recall(wanted, index),
        )

    def _descend(self, wanted: Wanted) -> IndexArray:
        """Return n x (k + 1) candidates, with the row itself and -1 among them."""
        import pynndescent

        # It works in float32: centering keeps what a common offset would drown.
        center = wanted.x.mean(axis=0, dtype=np.float64)
        index, _ = pynndescent.NNDescent(
            (wanted.x - center).astype(np.float32),
            n_neighbors=wanted.k + 1,
            n_trees=self.n_trees or None,
            n_iters=self.n_iters or None,
            n_jobs=self.threads,
            random_state=wanted.seed,
            verbose=False,
        ).neighbor_graph
        return np.asarray(index).astype(index_dtype(len(wanted.x)))


def repair(index: IndexArray, score: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Let i enter j's list where j is in i's list and i is nearer than j's last.

    An approximate search that misses an edge on one side would otherwise lose it in
    rules that ask both sides.
    """
    n, k = index.shape
    row = np.repeat(np.arange(n), k)
    column = index.ravel().astype(np.int64)
    known = column >= 0
    row, column, value = row[known], column[known], score.ravel()[known]
    # Lexicographic keys of (row, column): is the reverse of a pair there as well?
    forward, backward = row * n + column, column * n + row
    missing = ~np.isin(backward, forward, kind="sort")
    last = score[:, -1]
    better = (value < last[column]) | (
        (value == last[column]) & (row < index[column, -1])
    )
    enter = missing & better
    row, column = (
        np.concatenate([row, column[enter]]),
        np.concatenate([column, row[enter]]),
    )
    value = np.concatenate([value, value[enter]])
    order = np.lexsort((column, value, row))
    row, column, value = row[order], column[order], value[order]
    start = np.searchsorted(row, np.arange(n))
    rank = np.arange(len(row)) - start[row]
    kept = rank < k
    mended, scores = np.full_like(index, -1), np.full_like(score, np.inf)
    mended[row[kept], rank[kept]] = column[kept]
    scores[row[kept], rank[kept]] = value[kept]
    return mended, scores


plugin: type[Search] = Pynndescent
