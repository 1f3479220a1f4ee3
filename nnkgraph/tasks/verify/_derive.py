"""Candidates, bandwidth and neighborhoods of the nodes that ``verify`` looks at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.tasks.verify import _slow
from nnkgraph.tasks.verify._agree import SIDE, Given
from nnkgraph.tasks.verify._slow import Shortlist, Solution, Space
from nnkgraph.tasks.verify.recipe import Check, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.runtime.progress import Stages
    from nnkgraph.tasks.verify._agree import Side

_ONE = {"correlation", "cosine", "distance", "gaussian", "jaccard", "laplacian"}
"""Kernels of which every row's similarity with itself is 1."""

_SAME = 1e-9  # errors J this close, in units of K_qq, may have the same candidates


def weighed(
    space: Space, node: int, one: Shortlist, sigma: float | None, stored: float | None
) -> tuple[list[Solution], bool]:
    """Return the ways to weigh a node that agree with its stored error, or all.

    There is more than one only where rounding decides which candidates are the k best.
    The second value is whether these are all there can be.
    """
    recipe = space.recipe
    if not recipe.solvable:
        return [], False
    if recipe.method == "eps" or _apart(recipe, one):
        return _slow.solutions(space, node, one.index, sigma), True
    found: list[Solution] = []
    for index in one.choices():
        found += _slow.solutions(space, node, index, sigma)
    if len(found) == 1 or not recipe.has_error or stored is None:
        return found, not one.unclear
    room = max(_SAME, recipe.rounding)
    alike = [way for way in found if abs(way.error - stored) <= room * way.own]
    return alike or found, not one.unclear or bool(alike)


def _apart(recipe: Recipe, one: Shortlist) -> bool:
    """Return whether each candidate's weight is known, although not who is chosen."""
    return recipe.method == "knn" and one.unclear


def ranges(
    recipe: Recipe, one: Shortlist, ways: list[Solution], complete: bool
) -> tuple[IndexArray, Side]:
    """Return the candidates of a node and what it may give to each of them."""
    index = np.unique(one.index)
    m = len(index)
    clear = one.index[: one.tied.start] if one.tied.stop > one.tied.start else one.index
    if recipe.method != "eps" and one.tied.stop <= one.k:
        clear = one.index[: one.k]
    low, high, slack = np.full(m, np.inf), np.zeros(m), np.zeros(m)
    count = np.zeros(m, np.int64)
    for way in ways:
        at = np.searchsorted(index, way.index)
        least, most = np.zeros(m), np.zeros(m)
        # A weight that rounding alone can make may be there or not.
        least[at] = np.where(way.weights > way.slack, way.weights, 0.0)
        most[at] = np.where(way.weights > 0, way.weights, way.slack)
        low, high = np.minimum(low, least), np.maximum(high, most)
        slack[at] = np.maximum(slack[at], way.slack)
        count[at] += 1
    sure, known = np.isin(index, clear), ways and complete
    if recipe.method == "eps" or _apart(recipe, one):
        low = np.where(sure, low, 0.0)
    elif known:
        sure = count == len(ways)
    if not known:
        low, high = np.zeros(m), np.full(m, np.inf)
    side = np.recarray(m, SIDE)
    side.low, side.high, side.slack = low, high, slack
    side.sure, side.maybe = sure, True
    side.heavy, side.maybe_heavy = _heavy(low, high, recipe.min_degree)
    return index, side


def _heavy(
    low: FloatArray, high: FloatArray, count: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which weights are, and which may be, among a node's heaviest."""
    if count == 0:
        return np.zeros(len(low), bool), np.zeros(len(low), bool)
    rivals = (high[np.newaxis] >= low[:, np.newaxis] * (1 - 1e-9)).sum(axis=1) - 1
    better = (low[np.newaxis] > high[:, np.newaxis] * (1 + 1e-9)).sum(axis=1)
    return (rivals < count) & (low > 0), (better < count) & (high > 0)


_RECALL_NODES = 1000  # at most, for the recall of an approximate search


@dataclass(frozen=True)
class Derived:
    """What follows from the features for the nodes that were looked at."""

    looked: IndexArray
    sigma: Check
    search: Check
    width: float | None = None  # the bandwidth of all nodes
    given: Given | None = None
    own: Any = None
    error: Any = None  # J of the nodes that were looked at
    residual: float = 0.0
    widths: Any = None  # (n,) bandwidths, where they are local; nan: not looked at


def derive(space: Space, graph: Graph, looked: IndexArray, progress: Stages) -> Derived:
    """Find candidates, fit the bandwidth and solve, for some nodes."""
    recipe, listed = space.recipe, graph.candidates
    grown = recipe.grow and graph.errors is None
    if listed is None and (grown or not recipe.exact):
        text = f"the file does not hold the candidates that {recipe.search} found"
        sigma = Check("sigma", "not checked", text)
        if not isinstance(recipe.sigma_rule, str):
            sigma = sigma_check(recipe, np.zeros(0), 1, None)[0]
        return Derived(looked, sigma, Check("candidates", "not checked", text))
    if listed is None:
        with progress("search", len(looked)) as on_rows:
            lists = []
            for one in space.shortlists(looked, min(recipe.width, space.n - 1)):
                lists.append(one)
                on_rows(1)
        reach = np.array([_kth(one, recipe) for one in lists])
        tied = sum(one.tied.stop > one.k for one in lists)
        text = f"brute force for {len(lists)} nodes, tied up to rounding: {tied}"
        search = Check.of("candidates", True, text, nodes=len(lists), tied=tied)
    else:
        lists = [_stored(listed[node]) for node in looked]
        with progress("search", len(looked)) as on_rows:
            search = _recall_check(space, listed, looked, on_rows)
        reach = _stored_reach(space, listed, looked)
    every = len(looked) == space.n
    if recipe.foreign:
        # No bandwidth is stored that a sample could be compared with: all nodes say it.
        if not every and recipe.sigma_rule != "local":
            reach = _every_reach(space, listed, reach)
        check, width = _bandwidth_given(recipe, reach)
    else:
        some = None if every else len(looked)
        check, width = sigma_check(recipe, reach, space.n, some)
    if recipe.method == "eps":
        radius = recipe.weigher.radius or 3.0 * (recipe.sigma or width or 0.0)
        limit = radius**2 if recipe.squared else radius
        lists = list(space.shortlists(looked, space.n, limit))
    return _solved(space, graph, looked, lists, reach, width, check, search, progress)


def _every_reach(space: Space, listed: IndexArray | None, known: Any) -> FloatArray:
    """Return the distances of all nodes that a bandwidth is made from."""
    recipe, nodes = space.recipe, np.arange(space.n)
    if recipe.free or not isinstance(recipe.sigma_rule, str):
        return np.asarray(known)
    if listed is not None:
        return _stored_reach(space, listed, nodes)
    k = min(recipe.k, space.n - 1)
    return np.array([_kth(one, recipe) for one in space.shortlists(nodes, k)])


def _stored(line: IndexArray) -> Shortlist:
    index = line[line >= 0].astype(np.int64)
    return Shortlist(index, np.zeros(len(index)), slice(0, 0), len(index))


def _kth(one: Shortlist, recipe: Recipe) -> float:
    """Return the distance that a bandwidth is made from; inf where there is none."""
    m = min(recipe.k, one.k)
    if m == 0:
        return math.inf
    value = float(one.value[max(m - 1 - (recipe.sigma_rule == "matlab"), 0)])
    return math.sqrt(value) if recipe.squared else value


def _stored_reach(space: Space, listed: IndexArray, looked: IndexArray) -> FloatArray:
    recipe = space.recipe
    if not isinstance(recipe.sigma_rule, str):
        return np.zeros(len(looked))
    reach = np.full(len(looked), np.inf)
    for place, node in enumerate(looked):
        line = listed[node]
        index = line[line >= 0]
        if len(index):
            far = np.sort(_slow.distances(space, int(node), index))[: recipe.k]
            reach[place] = far[max(len(far) - 1 - (recipe.sigma_rule == "matlab"), 0)]
    return reach


def _recall_check(
    space: Space,
    listed: IndexArray,
    looked: IndexArray,
    on_rows: Callable[[int], object],
) -> Check:
    """Check that stored candidates are some; how good they are is information."""
    own = np.arange(len(listed))[:, np.newaxis]
    ordered = np.sort(listed, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    wrong = int((listed == own).any(axis=1).sum() + twice.any(axis=1).sum())
    some = looked
    if len(looked) > _RECALL_NODES:
        some = looked[:: -(-len(looked) // _RECALL_NODES)]
    counts = (listed[some] >= 0).sum(axis=1)
    wanted = np.minimum(np.maximum(counts, space.recipe.width), space.n - 1)
    found = total = told = 0
    for k in np.unique(wanted).tolist():  # all rows are gone through for many at once
        nodes = some[wanted == k]
        for node, best in zip(nodes, space.shortlists(nodes, k), strict=True):
            line = listed[node][listed[node] >= 0].astype(np.int64)
            found += min(k, int(np.isin(line, best.index).sum()))
            total += best.k
            on_rows(1)
            told += 1
    on_rows(len(looked) - told)
    recall = found / total if total else 1.0
    short = space.recipe.exact and recall < 1.0
    text = (
        f"as stored, not a candidate twice or of itself: {wrong} wrong nodes; recall "
        f"{recall:.4f} on {len(some)} nodes"
    )
    figures = {"wrong": wrong, "recall": recall, "nodes": len(some)}
    return Check.of("candidates", not (wrong or short), text, **figures)


def sigma_check(
    recipe: Recipe, reach: FloatArray, n: int, sample: int | None
) -> tuple[Check, float | None]:
    """Compare the bandwidth; return the one to use: derived where all is known."""
    rule, stored = recipe.sigma_rule, recipe.sigma
    if rule is None or stored is None:
        good = rule is None and stored is None
        text = f"kernel {recipe.kernel} has {'none' if rule is None else 'one'}"
        return Check.of("sigma", good, text), stored
    if not isinstance(rule, str):
        good = rule == stored
        text = f"{stored:.9g} is stored, {rule:.9g} was asked for"
        return Check.of("sigma", good, text), rule
    known, middle = _by_rule(rule, reach)
    largest, share = rule == "kth-max", _share(rule)
    figures: dict[str, Any] = {"stored": stored, "derived": middle, "nodes": len(known)}
    if sample is None:
        middle = middle if middle > 0 else 1.0
        good = abs(middle - stored) <= 1e-10 * middle
        text = f"{rule}: {stored:.9g} is stored, {middle:.9g} derived from {n} nodes"
        return Check.of("sigma", good, text, **figures), middle
    if largest:
        good = middle <= stored * (1 + 1e-10)
        text = f"{rule}: {stored:.9g} is stored, at least {middle:.9g} by the sample"
        return Check.of("sigma", good, text, **figures), stored
    if len(known) < 2:
        return Check("sigma", "not checked", "the sample is too small"), stored
    spread = float(np.std(known / share, ddof=1)) / math.sqrt(len(known))
    spread *= math.sqrt(max(0.0, (n - sample) / (n - 1)))
    figures["standard_error"] = spread
    good = abs(middle - stored) <= 4.5 * spread + 1e-10 * stored
    text = (
        f"{rule}: {stored:.9g} is stored, {middle:.6g} +- {1.96 * spread:.2g} (95 %) "
        f"by {len(known)} nodes"
    )
    return Check.of("sigma", good, text, **figures), stored


def _bandwidth_given(recipe: Recipe, reach: FloatArray) -> tuple[Check, float | None]:
    """Return the bandwidth of a graph that stores none: there is nothing to compare."""
    rule = recipe.sigma_rule
    if recipe.free or rule is None:
        return Check("sigma", "not checked", "no weight depends on one"), None
    if not isinstance(rule, str):
        return Check("sigma", "not checked", f"{rule:.9g}, as given"), rule
    known, middle = _by_rule(rule, reach)
    middle = middle if middle > 0 else 1.0
    text = f"{rule}: {middle:.9g} derived from {len(known)} nodes, none is stored"
    figures = {"derived": middle, "nodes": len(known)}
    return Check("sigma", "not checked", text, figures), middle


def _by_rule(rule: str, reach: FloatArray) -> tuple[FloatArray, float]:
    """Return the distances that count, and the bandwidth that they give."""
    known: FloatArray = reach[np.isfinite(reach)]
    if rule == "local":
        known = np.where(np.isfinite(reach) & (reach > 0), reach, 3.0)
    if rule == "kth-max":
        return known, float(known.max(initial=0.0)) / _share(rule)
    return known, float(math.fsum(known)) / _share(rule) / max(1, len(known))


def _share(rule: str) -> int:
    """Return by what distances are divided."""
    return 1 if rule == "kth-mean" else 3


def _solved(
    space: Space,
    graph: Graph,
    looked: IndexArray,
    lists: list[Shortlist],
    reach: FloatArray,
    width: float | None,
    sigma: Check,
    search: Check,
    progress: Stages,
) -> Derived:
    recipe, n = space.recipe, space.n
    own = np.ones(n)
    if recipe.kernel not in _ONE:
        own = np.array([_slow.own_similarity(space, i, None) for i in range(n)])
    low: FloatArray = np.zeros(n)
    high: FloatArray = np.full(n, np.inf)
    if graph.errors is not None:
        low = graph.errors * (1 - recipe.rounding)
        high = graph.errors * (1 + recipe.rounding)
    sides, keys, residual = [], [], 0.0
    best, widths = np.zeros(len(looked)), np.full(n, np.nan)
    with progress("solve", len(looked)) as on_rows:
        for place, (node, one) in enumerate(zip(looked, lists, strict=True)):
            local = width
            if recipe.sigma_rule == "local":
                usable = np.isfinite(reach[place]) and reach[place] > 0
                local = max(reach[place] / 3, 1e-150) if usable else 1.0
                widths[node] = local
            stored = None if graph.errors is None else float(graph.errors[node])
            found, complete = weighed(space, int(node), one, local, stored)
            index, side = ranges(recipe, one, found, complete)
            keys.append(node * n + index)
            sides.append(side)
            if found:
                errors = [way.error for way in found]
                low[node] = min(errors) - 1e-14 * own[node]
                high[node] = max(errors) + 1e-14 * own[node]
                residual = max(residual, *(way.residual for way in found))
                best[place] = min(errors, key=lambda one: abs(one - (stored or 0)))
            on_rows(1)
    key = np.concatenate(keys).astype(np.int64)
    order = np.argsort(key, kind="stable")
    side = np.concatenate(sides)[order].view(np.recarray)
    seen = np.isin(np.arange(n), looked)
    group = space.first[space.origin]
    listed = None
    if graph.candidates is not None:
        row, column = np.nonzero(graph.candidates >= 0)
        listed = np.sort(row * n + graph.candidates[row, column].astype(np.int64))
    given = Given(n, key[order], side, seen, low, high, own, group, listed)
    return Derived(looked, sigma, search, width, given, own, best, residual, widths)
