"""What searches by pynndescent share: its index, and what is done with its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.blockwise import row_slices
from nnkgraph.data import Candidates
from nnkgraph.errors import ParameterError
from nnkgraph.pairs import DISTANCES
from nnkgraph.search import distance_of, ranked
from nnkgraph.search._bounds import scale_exponent
from nnkgraph.search._repair import repair
from nnkgraph.search.exact import estimated_recall, nearest

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Wanted


_METRICS = {"squared-distance": "euclidean", "l1-distance": "manhattan"}


def check_base(wanted: Wanted, name: str) -> None:
    """Refuse what has no distances."""
    if wanted.base not in DISTANCES:
        raise ParameterError(
            f"search {name!r} finds nearest rows only; a kernel without distances "
            "needs search 'exact'"
        )


@dataclass(frozen=True)
class Frame:
    """How rows are seen in float32.

    Centering keeps what a common offset would drown, and scaling keeps squares in
    the range.
    """

    center: FloatArray
    scale: float

    @classmethod
    def of(cls, x: FloatArray) -> Frame:
        """Return the frame of all rows."""
        center = x.mean(axis=0, dtype=np.float64)
        return cls(center, 2.0 ** -scale_exponent(x, center))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return some rows in it."""
        seen = np.empty(rows.shape, np.float32)
        for some in row_slices(len(rows), 24 * rows.shape[1]):
            seen[some] = (rows[some] - self.center) * self.scale
        return seen


def descended(
    data: FloatArray,
    width: int,
    base: str,
    *,
    threads: int,
    n_trees: int,
    n_iters: int,
    seed: int,
) -> Any:
    """Return pynndescent's index of rows in float32; 0 leaves a number to it."""
    import pynndescent
    from numba import config

    most = config.NUMBA_NUM_THREADS
    if threads > most:
        raise ParameterError(
            f"search by pynndescent with {threads} threads, and there are {most}: ask "
            "for fewer, or set NUMBA_NUM_THREADS"
        )
    return pynndescent.NNDescent(
        data,
        n_neighbors=width,
        metric=_METRICS[base],
        n_trees=n_trees or None,
        n_iters=n_iters or None,
        n_jobs=threads,
        random_state=seed,
        verbose=False,
    )


def mended(
    wanted: Wanted, index: IndexArray, score: FloatArray, backend: str, threads: int
) -> Candidates:
    """Return candidates: add what is missing, and what only the other side saw.

    Parameters
    ----------
    index, score : (n, k) arrays
        The best that were found, in order, -1 and inf where one is missing; they are
        changed.
    """
    short = np.flatnonzero((index < 0).any(axis=1))
    if len(short):
        x = wanted.x
        index[short] = nearest(wanted, short)
        index[short], score[short] = ranked(x, x[short], index[short], wanted.base)
    index, score = repair(index, score)
    return Candidates(
        index,
        distance_of(score, wanted.base),
        backend=backend,
        exact=False,
        threads=threads,
        recall=estimated_recall(wanted, index),
    )
