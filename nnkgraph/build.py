"""From features to a graph: the order of the stages, nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import neighborhoods, registry, report
from nnkgraph.data import Candidates, Features, Graph
from nnkgraph.duplicates import candidates_with_copies, with_copies
from nnkgraph.errors import ParameterError
from nnkgraph.executors import open_pool
from nnkgraph.prepare import (
    checked_k,
    create_kernel,
    estimated_seconds,
    k_warnings,
    prepared_rows,
    warm_up,
)
from nnkgraph.search import Wanted, index_dtype
from nnkgraph.stages import Stages
from nnkgraph.symmetrize import check_rule
from nnkgraph.symmetrize import symmetrize as symmetrized

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.search import Search


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
    searcher: Search = registry.create("search", search)
    weigher: Method = registry.create("methods", method)
    rule = symmetrize or weigher.rule
    check_rule(rule, has_error=weigher.has_error, method=method)
    if not (np.isfinite(min_weight) and min_weight >= 0 and min_degree >= 0):
        raise ParameterError("min_weight and min_degree must not be negative")
    open_kernel = create_kernel(kernel, sigma)
    k = checked_k(k, features)
    with stages("start"):
        rows = prepared_rows(features, open_kernel, scale, duplicates)
        context = open_pool(executor, workers, seconds=estimated_seconds(rows.x, k))
    with context as pool:
        with stages("start"):
            warm_up(pool, rows.x, open_kernel, weigher)
        candidates = _find(searcher, rows, k, open_kernel, pool, seed, stages)
        fitted = open_kernel.fit(candidates)
        with stages("solve", len(rows.x)) as on_rows:
            found = neighborhoods.solve(
                pool,
                rows.x,
                candidates,
                kernel=fitted,
                method=weigher,
                first=rows.kept_copies,
                on_rows=on_rows,
            )
        used = pool.workers
    with stages("symmetrize"):
        adjacency, dropped = symmetrized(
            candidates,
            found,
            rule=rule,
            min_weight=min_weight,
            min_degree=min_degree,
            own=report.own_similarity(rows.x, candidates, fitted),
            first=rows.kept_copies,
        )
        kept = None if candidates.exact else candidates.index
        bare = Graph(adjacency, None, rule == "none", found.errors, kept)
        graph = replace(with_copies(bare, rows), ids=features.ids)
    settings = {
        "k": k,
        "method": registry.spec(weigher),
        "kernel": registry.spec(open_kernel),
        "sigma": fitted.bandwidth(candidates),
        "rule": rule,
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
        },
        report={
            "schema": 1,
            **facts,
            **settings,
            "duplicates": rows.copies,
            "dropped": dropped,
            "candidates_grown": 0,
            "certificate": certificate,
            "error": report.errors(graph),
            "search": report.search_facts(candidates),
            "workers": used,
            "input": report.input_facts(features),
            "warnings": [
                *k_warnings(k, rows),
                *report.bandwidth_warnings(fitted, candidates),
                *report.graph_warnings(facts, base=fitted.base),
            ],
            "notes": list(candidates.notes),
        },
    )


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
    stages: Stages | None = None,
) -> Candidates:
    """Find the candidates of every row; the parameters are those of ``build_graph``.

    Where copies are merged, lists hold only the first of identical rows, and a copy
    has the list of its first row: ``build_graph`` with these candidates gives the same
    graph as without them.
    """
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    searcher: Search = registry.create("search", search)
    seen_by = create_kernel(kernel, None)
    k = checked_k(k, features)
    with stages("start"):
        rows = prepared_rows(features, seen_by, scale, duplicates)
        context = open_pool(executor, workers, seconds=estimated_seconds(rows.x, k))
    with context as pool:
        found = _find(searcher, rows, k, seen_by, pool, seed, stages)
    notes = (*found.notes, *k_warnings(k, rows))
    return replace(candidates_with_copies(found, rows), notes=notes)


def _find(
    search: Search,
    rows: Rows,
    k: int,
    kernel: Kernel,
    pool: Pool,
    seed: int,
    stages: Stages,
) -> Candidates:
    n = len(rows.x)
    k = min(k, n - 1)
    with stages("search", n) as on_rows:
        if k == 0:
            nothing = np.empty((n, 0))
            return Candidates(nothing.astype(index_dtype(n)), nothing)
        return search.find(
            Wanted(
                rows.x,
                k,
                kernel.base,
                pool,
                seed=seed,
                origin=rows.origin,
                first=rows.first,
                on_rows=on_rows,
            )
        )
