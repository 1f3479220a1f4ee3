"""Is a graph what its features and parameters give? Derived again, the slow way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy.sparse.csgraph import connected_components

from nnkgraph.data import Features, Graph
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks.verify import recipe as recipes
from nnkgraph.tasks.verify._agree import Verdict, judge
from nnkgraph.tasks.verify._components import components_check
from nnkgraph.tasks.verify._derive import Derived, derive
from nnkgraph.tasks.verify._given import (
    Given,
    as_graph,
    as_told,
    in_order,
    nearest_listed,
    recipe_given,
    with_candidates,
)
from nnkgraph.tasks.verify._slow import Space, lengths, similarity
from nnkgraph.tasks.verify.recipe import Check, Recipe

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data import IndexArray

_TINY = float(np.finfo(np.float64).tiny)  # what an edge weighs at least
ERROR = 1e-10  # difference of errors J, in units of K_qq, that counts as equal
DISTANCE = 1e-9  # relative difference of distances that counts as equal


@dataclass(frozen=True)
class Verification:
    """All that was compared."""

    checks: list[Check]
    nodes: int
    looked: int
    parameters: dict[str, Any] = field(default_factory=dict)
    """What was given for a graph that does not say how it was built, and the rest."""

    @property
    def failed(self) -> list[Check]:
        """The checks that failed."""
        return [check for check in self.checks if check.status == "FAILED"]


def verify(
    features: Features | ArrayLike,
    graph: Graph | Any,
    /,
    *,
    sample: int | None = None,
    seed: int = 0,
    name: str = "graph",
    progress: Stages | None = None,
    candidates: Any = None,
    **given: Unpack[Given],
) -> Verification:
    """Derive a graph again by an independent slow path and compare.

    Distances are summed in float64 over all rows, similarities follow from their
    formulas, and every node's problem is solved by ``scipy.optimize.nnls``. Nothing is
    shared with what builds graphs but the names of its parameters.

    Parameters
    ----------
    features : Features or (n, d) array
        What the graph was built from.
    graph : Graph, or square matrix
        With the provenance that ``build_graph`` gave it; or of another program, and the
        parameters follow.
    sample : int, optional
        Nodes to look at, drawn at random; by default all.
    seed : int
        For that draw.
    name : str
        What messages call the graph.
    progress : Stages, optional
        Hears of the nodes that are done.
    candidates : Candidates, (indices, distances) or indices, optional
        What another program found, where it searched approximately.
    k, method, kernel, sigma, symmetrize, min_weight, min_degree, scale, digits
        Parameters that mean what they do in ``build_graph``, of a graph that does not
        say how it was built. `k` and `method` are needed, and `sigma` where the weights
        depend on it; the rule is by default the method's own, or ``"none"`` for a
        directed graph; edges of all weights are expected. What a graph says itself may
        be given as well, and has to agree.
    duplicates : {"keep", "merge", "error"}
        The same; by default identical rows are nodes like all others.
    weights : {"regression", "kernel", "one", "distance", "any"}
        The same, and for methods ``knn`` and ``eps`` the distances of the ends; with
        ``"any"`` only which edges there are is compared.
    search : {"exact", "kdtree", "precomputed"}
        The same; candidates are given then.

    Raises
    ------
    InputError
        Where the graph does not say how it was built, and nothing is given; where it
        was built by a method or a kernel that has no second, independent form here: one
        of another package.
    ParameterError
        Where a parameter is missing, or contradicts what the graph says.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x, k=10)
    >>> nnkgraph.verify(x, graph, sample=20).failed
    []

    A graph of another program:

    >>> from sklearn.neighbors import kneighbors_graph
    >>> theirs = kneighbors_graph(x, 10, mode="distance")
    >>> nnkgraph.verify(x, theirs, k=10, method="knn", weights="distance").failed
    []
    """
    features = features if isinstance(features, Features) else Features.of(features)
    if sample is not None and sample < 1:
        raise ParameterError(f"the sample must have at least 1 node, not {sample}")
    told = {key: value for key, value in given.items() if value is not None}
    graph = as_graph(graph, name)
    graph, recipe = _with_recipe(graph, features, name, candidates, told)
    checks = [recipes.features_check(features, graph)]
    if len(features.x) != graph.n_nodes or tuple(features.x.shape) != recipe.shape:
        rest = ("sigma", "candidates", "errors", "edges", "weights", "distances")
        checks += [Check(one, "not checked", "other features") for one in rest]
        return Verification(checks, graph.n_nodes, 0, _parameters(recipe))
    space = Space.of(features.x, recipe)
    listed = graph.candidates
    if recipe.foreign and listed is not None and recipe.duplicates == "merge":
        firsts = np.where(listed >= 0, space.first[listed], -1)
        graph = replace(graph, candidates=firsts)
    checks.append(_rule_check(graph, recipe))
    if recipe.pca is not None:
        checks.append(components_check(features.x, recipe))
    bare, bridges = _without_bridges(graph)
    distinct, copies = _without_copies(bare, space)
    checks += copies
    if recipe.foreign and distinct.candidates is not None:
        listed = nearest_listed(space, distinct.candidates, recipe.width)
        distinct = replace(distinct, candidates=listed)
    looked = np.arange(space.n)
    if sample is not None and sample < space.n:
        drawn = np.random.default_rng(seed).choice(space.n, sample, replace=False)
        looked = np.sort(drawn)
    derived = derive(space, distinct, looked, progress or Stages())
    checks += [derived.sigma, *_compared(space, distinct, derived)]
    checks.append(_distances_check(graph, space, looked))
    if recipe.bridged:
        checks.append(_bridges_check(graph, bare, bridges, space, derived.width))
    return Verification(checks, graph.n_nodes, len(looked), _parameters(recipe))


def _with_recipe(
    graph: Graph, features: Features, name: str, candidates: Any, told: dict[str, Any]
) -> tuple[Graph, Recipe]:
    """Return the graph and its parameters, which it carries or which were given."""
    if recipes.is_foreign(graph):
        found = with_candidates(in_order(graph, features, name), candidates, features)
        recipe = recipe_given(told, found, features, name)
        return as_told(found, recipe), recipe
    recipes.refuse_unknown(graph, name)
    recipe = recipes.recipe_of(graph, name)
    for option, ours, theirs in recipes.contradictions(told, graph, name):
        raise ParameterError(
            f"`{option}={ours!r}` contradicts {name}, which says {theirs}: leave it out"
        )
    if candidates is not None and (graph.candidates is not None or recipe.exact):
        raise ParameterError(f"{name}: says what its candidates are: give none")
    return with_candidates(graph, candidates, features), recipe


def _parameters(recipe: Recipe) -> dict[str, Any]:
    """Return what a graph was taken for that does not say how it was built."""
    if not recipe.foreign:
        return {}
    bandwidth = "" if recipe.bare else registry.spec(recipe.plugin)
    return {
        "k": recipe.k,
        "method": registry.spec(recipe.weigher),
        "kernel": bandwidth or recipe.kernel,
        "rule": recipe.rule,
        "weights": recipe.weights,
        "min_weight": recipe.min_weight,
        "min_degree": recipe.min_degree,
        "scale": recipe.scale,
        "duplicates": recipe.duplicates,
        "search": recipe.search,
        "digits": recipe.digits,
    }


def _compared(space: Space, graph: Graph, derived: Derived) -> list[Check]:
    """Compare errors, edges and weights."""
    recipe = space.recipe
    if derived.given is None:
        rest = ("errors", "edges", "weights")
        lost = [Check(one, "not checked", derived.search.text) for one in rest]
        return [derived.search, *lost]
    ways = _fixed(space, derived), _mutual(space, derived)
    found = judge(derived.given, graph.adjacency, recipe, *ways)
    if recipe.bridged and graph.bridges is None:
        found = _with_lost_bridges(found, space, derived.width)
    search, outside = derived.search, int(found.outside.sum())
    if outside:
        text = f"{search.text}; {outside} edges join nodes that are no candidates"
        search = replace(search, status="FAILED", text=text)
    errors = _errors_check(graph, derived, space)
    return [search, errors, _edges_check(found, space), _weights_check(found, space)]


def _fixed(space: Space, derived: Derived) -> Any:
    """Return a function that says what chosen edges weigh; None: what nodes give."""
    recipe, least = space.recipe, max(space.recipe.min_weight, _TINY)
    anything = recipe.weights == "any"
    if recipe.weights == "regression" or (recipe.bare and not anything):
        return None

    def between(one: Any, two: Any, there: Any) -> tuple[Any, Any]:
        low, high = np.ones((2, len(one)))
        if anything:
            return np.zeros(len(one)), np.full(len(one), np.inf)
        for p in np.flatnonzero(there) if recipe.weights == "kernel" else ():
            i, j = int(one[p]), int(two[p])
            known = [derived.width]
            local = recipe.sigma_rule == "local"
            if local:  # the larger similarity counts
                known = [width for width in derived.widths[[i, j]] if width > 0]
            low[p] = max(least, *(similarity(space, i, j, width) for width in known))
            high[p] = 1.0 if local and len(known) < 2 else low[p]
        return low, high

    return between


def _mutual(space: Space, derived: Derived) -> Any:
    """Return a function that says what two nodes give each other, if anything.

    None: they may give what they like. So a sample knows what its nodes' other ends do.
    """
    recipe = space.recipe
    if recipe.method not in {"knn", "eps"} or recipe.sigma_rule == "local":
        return None

    def between(one: Any, two: Any, _there: Any) -> tuple[Any, Any]:
        if recipe.bare:
            far = recipe.weights == "distance"
            size = lengths(space, one, two) if far else np.ones(len(one))
            return size, size
        pairs = zip(one.tolist(), two.tolist(), strict=True)
        values = [similarity(space, i, j, derived.width) for i, j in pairs]
        same = np.maximum(np.array(values, np.float64), 0.0)
        return same, same

    return between


def _edges_check(found: Verdict, space: Space) -> Check:
    """Say which edges are there and should not be, or the other way round."""
    extra, missing = int(found.extra.sum()), int(found.missing.sum())
    decided = int(found.decided.sum())
    text = f"{decided} pairs of nodes, too many: {extra}, missing: {missing}"
    if not space.recipe.solvable:
        edges = int((found.weight > 0).sum())
        text = f"{edges} edges, between nodes that are no candidates: {extra}"
    text += _first(found, found.extra | found.missing, space)
    figures = {"pairs": decided, "extra": extra, "missing": missing}
    return Check.of("edges", not (extra or missing), text, **figures)


def _weights_check(found: Verdict, space: Space) -> Check:
    """Compare the weights of edges that should be there."""
    if not space.recipe.solvable and space.recipe.weights == "regression":
        text = f"method {space.recipe.method} weighs all nodes at once"
        return Check("weights", "not checked", text)
    if space.recipe.weights == "any":
        text = "only which edges there are was to be compared"
        return Check("weights", "not checked", text)
    wrong, largest = int(found.wrong.sum()), float(found.difference.max(initial=0.0))
    edges, loose = int((found.decided & (found.weight > 0)).sum()), found.loose.sum()
    text = f"{edges} edges, largest difference {largest:.1e}, wrong: {wrong}"
    if loose:
        text += f"; {loose} rest on the last digits and may differ by more"
    text += _first(found, found.wrong, space)
    figures = {"largest_difference": largest, "wrong": wrong, "loose": int(loose)}
    return Check.of("weights", not wrong, text, edges=edges, **figures)


def _first(found: Verdict, bad: NDArray[np.bool_], space: Space) -> str:
    """Name the first pair that differs."""
    if not bad.any():
        return ""
    p = int(bad.argmax())
    one, two = (int(space.origin[ends[p]]) for ends in (found.one, found.two))
    if space.recipe.weights == "any":
        there = "an" if found.weight[p] > 0 else "no"
        return f"; first at nodes {one} and {two}: there is {there} edge"
    return (
        f"; first at nodes {one} and {two}: {found.weight[p]:.9g} is stored, "
        f"{found.expected[p]:.9g} expected"
    )


def _errors_check(graph: Graph, derived: Derived, space: Space) -> Check:
    """Compare J with the stored ones, in units of K_qq."""
    recipe, looked = space.recipe, derived.looked
    if not recipe.has_error:
        return Check("errors", "not checked", f"method {recipe.method} has no error J")
    if graph.errors is None:
        return Check("errors", "not checked", "the file holds no errors")
    stored, own = graph.errors[looked], derived.own[looked]
    gap = np.abs(derived.error - stored)
    bad = np.flatnonzero(~(gap <= ERROR * own + recipe.rounding * np.abs(stored)))
    largest = float((gap / np.where(own > 0, own, 1.0)).max(initial=0.0))
    count, residual = len(looked), derived.residual
    text = f"J of {count} nodes, largest difference {largest:.1e}, wrong: {len(bad)}"
    if len(bad):
        node = int(space.origin[looked[bad[0]]])
        text += (
            f"; first at node {node}: {stored[bad[0]]:.9g} is stored, "
            f"{derived.error[bad[0]]:.9g} expected"
        )
    text += f" (own solver's residual: {residual:.1e})"
    figures = {"nodes": count, "largest_difference": largest, "wrong": len(bad)}
    return Check.of("errors", not len(bad), text, **figures, own_residual=residual)


def _distances_check(graph: Graph, space: Space, looked: IndexArray) -> Check:
    """Compare how far apart the ends of edges are, for the nodes that are looked at."""
    recipe, stored, a = space.recipe, graph.distances, graph.adjacency
    if stored is None:
        return Check("distances", "not checked", "the file holds no distances")
    place = np.searchsorted(space.origin, space.first)
    row = np.repeat(np.arange(graph.n_nodes), np.diff(a.indptr))
    at = np.flatnonzero(np.isin(place[row], looked))
    ends = row[at], a.indices[at]
    expected = lengths(space, place[ends[0]], place[ends[1]])
    if expected is None:
        text = f"kernel {recipe.kernel} knows similarities, no distances"
        return Check("distances", "FAILED", text)
    gap = np.abs(stored[at] - expected)
    bad = np.flatnonzero(
        ~(gap <= (DISTANCE + recipe.rounding) * expected + space.grain)
    )
    largest = float(gap.max(initial=0.0))
    text = f"{len(at)} entries, largest difference {largest:.1e}, wrong: {len(bad)}"
    if len(bad):
        i, j = (int(one[bad[0]]) for one in ends)
        text += (
            f"; first at nodes {i} and {j}: {stored[at[bad[0]]]:.9g} is stored, "
            f"{expected[bad[0]]:.9g} expected"
        )
    figures = {"entries": len(at), "largest_difference": largest, "wrong": len(bad)}
    return Check.of("distances", not len(bad), text, **figures)


def _rule_check(graph: Graph, recipe: Recipe) -> Check:
    """Check what every graph of a rule is like."""
    matrix = graph.adjacency
    if graph.directed != (recipe.rule == "none"):
        kind = "directed" if graph.directed else "undirected"
        text = f"rule {recipe.rule}, but the graph is {kind}"
    elif matrix.diagonal().any() or (matrix.data <= 0).any():
        text = "there are loops or weights that are not above 0"
    elif not graph.directed and abs(matrix - matrix.T).nnz:
        text = "the two directions of an edge differ"
    elif recipe.rule.startswith("error") and not recipe.has_error:
        text = f"rule {recipe.rule}, but method {recipe.method} has no error"
    else:
        kind = "directed" if graph.directed else "symmetric to the bit"
        return Check("rule", "ok", f"{recipe.rule}, {kind}, {graph.n_edges} edges")
    return Check("rule", "FAILED", text)


def _without_bridges(graph: Graph) -> tuple[Graph, IndexArray]:
    """Take out the edges that only connect components."""
    if graph.bridges is None or not len(graph.bridges):
        return graph, np.empty((0, 2), np.int64)
    bridges = np.asarray(graph.bridges, np.int64)
    matrix = graph.adjacency.tolil(copy=True)
    matrix[bridges[:, 0], bridges[:, 1]] = 0.0
    matrix[bridges[:, 1], bridges[:, 0]] = 0.0
    rest = matrix.tocsr()
    rest.eliminate_zeros()
    return replace(graph, adjacency=rest, distances=None), bridges


def _without_copies(graph: Graph, space: Space) -> tuple[Graph, list[Check]]:
    """Return the graph of the distinct rows; copies hang on the first of their kind."""
    copies = np.flatnonzero(space.first != np.arange(len(space.first)))
    if space.recipe.duplicates == "error" and len(copies):
        return graph, [Check("copies", "FAILED", f"{len(copies)} rows repeat others")]
    if space.n == len(space.first):
        return graph, []
    matrix, at = graph.adjacency, space.origin
    rows, columns = matrix[copies], matrix[:, copies].T.tocsr()
    wrong = 0
    for side in (rows,) if graph.directed else (rows, columns):
        alone = np.diff(side.indptr) == 1
        right = np.zeros(len(copies), bool)
        ends = side.indices[side.indptr[:-1][alone]]
        heavy = side.data[side.indptr[:-1][alone]]
        right[alone] = (ends == space.first[copies[alone]]) & (heavy == 1.0)
        wrong = max(wrong, int((~right).sum()))
    if graph.directed:
        wrong += columns.nnz
    errors, listed = graph.errors, graph.candidates
    if errors is not None:
        wrong += int((errors[copies] != 0).sum())
        errors = errors[at]
    if listed is not None:
        place = np.full(len(space.first), -1)
        place[at] = np.arange(len(at))
        listed = np.where(listed[at] >= 0, place[np.maximum(listed[at], 0)], -1)
    text = f"{len(copies)} copies, hung on their first rows; wrong: {wrong}"
    inner = replace(graph, adjacency=matrix[at][:, at].tocsr(), distances=None)
    smaller = replace(inner, errors=errors, candidates=listed)
    return smaller, [Check.of("copies", not wrong, text, wrong=wrong)]


def _with_lost_bridges(found: Verdict, space: Space, sigma: float | None) -> Verdict:
    """Excuse edges that weigh what bridges do, where the file does not mark bridges."""
    bad = {name: getattr(found, name).copy() for name in ("extra", "outside", "wrong")}
    for p in np.flatnonzero(found.extra | found.outside | found.wrong):
        value = similarity(space, int(found.one[p]), int(found.two[p]), sigma)
        value = max(value, space.recipe.min_weight)
        value = 1.0 if space.recipe.weights == "one" else value
        if abs(found.weight[p] - value) <= space.recipe.tolerance * value:
            for marks in bad.values():
                marks[p] = False
    return replace(found, **bad)


def _bridges_check(
    graph: Graph, bare: Graph, bridges: IndexArray, space: Space, sigma: float | None
) -> Check:
    """Check that bridges weigh what they should, join all, and none is idle."""
    if graph.bridges is None:
        return Check("bridges", "not checked", "the file does not mark bridges")
    place = np.searchsorted(space.origin, space.first[bridges])
    similar = [similarity(space, int(i), int(j), sigma) for i, j in place]
    expected = np.maximum(np.array(similar, np.float64), space.recipe.min_weight)
    expected[:] = 1.0 if space.recipe.weights == "one" else expected
    weight = np.asarray(graph.adjacency[bridges[:, 0], bridges[:, 1]]).ravel()
    wrong = int((np.abs(weight - expected) > space.recipe.tolerance * expected).sum())
    before = connected_components(bare.adjacency, directed=False)[0]
    after = connected_components(graph.adjacency, directed=False)[0]
    text = f"{len(bridges)} join {before} components, left: {after}, wrong: {wrong}"
    good = not wrong and after == 1 and len(bridges) == before - 1
    figures = {"bridges": len(bridges), "components": int(after), "wrong": wrong}
    return Check.of("bridges", good, text, **figures)
