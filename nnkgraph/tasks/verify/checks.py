"""Checks that need no solver: features, rule, copies and bridges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.tasks.verify._slow import similarity
from nnkgraph.tasks.verify.recipe import Check

if TYPE_CHECKING:
    from nnkgraph.data import Features, Graph, IndexArray
    from nnkgraph.tasks.verify._agree import Verdict
    from nnkgraph.tasks.verify._slow import Space
    from nnkgraph.tasks.verify.recipe import Recipe


def features_check(features: Features, graph: Graph, recipe: Recipe) -> Check:
    """Compare the features with those that the graph was built from."""
    shape = tuple(features.x.shape)
    if shape != recipe.shape or shape[0] != graph.n_nodes:
        text = f"shape {shape}, the graph has {graph.n_nodes} nodes of {recipe.shape}"
        if shape[0] == graph.n_nodes:
            text += "; give the same `drop` and `id_column` as to build"
        return Check("features", "FAILED", text)
    if features.sha256 != recipe.sha256:
        return Check(
            "features",
            "FAILED",
            "other values, or rows in another order: sha256 differs",
        )
    if features.ids and graph.ids and features.ids != graph.ids:
        return Check("features", "FAILED", "other row names, or another order")
    return Check("features", "ok", f"shape {shape[0]} x {shape[1]}, sha256 agrees")


def rule_check(graph: Graph, recipe: Recipe) -> Check:
    """Check what every graph of a rule is like."""
    matrix = graph.adjacency
    if graph.directed != (recipe.rule == "none"):
        kind = "directed" if graph.directed else "undirected"
        return Check("rule", "FAILED", f"rule {recipe.rule}, but the graph is {kind}")
    if matrix.diagonal().any() or (matrix.data <= 0).any():
        return Check(
            "rule", "FAILED", "there are loops or weights that are not above 0"
        )
    if not graph.directed and abs(matrix - matrix.T).nnz:
        return Check("rule", "FAILED", "the two directions of an edge differ")
    if recipe.rule.startswith("error") and not recipe.has_error:
        text = f"rule {recipe.rule}, but method {recipe.method} has no error"
        return Check("rule", "FAILED", text)
    kind = "directed" if graph.directed else "symmetric to the bit"
    return Check("rule", "ok", f"{recipe.rule}, {kind}, {graph.n_edges} edges")


def without_bridges(graph: Graph) -> tuple[Graph, IndexArray]:
    """Take out the edges that only connect components."""
    bridges = getattr(graph, "bridges", None)
    if bridges is None or not len(bridges):
        return graph, np.empty((0, 2), np.int64)
    bridges = np.asarray(bridges, np.int64)
    matrix = graph.adjacency.tolil(copy=True)
    matrix[bridges[:, 0], bridges[:, 1]] = 0.0
    matrix[bridges[:, 1], bridges[:, 0]] = 0.0
    rest = matrix.tocsr()
    rest.eliminate_zeros()
    return replace(graph, adjacency=rest), bridges


def without_copies(graph: Graph, space: Space) -> tuple[Graph, list[Check]]:
    """Return the graph of the distinct rows; copies hang on the first of their kind."""
    copies = np.flatnonzero(space.first != np.arange(len(space.first)))
    if space.n == len(space.first) and not (
        space.recipe.duplicates == "error" and len(copies)
    ):
        return graph, []
    if space.recipe.duplicates == "error":
        return graph, [Check("copies", "FAILED", f"{len(copies)} rows repeat others")]
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
    smaller = replace(
        graph, adjacency=matrix[at][:, at].tocsr(), errors=errors, candidates=listed
    )
    return smaller, [Check.of("copies", not wrong, text, wrong=wrong)]


def with_lost_bridges(found: Verdict, space: Space, sigma: float | None) -> Verdict:
    """Excuse edges that weigh what bridges do, where the file does not mark bridges."""
    bridge = np.zeros(len(found.one), bool)
    for p in np.flatnonzero(found.extra | found.outside | found.wrong):
        value = similarity(space, int(found.one[p]), int(found.two[p]), sigma)
        value = max(value, space.recipe.min_weight)
        bridge[p] = abs(found.weight[p] - value) <= _weight_tolerance(space) * value
    return replace(
        found,
        extra=found.extra & ~bridge,
        outside=found.outside & ~bridge,
        wrong=found.wrong & ~bridge,
    )


def _weight_tolerance(space: Space) -> float:
    return max(1e-7, space.recipe.rounding)


def bridges_check(
    graph: Graph, bare: Graph, bridges: IndexArray, space: Space, sigma: float | None
) -> Check:
    """Check that bridges weigh what they should, join all, and none is idle."""
    from scipy.sparse.csgraph import connected_components

    if getattr(graph, "bridges", None) is None:
        return Check("bridges", "not checked", "the file does not mark bridges")
    place = np.searchsorted(space.origin, space.first[bridges])
    expected = np.array(
        [similarity(space, int(i), int(j), sigma) for i, j in place], np.float64
    )
    expected = np.maximum(expected, space.recipe.min_weight)
    weight = np.asarray(graph.adjacency[bridges[:, 0], bridges[:, 1]]).ravel()
    wrong = int((np.abs(weight - expected) > _weight_tolerance(space) * expected).sum())
    before = connected_components(bare.adjacency, directed=False)[0]
    after = connected_components(graph.adjacency, directed=False)[0]
    text = f"{len(bridges)} join {before} components, left: {after}, wrong: {wrong}"
    good = not wrong and after == 1 and len(bridges) == before - 1
    figures = {"bridges": len(bridges), "components": int(after), "wrong": wrong}
    return Check.of("bridges", good, text, **figures)
