"""What every task begins with: rows as the kernel sees them, and workers.

``open_run`` turns ``Settings`` and ``Running`` into a ``Run``: its rows are prepared,
its budget is checked, its checkpoint is open and its workers are ready.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import solve
from nnkgraph.build.budget import check_budget, estimate
from nnkgraph.data import Candidates, Features, Neighborhoods, SparseGram, SparseRows
from nnkgraph.data.duplicates import Rows, distinct_rows
from nnkgraph.data.pairs import MATRICES
from nnkgraph.data.scaling import Scaling
from nnkgraph.data.sparse import work_columns
from nnkgraph.errors import InputError
from nnkgraph.runtime import arrays, blocks, registry
from nnkgraph.runtime.checkpoint import Block, Checkpoint, open_checkpoint
from nnkgraph.runtime.executors import Executor, Pool, open_pool
from nnkgraph.runtime.progress import Stages
from nnkgraph.search import Search, Wanted, index_dtype
from nnkgraph.search.auto import Costs, judged
from nnkgraph.search.exact import GRAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nnkgraph.build.settings import Running, Settings
    from nnkgraph.build.shards import Shard
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Run:
    """A run whose workers are ready."""

    features: Features
    settings: Settings
    running: Running
    rows: Rows
    """As the kernel sees them, identical rows treated as asked."""

    scaling: Scaling
    pool: Pool
    checkpoint: Checkpoint | None = None
    span: range | None = None
    """The rows that are solved, where this run is one of several."""

    facts: dict[str, Any] = field(default_factory=dict)
    """All that determines its results, where somebody asks for it."""

    @property
    def progress(self) -> Stages:
        """Hears how far the work is."""
        return self.running.progress

    @property
    def warnings(self) -> list[str]:
        """What may not be as the user thinks."""
        n, k = len(self.rows.x), self.settings.k
        found = [*self.features.warnings]
        if self.checkpoint:
            found += self.checkpoint.warnings
        if 0 < n <= k:
            rows = "1 row is" if n == 1 else f"{n} rows are"
            found.append(f"only {rows} distinct: k is {n - 1} instead of {k}")
        asked, used = self.running.workers, self.pool.workers
        if isinstance(asked, int) and used < asked:
            found.append(
                f"{used} workers were used instead of {asked}: more would only wait"
            )
        return found

    @property
    def notes(self) -> list[str]:
        """What components hold, and what a checkpoint was good for."""
        found, seen = [], self.scaling.projection
        if seen is not None:
            found.append(seen.in_words(self.features.x.shape[1]))
        return found + (self.checkpoint.notes if self.checkpoint else [])

    def wanted(
        self, k: int, on_rows: Callable[[int], object] = lambda _: None
    ) -> Wanted:
        """Return what is searched: the k best of these rows for each of them."""
        wanted = _wanted(self.rows.x, k, self.settings.kernel, self.pool)
        return replace(
            wanted,
            seed=self.settings.seed,
            origin=self.rows.origin,
            first=self.rows.first,
            ids=self.features.ids,
            on_rows=on_rows,
            say=self.progress.say,
        )

    def prepared(self, points: Features) -> Any:
        """Return new points as the kernel sees them, scaled by the rows of the run."""
        x = self.scaling.applied(points.x, points.name)
        x = self.settings.kernel.prepare(x, points.name)
        return x.astype(self.rows.x.dtype, copy=False)

    def again(self, settings: Settings) -> Run:
        """Return a run with the same workers and other settings."""
        rows, scaling = prepared_rows(self.features, settings, self.progress)
        return replace(self, settings=settings, rows=rows, scaling=scaling)

    def find(self) -> Candidates:
        """Search as many candidates as the method wants to choose from."""
        n = len(self.rows.x)
        k = min(self.settings.width, n - 1)
        asking = range(n) if self.span is None else self.span
        with self.progress("search", len(asking)) as on_rows:
            if k == 0:
                nothing = np.empty((len(asking), 0))
                return Candidates(nothing.astype(index_dtype(n)), nothing)
            kept, search = self.checkpoint, self.settings.search
            wanted = replace(self.wanted(k, on_rows), checkpoint=kept, span=self.span)
            return found_once(
                kept,
                n,
                k,
                lambda: judged(search.find(wanted), wanted, search),
                self.span,
            )

    def find_and_fit(self) -> tuple[Candidates, Kernel]:
        """Find what the method chooses from; fit the kernel to the k best of it."""
        settings, span = self.settings, self.span
        whole = span is not None and not settings.search.by_rows
        # Candidates that are known already need no second file.
        all_rows = replace(self, span=None, checkpoint=None) if whole else self
        candidates = all_rows.find()
        fitted = settings.kernel.fit(_part(candidates, slice(None), settings.k))
        if span is not None and whole:
            candidates = _part(candidates, slice(span.start, span.stop))
        with self.progress("search"):
            wanted = replace(self.wanted(settings.k), span=span)
            return settings.method.gather(wanted, candidates, fitted), fitted

    def solve(self) -> tuple[Candidates, Kernel, Neighborhoods]:
        """Find and solve its rows; return the fitted kernel with them."""
        candidates, fitted = self.find_and_fit()
        method = self.settings.method
        steps = (len(candidates.index), "rows") if method.local else (0, "steps")
        with self.progress("solve", *steps) as on_rows:
            found = solve.solve(
                self.pool,
                self.rows.x,
                candidates,
                kernel=fitted,
                method=method,
                first=self.rows.kept_copies,
                start=self.span.start if self.span else 0,
                k=self.settings.k,
                on_rows=on_rows,
                checkpoint=self.checkpoint,
            )
        return candidates, fitted, found


def _part(found: Candidates, rows: slice, k: int | None = None) -> Candidates:
    """Return the k best candidates of some rows."""
    index, distance = found.index[rows, :k], found.distance[rows, :k]
    return replace(found, index=index, distance=distance)


@contextmanager
def open_run(
    features: Features,
    settings: Settings,
    running: Running,
    *,
    shard: Shard | None = None,
    methods: Sequence[Method] = (),
    seconds: float | None = None,
) -> Iterator[Run]:
    """Prepare rows, check the budget, open the checkpoint, and have workers ready.

    The workers are ready for further ``methods`` as well. ``seconds`` is what one
    processor will work, where that is not to find and solve all rows.
    """
    rows, scaling = prepared_rows(features, settings, running.progress)
    span = None
    if shard is not None:
        # What a function says may depend on which rows it is asked about together.
        grain = GRAIN if settings.kernel.nearness == "similarity" else 1
        span = shard.rows(len(rows.x), grain)
    if seconds is None:
        share = 1.0 if span is None else len(span) / len(rows.x)
        seconds = share * estimated_seconds(rows.x, settings.k)
    sparse = isinstance(rows.x, SparseRows)  # a kernel may have made them so
    taken = replace(features, x=rows.x) if sparse else features
    check_budget(estimate(taken, settings, running, seconds, span))
    facts: dict[str, Any] = {}
    if running.resume is not None or shard is not None:
        facts = settings.facts(features)
    if shard is not None:
        facts["shard"] = str(shard)
    folder = running.resume
    with (
        open_checkpoint(folder, facts) if folder else nullcontext() as checkpoint,
        open_pool(
            running.executor,
            running.workers,
            seconds=seconds,
            block_timeout=running.block_timeout,
            shared_dir=running.shared_dir,
        ) as pool,
    ):
        if isinstance(rows.x, np.ndarray) and not isinstance(rows.x, np.memmap):
            # Written only once where workers need a file, whatever asks for it.
            rows = replace(rows, x=pool.share(rows.x).open())
        with running.progress("start"):
            for method in (settings.method, *methods):
                warm_up(pool, rows.x, settings.kernel, method)
        yield Run(
            features, settings, running, rows, scaling, pool, checkpoint, span, facts
        )


def prepared_rows(
    features: Features, settings: Settings, progress: Stages | None = None
) -> tuple[Rows, Scaling]:
    """Return the rows as the kernel sees them, and how they were scaled."""
    arrays.watch(features.x)
    x, name, kernel = features.x, features.name, settings.kernel
    with (progress or Stages())("start"):
        scaling = settings.scaling
        if scaling is None:
            scaling = Scaling.of(x, settings.scale, settings.pca, name)
        if scaling.projection is not None and progress is not None:
            progress.say(scaling.projection.in_words(x.shape[1]))
        x = kernel.prepare(scaling.applied(x, name), name)
        return distinct_rows(x, settings.duplicates, name, base=kernel.base), scaling


def estimated_seconds(x: Any, k: int) -> float:
    """Estimate roughly how long one processor will work."""
    n, d = len(x), work_columns(x)
    costs = Costs(n, d, k, "squared-distance")
    search = min(costs.exact, costs.kdtree, costs.partition)
    return 1e-9 * search + n * solve.row_seconds(k, d)


def warm_up(pool: Pool, x: Any, kernel: Kernel, method: Method) -> None:
    """Have everything compiled and every worker ready before the work is timed."""
    tiny: Any = np.arange(24.0).reshape(6, 4)
    if kernel.base in MATRICES:
        tiny = np.exp(-np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))))
    if isinstance(x, SparseGram | SparseRows):
        from scipy.sparse import csr_array

        tiny = csr_array(tiny)
        gram = isinstance(x, SparseGram)
        tiny = SparseGram.of(tiny) if gram else SparseRows.of(tiny, "")
    elif kernel.base not in MATRICES:
        tiny = tiny.astype(x.dtype)
    task = (tiny, kernel, method)
    _tiny_run(task, 0, 1)  # workers then find everything in the cache
    if pool.workers > 1:
        blocks.run(pool, _tiny_run, task, (), rows=pool.workers, block=1)


def _tiny_run(task: tuple[Any, Kernel, Method], start: int, _stop: int) -> tuple[()]:
    x, kernel, method = task
    serial: Executor = registry.create("executors", "serial")
    search: Search = registry.create("search", "exact")
    with serial.open(1) as pool:
        found = search.find(_wanted(x, 2, kernel, pool))
        fitted = kernel.fit(found)
        if method.local or start == 0:  # others work in the first process only
            solve.solve(pool, x, found, kernel=fitted, method=method, k=1)
    return ()


def _wanted(x: Any, k: int, kernel: Kernel, pool: Pool) -> Wanted:
    """Return what is searched; the kernel is asked where no base says what is near."""
    asked: Any = kernel if kernel.nearness == "similarity" else None
    return Wanted(x, k, kernel.nearness, pool, similarity=asked)


ABOUT: dict[str, Any] = {
    "backend": str,
    "exact": bool,
    "threads": int,
    "recall": float | int | None,
    "recall_interval": list | tuple | None,
    "notes": list,
    "warnings": list,
}
"""What is known about candidates besides their arrays."""


def candidates_block(found: Candidates, rows: range, n: int) -> Block:
    """Return the candidates of some of n rows as they are kept."""
    index = arrays.converted(found.index, index_dtype(n))
    about = {name: getattr(found, name) for name in ABOUT}
    return Block(
        "candidates", rows, {"index": index, "distance": found.distance}, about
    )


def check_candidates(block: Block, n: int) -> None:
    """Refuse candidates that are no rows, the row itself, or there twice.

    Compiled code takes row numbers without looking, so they are looked at here.
    """
    about, index = block.about, block.arrays["index"]
    sane = about.keys() == ABOUT.keys() and all(
        isinstance(about[name], kind) for name, kind in ABOUT.items()
    )
    for some in arrays.row_slices(len(index) if index.size else 0, 16 * index.shape[1]):
        ordered = np.sort(index[some], axis=1)
        own = np.arange(some.start, some.stop)[:, np.newaxis] + block.rows.start
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        inside = ordered[:, 0].min() >= -1 and ordered[:, -1].max() < n
        sane = sane and inside and not (twice.any() or (ordered == own).any())
    if not sane:
        raise InputError(f"{block.name}: its candidates are damaged")


def kept_candidates(block: Block) -> Candidates:
    """Return candidates that were kept."""
    texts = ("notes", "warnings")
    about = block.about | {name: tuple(map(str, block.about[name])) for name in texts}
    if about["recall_interval"] is not None:
        low, high = about["recall_interval"]
        about["recall_interval"] = float(low), float(high)
    return Candidates(block.arrays["index"], block.arrays["distance"], **about)


def found_once(
    checkpoint: Checkpoint | None,
    n: int,
    k: int,
    search: Callable[[], Candidates],
    span: range | None = None,
) -> Candidates:
    """Return candidates from a checkpoint, or search them and keep them there."""
    if checkpoint is None:
        return search()
    rows = range(n) if span is None else span
    like = {"index": np.empty((0, k), index_dtype(n)), "distance": np.empty((0, k))}
    block = checkpoint.load(
        "candidates", rows, like, lambda block: check_candidates(block, n)
    )
    if block is not None:
        return kept_candidates(block)
    # Solutions belong to their candidates, and a search may not repeat itself.
    checkpoint.drop("solve")
    found = search()
    if found.index.shape == (len(rows), k):
        checkpoint.save(candidates_block(found, rows, n))
        checkpoint.drop("search")
    return found
