"""From features to a graph: the order of the stages, nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nnkgraph import neighborhoods, registry, report
from nnkgraph.data import Features, Graph
from nnkgraph.duplicates import with_copies
from nnkgraph.executors import open_pool
from nnkgraph.find import find_and_fit, rows_of
from nnkgraph.prepare import (
    estimated_seconds,
    k_warnings,
    make_plan,
    warm_up,
    worker_warnings,
)
from nnkgraph.stages import Stages
from nnkgraph.symmetrize import symmetrize as symmetrized

if TYPE_CHECKING:
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
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
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
    seed : int
        For searches that draw at random.
    workers : int or "auto"
        Processes. The graph does not depend on their number.
    executor : str
        Where they run.
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
    rows = rows_of(features, plan, scale, duplicates, stages)
    seconds = estimated_seconds(rows.x, plan.k)
    with open_pool(executor, workers, seconds=seconds) as pool:
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        candidates, fitted = find_and_fit(plan, rows, pool, seed, stages)
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
            )
        used = pool.workers
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
        kept = None if candidates.exact else candidates.index
        bare = Graph(adjacency, None, plan.rule == "none", found.errors, kept)
        graph = replace(with_copies(bare, rows), ids=features.ids)
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
    }
    certificate = report.certificate(found, rows.origin)
    facts = report.facts(graph)
    return replace(
        graph,
        provenance={
            **report.provenance(features, settings),
            "nodes_failed": certificate["nodes_failed"] if certificate else 0,
            **({"failure": found.failure} if found.failure else {}),
        },
        report={
            "schema": 1,
            **facts,
            **settings,
            "duplicates": rows.copies,
            "dropped": dropped,
            "candidates_grown": 0,
            "certificate": certificate,
            "method_facts": found.facts,
            "failure": found.failure,
            "error": report.error_facts(graph.errors),
            "search": report.search_facts(candidates),
            "workers": used,
            "input": report.input_facts(features),
            "warnings": [
                *features.warnings,
                *k_warnings(plan.k, rows),
                *worker_warnings(workers, used),
                *report.bandwidth_warnings(fitted, candidates),
                *plan.method.remarks(candidates, found),
                *report.graph_warnings(facts, base=fitted.nearness),
            ],
            "notes": list(candidates.notes),
        },
    )
