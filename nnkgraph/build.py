"""From features to a graph: the order of the stages, nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import neighborhoods, registry, report
from nnkgraph.advice import advice
from nnkgraph.budget import affordable_seconds
from nnkgraph.connect import check_connect, connected, single
from nnkgraph.data import Features, Graph
from nnkgraph.duplicates import with_copies
from nnkgraph.errors import ParameterError
from nnkgraph.executors import PATIENCE, open_pool
from nnkgraph.find import find_and_fit, rows_of, wanted_of
from nnkgraph.grow import check_grow
from nnkgraph.grow import grow as grown
from nnkgraph.prepare import (
    k_warnings,
    make_plan,
    warm_up,
    worker_warnings,
)
from nnkgraph.resume import resumed
from nnkgraph.rounding import check_digits, rounded_graph
from nnkgraph.stages import Stages
from nnkgraph.symmetrize import symmetrize as symmetrized

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike


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
    rows = rows_of(features, plan, scale, duplicates, stages)
    seconds = affordable_seconds(features, rows.x, plan, scale, workers, executor)
    with (
        resumed(
            resume, features, plan, scale=scale, duplicates=duplicates, seed=seed
        ) as checkpoint,
        open_pool(executor, workers, seconds=seconds, patience=patience) as pool,
    ):
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        candidates, fitted = find_and_fit(plan, rows, pool, seed, stages, checkpoint)
        unknown = () if plan.method.local else (0, "steps")
        with stages("solve", *(unknown or (len(rows.x),))) as on_rows:
            found = neighborhoods.solve(
                pool,
                rows.x,
                candidates,
                kernel=fitted,
                method=plan.method,
                first=rows.kept_copies,
                k=plan.k,
                on_rows=on_rows,
                checkpoint=checkpoint,
            )
        growth = None
        if k_check or grow is not None:
            with stages("solve"):
                growth = grown(
                    pool,
                    wanted_of(plan, rows, plan.k, pool, seed),
                    candidates,
                    found,
                    kernel=fitted,
                    method=plan.method,
                    tolerance=np.inf if grow is None else grow,
                    max_k=max_k or 8 * plan.k,
                )
            candidates, found = growth.candidates, growth.found
    with stages("symmetrize"):
        adjacency, dropped = symmetrized(
            candidates,
            found,
            rule=plan.rule,
            min_weight=min_weight,
            min_degree=min_degree,
            own=report.own_similarity(rows.x, candidates, fitted, plan.method),
            first=rows.kept_copies,
        )
        asis = candidates.exact and not (growth and growth.grown)
        kept = None if asis else candidates.index
        bare = Graph(adjacency, None, plan.rule == "none", found.errors, kept)
        if connect == "mst":
            bare = connected(bare, rows.x, single(fitted, candidates), min_weight)
        graph = replace(
            rounded_graph(with_copies(bare, rows), digits), ids=features.ids
        )
    settings = {
        "k": plan.k,
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "sigma": fitted.bandwidth(candidates),
        "rule": plan.rule,
        "min_weight": min_weight,
        "min_degree": min_degree,
        "scale": scale,
        "duplicates": duplicates,
        "search": candidates.backend,
        "seed": seed,
        **({"connect": connect} if connect != "none" else {}),
        **({"grow": grow, "max_k": max_k or 8 * plan.k} if grow is not None else {}),
        **({"digits": digits} if digits else {}),
    }
    certificate = report.certificate(found, rows.origin)
    facts = report.facts(graph)
    apart = report.copies_apart(graph, rows.first) if facts["components"] > 1 else 0
    tips = advice(plan, settings, duplicates)
    return replace(
        graph,
        provenance={
            **report.provenance(features, settings),
            "nodes_failed": certificate["nodes_failed"] if certificate else 0,
            "support_sizes": report.support_sizes(found),
            **({"failure": found.failure} if found.failure else {}),
        },
        report={
            "schema": 1,
            **facts,
            **settings,
            "duplicates": rows.copies,
            "copies_apart": apart,
            "dropped": dropped,
            "candidates_grown": growth.grown if growth else 0,
            "bridges": 0 if graph.bridges is None else len(graph.bridges),
            **(report.growth_facts(growth, rows) if growth else {}),
            "certificate": certificate,
            "method_facts": found.facts,
            "failure": found.failure,
            "error": report.error_facts(graph.errors),
            "search": report.search_facts(candidates),
            "workers": pool.workers,
            "input": report.input_facts(features),
            "warnings": [
                *features.warnings,
                *(checkpoint.warnings if checkpoint else []),
                *k_warnings(plan.k, rows),
                *worker_warnings(workers, pool.workers),
                *report.bandwidth_warnings(fitted, candidates),
                *plan.method.remarks(candidates, found),
                *report.copy_warnings(apart, tips),
                *report.graph_warnings(facts, tips),
            ],
            "notes": [*candidates.notes, *(checkpoint.notes if checkpoint else [])],
        },
    )
