"""From features to a graph: the order of the stages, nothing else."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph.build import report
from nnkgraph.build.run import open_run
from nnkgraph.build.settings import (
    GraphCall,
    SearchCall,
    Settings,
    features_of,
    settings_of,
    split,
)
from nnkgraph.build.symmetrize import symmetrize
from nnkgraph.data import Candidates, Features, Graph, Neighborhoods, Updatable
from nnkgraph.data.duplicates import Rows, candidates_with_copies, with_copies
from nnkgraph.data.pairs import DISTANCES, MATRICES
from nnkgraph.data.report import Report
from nnkgraph.errors import ParameterError, QualityWarning
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import FloatArray, new_array, row_slices, within_memory
from nnkgraph.search.auto import LOW_RECALL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from nnkgraph import kernels, methods
    from nnkgraph.build.run import Run

    Solution = tuple[Candidates, kernels.Kernel, Neighborhoods]


@within_memory
def build_graph(
    features: Features | ArrayLike,
    /,
    *,
    candidates: Candidates | tuple[Any, Any] | Any = None,
    ids: Sequence[str] | None = None,
    k_check: bool = False,
    updatable: bool = False,
    **options: Unpack[GraphCall],
) -> Graph:
    """Build a graph from features.

    Parameters
    ----------
    features : (n, d) array, sparse matrix, DataFrame or Features
        One row per node.
    candidates : Candidates, or (indices, distances), or indices, optional
        The candidates, where they are known: from ``find_candidates``, or as faiss,
        pynndescent and others return them. A row itself may be among them, -1 stands
        for none, they need not be in order, and distances may be squared: they are
        derived from the features again.
    ids : sequence of str, optional
        Names of the rows.
    k : int, optional
        Candidates per node; by default 30, or n - 1 where there are fewer rows.
    method, kernel, search, executor : str or plug-in
        Plug-ins as ``name`` or ``name:key=value,...`` (``nnkgraph list`` shows them),
        or objects. A kernel may also be a function of (n, d) and (m, d) rows that
        returns their (n, m) similarities.
    preset : {"paper", "classify", "cluster", "propagate"}, optional
        What a graph of regressions (nnk, omp, mp, l1) is for: values for ``sigma``,
        ``symmetrize``, ``min_degree`` and ``weights`` where those are None.
        "paper" is the paper to the letter.
    sigma : float or {"auto", "kth-max", "kth-mean", "local", "matlab"}, optional
        Bandwidth of the kernel, where it has one; by default as the preset says.
    symmetrize : str, optional
        Rule that joins the two directions; by default the one that suits the method.
    min_weight : float
        Lighter edges are dropped.
    min_degree : int, optional
        Every node's own so many heaviest edges stay, whatever the rule says; by
        default as the preset says for the rules of the errors, and 0 for others.
    weights : {"regression", "kernel", "one"}, optional
        What edges weigh once they are chosen: what the method gives, the similarity of
        the two nodes, or 1.
    scale : {"none", "standard", "minmax", "unit"}
        Scaling of the features.
    pca : int, optional
        So many principal components of the scaled features take their place. The graph
        stores their axes.
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
    like : Graph, optional
        A graph whose settings are taken, all of them, with what was resolved: sigma is
        a number, and so are a scaling and components.
    updatable : bool
        Whether the graph keeps what ``update`` needs: see ``Graph.updatable``.
    digits : int
        Significant digits of weights and errors; 0 keeps all.
    seed : int
        For searches that draw at random.
    workers : int or "auto"
        Processes. The graph does not depend on their number.
    resume : path, optional
        A directory where finished blocks are kept, so that a run that was ended can go
        on; `nnkgraph.runtime.checkpoint.remove_checkpoint` removes it.
    block_timeout : float
        Seconds without a finished block after which workers count as hung; 0: never.
    memory : int, optional
        Bytes that may be used: beyond, files are. By default what there is.
    shared_dir : str, optional
        A directory for temporary files that workers on other machines have to see.
    progress : Stages, optional
        Hears how far the work is and keeps the durations.

    Returns
    -------
    Graph
        Its ``report`` says what happened, with a certificate over all nodes.

    Warns
    -----
    QualityWarning
        Where nodes miss their certificate, or an approximate search its neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x, k=10)
    >>> graph
    <Graph: 100 nodes, 236 edges>
    >>> graph.report.certificate.nodes_failed
    0
    """
    chosen, running = split(options, GraphCall)
    features = features_of(features, ids=ids)
    if candidates is not None:
        if "search" in chosen:
            raise ParameterError("give candidates or a search, not both")
        from nnkgraph.search.precomputed import Precomputed

        chosen["search"] = Precomputed.of(candidates)
    settings = settings_of(features, chosen)
    if updatable:
        check_updatable(settings)
    if k_check:
        from nnkgraph.build import grow

        limits = None, settings.k, chosen.get("max_k")
        grow.check_grow(settings.method, settings.kernel, *limits)
    elif settings.grow is None and chosen.get("max_k") is not None:
        raise ParameterError("max_k is of use with grow only")
    with open_run(features, settings, running) as run:
        solution, known = grown(run, run.solve(), k_check=k_check)
    graph = whole(run, solution, updatable=updatable, **known)
    warn_of_quality(graph.report)
    return graph


def grown(
    run: Run, solution: Solution, *, k_check: bool = False
) -> tuple[Solution, dict[str, Any]]:
    """Give nodes more candidates where they are to have them.

    Returns also what `Solved` is to know about it.
    """
    settings, (found, kernel, neighborhoods) = run.settings, solution
    if settings.grow is None and not k_check:
        return solution, {}
    from nnkgraph.build import grow

    with run.progress("solve"):
        growth = grow.grow(
            run.pool,
            run.wanted(settings.k),
            found,
            neighborhoods,
            kernel=kernel,
            method=settings.method,
            tolerance=np.inf if settings.grow is None else settings.grow,
            max_k=settings.max_k,
        )
    facts = report.growth_facts(growth, run.rows)
    done = growth.candidates, kernel, growth.found
    return done, {"grown": growth.grown, "facts": facts}


def whole(
    run: Run,
    solution: Solution,
    *,
    warnings: Sequence[str] = (),
    **known: Any,
) -> Graph:
    """Return the graph of a run whose rows are solved; the rest are `Solved`'s."""
    (found, kernel, neighborhoods), settings, rows = solution, run.settings, run.rows

    def bridge(bare: Graph) -> Graph:
        from nnkgraph.build.connect import connected, single

        return connected(bare, rows.x, single(kernel, found), settings.min_weight)

    with run.progress("symmetrize"):
        return assembled(
            Solved(
                found,
                neighborhoods,
                rows,
                report.own_similarity(rows.x, found, kernel, settings.method),
                settings.stored(
                    sigma=kernel.bandwidth(found),
                    search=found.backend,
                    scaling=run.scaling,
                ),
                report.input_facts(run.features),
                run.features.ids,
                tips=advice(settings),
                kernel=kernel if settings.weights == "kernel" else None,
                workers=run.pool.workers,
                warnings=(*run.warnings, *warnings),
                notes=(*found.notes, *run.notes),
                **known,
            ),
            bridge if settings.connect == "mst" else None,
        )


def check_updatable(settings: Settings, *, lists: bool = True) -> None:
    """Refuse what rows cannot be added to, or, with ``lists``, not list by list."""
    method, kernel, search = settings.method, settings.kernel, settings.search
    names = {"method": method, "kernel": kernel, "search": search}
    refused = {
        "method": "" if method.local else "looks at all rows at once",
        "kernel": "has no features to add rows to" * (kernel.base in MATRICES)
        or "is a function" * (kernel.nearness == "similarity")
        or "is searched as a whole" * (lists and kernel.base == "jaccard-distance"),
        "search": ""
        if (search.exact or search.answers_queries) and not search.reads
        else "knows its own rows only",
    }
    if lists and not (method.local and gathers_nothing(method)):
        refused["method"] = refused["method"] or "needs no list of candidates"
    if lists and settings.grow is not None:
        raise ParameterError(
            "lists of candidates that grow cannot be updated: leave out grow"
        )
    for what, why in refused.items():
        if why:
            name = registry.spec(names[what])
            raise ParameterError(
                f"{what} {name!r} {why}: a graph of it cannot be updated; build it anew"
            )


def gathers_nothing(method: methods.Method) -> bool:
    """Return whether a method takes the k best as its candidates, as most do."""
    from nnkgraph.methods import Plain

    gather: Any = type(method).gather
    return gather is Plain.gather


@within_memory
def find_candidates(
    features: Features | ArrayLike,
    /,
    *,
    self_first: bool = False,
    **options: Unpack[SearchCall],
) -> Candidates:
    """Find the candidates of every row; the parameters are those of ``build_graph``.

    With ``self_first`` every row comes before its candidates, at distance 0, as UMAP
    and others expect. Where copies are merged, lists hold only the first of identical
    rows, and a copy has the list of its first row: ``build_graph`` with these
    candidates gives the same graph as without them.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.find_candidates(x, k=5)
    >>> found.index.shape, found.exact
    ((100, 5), True)
    """
    chosen, running = split(options, SearchCall)
    features = features_of(features)
    settings = Settings.of(features, preset="paper", **chosen)  # for any bandwidth
    if self_first and settings.kernel.nearness not in DISTANCES:
        name = registry.spec(settings.kernel)
        raise ParameterError(
            f"kernel {name!r} has no distances, so a row is not at distance 0 from "
            "itself: leave out `self_first`"
        )
    with open_run(features, settings, running) as run:
        found = run.find()
    said = [one for one in run.warnings if one not in features.warnings]
    notes = (*found.notes, *said, *run.notes)
    found = candidates_with_copies(found, run.rows)
    found = _with_self(found) if self_first else found
    return replace(found, notes=notes, ids=features.ids)


def _with_self(found: Candidates) -> Candidates:
    """Put every row before its candidates."""
    n, k = found.index.shape
    index = new_array((n, k + 1), found.index.dtype)
    distance = new_array((n, k + 1), np.float64)
    for rows in row_slices(n, 24 * (k + 1)):
        index[rows, 0], index[rows, 1:] = np.arange(n)[rows], found.index[rows]
        distance[rows, 0], distance[rows, 1:] = 0.0, found.distance[rows]
    return replace(found, index=index, distance=distance)


def warn_of_quality(found: Any) -> None:
    """Warn of nodes without a proof, and of neighbors that were not found."""
    proof, recall = found.certificate, found.recall
    told = [found.failure] if found.failure else []
    if proof is not None and proof.nodes_failed:
        failed = f"{proof.nodes_failed} nodes miss their certificate"
        told.insert(0, f"{failed}: {proof.max:.2g}")
    if recall is not None and recall < LOW_RECALL:
        share = f"an estimated share of {recall:.3f} of the nearest neighbors was found"
        told.append(f"{share}; `search='exact'` finds all")
    for message in told:
        warnings.warn(message, QualityWarning, stacklevel=4)


def advice(settings: Settings) -> str:
    """Return a half-sentence with parameters that were not tried yet, or nothing."""
    tips = []
    kernel, rule = settings.kernel, settings.rule
    if kernel.nearness in {"inner-product", "absolute-product"}:
        if settings.scale != "unit":
            tips.append("`scale='unit'`, because inner products favor long rows")
        tips.append("`kernel='cosine'`")
    if settings.min_degree == 0 and rule != "none":
        tips.append("`min_degree=3`")
    if rule == "error" and settings.min_degree == 0:
        tips.append("`symmetrize='error-union'`")
    local = getattr(kernel, "sigma", None) in {None, "local"}
    if kernel.nearness in DISTANCES and not local and settings.method.local:
        tips.append("`sigma='local'`")
    if settings.connect == "none" and rule != "none":
        tips.append("`connect='mst'`")
    if settings.duplicates == "keep":
        tips.append("`duplicates='merge'`")
    if not tips:
        return ""
    *others, last = tips
    return f"; try {', '.join(others)}{' or ' if others else ''}{last}"


@dataclass(frozen=True)
class Solved:
    """The neighborhoods of all rows, and what is known about them."""

    candidates: Candidates
    found: Neighborhoods
    rows: Rows
    """Which of them are copies; the features are not looked at any more."""

    own: FloatArray | None
    """(n,) similarities of the rows with themselves: see `report.own_similarity`."""

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

    kernel: kernels.Kernel | None = None
    """With its bandwidth, where edges weigh what it says."""

    updatable: bool = False
    """Whether the graph keeps what an update needs."""

    searched: int = 0
    """How many rows there were when an approximate search began anew; 0: as now."""

    workers: int = 1
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def assembled(solved: Solved, bridge: Callable[[Graph], Graph] | None = None) -> Graph:
    """Join the directions, hang copies on, and sum everything up.

    ``bridge`` connects the components of the graph of the distinct rows.
    """
    candidates, found, rows = solved.candidates, solved.found, solved.rows
    settings = solved.settings
    rule, min_weight, kernel = settings["rule"], settings["min_weight"], solved.kernel
    similar = None
    if kernel is not None:
        from nnkgraph.build.weights import Similar

        similar = Similar(kernel, candidates, min_weight)
    joined = symmetrize(
        candidates,
        found,
        rule=rule,
        min_weight=min_weight,
        min_degree=settings["min_degree"],
        own=solved.own,
        first=rows.kept_copies,
        similar=similar,
        measured=bool(settings.get("metric")),
    )
    kept = None if candidates.exact and not solved.grown else candidates.index
    bare = Graph(
        joined.adjacency,
        None,
        rule == "none",
        found.errors,
        kept,
        distances=joined.distances,
    )
    if bridge is not None:
        bare = bridge(bare)
    if settings.get("weights") == "one":
        bare.adjacency.data[:] = 1.0
    graph = rounded_graph(with_copies(bare, rows), settings.get("digits", 0))
    graph = replace(graph, ids=solved.ids, updatable=_updatable(solved))
    method: methods.Method = registry.create("methods", settings["method"])
    certificate = report.certificate(found, rows.origin)
    facts = report.facts(graph)
    apart = report.copies_apart(graph, rows.first) if facts["components"] > 1 else 0
    return replace(
        graph,
        provenance={
            **report.provenance_of(solved.input, settings),
            "nodes_failed": certificate.nodes_failed if certificate else 0,
            "support_sizes": report.support_sizes(found),
            **({"failure": found.failure} if found.failure else {}),
        },
        report=Report(
            facts["nodes"],
            facts["edges"],
            facts["components"],
            facts["isolated"],
            facts["directed"],
            settings,
            certificate,
            report.error_facts(graph.errors),
            report.search_facts(candidates),
            solved.input,
            duplicates=rows.copies,
            copies_apart=apart,
            dropped=joined.dropped,
            candidates_grown=solved.grown,
            bridges=0 if graph.bridges is None else len(graph.bridges),
            workers=solved.workers,
            failure=found.failure,
            method_facts=found.facts,
            more=solved.facts,
            warnings=[
                *solved.warnings,
                *candidates.warnings,
                *report.bandwidth_warnings(settings["sigma"], report.reach(candidates)),
                *method.remarks(candidates, found),
                *report.graph_warnings(facts, apart, solved.tips),
            ],
            notes=list(solved.notes),
        ),
    )


def _updatable(solved: Solved) -> Updatable | None:
    """Return what an update needs, where the graph is to keep it."""
    if not solved.updatable:
        return None
    candidates, found, searched = solved.candidates, solved.found, None
    if not candidates.exact:
        searched = np.array(solved.searched or len(candidates.index))
    return Updatable(
        candidates.index,
        candidates.distance,
        found.weights,
        found.errors,
        found.certificate,
        solved.rows.first,
        searched,
    )


# As they are read: pow may differ from one library to another.
_POWERS = np.array([float(f"1e{power}") for power in range(-308, 309)])


_SMALLEST = 1e-280
"""Below this a number is too near to where digits are lost to be rounded."""


def rounded_graph(graph: Graph, digits: int) -> Graph:
    """Return the graph with rounded weights, distances and errors."""
    if not digits:
        return graph
    adjacency = copy.copy(graph.adjacency)  # the columns stay as they are
    made: Any = [
        None if values is None else rounded(values, digits)
        for values in (adjacency.data, graph.distances, graph.errors)
    ]
    adjacency.data, lengths, errors = made
    return replace(graph, adjacency=adjacency, errors=errors, distances=lengths)


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Return values with so many significant digits; 0 leaves them alone."""
    if digits == 0 or not len(values):
        return values
    result = new_array(len(values), np.float64)
    for some in row_slices(len(values), 128):
        own = values[some]
        size = np.abs(own)
        there = size > _SMALLEST
        place = np.zeros(len(size))
        place = np.floor(np.log10(size, where=there, out=place)).astype(int)
        shift = np.clip(digits - 1 - place, -308, 308)
        up = _POWERS[308 + np.maximum(shift, 0)]
        down = _POWERS[308 + np.maximum(-shift, 0)]
        result[some] = np.where(there, np.rint(own * up / down) / up * down, own)
    return result
