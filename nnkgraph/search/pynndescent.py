"""Approximate search by nearest neighbor descent."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.limits import granted_cpus
from nnkgraph.search import index_dtype, ranked_blocks
from nnkgraph.search._descent import (
    Frame,
    build_index,
    check_base,
    completed,
    warm_start,
)

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, IndexArray
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
        check_base(wanted, "pynndescent")
        resolved = dataclasses.replace(self, threads=self.threads or granted_cpus())
        k, n = wanted.k, len(wanted.x)
        index = resolved._descend(wanted)
        wanted.on_rows(n)
        index[index == np.arange(n)[:, np.newaxis]] = -1
        index, score = ranked_blocks(wanted, index)
        index, score = index[:, :k].copy(), score[:, :k].copy()
        return completed(
            wanted, index, score, registry.spec(resolved), resolved.threads
        )

    def _descend(self, wanted: Wanted) -> IndexArray:
        """Return n x (k + 1) candidates, with the row itself and -1 among them."""
        x = wanted.x
        with warm_start():
            index, _ = build_index(
                Frame.of(x)(x),
                wanted.k + 1,
                wanted.base,
                threads=self.threads,
                n_trees=self.n_trees,
                n_iters=self.n_iters,
                seed=wanted.seed,
            ).neighbor_graph
        return np.asarray(index).astype(index_dtype(len(x)))


plugin: type[Search] = Pynndescent
