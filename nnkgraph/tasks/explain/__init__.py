"""Why each candidate of a node was kept or dropped."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build.run import (
    Run,
    estimated_seconds,
    find,
    find_and_fit,
    k_warnings,
    make_plan,
    rows_of,
    warm_up,
)
from nnkgraph.build.solve import weigh_with_copies
from nnkgraph.data import Candidates, Features, SparseGram
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Problem
from nnkgraph.methods.l1 import L1
from nnkgraph.runtime import registry
from nnkgraph.runtime.executors import open_pool
from nnkgraph.runtime.progress import Stages
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search.exact import GRAIN
from nnkgraph.tasks.verify.checks import features_check
from nnkgraph.tasks.verify.recipe import recipe_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.build.run import Plan
    from nnkgraph.data import FloatArray, Graph, IndexArray, Neighborhoods
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel, Local


_TIE = 1e-12
"""A candidate this close to a neighbor's plane lies on it, and counts as beyond it."""


@dataclass(frozen=True)
class Reasons:
    """What speaks for and against each of a node's m candidates."""

    similarity: FloatArray
    """(m,) K_qj."""

    terms: FloatArray
    """(m, m) theta_i K_ij: how much of candidate j neighbor i already covers."""

    residual: FloatArray
    """(m,) K_qj - sum of the terms: what the neighbors leave of candidate j."""

    kept: NDArray[np.bool_]
    """(m,) where the weight is positive."""

    hidden_by: IndexArray
    """(m,) the neighbor with the largest term, -1 where no term is positive."""

    excludes: NDArray[np.bool_]
    """(m, m) where neighbor i alone, without the others, leaves no room for j."""

    margin: FloatArray
    """(m, m) by how much it does: minus what would be left of j beside i alone."""

    unwanted: NDArray[np.bool_]
    """(m,) where not even a candidate on its own would get a weight."""

    far: bool
    """Whether all similarities are so small that they had to be scaled up."""


def reasons(local: Local, weights: FloatArray, penalty: float) -> Reasons:
    """Find out what each neighbor does to each candidate of one node.

    Parameters
    ----------
    local : Local
        The similarities of a block with this one node.
    weights : (m,) array
        The node's weights.
    penalty : float
        What method l1 takes from every K_qj; 0 for the others.

    Notes
    -----
    For two candidates i and j, j stays only if K_qi / K_qj < K_ii / K_ij: the upper
    end of the general kernel ratio interval (the paper's Appendix A). It is tested as
    K_qi K_ij / K_ii < K_qj, which also holds for similarities that are zero or
    negative, as long as i on its own would get a weight.
    """
    m = len(weights)
    gram = np.zeros((m, m))
    row, column = np.tril_indices(m)
    gram[row, column] = gram[column, row] = local.gram[0]
    scale = float(np.broadcast_to(local.scale, 1)[0])
    similarity = local.cross[0] * scale
    terms = weights[:, np.newaxis] * gram
    kept = weights > 0
    wanted = local.cross[0] - penalty
    if scale < 1.0 and penalty > 0:
        wanted = np.full(m, -1.0)  # the penalty is beyond all measure then
    if m == 0:
        hidden_by = np.empty(0, np.int64)
    else:
        hidden_by = np.where(terms.max(axis=0) > 0, terms.argmax(axis=0), -1)
    neighbor = kept & (wanted > 0)
    weight_alone = np.zeros(m)
    weight_alone[neighbor] = wanted[neighbor] / gram.diagonal()[neighbor]
    margin = weight_alone[:, np.newaxis] * gram - wanted
    excludes = neighbor[:, np.newaxis] & (margin >= -_TIE * np.abs(wanted))
    np.fill_diagonal(excludes, val=False)
    return Reasons(
        similarity,
        terms,
        similarity - terms.sum(axis=0),
        kept,
        hidden_by,
        excludes,
        margin,
        wanted <= 0,
        scale < 1.0,
    )


_LIGHT = 1e-8
"""Edges below this are dropped by ``build_graph``, unless it is told otherwise."""


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


@dataclass(frozen=True)
class Solved:
    """One node's problem and its solution."""

    problem: Problem
    found: Neighborhoods
    reasons: Reasons
    own: float
    sigma: float | None


def entries_of(
    solved: Solved, rows: Rows, features: Features, plan: Plan
) -> list[dict[str, Any]]:
    """Describe the candidates, nearest first, with the row numbers of the input."""
    index, why = solved.problem.index[0], solved.reasons
    nodes = index if rows.origin is None else rows.origin[np.maximum(index, 0)]
    ids = features.ids
    measured = plan.kernel.nearness in DISTANCES  # others have similarities only
    entries: list[dict[str, Any]] = []
    for place in np.flatnonzero(index >= 0):
        by = int(why.hidden_by[place])
        kept = bool(why.kept[place])
        other = None if kept or by < 0 else int(nodes[by])
        enough = np.flatnonzero(why.excludes[:, place])
        # The neighbor that leaves least comes first.
        enough = enough[np.argsort(-why.margin[enough, place], kind="stable")]
        entries.append(
            {
                "rank": len(entries) + 1,
                "node": int(nodes[place]),
                "id": ids[nodes[place]] if ids else None,
                "distance": (
                    float(solved.problem.distance[0, place]) if measured else None
                ),
                "similarity": float(why.similarity[place]),
                "weight": float(solved.found.weights[0, place]),
                "residual": float(why.residual[place]),
                "kept": kept,
                "redundant_to": other,
                "redundant_to_id": ids[other] if ids and other is not None else None,
                "term": None if other is None else float(why.terms[by, place]),
                "pairwise": None if kept else bool(len(enough)),
                "pairwise_by": [int(nodes[i]) for i in enough],
                "pairwise_by_ids": [ids[nodes[i]] for i in enough] if ids else None,
                "unwanted": bool(why.unwanted[place]) and not kept,
            }
        )
    return entries


def facts_of(solved: Solved, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the neighborhood."""
    errors, proof = solved.found.errors, solved.found.certificate
    weights = solved.found.weights[0]
    largest = float(weights.max(initial=0.0)) or 1.0
    shares = weights / largest  # squares of tiny weights would vanish
    kept = [entry for entry in entries if entry["kept"]]
    return {
        "candidate_count": len(entries),
        "kept": len(kept),
        "dropped_pairwise": sum(entry["pairwise"] is True for entry in entries),
        "kept_against_pairwise": sum(bool(entry["pairwise_by"]) for entry in kept),
        "error": None if errors is None else float(errors[0]),
        "own_similarity": solved.own,
        "weight_sum": float(weights.sum()),
        "effective_neighbors": (
            float(shares.sum() ** 2 / (shares**2).sum()) if kept else 0.0
        ),
        "sigma": solved.sigma,
        "certificate": None if proof is None else float(proof[0]),
    }


def remarks_on(solved: Solved) -> list[str]:
    """Say what the table does not show."""
    weights, remarks = solved.found.weights[0], []
    light = int(((weights > 0) & (weights < _LIGHT)).sum())
    if light:
        remarks.append(
            f"{light} of the weights are below {_LIGHT:g}: build drops such edges "
            "unless --min-weight says otherwise"
        )
    if solved.reasons.far:
        remarks.append(
            "all similarities of this node vanish beside 1, and so do its weights: "
            "sigma is too small for it; try --sigma local"
        )
    return remarks


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


def name_of(features: Features, row: int) -> str:
    """Return what people call a row: its number, and its id where it has one."""
    return f"{row} ({features.ids[row]})" if features.ids else str(row)


_SAME = 1e-6
"""Errors J that differ by less, as a share, are the same."""

_FOLDERS = {"method": "methods", "kernel": "kernels", "search": "search"}

Finder = Callable[[Run, int, "Stages"], "tuple[Candidates, Kernel]"]
"""Finds the candidates of one row, and the fitted kernel."""


@dataclass(frozen=True)
class Setup:
    """Features, and how their neighborhoods are made."""

    features: Features
    plan: Plan
    seed: int


@dataclass(frozen=True)
class Built:
    """What a graph says about its neighborhoods."""

    setup: Setup
    sigma: float | None
    listed: IndexArray | None
    """The candidates of all nodes, where the graph holds them."""

    search: str
    """Who found them."""

    def find(self, run: Run, place: int, stages: Stages) -> tuple[Candidates, Kernel]:
        """Return the candidates that a row had, and the kernel with its bandwidth."""
        kernel: Any = run.plan.kernel
        if kernel.needs_all_rows:
            kernel = replace(kernel, sigma=self.sigma)
        if self.listed is not None:
            return self._stored(run, self.listed, place), kernel
        # What a function says may depend on which rows it is asked about together.
        grain = GRAIN if kernel.nearness == "similarity" else 1
        start = place - place % grain
        span = range(start, min(start + grain, len(run.rows.x)))
        return one_row(find(replace(run, span=span), stages), place - start), kernel

    def _stored(self, run: Run, listed: IndexArray, place: int) -> Candidates:
        rows, base = run.rows, run.plan.kernel.nearness
        line = listed[place if rows.origin is None else rows.origin[place]]
        line = line[line >= 0]
        if rows.origin is not None:
            line = np.searchsorted(rows.origin, line)
        index = line[np.newaxis].astype(index_dtype(len(rows.x)))
        index, score = ranked(rows.x, rows.x[place : place + 1], index, base)
        return Candidates(index, distance_of(score, base), self.search, exact=False)


def built_of(graph: Graph, features: Features, name: str) -> Built:
    """Return what a graph says, once it is clear that these are its features."""
    recipe = recipe_of(graph, name)
    known = graph.provenance
    check_method(known["method"], has_error=recipe.has_error)
    same = features_check(features, graph, recipe)
    if same.status != "ok":
        raise InputError(
            f"{features.name}: not what {name} was built from: {same.text}"
        )
    if graph.candidates is None and not recipe.exact:
        raise InputError(
            f"{name}: the file does not hold the candidates that {recipe.search} "
            "found; use the .npz graph, or keep the .nnk.npz file beside this one"
        )
    plan = make_plan(
        features,
        k=recipe.k,
        method=known["method"],
        kernel=known["kernel"],
        search=recipe.search if recipe.exact else "exact",
        scale=recipe.scale,
        duplicates=recipe.duplicates,
    )
    setup = Setup(features, plan, 0)
    return Built(setup, recipe.sigma, graph.candidates, recipe.search)


def contradictions(
    given: dict[str, Any], graph: Graph, name: str
) -> list[tuple[str, object, object]]:
    """Return which parameters are not those of a graph, with both values."""
    recipe, known = recipe_of(graph, name), graph.provenance
    found: list[tuple[str, object, object]] = []
    for option, value in given.items():
        theirs = recipe.sigma_rule if option == "sigma" else known.get(option)
        if option == "sigma":
            agree = _number(value) in {_number(theirs), recipe.sigma}
        elif option in _FOLDERS:
            agree = _same_plugin(_FOLDERS[option], value, str(theirs))
        else:
            agree = value == theirs
        if not agree:
            found.append((option, value, theirs))
    return found


def _number(value: object) -> object:
    """Return a bandwidth as a number, or the name of its rule."""
    try:
        return float(str(value))
    except ValueError:
        return value


def _same_plugin(folder: str, ours: str, theirs: str) -> bool:
    """Return whether a plug-in is the other; the name alone agrees with any such."""
    ours = registry.full_spec(folder, ours)
    if ours.partition(":")[0] != theirs.partition(":")[0]:
        return folder == "search" and ours == "auto"
    # A graph does not say which file its candidates came from.
    if ":" not in ours or theirs == "precomputed":
        return True
    return registry.spec(registry.create(folder, ours)) == theirs


def remark_on_error(found: float, graph: Graph, node: int) -> list[str]:
    """Say so where a graph holds another error J than its parameters give."""
    if graph.errors is None:
        return []
    stored = float(graph.errors[node])
    digits = int(graph.provenance.get("digits", 0))
    room = max(_SAME, 10.0 ** (1 - digits) if digits else 0.0)
    if math.isclose(found, stored, rel_tol=room, abs_tol=_SAME**2):
        return []
    return [
        f"the graph holds J = {stored:.6g} for this node: 'nnkgraph verify' says more"
    ]


def check_method(method: str, *, has_error: bool) -> None:
    """Refuse a method whose candidates are not kept or dropped for a reason."""
    if not has_error:
        raise ParameterError(
            f"method {method!r} has no error J to explain: use nnk, omp, mp or l1"
        )


def one_row(candidates: Candidates, place: int) -> Candidates:
    """Return the candidates of a single row."""
    at = slice(place, place + 1)
    return replace(
        candidates,
        index=np.array(candidates.index[at]),
        distance=np.array(candidates.distance[at]),
    )


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
    setup = Setup(features, plan, seed)
    return _explained(setup, node, _searched, workers, executor, stages or Stages())


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
    found = _explained(built.setup, node, built.find, 1, "serial", stages or Stages())
    edges = int(graph.adjacency[[found.node]].nnz)
    facts = {**found.facts, "edges": edges, "rule": graph.provenance["rule"]}
    notes = [*found.notes, *remark_on_error(facts["error"], graph, found.node)]
    return replace(found, facts=facts, notes=notes)


def _explained(
    setup: Setup,
    node: int | str,
    find: Finder,
    workers: int | str,
    executor: str,
    stages: Stages,
) -> Explanation:
    features, plan = setup.features, setup.plan
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
        candidates, fitted = find(Run(plan, rows, pool, setup.seed), place, stages)
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
