"""Is a graph what its features and parameters give? Derived again, the slow way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import ParameterError
from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks.verify._agree import judge
from nnkgraph.tasks.verify._derive import derive
from nnkgraph.tasks.verify._slow import Space
from nnkgraph.tasks.verify.checks import (
    bridges_check,
    features_check,
    rule_check,
    with_lost_bridges,
    without_bridges,
    without_copies,
)
from nnkgraph.tasks.verify.recipe import Check, recipe_of, refuse_unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data import Graph
    from nnkgraph.tasks.verify._agree import Verdict
    from nnkgraph.tasks.verify._derive import Derived

WEIGHT = 1e-7  # relative difference of weights that counts as equal
ERROR = 1e-10  # difference of errors J, in units of K_qq, that counts as equal


@dataclass(frozen=True)
class Verification:
    """All that was compared."""

    checks: list[Check]
    nodes: int
    looked: int

    @property
    def failed(self) -> list[Check]:
        """The checks that failed."""
        return [check for check in self.checks if check.status == "FAILED"]


def verify(
    features: Features | ArrayLike,
    graph: Graph,
    /,
    *,
    sample: int | None = None,
    seed: int = 0,
    name: str = "graph",
    progress: Stages | None = None,
) -> Verification:
    """Derive a graph again by an independent slow path and compare.

    Distances are summed in float64 over all rows, similarities follow from their
    formulas, and every node's problem is solved by ``scipy.optimize.nnls``. Nothing is
    shared with what builds graphs but the names of its parameters.

    Parameters
    ----------
    features : Features or (n, d) array
        What the graph was built from.
    graph : Graph
        With the provenance that ``build_graph`` gave it.
    sample : int, optional
        Nodes to look at, drawn at random; by default all.
    seed : int
        For that draw.
    name : str
        What messages call the graph.

    Raises
    ------
    InputError
        Where the graph does not say how it was built, or was built by a method or a
        kernel that has no second, independent form here: one of another package.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x, k=10)
    >>> nnkgraph.verify(x, graph, sample=20).failed
    []
    """
    features = features if isinstance(features, Features) else Features.of(features)
    refuse_unknown(graph, name)
    recipe = recipe_of(graph, name)
    if sample is not None and sample < 1:
        raise ParameterError(f"the sample must have at least 1 node, not {sample}")
    checks = [features_check(features, graph, recipe)]
    if len(features.x) != graph.n_nodes or tuple(features.x.shape) != recipe.shape:
        rest = ("sigma", "candidates", "errors", "edges", "weights")
        checks += [Check(one, "not checked", "other features") for one in rest]
        return Verification(checks, graph.n_nodes, 0)
    space = Space.of(features.x, recipe)
    checks.append(rule_check(graph, recipe))
    bare, bridges = without_bridges(graph)
    distinct, copies = without_copies(bare, space)
    checks += copies
    looked = np.arange(space.n)
    if sample is not None and sample < space.n:
        drawn = np.random.default_rng(seed).choice(space.n, sample, replace=False)
        looked = np.sort(drawn)
    derived = derive(space, distinct, looked, progress or Stages())
    checks += [derived.sigma, *_compared(space, distinct, derived)]
    if recipe.bridged:
        checks.append(bridges_check(graph, bare, bridges, space, derived.width))
    return Verification(checks, graph.n_nodes, len(looked))


def _compared(space: Space, graph: Graph, derived: Derived) -> list[Check]:
    """Compare errors, edges and weights."""
    recipe = space.recipe
    if derived.given is None:
        rest = ("errors", "edges", "weights")
        lost = [Check(one, "not checked", derived.search.text) for one in rest]
        return [derived.search, *lost]
    limit = max(WEIGHT, recipe.rounding)
    found = judge(derived.given, graph.adjacency, recipe, limit)
    if recipe.bridged and graph.bridges is None:
        found = with_lost_bridges(found, space, derived.width)
    search, outside = derived.search, int(found.outside.sum())
    if outside:
        text = f"{search.text}; {outside} edges join nodes that are no candidates"
        search = replace(search, status="FAILED", text=text)
    return [
        search,
        _errors_check(graph, derived, space),
        _edges_check(found, space),
        _weights_check(found, space),
    ]


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
    if not space.recipe.solvable:
        text = f"method {space.recipe.method} weighs all nodes at once"
        return Check("weights", "not checked", text)
    wrong, largest = int(found.wrong.sum()), float(found.difference.max(initial=0.0))
    edges, loose = int((found.decided & (found.weight > 0)).sum()), found.loose.sum()
    text = f"{edges} edges, largest difference {largest:.1e}, wrong: {wrong}"
    if loose:
        text += f"; {loose} rest on the last digits and may differ by more"
    figures = {
        "edges": edges,
        "largest_difference": largest,
        "wrong": wrong,
        "loose": int(loose),
    }
    text += _first(found, found.wrong, space)
    return Check.of("weights", not wrong, text, **figures)


def _first(found: Verdict, bad: NDArray[np.bool_], space: Space) -> str:
    """Name the first pair that differs."""
    if not bad.any():
        return ""
    p = int(bad.argmax())
    one, two = (int(space.origin[ends[p]]) for ends in (found.one, found.two))
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
    text = (
        f"J of {len(looked)} nodes, largest difference {largest:.1e}, wrong: {len(bad)}"
    )
    if len(bad):
        node = int(space.origin[looked[bad[0]]])
        text += (
            f"; first at node {node}: {stored[bad[0]]:.9g} is stored, "
            f"{derived.error[bad[0]]:.9g} expected"
        )
    text += f" (own solver's residual: {derived.residual:.1e})"
    figures = {
        "nodes": len(looked),
        "largest_difference": largest,
        "wrong": len(bad),
        "own_residual": derived.residual,
    }
    return Check.of("errors", not len(bad), text, **figures)
