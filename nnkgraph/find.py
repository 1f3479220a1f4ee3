"""The first half of every task: rows as the kernel sees them, and their candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.budget import affordable_seconds
from nnkgraph.compiled import FIRST_RUN
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
from nnkgraph.resume import found_once, resumed
from nnkgraph.search import Wanted, index_dtype
from nnkgraph.stages import Stages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike

    from nnkgraph.checkpoint import Checkpoint
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.prepare import Plan


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
    rows = rows_of(features, plan, scale, duplicates, stages)
    seconds = affordable_seconds(features, rows.x, plan, scale, workers, executor)
    limits = {"seconds": seconds, "patience": patience}
    with (
        resumed(
            resume, features, plan, scale=scale, duplicates=duplicates, seed=seed
        ) as checkpoint,
        open_pool(executor, workers, **limits, beside=beside) as pool,
    ):
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        found = find(plan, rows, pool, seed, stages, checkpoint)
    notes = (
        *found.notes,
        *k_warnings(plan.k, rows),
        *(checkpoint.notes if checkpoint else []),
    )
    return replace(candidates_with_copies(found, rows), notes=notes)


def rows_of(
    features: Features, plan: Plan, scale: str, duplicates: str, stages: Stages
) -> Rows:
    """Return the rows as the kernel sees them, copies treated as asked."""
    if FIRST_RUN:
        stages.remark("compiling for the first time; later runs start at once")
    with stages("start"):
        return prepared_rows(features, plan.kernel, scale, duplicates)


def find(
    plan: Plan,
    rows: Rows,
    pool: Pool,
    seed: int,
    stages: Stages,
    checkpoint: Checkpoint | None = None,
) -> Candidates:
    """Search as many candidates as the method wants to choose from."""
    n = len(rows.x)
    k = min(plan.method.width(plan.k), n - 1)
    with stages("search", n) as on_rows:
        if k == 0:
            nothing = np.empty((n, 0))
            return Candidates(nothing.astype(index_dtype(n)), nothing)
        wanted = wanted_of(plan, rows, k, pool, seed, on_rows)
        wanted = replace(wanted, checkpoint=checkpoint)
        return found_once(checkpoint, n, k, lambda: plan.search.find(wanted))


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


def find_and_fit(
    plan: Plan,
    rows: Rows,
    pool: Pool,
    seed: int,
    stages: Stages,
    checkpoint: Checkpoint | None = None,
) -> tuple[Candidates, Kernel]:
    """Find what the method chooses from; the kernel is fitted to the k best of it."""
    candidates = find(plan, rows, pool, seed, stages, checkpoint)
    best = replace(
        candidates,
        index=candidates.index[:, : plan.k],
        distance=candidates.distance[:, : plan.k],
    )
    fitted = plan.kernel.fit(best)
    with stages("search"):
        wanted = wanted_of(plan, rows, plan.k, pool, seed)
        return plan.method.gather(wanted, candidates, fitted), fitted
