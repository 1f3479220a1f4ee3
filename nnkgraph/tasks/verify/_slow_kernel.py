"""The slow path of ``verify``: similarities of one node's candidates, by formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.tasks.verify._slow import Space

FAR = 1e-250
"""Where all similarities of a node are below this, they are scaled up."""


def distances(space: Space, node: int, index: IndexArray) -> FloatArray:
    """Return the distances of a node's candidates."""
    value = space.pair_values(np.array([node]), index)[0]
    squared = space.recipe.nearness == "squared-distance"
    found: FloatArray = np.sqrt(value) if squared else value
    return found


def own_similarity(space: Space, node: int, sigma: float | None) -> float:
    """Return K_qq."""
    if space.recipe.kernel == "lle":
        return 2.0
    return float(_similar(space, np.array([node]), np.array([node]), sigma)[0][0, 0])


def local(
    space: Space, node: int, index: IndexArray, sigma: float | None
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return K_SS with its ridge, K_Sq, K_qq, and the factor that K_Sq lacks."""
    recipe, own, scale = space.recipe, own_similarity(space, node, sigma), 1.0
    if recipe.kernel == "lle":
        gram, cross = _directions(space, node, index)
    else:
        gram = _similar(space, index, index, sigma)[0]
        cross, scale = _similar(space, np.array([node]), index, sigma)
        cross = cross[0]
    ridge = 1e-8 if recipe.kernel in {"linear", "polynomial", "lle"} else 0.0
    ridge = getattr(recipe.plugin, "ridge", ridge)
    at = np.diagonal(gram)
    gram = gram + np.diag(np.where(at > 0, ridge * at.max(initial=0.0), 0.0))
    return gram, cross, own, scale


def _similar(
    space: Space, a: IndexArray, b: IndexArray, sigma: float | None
) -> tuple[FloatArray, float]:
    """Return similarities by formula; one node's that all vanish are scaled up."""
    recipe = space.recipe
    if recipe.kernel in {"gaussian", "laplacian"}:
        width = sigma or 1.0
        rate = 0.5 / width**2 if recipe.kernel == "gaussian" else 1.0 / width
        value = rate * space.pair_values(a, b)
        least = value.min(initial=np.inf) if len(a) == 1 else 0.0
        if not (np.isfinite(least) and np.exp(-least) < FAR):
            least = 0.0
        return np.exp(least - value), float(np.exp(-least))
    if recipe.kernel in {"precomputed", "function"}:
        return -space.pair_values(a, b), 1.0
    p, q = space.rows(a), space.rows(b)
    product = np.array([(q * row).sum(axis=1) for row in p]).reshape(len(a), len(b))
    if recipe.kernel == "cosine":
        return 0.5 + 0.5 * product, 1.0
    if recipe.kernel == "polynomial":
        base = recipe.plugin.gamma * product + recipe.plugin.c
        return base**recipe.plugin.degree, 1.0
    return product, 1.0


def _directions(
    space: Space, node: int, index: IndexArray
) -> tuple[FloatArray, FloatArray]:
    moved = space.rows(index) - space.rows(node)
    length = np.sqrt(np.square(moved).sum(axis=1))
    unit = moved / np.where(length > 0, length, 1.0)[:, np.newaxis]
    gram = 0.5 + 0.5 * unit @ unit.T
    np.fill_diagonal(gram, 1.0)
    there = length > 0  # a candidate at the node itself has no direction
    return gram * np.outer(there, there), np.ones(len(index))


def similarity(space: Space, one: int, two: int, sigma: float | None) -> float:
    """Return the similarity of two rows."""
    ends = np.array([one]), np.array([two])
    if space.recipe.kernel == "lle":
        return 1.0
    value, scale = _similar(space, *ends, sigma)
    return float(value[0, 0] * scale)
