"""From features to a graph: the order of the stages, nothing else."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import report, solve
from nnkgraph.build.connect import check_connect, connected, single
from nnkgraph.build.grow import check_grow
from nnkgraph.build.grow import grow as grown
from nnkgraph.build.run import (
    find_and_fit,
    k_warnings,
    make_plan,
    started,
    wanted_of,
    worker_warnings,
)
from nnkgraph.build.symmetrize import symmetrize
from nnkgraph.data import Features, Graph
from nnkgraph.data.duplicates import with_copies
from nnkgraph.data.pairs import DISTANCES, cross_values
from nnkgraph.data.scaling import scaled
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import new_array, row_slices, within_memory
from nnkgraph.runtime.executors import BLOCK_TIMEOUT
from nnkgraph.runtime.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike

    from nnkgraph.build.run import Plan, Run
    from nnkgraph.data import Candidates, FloatArray, Neighborhoods
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method


MOST_DIGITS = 15

# As they are read: pow may differ from one library to another.
_POWERS = np.array([float(f"1e{power}") for power in range(-308, 309)])


_SMALLEST = 1e-280
"""Below this a number is too near to where digits are lost to be rounded."""


def check_digits(digits: int) -> None:
    """Refuse more digits than numbers have."""
    if not 0 <= digits <= MOST_DIGITS:
        raise ParameterError(f"digits must be from 1 to {MOST_DIGITS}, not {digits}")


def rounded_graph(graph: Graph, digits: int) -> Graph:
    """Return the graph with rounded weights and errors."""
    if not digits:
        return graph
    adjacency = copy.copy(graph.adjacency)  # the columns stay as they are
    data = new_array(adjacency.nnz, np.float64)
    for some in row_slices(len(data), 128):
        data[some] = rounded(graph.adjacency.data[some], digits)
    adjacency.data = data
    errors = None if graph.errors is None else rounded(graph.errors, digits)
    return replace(graph, adjacency=adjacency, errors=errors)


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Return values with so many significant digits; 0 leaves them alone."""
    if digits == 0 or not len(values):
        return values
    size = np.abs(values)
    there = size > _SMALLEST
    place = np.floor(np.log10(size, where=there, out=np.zeros(len(size)))).astype(int)
    shift = np.clip(digits - 1 - place, -308, 308)
    up, down = _POWERS[308 + np.maximum(shift, 0)], _POWERS[308 + np.maximum(-shift, 0)]
    result: FloatArray = np.rint(values * up / down) / up * down
    return np.where(there, result, values)


def advice(plan: Plan, settings: dict[str, Any], duplicates: str) -> str:
    """Return a half-sentence with options that fit this run, or nothing."""
    tips = []
    kernel = plan.kernel
    if kernel.nearness in {"inner-product", "absolute-product"}:
        if settings["scale"] != "unit":
            tips.append("--scale unit, because inner products favor long rows")
        tips.append("--kernel cosine")
    if settings["min_degree"] == 0 and plan.rule != "none":
        tips.append("--min-degree 3")
    if plan.rule == "error":
        tips.append("--symmetrize error-union")
    local = getattr(kernel, "sigma", None) in {None, "local"}
    if kernel.nearness in DISTANCES and not local and plan.method.local:
        tips.append("--sigma local")
    if "connect" not in settings and plan.rule != "none":
        tips.append("--connect mst")
    if duplicates == "keep":
        tips.append("--duplicates merge")
    if not tips:
        return ""
    *others, last = tips
    return f"; try {', '.join(others)} or {last}" if others else f"; try {last}"


@dataclass(frozen=True)
class Solved:
    """The neighborhoods of all rows, and what is known about them."""

    candidates: Candidates
    """Their distances are not looked at any more."""

    found: Neighborhoods

    rows: Rows
    """Which of them are copies; the features are not looked at any more."""

    own: FloatArray | None
    """(n,) similarities of the rows with themselves: see `report.own_similarity`."""

    reach: report.Reach

    settings: dict[str, Any]
    """The parameters that determine the graph, to be stored with it."""

    input: dict[str, Any]
    """What `report.input_facts` says."""

    ids: tuple[str, ...] | None = None

    grown: int = 0
    """Rows that got more candidates than they were given first."""

    facts: dict[str, Any] = field(default_factory=dict)
    """What else the report says."""

    tips: str = ""
    """What to try where nodes are left alone."""

    workers: int = 1

    warnings: tuple[str, ...] = ()

    notes: tuple[str, ...] = ()


def assembled(solved: Solved, bridge: Callable[[Graph], Graph] | None = None) -> Graph:
    """Join the directions, hang copies on, and sum everything up.

    Parameters
    ----------
    solved : Solved
        The neighborhoods.
    bridge : callable, optional
        Connects the components of the graph of the distinct rows.
    """
    candidates, found, rows = solved.candidates, solved.found, solved.rows
    settings = solved.settings
    rule, min_weight = settings["rule"], settings["min_weight"]
    adjacency, dropped = symmetrize(
        candidates,
        found,
        rule=rule,
        min_weight=min_weight,
        min_degree=settings["min_degree"],
        own=solved.own,
        first=rows.kept_copies,
    )
    kept = None if candidates.exact and not solved.grown else candidates.index
    bare = Graph(adjacency, None, rule == "none", found.errors, kept)
    if bridge is not None:
        bare = bridge(bare)
    graph = rounded_graph(with_copies(bare, rows), settings.get("digits", 0))
    graph = replace(graph, ids=solved.ids)
    method: Method = registry.create("methods", settings["method"])
    certificate = report.certificate(found, rows.origin)
    facts = report.facts(graph)
    apart = report.copies_apart(graph, rows.first) if facts["components"] > 1 else 0
    return replace(
        graph,
        provenance={
            **report.provenance_of(solved.input, settings),
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
            "candidates_grown": solved.grown,
            "bridges": 0 if graph.bridges is None else len(graph.bridges),
            **solved.facts,
            "certificate": certificate,
            "method_facts": found.facts,
            "failure": found.failure,
            "error": report.error_facts(graph.errors),
            "search": report.search_facts(candidates),
            "workers": solved.workers,
            "input": solved.input,
            "warnings": [
                *solved.warnings,
                *report.bandwidth_warnings(settings["sigma"], solved.reach),
                *method.remarks(candidates, found),
                *report.copy_warnings(apart, solved.tips),
                *report.graph_warnings(facts, solved.tips),
            ],
            "notes": list(solved.notes),
        },
    )


_BLOCK_VALUES = 1 << 22


def check_distances(kernel: Kernel) -> None:
    """Refuse a kernel that knows similarities only."""
    if kernel.base == "gram":
        raise ParameterError(
            "a matrix of similarities has no distances, which an AnnData file needs: "
            "write the graph with -o"
        )


def edge_distances(
    features: Features, edges: Any, kernel: Kernel, scale: str
) -> tuple[FloatArray, str]:
    """Return the length of every entry of an adjacency matrix, and its metric.

    The metric is what candidates are searched by: ``cosine`` and ``manhattan`` for the
    kernels of these distances, ``euclidean`` for all others.
    """
    check_distances(kernel)
    x = features.x if scale == "none" else scaled(features.x, scale, features.name)
    x = kernel.prepare(x, features.name)
    city = kernel.nearness == "l1-distance"
    base = "l1-distance" if city else "squared-distance"
    values = np.empty(edges.nnz)
    most = max(1, _BLOCK_VALUES // x.shape[1])
    for start in range(0, edges.nnz, most):
        stop = min(start + most, edges.nnz)
        rows = np.searchsorted(edges.indptr, np.arange(start, stop), side="right") - 1
        ends = edges.indices[start:stop, np.newaxis]
        values[start:stop] = cross_values(x, x[rows], ends, base)[:, 0]
    if city:
        return values, "manhattan"
    if registry.spec(kernel).partition(":")[0] == "cosine":
        return values / 2, "cosine"  # of rows of unit length
    return np.sqrt(values), "euclidean"


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
    block_timeout: float = BLOCK_TIMEOUT,
    memory: int | None = None,  # noqa: ARG001 - a limit around it all
    shared_dir: str | None = None,
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
        on; `nnkgraph.runtime.checkpoint.remove_checkpoint` removes it.
    block_timeout : float
        Seconds without a finished block after which workers count as hung; 0: never.
    memory : int, optional
        Bytes that may be used: beyond, files are. By default what there is.
    shared_dir : str, optional
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
        block_timeout=block_timeout,
        shared_dir=shared_dir,
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
        found = solve.solve(
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
