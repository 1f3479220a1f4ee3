"""Why each candidate of a node was kept or dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph import registry
from nnkgraph.data import Features, SparseGram
from nnkgraph.executors import open_pool
from nnkgraph.find import Run, find_and_fit, rows_of
from nnkgraph.methods.l1 import L1
from nnkgraph.neighborhoods import weigh_with_copies
from nnkgraph.prepare import estimated_seconds, k_warnings, make_plan, warm_up
from nnkgraph.problem import Problem
from nnkgraph.stages import Stages
from nnkgraph.tasks.explain._built import (
    Case,
    built_of,
    check_method,
    contradictions,
    one_row,
    remark_on_error,
)
from nnkgraph.tasks.explain._explained import (
    Explanation,
    Solved,
    entries_of,
    facts_of,
    find_node,
    name_of,
    remarks_on,
)
from nnkgraph.tasks.explain._reasons import reasons

__all__ = ["Explanation", "contradictions", "explain", "explain_built", "find_node"]

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.data import Candidates, Graph
    from nnkgraph.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.prepare import Plan
    from nnkgraph.tasks.explain._built import Finder


def explain(
    features: Features | ArrayLike,
    node: int | str,
    /,
    *,
    k: int | None = None,
    method: str = "nnk",
    kernel: str = "gaussian",
    sigma: str | float | None = None,
    search: str = "auto",
    scale: str = "none",
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    stages: Stages | None = None,
) -> Explanation:
    """Solve one node's problem as ``build_graph`` does, and say why it came out so.

    Candidates and bandwidth come from all rows, identical rows count as one. The other
    parameters are those of ``build_graph``.

    Parameters
    ----------
    node : int or str
        A row number from 0; text may also be an id, which goes before a number.

    Raises
    ------
    InputError
        Where there is no such node.
    ParameterError
        For a method without an error J.
    """
    features = features if isinstance(features, Features) else Features.of(features)
    plan = make_plan(
        features,
        k=k,
        method=method,
        kernel=kernel,
        sigma=sigma,
        search=search,
        scale=scale,
        executor=executor,
    )
    check_method(registry.spec(plan.method), has_error=plan.method.has_error)
    case = Case(features, plan, seed)
    return _explained(case, node, _searched, workers, executor, stages or Stages())


def explain_built(
    features: Features | ArrayLike,
    graph: Graph,
    node: int | str,
    /,
    *,
    name: str = "graph",
    stages: Stages | None = None,
) -> Explanation:
    """Explain a node of a graph with the parameters that the graph carries.

    Bandwidth and stored candidates are the graph's own, so that nothing is searched
    but what belongs to the node.

    Parameters
    ----------
    graph : Graph
        With the provenance that ``build_graph`` gave it.
    name : str
        What messages call the graph.

    Raises
    ------
    InputError
        Where the graph does not say how it was built, was built from other features,
        or lacks candidates that cannot be found again.
    """
    features = features if isinstance(features, Features) else Features.of(features)
    built = built_of(graph, features, name)
    found = _explained(built.case, node, built.find, 1, "serial", stages or Stages())
    edges = int(graph.adjacency[[found.node]].nnz)
    facts = {**found.facts, "edges": edges, "rule": graph.provenance["rule"]}
    notes = [*found.notes, *remark_on_error(facts["error"], graph, found.node)]
    return replace(found, facts=facts, notes=notes)


def _explained(
    case: Case,
    node: int | str,
    find: Finder,
    workers: int | str,
    executor: str,
    stages: Stages,
) -> Explanation:
    features, plan = case.features, case.plan
    asked, notes = find_node(features, node)
    rows = rows_of(features, plan, stages)
    merged = rows.first is not None and rows.origin is not None
    first = int(rows.first[asked]) if rows.first is not None and merged else asked
    if first != asked:
        copy, own = name_of(features, asked), name_of(features, first)
        notes.append(
            f"node {copy} is a copy of node {own}, which is explained; in a graph the "
            "copy hangs on it with weight 1"
        )
    place = first if rows.origin is None else int(np.searchsorted(rows.origin, first))
    seconds = estimated_seconds(rows.x, plan.k)
    with open_pool(executor, workers, seconds=seconds) as pool:
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        candidates, fitted = find(Run(plan, rows, pool, case.seed), place, stages)
        with stages("solve"):
            solved = _solve(rows, place, candidates, plan, fitted)
    entries = entries_of(solved, rows, features, plan)
    about = {
        "node": first,
        "id": features.ids[first] if features.ids else None,
        "asked": asked,
        "nodes": len(features.x),
        "k": plan.k,
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "scale": plan.scale,
        "duplicates": plan.duplicates,
        "search": candidates.backend,
        **facts_of(solved, entries),
    }
    notes += [*features.warnings, *candidates.notes, *k_warnings(plan.k, rows)]
    notes += remarks_on(solved)
    return Explanation(first, name_of(features, first), entries, about, notes)


def _searched(run: Run, place: int, stages: Stages) -> tuple[Candidates, Kernel]:
    """Find the candidates of all rows, which say the bandwidth, and take the node's."""
    candidates, fitted = find_and_fit(run, stages)
    return one_row(candidates, place), fitted


def _solve(
    rows: Rows, place: int, own: Candidates, plan: Plan, fitted: Kernel
) -> Solved:
    """Solve the one problem; a block of one row gives the same numbers as any."""
    at = slice(place, place + 1)
    queries = None if isinstance(rows.x, SparseGram) else rows.x[at]
    problem = Problem(
        rows.x, queries, own.index, own.distance, fitted, np.array([place]), plan.k
    )
    if rows.kept_copies is None:
        found = plan.method.weigh(problem)
    else:
        found = weigh_with_copies(plan.method, problem, rows.kept_copies, at)
    local = problem.local()
    penalty = plan.method.eta if isinstance(plan.method, L1) else 0.0
    return Solved(
        problem,
        found,
        reasons(local, found.weights[0], penalty),
        float(local.own[0]),
        fitted.bandwidth(own),
    )
