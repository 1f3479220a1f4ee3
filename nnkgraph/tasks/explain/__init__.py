"""Why each candidate of a node was kept or dropped."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph.build.run import Run, open_run
from nnkgraph.build.settings import (
    Running,
    Settings,
    SolveCall,
    features_of,
    metric_of,
    split,
)
from nnkgraph.build.solve import weigh_with_copies
from nnkgraph.data import Candidates, Features, SparseGram
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Kernel, Local, Problem, packed_diagonal
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import within_memory
from nnkgraph.runtime.progress import Stages
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search.exact import GRAIN
from nnkgraph.tasks.verify.recipe import features_check, recipe_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data import FloatArray, Graph, IndexArray, Neighborhoods
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.data.scaling import Scaling


_SAME = 1e-6  # errors J that differ by less, as a share, are the same
_TIE = 1e-12  # a candidate this close to a neighbor's plane counts as beyond it


@dataclass(frozen=True)
class Reasons:
    """What speaks for and against each of a node's m candidates."""

    similarity: FloatArray  # (m,) K_qj
    terms: FloatArray  # (m, m) theta_i K_ij: what neighbor i covers of candidate j
    residual: FloatArray  # (m,) K_qj - sum of terms: what neighbors leave of j
    kept: NDArray[np.bool_]  # (m,) where the weight is positive
    hidden_by: IndexArray  # (m,) neighbor with the largest term, -1 if none is positive
    excludes: NDArray[np.bool_]  # (m, m) where i alone leaves no room for j
    margin: FloatArray  # (m, m) by how much: minus what is left of j beside i alone
    unwanted: NDArray[np.bool_]  # (m,) where j has no weight even on its own
    far: bool  # whether all similarities are so small that they had to be scaled up


def reasons(local: Local, weights: FloatArray, penalty: float) -> Reasons:
    """Find out what each neighbor does to each candidate of one node.

    The penalty is what method l1 takes from every K_qj.

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
    hidden_by = np.empty(0, np.int64)
    if m:
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


_LIGHT = 1e-8  # ``build_graph`` drops lighter edges, unless told otherwise


@dataclass(frozen=True)
class Explanation:
    """A node's candidates, nearest first, and what became of each."""

    node: int  # the row that is explained: the first one with these values
    name: str  # how people call it: its number, and its id where it has one
    candidates: list[dict[str, Any]]  # one entry per candidate; plain JSON values
    facts: dict[str, Any]  # about the neighborhood as a whole; plain JSON values
    notes: list[str]  # what the user should know
    scaling: Scaling  # of the rows that the node was compared with


@dataclass(frozen=True)
class Solved:
    """One node's problem and its solution."""

    problem: Problem
    found: Neighborhoods
    reasons: Reasons
    own: float
    sigma: float | None


def entries_of(
    solved: Solved, rows: Rows, features: Features, settings: Settings
) -> list[dict[str, Any]]:
    """Describe the candidates, nearest first, with the row numbers of the input."""
    index, distance = solved.problem.index[0], solved.problem.distance[0]
    nodes = index if rows.origin is None else rows.origin[np.maximum(index, 0)]
    why, ids = solved.reasons, features.ids
    metric = metric_of(settings.kernel, settings.scale, settings.pca)
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
                "distance": float(distance[place]) if metric else None,
                "cosine": 1 - distance[place] ** 2 / 2 if metric == "chord" else None,
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
    effective = float(shares.sum() ** 2 / (shares**2).sum()) if kept else 0.0
    return {
        "candidate_count": len(entries),
        "kept": len(kept),
        "dropped_pairwise": sum(entry["pairwise"] is True for entry in entries),
        "kept_against_pairwise": sum(bool(entry["pairwise_by"]) for entry in kept),
        "error": None if errors is None else float(errors[0]),
        "own_similarity": solved.own,
        "weight_sum": float(weights.sum()),
        "effective_neighbors": effective,
        "sigma": solved.sigma,
        "certificate": None if proof is None else float(proof[0]),
    }


def remarks_on(solved: Solved) -> list[str]:
    """Say what the table does not show."""
    weights, remarks = solved.found.weights[0], []
    problem = solved.problem
    if problem.kernel.indefinite:
        at = packed_diagonal(problem.index.shape[1])
        ridge = float(problem.local().gram[0, at].max(initial=1.0)) - 1.0
        if ridge > 0:
            remarks.append(
                "no points in a space have these distances: the similarity of every "
                f"candidate with itself is 1 + {ridge:g} (a ridge)"
            )
    light = int(((weights > 0) & (weights < _LIGHT)).sum())
    if light:
        remarks.append(
            f"{light} of the weights are below {_LIGHT:g}: build drops such edges "
            "unless `min_weight` says otherwise"
        )
    if solved.reasons.far:
        remarks.append(
            "all similarities of this node vanish beside 1, and so do its weights: "
            "sigma is too small for it; try `sigma='local'`"
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


@within_memory
def explain(
    features: Features | ArrayLike, node: int | str, /, **options: Unpack[SolveCall]
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

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> nnkgraph.explain(x, 7, k=10).facts["k"]
    10
    """
    chosen, running = split(options, SolveCall)
    features = features_of(features)
    settings = Settings.of(features, **chosen)
    name = registry.spec(settings.method)
    check_method(name, has_error=settings.method.has_error)
    return _explained(features, settings, running, node, _searched)


def explain_built(
    features: Features | ArrayLike,
    graph: Graph,
    node: int | str,
    /,
    *,
    name: str = "graph",
    progress: Stages | None = None,
) -> Explanation:
    """Explain a node of a graph with the parameters that the graph carries.

    Bandwidth and stored candidates are the graph's own, so that nothing is searched
    but what belongs to the node. Messages call the graph by its name.
    """
    features = features_of(features)
    if features.ids is None and len(features.x) == graph.n_nodes:
        features = replace(features, ids=graph.ids)  # the graph names its nodes
    known = built_of(graph, features, name)
    running = Running(executor="serial", progress=progress or Stages())
    found = _explained(features, known.settings, running, node, known.find)
    edges = int(graph.adjacency[[found.node]].nnz)
    weights = graph.provenance.get("weights", "regression")
    rule = graph.provenance["rule"]
    facts = {**found.facts, "edges": edges, "rule": rule, "weights": weights}
    notes = [*found.notes, *remark_on_error(facts["error"], graph, found.node)]
    return replace(found, facts=facts, notes=notes)


def _explained(
    features: Features,
    settings: Settings,
    running: Running,
    node: int | str,
    find: Callable[[Run, int], tuple[Candidates, Kernel]],
) -> Explanation:
    """Explain a node; ``find`` has the candidates of a row and the fitted kernel."""
    asked, notes = find_node(features, node)
    with open_run(features, settings, running) as run:
        rows = run.rows
        place = first = asked
        if rows.first is not None and rows.origin is not None:
            first = int(rows.first[asked])
            place = int(np.searchsorted(rows.origin, first))
        if first != asked:
            copy, own = name_of(features, asked), name_of(features, first)
            notes.append(
                f"node {copy} is a copy of node {own}, which is explained; in a graph "
                "the copy hangs on it with weight 1"
            )
        candidates, fitted = find(run, place)
        with run.progress("solve"):
            solved = _solve(rows, place, candidates, settings, fitted)
    entries = entries_of(solved, rows, features, settings)
    about = {
        "node": first,
        "id": features.ids[first] if features.ids else None,
        "asked": asked,
        "nodes": len(features.x),
        "k": settings.k,
        "method": registry.spec(settings.method),
        "kernel": registry.spec(settings.kernel),
        "metric": metric_of(settings.kernel, settings.scale, settings.pca),
        "scale": settings.scale,
        **({} if settings.pca is None else {"pca": settings.pca}),
        "duplicates": settings.duplicates,
        "search": candidates.backend,
        **facts_of(solved, entries),
    }
    notes += [*run.warnings, *candidates.notes, *remarks_on(solved)]
    name = name_of(features, first)
    return Explanation(first, name, entries, about, notes, run.scaling)


def _searched(run: Run, place: int) -> tuple[Candidates, Kernel]:
    """Find the candidates of all rows, which say the bandwidth, and take the node's."""
    candidates, fitted = run.find_and_fit()
    return one_row(candidates, place), fitted


def _solve(
    rows: Rows, place: int, own: Candidates, settings: Settings, fitted: Kernel
) -> Solved:
    """Solve the one problem; a block of one row gives the same numbers as any."""
    at = slice(place, place + 1)
    queries = None if isinstance(rows.x, SparseGram) else rows.x[at]
    problem = Problem(
        rows.x, queries, own.index, own.distance, fitted, np.array([place]), settings.k
    )
    if rows.kept_copies is None:
        found = settings.method.weigh(problem)
    else:
        found = weigh_with_copies(settings.method, problem, rows.kept_copies, at)
    local = problem.local()
    why = reasons(local, found.weights[0], settings.method.l1_penalty)
    return Solved(problem, found, why, float(local.own[0]), fitted.bandwidth(own))


@dataclass(frozen=True)
class Built:
    """What a graph says about its neighborhoods."""

    settings: Settings
    listed: IndexArray | None  # candidates of all nodes, where stored
    search: str  # who found them

    def find(self, run: Run, place: int) -> tuple[Candidates, Kernel]:
        """Return the candidates that a row had, and the kernel with its bandwidth."""
        kernel = run.settings.kernel
        if self.listed is not None:
            return self._stored(run, self.listed, place), kernel
        # What a function says may depend on which rows it is asked about together.
        grain = GRAIN if kernel.nearness == "similarity" else 1
        start = place - place % grain
        span = range(start, min(start + grain, len(run.rows.x)))
        return one_row(replace(run, span=span).find(), place - start), kernel

    def _stored(self, run: Run, listed: IndexArray, place: int) -> Candidates:
        rows, base = run.rows, run.settings.kernel.nearness
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
    check_method(known["method"], has_error=recipe.weigher.has_error)
    same = features_check(features, graph)
    if same.status != "ok":
        said = f"not what {name} was built from: {same.text}"
        raise InputError(f"{features.name}: {said}")
    if graph.candidates is None and not recipe.exact:
        raise InputError(
            f"{name}: the file does not hold the candidates that {recipe.search} "
            "found; use the .npz graph, or keep the .nnk.npz file beside this one"
        )
    search = known["search"] if recipe.exact else "exact"
    settings = Settings.read({**known, "search": search}, features)
    return Built(settings, graph.candidates, recipe.search)


def remark_on_error(found: float, graph: Graph, node: int) -> list[str]:
    """Say so where a graph holds another error J than its parameters give."""
    if graph.errors is None:
        return []
    stored = float(graph.errors[node])
    digits = int(graph.provenance.get("digits", 0))
    room = max(_SAME, 10.0 ** (1 - digits) if digits else 0.0)
    if math.isclose(found, stored, rel_tol=room, abs_tol=_SAME**2):
        return []
    return [f"the graph holds J = {stored:.6g} for this node: verify says more"]


def check_method(method: str, *, has_error: bool) -> None:
    """Refuse a method whose candidates are not kept or dropped for a reason."""
    if not has_error:
        raise ParameterError(
            f"method {method!r} has no error J to explain: use nnk, omp, mp or l1"
        )


def one_row(candidates: Candidates, place: int) -> Candidates:
    """Return the candidates of a single row."""
    index, distance = candidates.index[[place]], candidates.distance[[place]]
    return replace(candidates, index=index, distance=distance)
