"""From features to a graph: the order of the stages, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import neighborhoods, registry, report
from nnkgraph.advice import advice
from nnkgraph.assemble import Solved, assembled
from nnkgraph.bounded import within_memory
from nnkgraph.connect import check_connect, connected, single
from nnkgraph.data import Features
from nnkgraph.errors import ParameterError
from nnkgraph.executors import PATIENCE
from nnkgraph.find import find_and_fit, started, wanted_of
from nnkgraph.grow import check_grow
from nnkgraph.grow import grow as grown
from nnkgraph.prepare import k_warnings, make_plan, worker_warnings
from nnkgraph.rounding import check_digits
from nnkgraph.stages import Stages

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from nnkgraph.data import Candidates, Graph, Neighborhoods
    from nnkgraph.find import Run
    from nnkgraph.kernels import Kernel
    from nnkgraph.prepare import Plan


@within_memory
def build_graph(
    features: Features | ArrayLike,
    /,
    *,
    k: int | None = None,
    method: str = "nnk",
    kernel: str = "gaussian",
    sigma: str | float | None = None,
    search: str = "auto",
    symmetrize: str | None = None,
    min_weight: float = 1e-8,
    min_degree: int = 0,
    scale: str = "none",
    duplicates: str = "merge",
    connect: str = "none",
    grow: float | None = None,
    max_k: int | None = None,
    k_check: bool = False,
    digits: int = 0,
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    resume: str | Path | None = None,
    patience: float = PATIENCE,
    memory: int | None = None,  # noqa: ARG001 - a limit around it all
    beside: str | None = None,
    stages: Stages | None = None,
) -> Graph:
    """Build a graph from features.

    Parameters
    ----------
    features : Features or (n, d) array
        One row per node.
    k : int, optional
        Candidates per node; by default 30, or n - 1 where there are fewer rows.
    method, kernel, search, executor : str
        Plug-ins as ``name`` or ``name:key=value,...``; ``nnkgraph list`` shows them.
    sigma : float or {"auto", "kth-max", "local", "matlab"}, optional
        Bandwidth of the kernel, where it has one; by default "auto".
    symmetrize : str, optional
        Rule that joins the two directions; by default the one that suits the method.
    min_weight : float
        Lighter edges are dropped.
    min_degree : int
        Every node's own so many heaviest edges stay, whatever the rule says.
    scale : {"none", "standard", "minmax", "unit"}
        Scaling of the features.
    duplicates : {"merge", "keep", "error"}
        What to do with identical rows.
    connect : {"none", "mst"}
        Whether the shortest bridges between components are added.
    grow : float, optional
        Give nodes more candidates until none outside has a residual above this.
    max_k : int, optional
        The most candidates that nodes may grow to; by default 8 k.
    k_check : bool
        Whether the report says what residual a point outside the candidates could have.
    digits : int
        Significant digits of weights and errors; 0 keeps all.
    seed : int
        For searches that draw at random.
    workers : int or "auto"
        Processes. The graph does not depend on their number.
    executor : str
        Where they run.
    resume : path, optional
        A directory where finished blocks are kept, so that a run that was ended can go
        on; `nnkgraph.checkpoint.remove_checkpoint` removes it.
    patience : float
        Seconds without a finished block after which workers count as hung; 0: never.
    memory : int, optional
        Bytes that may be used: beyond, files are. By default what there is.
    beside : str, optional
        A directory for temporary files that workers on other machines have to see.
    stages : Stages, optional
        Hears how far the work is and keeps the durations.

    Returns
    -------
    Graph
        Its ``report`` says what happened, with a certificate over all nodes.
    """
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    plan = make_plan(
        features,
        k=k,
        method=method,
        kernel=kernel,
        sigma=sigma,
        search=search,
        symmetrize=symmetrize,
        min_weight=min_weight,
        min_degree=min_degree,
        scale=scale,
        duplicates=duplicates,
        executor=executor,
    )
    check_connect(connect, plan.kernel, plan.rule, features.x)
    check_digits(digits)
    if k_check or grow is not None:
        check_grow(plan.method, plan.kernel, grow, plan.k, max_k)
    elif max_k is not None:
        raise ParameterError("max_k is of use with grow only")
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
        candidates, fitted, found = solve_all(run, stages)
        growth = None
        if k_check or grow is not None:
            with stages("solve"):
                growth = grown(
                    run.pool,
                    wanted_of(plan, run.rows, plan.k, run.pool, seed),
                    candidates,
                    found,
                    kernel=fitted,
                    method=plan.method,
                    tolerance=np.inf if grow is None else grow,
                    max_k=max_k or 8 * plan.k,
                )
            candidates, found = growth.candidates, growth.found
    rows, checkpoint = run.rows, run.checkpoint
    settings = settings_of(
        plan,
        candidates,
        sigma=fitted.bandwidth(candidates),
        min_weight=min_weight,
        min_degree=min_degree,
        scale=scale,
        duplicates=duplicates,
        seed=seed,
        **({"connect": connect} if connect != "none" else {}),
        **({"grow": grow, "max_k": max_k or 8 * plan.k} if grow is not None else {}),
        **({"digits": digits} if digits else {}),
    )

    def bridge(bare: Graph) -> Graph:
        return connected(bare, rows.x, single(fitted, candidates), min_weight)

    with stages("symmetrize"):
        own = report.own_similarity(rows.x, candidates, fitted, plan.method)
        solved = Solved(
            candidates,
            found,
            rows,
            own,
            report.reach(candidates),
            settings,
            report.input_facts(features),
            features.ids,
            grown=growth.grown if growth else 0,
            facts=report.growth_facts(growth, rows) if growth else {},
            tips=advice(plan, settings, duplicates),
            workers=run.pool.workers,
            warnings=(
                *features.warnings,
                *(checkpoint.warnings if checkpoint else []),
                *k_warnings(plan.k, rows),
                *worker_warnings(workers, run.pool.workers),
            ),
            notes=(*candidates.notes, *(checkpoint.notes if checkpoint else [])),
        )
        return assembled(solved, bridge if connect == "mst" else None)


def solve_all(run: Run, stages: Stages) -> tuple[Candidates, Kernel, Neighborhoods]:
    """Find and solve the rows of a run; return the fitted kernel with them."""
    candidates, fitted = find_and_fit(run, stages)
    method = run.plan.method
    unknown = () if method.local else (0, "steps")
    with stages("solve", *(unknown or (len(candidates.index),))) as on_rows:
        found = neighborhoods.solve(
            run.pool,
            run.rows.x,
            candidates,
            kernel=fitted,
            method=method,
            first=run.rows.kept_copies,
            start=run.span.start if run.span else 0,
            k=run.plan.k,
            on_rows=on_rows,
            checkpoint=run.checkpoint,
        )
    return candidates, fitted, found


def settings_of(
    plan: Plan, candidates: Candidates, *, sigma: float | None, **others: Any
) -> dict[str, Any]:
    """Return the parameters that determine a graph, to be stored with it."""
    return {
        "k": plan.k,
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "sigma": sigma,
        "rule": plan.rule,
        "search": candidates.backend,
        **others,
    }
