"""The ways a node may be weighed, and what they leave open for each of its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.tasks.verify._agree import Side
from nnkgraph.tasks.verify._slow_kernel import own_similarity
from nnkgraph.tasks.verify._slow_solve import solutions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.tasks.verify._recipe import Recipe
    from nnkgraph.tasks.verify._slow import Shortlist, Space
    from nnkgraph.tasks.verify._slow_solve import Solution

_SAME = 1e-9
"""Errors J this close, in units of K_qq, may come from the same candidates."""

_UNIT = {"gaussian", "laplacian", "cosine"}


def own_similarities(space: Space) -> FloatArray:
    """Return K_qq of all nodes."""
    kernel = space.recipe.kernel
    if kernel in _UNIT:
        return np.ones(space.n)
    return np.array([own_similarity(space, i, None) for i in range(space.n)])


def weighed(
    space: Space,
    node: int,
    one: Shortlist,
    sigma: float | None,
    stored: float | None,
) -> tuple[list[Solution], bool]:
    """Return the ways to weigh a node that agree with its stored error, or all.

    There is more than one only where rounding decides which candidates are the k best.
    The second value is whether these are all there can be.
    """
    recipe = space.recipe
    if not recipe.solvable:
        return [], False
    if recipe.method == "eps":
        return solutions(space, node, one.index, sigma), True
    found: list[Solution] = []
    for index in one.choices():
        found += solutions(space, node, index, sigma)
    if len(found) == 1 or not recipe.has_error or stored is None:
        return found, not one.unclear
    room = max(_SAME, 10.0 ** (1 - recipe.digits) if recipe.digits else 0.0)
    alike = [way for way in found if abs(way.error - stored) <= room * way.own]
    return alike or found, not one.unclear or bool(alike)


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
    sure = np.isin(index, clear)
    if ways and complete:
        sure = count == len(ways)
    if recipe.method == "eps":
        sure = np.isin(index, clear)
        low = np.where(sure, low, 0.0)
    if not (ways and complete):
        low, high = np.zeros(m), np.full(m, np.inf)
    heavy, maybe = _heavy(low, high, recipe.min_degree)
    return index, Side(low, high, slack, sure, np.ones(m, bool), heavy, maybe)


def _heavy(
    low: FloatArray, high: FloatArray, count: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which weights are, and which may be, among a node's heaviest."""
    if count == 0:
        return np.zeros(len(low), bool), np.zeros(len(low), bool)
    rivals = (high[np.newaxis] >= low[:, np.newaxis] * (1 - 1e-9)).sum(axis=1) - 1
    better = (low[np.newaxis] > high[:, np.newaxis] * (1 + 1e-9)).sum(axis=1)
    return (rivals < count) & (low > 0), (better < count) & (high > 0)


def stacked(keys: list[IndexArray], sides: list[Side]) -> tuple[IndexArray, Side]:
    """Return all directed weights in the order of their numbers."""
    key = np.concatenate([*keys, np.empty(0, np.int64)]).astype(np.int64)
    order = np.argsort(key, kind="stable")
    names = ("low", "high", "slack", "sure", "maybe", "heavy", "maybe_heavy")
    columns = (
        np.concatenate([getattr(side, name) for side in sides])[order] for name in names
    )
    return key[order], Side(*columns)
