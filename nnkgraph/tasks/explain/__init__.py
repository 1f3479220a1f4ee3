"""Why each candidate of a node was kept or dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import registry
from nnkgraph.data import Features, SparseGram
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.executors import open_pool
from nnkgraph.find import Run, find_and_fit, rows_of
from nnkgraph.methods.l1 import L1
from nnkgraph.prepare import estimated_seconds, k_warnings, make_plan, warm_up
from nnkgraph.problem import Problem
from nnkgraph.stages import Stages
from nnkgraph.tasks.explain._explained import Solved, entries_of, facts_of, remarks_on
from nnkgraph.tasks.explain._reasons import reasons

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.data import Candidates
    from nnkgraph.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.prepare import Plan


@dataclass(frozen=True)
class Explanation:
    """A node's candidates, nearest first, and what became of each."""

    node: int
    """The row that is explained: the first one with these values."""

    name: str
    """How people call it: its number, and its id where it has one."""

    candidates: list[dict[str, Any]]
    """One entry per candidate; plain JSON values."""

    facts: dict[str, Any]
    """What is known about the neighborhood as a whole; plain JSON values."""

    notes: list[str]
    """What the user should know."""


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
    stages = stages or Stages()
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
    if not plan.method.has_error:
        raise ParameterError(
            f"method {method!r} has no error J to explain: use nnk, omp, mp or l1"
        )
    asked, notes = find_node(features, node)
    rows = rows_of(features, plan, stages)
    first = asked if rows.first is None else int(rows.first[asked])
    if first != asked:
        notes.append(
            f"node {_name(features, asked)} is a copy of node {_name(features, first)},"
            " which is explained; in a graph the copy hangs on it with weight 1"
        )
    seconds = estimated_seconds(rows.x, plan.k)
    with open_pool(executor, workers, seconds=seconds) as pool:
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        candidates, fitted = find_and_fit(Run(plan, rows, pool, seed), stages)
        with stages("solve"):
            solved = _solve(rows, first, candidates, plan, fitted)
    entries = entries_of(solved, rows, features, plan)
    about = {
        "node": first,
        "id": features.ids[first] if features.ids else None,
        "asked": asked,
        "nodes": len(features.x),
        "k": plan.k,
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "scale": scale,
        "search": candidates.backend,
        **facts_of(solved, entries),
    }
    notes += [*features.warnings, *candidates.notes, *k_warnings(plan.k, rows)]
    notes += remarks_on(solved)
    return Explanation(first, _name(features, first), entries, about, notes)


def find_node(features: Features, node: int | str) -> tuple[int, list[str]]:
    """Return the row of a node, and a remark where its name could mean two rows."""
    n, ids = len(features.x), features.ids
    number = int(node) if isinstance(node, int) or node.isdecimal() else -1
    if isinstance(node, str) and ids and node in ids:
        row = ids.index(node)
        if row != number and 0 <= number < n:
            named = f"{node!r} is the id of row {row}, which is explained, not row"
            return row, [f"{named} {number} (id {ids[number]!r})"]
        return row, []
    if not 0 <= number < n:
        also = f", or one of {n} ids such as {ids[0]!r}" if ids else ""
        raise InputError(
            f"{features.name}: there is no node {node!r}: it has {n} rows, use a number"
            f" from 0 to {n - 1}{also}"
        )
    return number, []


def _name(features: Features, row: int) -> str:
    return f"{row} ({features.ids[row]})" if features.ids else str(row)


def _solve(
    rows: Rows, first: int, candidates: Candidates, plan: Plan, fitted: Kernel
) -> Solved:
    """Solve the one problem; a block of one row gives the same numbers as any."""
    place = first if rows.origin is None else int(np.searchsorted(rows.origin, first))
    at = slice(place, place + 1)
    own = replace(
        candidates,
        index=np.array(candidates.index[at]),
        distance=np.array(candidates.distance[at]),
    )
    queries = None if isinstance(rows.x, SparseGram) else rows.x[at]
    problem = Problem(
        rows.x, queries, own.index, own.distance, fitted, np.array([place]), plan.k
    )
    found = plan.method.weigh(problem)
    local = problem.local()
    penalty = plan.method.eta if isinstance(plan.method, L1) else 0.0
    return Solved(
        problem,
        found,
        reasons(local, found.weights[0], penalty),
        float(local.own[0]),
        fitted.bandwidth(own),
    )
