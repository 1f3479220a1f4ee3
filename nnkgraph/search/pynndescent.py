"""Approximate search by nearest neighbor descent."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import registry
from nnkgraph.blockwise import row_slices
from nnkgraph.data import Candidates
from nnkgraph.errors import ParameterError
from nnkgraph.pairs import DISTANCES
from nnkgraph.resources import granted_cpus
from nnkgraph.search import distance_of, index_dtype, ranked, ranked_blocks
from nnkgraph.search._bounds import scale_exponent
from nnkgraph.search._repair import repair
from nnkgraph.search._warm_start import warm_start
from nnkgraph.search.exact import estimated_recall, nearest

if TYPE_CHECKING:
    from nnkgraph.data import IndexArray
    from nnkgraph.search import Search, Wanted


_METRICS = {"squared-distance": "euclidean", "l1-distance": "manhattan"}


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
        if wanted.base not in DISTANCES:
            raise ParameterError(
                "search 'pynndescent' finds nearest rows only; a kernel without "
                "distances needs search 'exact'"
            )
        resolved = dataclasses.replace(self, threads=self.threads or granted_cpus())
        x, k, n = wanted.x, wanted.k, len(wanted.x)
        index = resolved._descend(wanted)
        wanted.on_rows(n)
        index[index == np.arange(n)[:, np.newaxis]] = -1
        short = np.flatnonzero((index >= 0).sum(axis=1) < k)
        index, score = ranked_blocks(wanted, index)
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

        # It works in float32: centering keeps what a common offset would drown, and
        # scaling keeps squares in its range.
        center = wanted.x.mean(axis=0, dtype=np.float64)
        scale = 2.0 ** -scale_exponent(wanted.x, center)
        data = np.empty(wanted.x.shape, np.float32)
        for rows in row_slices(len(data), 24 * data.shape[1]):
            data[rows] = (wanted.x[rows] - center) * scale
        with warm_start():
            index, _ = pynndescent.NNDescent(
                data,
                n_neighbors=wanted.k + 1,
                metric=_METRICS[wanted.base],
                n_trees=self.n_trees or None,
                n_iters=self.n_iters or None,
                n_jobs=self.threads,
                random_state=wanted.seed,
                verbose=False,
            ).neighbor_graph
        return np.asarray(index).astype(index_dtype(len(wanted.x)))


plugin: type[Search] = Pynndescent
