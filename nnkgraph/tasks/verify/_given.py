"""Graphs of other programs: what made them is given, their nodes are put in order."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from nnkgraph.data import Features, Graph
from nnkgraph.data.duplicates import POLICIES
from nnkgraph.data.scaling import SCALES
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.tasks.verify.recipe import KNOWN, Recipe, made_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnkgraph.data import IndexArray
    from nnkgraph.tasks.verify._slow import Space

_ALIKE = 1e-7  # relative difference of the two directions of one edge, by rounding
_RULES = ("error", "error-union", "max", "mean", "min", "mutual", "none")
_CHOICES = {
    "rule": _RULES,
    "scale": SCALES,
    "duplicates": POLICIES,
    "weights": ("regression", "kernel", "one", "distance", "any"),
}
_FIXED = {"one", "distance", "any"}
"""Weights that no kernel is needed for."""


class Given(TypedDict, total=False):
    """What made a graph: keywords that mean what they do in ``build_graph``."""

    k: int | None
    method: Any
    kernel: Any
    sigma: str | float | None
    search: str | None
    symmetrize: str | None
    min_weight: float | None
    min_degree: int | None
    weights: str | None
    scale: str | None
    duplicates: str | None
    digits: int | None


@dataclass(frozen=True)
class _Plan:
    """Method and kernel, and whether the kernel says what edges weigh."""

    method: Any
    kernel: Any
    bare: bool


def recipe_given(
    given: Mapping[str, Any], graph: Graph, features: Features, name: str
) -> Recipe:
    """Return the parameters of a graph that does not say how it was built.

    What is not given is what other programs do: identical rows are nodes like all
    others, nothing is dropped for its weight, and a directed matrix is as it was found.
    """
    if not given:
        raise InputError(
            f"{name}: the graph does not say how it was built, as those of other "
            "programs: name `k`, `method`, `kernel` and `sigma`, and `symmetrize`, "
            "`weights` or `duplicates` where they matter"
        )
    n, weights = len(features.x), given.get("weights", "regression")
    if "method" not in given:
        raise _lacks(name, "`method`, as `method='knn'`")
    plan = _planned(given, weights, name)
    k = given.get("k")
    if k is None and registry.spec(plan.method).partition(":")[0] != "eps":
        raise _lacks(name, "`k`, the number of candidates without the node itself")
    if k is not None and k < 1:
        raise ParameterError(f"k must be at least 1, not {k}")
    if k is not None and k >= n:
        what = f"k is {k}, but a node of {n} can have at most {n - 1} candidates"
        raise InputError(f"{features.name}: {what}")
    rule = given.get("symmetrize") or ("none" if graph.directed else plan.method.rule)
    if rule.startswith("error") and not plan.method.has_error:
        spec = registry.spec(plan.method)
        raise ParameterError(
            f"rule {rule!r} needs errors, and method {spec!r} has none"
        )
    sigma = getattr(plan.kernel, "sigma", None)
    known = {
        "k": k or min(30, max(1, n - 1)),
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "sigma": None if isinstance(sigma, str) else sigma,
        "rule": rule,
        "weights": weights,
        "min_weight": given.get("min_weight", 0.0),
        "min_degree": given.get("min_degree", 0),
        "scale": given.get("scale", "none"),
        "duplicates": given.get("duplicates", "keep"),
        "search": _search(given.get("search", "exact"), graph, name),
        "digits": given.get("digits", 0),
        "shape": features.x.shape,
        "sha256": "",
    }
    for what, choices in _CHOICES.items():
        if known[what] not in choices:
            words = ", ".join(choices)
            raise ParameterError(f"unknown {what} {known[what]!r}; choose from {words}")
    found = replace(made_of(known, name), foreign=True, bare=plan.bare)
    if found.matrix and known["scale"] != "none":
        raise ParameterError(
            "similarities and distances cannot be scaled: leave `scale` out"
        )
    return found


def _lacks(name: str, what: str) -> ParameterError:
    return ParameterError(f"{name}: does not say how it was built: name {what}")


def _planned(given: Mapping[str, Any], weights: str, name: str) -> _Plan:
    """Make the plug-ins; refuse those that have no second form here."""
    specs = {
        one: value if isinstance(value, str) else registry.spec(value)
        for one, value in (
            ("method", given["method"]),
            ("kernel", given.get("kernel", "gaussian")),
        )
    }
    made: dict[str, Any] = {}
    for noun, spec in specs.items():
        folder = f"{noun}s"
        full = registry.full_spec(folder, spec)
        made[noun] = registry.create(folder, full)
        plugin = full.partition(":")[0]
        if plugin not in KNOWN[folder]:
            words = ", ".join(sorted(KNOWN[folder]))
            raise ParameterError(
                f"{noun} {plugin!r} cannot be derived again here: there is a second, "
                f"independent form of {words} only"
            )
    method, kernel = made["method"], made["kernel"]
    near = specs["method"].partition(":")[0] in {"knn", "eps"}
    bare = near and weights in _FIXED
    if weights == "distance" and not bare:
        raise ParameterError("weights 'distance' are for methods knn and eps")
    has = "sigma" in registry.parameter_types(type(kernel))
    sigma, own = given.get("sigma"), "sigma=" in specs["kernel"]
    if sigma is not None and (own or not has):
        why = "has its own" if own else "has no bandwidth"
        raise ParameterError(f"kernel {specs['kernel']!r} {why}: leave `sigma` out")
    if sigma is not None:
        with suppress(ValueError):  # it is the name of a rule, which the kernel checks
            sigma = float(sigma)
        kernel = replace(kernel, sigma=sigma)
    free = bare and getattr(method, "radius", 1.0) > 0
    if has and sigma is None and not own and method.uses_kernel and not free:
        raise _lacks(name, "`sigma`, a number or the rule that it came from")
    method.check(kernel)
    return _Plan(method, kernel, bare)


def _search(search: str, graph: Graph, name: str) -> str:
    """Return how candidates are found; those that are drawn at random are gone."""
    finder = search.partition(":")[0]
    if graph.candidates is not None or finder == "precomputed":
        if graph.candidates is None:
            raise _lacks(name, "its candidates, `search='precomputed:path=FILE'`")
        return "precomputed"
    if finder not in {"auto", "exact", "kdtree"}:
        raise ParameterError(
            f"search {finder!r} cannot be repeated here: give what it found, "
            "`search='precomputed:path=FILE'`, or the exact neighbors are taken"
        )
    return "exact"


def as_graph(given: Any, name: str) -> Graph:
    """Return a graph as it is, or that of a square matrix of weights."""
    if isinstance(given, Graph):
        return given
    from scipy.sparse import csr_array

    try:
        matrix: Any = csr_array(given, dtype=np.float64, copy=True)
        n, m = matrix.shape
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: is neither a graph nor a matrix: {error}") from None
    if n != m or not np.isfinite(matrix.data).all():
        raise InputError(f"{name}: a square matrix of finite weights is needed")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.diagonal().any():
        raise InputError(f"{name}: has loops; nodes are not their own neighbors")
    return Graph(matrix, directed=bool((matrix != matrix.T).nnz))


def in_order(graph: Graph, features: Features, name: str) -> Graph:
    """Put the nodes into the order of the rows, where both have names.

    Lists of edges hold nodes in the order in which they come, and only those that have
    edges.
    """
    ids, rows = graph.ids, features.ids
    if ids is None or ids == rows:
        return graph
    if rows is None:
        if ids == tuple(map(str, range(graph.n_nodes))):
            return graph
        raise InputError(
            f"{name}: nodes have names, such as {ids[0]!r}, and the rows of "
            f"{features.name} have none: name them, `ids` or `id_column`"
        )
    place = {one: row for row, one in enumerate(rows)}
    strange = next((one for one in ids if one not in place), None)
    if strange is not None:
        raise InputError(f"{name}: node {strange!r} is no row of {features.name}")
    at = np.array([place[one] for one in ids], np.int64)
    edges = graph.adjacency.tocoo()
    ends = (at[edges.row], at[edges.col])
    matrix = type(edges)((edges.data, ends), (len(rows), len(rows))).tocsr()
    matrix.sort_indices()
    return Graph(matrix, ids=rows, directed=graph.directed)


def as_told(graph: Graph, recipe: Recipe) -> Graph:
    """Return the graph with the direction that the rule says.

    Two directions of an edge that differ in their last digits are one edge.
    """
    directed, matrix = recipe.rule == "none", graph.adjacency
    if directed or not graph.directed:
        return replace(graph, directed=directed)
    other = matrix.T.tocsr()
    larger = matrix.maximum(other)
    apart = abs(matrix - other) - max(_ALIKE, recipe.rounding) * larger
    if (apart > 0).nnz:
        return graph
    larger.sort_indices()
    return replace(graph, adjacency=larger, directed=False, distances=None)


def with_candidates(graph: Graph, given: Any, features: Features) -> Graph:
    """Put candidates that another program found beside a graph."""
    if given is None:
        return graph
    index = given[0] if isinstance(given, tuple) else getattr(given, "index", given)
    index, n = np.asarray(index), len(features.x)
    if index.ndim != 2 or index.dtype.kind not in "iu" or len(index) != n:
        raise InputError(
            f"candidates: a matrix of row numbers, one row for each of {n} nodes, is "
            f"needed, not shape {index.shape} and dtype {index.dtype}"
        )
    if index.size and not -1 <= int(index.min()) <= int(index.max()) < n:
        raise InputError(
            f"candidates: rows are numbered from 0 to {n - 1}, and -1 means none; "
            f"there are numbers from {index.min()} to {index.max()}"
        )
    return replace(graph, candidates=index.astype(np.int64))


def nearest_listed(space: Space, listed: IndexArray, width: int) -> IndexArray:
    """Return the nearest of the candidates in a list, without the nodes themselves."""
    found = np.full((len(listed), width), -1, np.int64)
    for node, line in enumerate(listed):
        index = np.unique(line[(line >= 0) & (line != node)])
        if len(index) > width:
            value = space.pair_values(np.array([node]), index)[0]
            index = index[np.lexsort((index, value))[:width]]
        found[node, : len(index)] = index
    return found
