"""The first half of every task: rows as the kernel sees them, and their candidates."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import pages
from nnkgraph.bounded import within_memory
from nnkgraph.budget import affordable_seconds
from nnkgraph.data import Candidates, Features
from nnkgraph.duplicates import candidates_with_copies
from nnkgraph.executors import PATIENCE, open_pool
from nnkgraph.prepare import (
    k_warnings,
    make_plan,
    prepared_rows,
    similarity_of,
    warm_up,
)
from nnkgraph.resume import facts_of, found_once, resumed
from nnkgraph.search import Wanted, index_dtype, is_by_rows
from nnkgraph.search._direct import GRAIN
from nnkgraph.stages import Stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import ArrayLike

    from nnkgraph.checkpoint import Checkpoint
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.prepare import Plan
    from nnkgraph.shard import Shard


@dataclass(frozen=True)
class Run:
    """A run whose workers are ready."""

    plan: Plan
    rows: Rows
    pool: Pool
    seed: int
    checkpoint: Checkpoint | None = None
    span: range | None = None
    """The rows that are solved, where this run is one of several."""
    facts: dict[str, Any] = field(default_factory=dict)
    """All that determines its results, where somebody asks for it."""


@within_memory
def find_candidates(
    features: Features | ArrayLike,
    /,
    *,
    k: int | None = None,
    kernel: str = "gaussian",
    search: str = "auto",
    scale: str = "none",
    duplicates: str = "merge",
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    resume: str | Path | None = None,
    patience: float = PATIENCE,
    memory: int | None = None,  # noqa: ARG001 - a limit around it all
    beside: str | None = None,
    stages: Stages | None = None,
) -> Candidates:
    """Find the candidates of every row; the parameters are those of ``build_graph``.

    Where copies are merged, lists hold only the first of identical rows, and a copy
    has the list of its first row: ``build_graph`` with these candidates gives the same
    graph as without them.
    """
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    plan = make_plan(
        features,
        k=k,
        kernel=kernel,
        search=search,
        scale=scale,
        duplicates=duplicates,
        executor=executor,
    )
    with started(
        features,
        plan,
        stages,
        seed=seed,
        workers=workers,
        resume=resume,
        patience=patience,
        beside=beside,
    ) as run:
        found = find(run, stages)
    return replace(candidates_with_copies(found, run.rows), notes=notes_of(run, found))


def notes_of(run: Run, found: Candidates) -> tuple[str, ...]:
    """Return what the user should know about a search."""
    known = run.checkpoint
    kept = [*known.warnings, *known.notes] if known else []
    return (*found.notes, *k_warnings(run.plan.k, run.rows), *kept)


@contextmanager
def started(
    features: Features,
    plan: Plan,
    stages: Stages,
    *,
    seed: int,
    workers: int | str,
    resume: str | Path | None,
    patience: float,
    beside: str | None,
    shard: Shard | None = None,
) -> Iterator[Run]:
    """Prepare rows, open the checkpoint and have workers ready."""
    rows = rows_of(features, plan, stages)
    span = None
    if shard is not None:
        # What a function says may depend on which rows it is asked about together.
        grain = GRAIN if plan.kernel.nearness == "similarity" else 1
        span = shard.rows(len(rows.x), grain)
    seconds = affordable_seconds(features, rows.x, plan, workers, span)
    facts = {}
    if resume is not None or shard is not None:
        facts = facts_of(features, plan, seed)
    limits = {"seconds": seconds, "patience": patience}
    with (
        resumed(resume, facts, shard) as checkpoint,
        open_pool(plan.executor, workers, **limits, beside=beside) as pool,
    ):
        if isinstance(rows.x, np.ndarray) and not isinstance(rows.x, np.memmap):
            # Written only once where workers need a file, whatever asks for it.
            rows = replace(rows, x=pool.share(rows.x).open())
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        yield Run(plan, rows, pool, seed, checkpoint, span, facts)


def rows_of(features: Features, plan: Plan, stages: Stages) -> Rows:
    """Return the rows as the kernel sees them, copies treated as asked."""
    pages.watch(features.x)
    with stages("start"):
        return prepared_rows(features, plan)


def find(run: Run, stages: Stages) -> Candidates:
    """Search as many candidates as the method wants to choose from."""
    plan, n = run.plan, len(run.rows.x)
    k = min(plan.method.width(plan.k), n - 1)
    asking = range(n) if run.span is None else run.span
    with stages("search", len(asking)) as on_rows:
        if k == 0:
            nothing = np.empty((len(asking), 0))
            return Candidates(nothing.astype(index_dtype(n)), nothing)
        wanted = replace(
            wanted_of(plan, run.rows, k, run.pool, run.seed, on_rows),
            checkpoint=run.checkpoint,
            span=run.span,
        )
        return found_once(
            run.checkpoint, n, k, lambda: plan.search.find(wanted), run.span
        )


def wanted_of(
    plan: Plan,
    rows: Rows,
    k: int,
    pool: Pool,
    seed: int,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Wanted:
    """Return what is searched: the k best of these rows for each of them."""
    return Wanted(
        rows.x,
        k,
        plan.kernel.nearness,
        pool,
        seed=seed,
        origin=rows.origin,
        first=rows.first,
        on_rows=on_rows,
        similarity=similarity_of(plan.kernel),
    )


def find_and_fit(run: Run, stages: Stages) -> tuple[Candidates, Kernel]:
    """Find what the method chooses from; the kernel is fitted to the k best of it."""
    plan, span = run.plan, run.span
    whole = span is not None and not is_by_rows(plan.search)
    # Candidates that are in a file need no second one.
    all_rows = replace(run, span=None, checkpoint=None) if whole else run
    candidates = find(all_rows, stages)
    best = replace(
        candidates,
        index=candidates.index[:, : plan.k],
        distance=candidates.distance[:, : plan.k],
    )
    fitted = plan.kernel.fit(best)
    if span is not None and whole:
        rows = slice(span.start, span.stop)
        index, distance = candidates.index[rows], candidates.distance[rows]
        candidates = replace(candidates, index=index, distance=distance)
    with stages("search"):
        wanted = wanted_of(plan, run.rows, plan.k, run.pool, run.seed)
        wanted = replace(wanted, span=span)
        return plan.method.gather(wanted, candidates, fitted), fitted
