"""Approximate search by nearest neighbor descent."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Candidates
from nnkgraph.data.pairs import GEOMETRIC
from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.runtime import cache, registry
from nnkgraph.runtime.arrays import row_slices
from nnkgraph.runtime.jit import compiled
from nnkgraph.runtime.limits import granted_cpus
from nnkgraph.search import (
    Memory,
    Plain,
    distance_of,
    index_dtype,
    ranked,
    ranked_blocks,
)
from nnkgraph.search._products import scale_exponent
from nnkgraph.search.exact import estimated_recall, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search, Wanted

_PROCESS = 150 << 20
"""Bytes that its compiled code takes."""

_MODULES = ("distances", "utils", "kernels", "rp_trees", "hybrid_forest")
_MAIN = "pynndescent.pynndescent_"
_DRIVERS = "nn_descent"
"""These only call others and cannot be cached; plain Python needs no compiling."""

_FLOAT_IDS = "0.6."
"""Versions that keep row numbers as float32 for a while."""

_FLOAT_ROWS = 1 << 24
"""How many row numbers float32 tells apart."""


@contextmanager
def warm_start() -> Iterator[None]:
    """Let pynndescent find its compiled code in the cache while this lasts."""
    with cache.numbas_own("pynndescent"):
        main: Any = importlib.import_module(_MAIN)
        modules = [sys.modules.get(f"pynndescent.{name}") for name in _MODULES]
        for module in filter(None, (main, *modules)):
            for name, function in vars(module).items():
                if _is_dispatcher(function) and not name.startswith(_DRIVERS):
                    _make_cacheable(function)
    drivers = {
        name: function
        for name, function in vars(main).items()
        if name.startswith(_DRIVERS) and _is_dispatcher(function)
    }
    for name, function in drivers.items():
        setattr(main, name, function.py_func)
    try:
        yield
    finally:
        for name, function in drivers.items():
            setattr(main, name, function)


def _is_dispatcher(function: Any) -> bool:
    from numba.core.dispatcher import Dispatcher

    return isinstance(function, Dispatcher)


def _make_cacheable(function: Any) -> None:
    from numba.core.caching import NullCache

    # These are numba's own: without them everything works, and compiles each time.
    if not (hasattr(function, "_set_uuid") and hasattr(function, "enable_caching")):
        return
    original = function.py_func
    # Only where none was drawn yet, which happens when the function is first cached.
    if getattr(function, "_MemoMixin__uuid", None) is None:
        name = f"{original.__module__}.{original.__qualname__}"
        function._set_uuid(f"{name} of {version('pynndescent')}")
    if isinstance(function._cache, NullCache):
        function.enable_caching()


@compiled
def _enters(index: Any, score: Any, i: int, t: int) -> bool:
    """Return whether row i belongs into the list of its t-th candidate."""
    j, last = index[i, t], index.shape[1] - 1
    if j < 0:
        return False
    value, worst = score[i, t], score[j, last]
    if value > worst or (value == worst and i > index[j, last]):
        return False
    known = False
    for s in range(index.shape[1]):
        known |= index[j, s] == i
    return not known


@compiled
def _count_entries(index: Any, score: Any, start: Any) -> None:
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if _enters(index, score, i, t):
                start[index[i, t] + 1] += 1


@compiled
def _collect_entries(
    index: Any, score: Any, place: Any, rows: Any, values: Any
) -> None:
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if _enters(index, score, i, t):
                j = index[i, t]
                rows[place[j]], values[place[j]] = i, score[i, t]
                place[j] += 1


@compiled
def _insert_entries(start: Any, rows: Any, values: Any, index: Any, score: Any) -> None:
    k = index.shape[1]
    for j in range(index.shape[0]):
        for e in range(start[j], start[j + 1]):
            row, value = rows[e], values[e]
            t = k
            while t > 0 and (
                score[j, t - 1] > value
                or (score[j, t - 1] == value and index[j, t - 1] > row)
            ):
                if t < k:
                    score[j, t], index[j, t] = score[j, t - 1], index[j, t - 1]
                t -= 1
            if t < k:
                score[j, t], index[j, t] = value, row


def repair(index: IndexArray, score: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Let i enter j's list where j is in i's list and i is nearer than j's last.

    An approximate search that misses an edge on one side would otherwise lose it in
    rules that ask both sides. All lists are looked at as they were found, so that the
    result does not depend on the order of the rows.

    Parameters
    ----------
    index, score : (n, k) arrays
        Candidates in the order of score and row number, -1 and inf where one is
        missing.
    """
    start = np.zeros(len(index) + 1, np.int64)
    _count_entries(index, score, start)
    np.cumsum(start, out=start)
    rows, values = np.empty(start[-1], index.dtype), np.empty(start[-1])
    _collect_entries(index, score, start[:-1].copy(), rows, values)
    completed, scores = index.copy(), score.copy()
    _insert_entries(start, rows, values, completed, scores)
    return completed, scores


_METRICS = {"squared-distance": "euclidean", "l1-distance": "manhattan"}


def check_base(wanted: Wanted, name: str) -> None:
    """Refuse what has no distances."""
    if wanted.base not in GEOMETRIC:
        raise ParameterError(
            f"search {name!r} knows distances between points only; this kernel "
            "needs search 'exact'"
        )


def _check_rows(n: int) -> None:
    """Refuse so many rows that the installed version would mix them up."""
    found = version("pynndescent")
    if n > _FLOAT_ROWS and found.startswith(_FLOAT_IDS):
        raise ResourceError(
            f"pynndescent {found} mixes up rows where there are more than "
            f"{_FLOAT_ROWS:,}, and there are {n:,}: pip install 'pynndescent>=0.7', or "
            "`search='partition'`"
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


def build_index(
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


def completed(
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
    known = estimated_recall(wanted, score)
    return Candidates(
        index,
        distance_of(score, wanted.base),
        backend=backend,
        exact=False,
        threads=threads,
        **known,
    )


@dataclass(frozen=True)
class Pynndescent(Plain):
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

    def memory(self, n: int, d: int, k: int, _base: str, /, *, some: bool) -> Memory:
        """Return what its trees and heaps take, which are never in files."""
        del some
        return Memory(held=_PROCESS + n * d * 8 + n * k * 50)

    def find(self, wanted: Wanted, /) -> Candidates:
        """Search, mend what is missing, add what the other side saw, rank exactly."""
        check_base(wanted, "pynndescent")
        _check_rows(len(wanted.x))
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
