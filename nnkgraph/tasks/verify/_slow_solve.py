"""The slow path of ``verify``: the weights of one node, by textbook methods.

``scipy.optimize.nnls`` solves, numpy proves; where the proof is not good enough, a
plain dense active set solves again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from nnkgraph.tasks.verify._slow_kernel import distances, local, own_similarity

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.tasks.verify._slow import Space

PROOF = 1e-10
"""Optimality residual up to which a solution is taken as it is."""

_LEAVES = 16


@dataclass(frozen=True)
class Solution:
    """The weights of a node's candidates."""

    index: IndexArray
    weights: FloatArray
    slack: FloatArray
    """What rounding of the similarities alone may change in each weight."""

    error: float
    own: float
    residual: float
    """Violation of the optimality conditions, relative; 0 where there are none."""


def solutions(
    space: Space, node: int, index: IndexArray, sigma: float | None
) -> list[Solution]:
    """Weigh candidates; several answers only where a pursuit meets a tie."""
    recipe, m = space.recipe, len(index)
    copies = space.first[space.origin[index]]
    kept = np.ones(m, bool)
    if recipe.duplicates == "keep" and recipe.has_error:
        kept[:] = False
        kept[np.unique(copies, return_index=True)[1]] = True
        twin = (copies == space.first[space.origin[node]]) & kept
        if twin.any():
            own = own_similarity(space, node, sigma)
            return [Solution(index, twin * 1.0, np.zeros(m), 0.0, own, 0.0)]
    gram, cross, own, scale = local(space, node, index[kept], sigma)
    if recipe.method in {"knn", "eps"}:
        plain = np.maximum(cross * scale, 0.0)
        return [Solution(index, plain, 1e-13 * plain, 0.0, own, 0.0)]
    if recipe.method == "kstar":
        weights = _kstar(recipe.weigher.lc * distances(space, node, index))
        return [Solution(index, weights, np.full(m, 1e-12), 0.0, own, 0.0)]
    if recipe.method == "lle":
        return [_lle(space, node, index)]
    wanted = cross
    if recipe.method == "l1":
        # where all similarities vanish, no penalty lets any of them in
        far = scale < 1.0 and recipe.weigher.eta > 0
        wanted = np.full(m, -1.0) if far else cross - recipe.weigher.eta
    found = []
    ways = [nonnegative(gram, wanted)] if recipe.method != "mp" else []
    for theta, residual in ways or _pursuits(gram, cross):
        slack = slack_of(gram, wanted, theta)
        gain = cross @ theta - 0.5 * theta @ gram @ theta
        weights, loose = np.zeros(m), np.zeros(m)
        weights[kept], loose[kept] = theta * scale, slack * scale
        error = max(0.0, float(0.5 * own - scale**2 * gain))
        found.append(Solution(index, weights, loose, error, own, residual))
    return found


def nonnegative(gram: FloatArray, cross: FloatArray) -> tuple[FloatArray, float]:
    """Minimize theta' K theta / 2 - b' theta over theta >= 0; return its violation."""
    there = np.flatnonzero(np.diagonal(gram) > 0)
    theta = np.zeros(len(cross))
    if not len(there) or cross[there].max() <= 0:
        return theta, 0.0
    unit = 1.0 / np.sqrt(np.diagonal(gram)[there])
    scaled = gram[np.ix_(there, there)] * np.outer(unit, unit)
    b = cross[there] * unit
    b = b / np.abs(b).max()
    best = _by_nnls(scaled, b)
    if best is None or violation(scaled, b, best) > PROOF:
        again = _active_set(scaled, b)
        if best is None or violation(scaled, b, again) < violation(scaled, b, best):
            best = again
    theta[there] = best * unit * np.abs(cross[there] * unit).max()
    return theta, violation(scaled, b, best)


def violation(gram: FloatArray, b: FloatArray, theta: FloatArray) -> float:
    """Return the largest residual that the optimum does not have."""
    residual = b - gram @ theta
    return float(np.where(theta > 0, np.abs(residual), residual).max(initial=0.0))


def _by_nnls(gram: FloatArray, b: FloatArray) -> FloatArray | None:
    try:
        lower = np.linalg.cholesky(gram)
        rough = nnls(lower.T, np.linalg.solve(lower, b))[0]
        chosen = np.flatnonzero(rough > 0)
        exact = np.linalg.solve(gram[np.ix_(chosen, chosen)], b[chosen])
    except (np.linalg.LinAlgError, RuntimeError):
        return None
    theta = np.zeros(len(b))
    theta[chosen] = np.maximum(exact, 0.0)
    return theta


def _active_set(gram: FloatArray, b: FloatArray) -> FloatArray:
    """Solve by Lawson and Hanson's rule, with a fresh dense solve at every step."""
    theta, chosen = np.zeros(len(b)), np.zeros(len(b), bool)
    barred = np.zeros(len(b), bool)
    for _ in range(20 * len(b)):
        residual = np.where(chosen | barred, -np.inf, b - gram @ theta)
        j = int(residual.argmax())
        if residual[j] <= 1e-14:
            break
        chosen[j] = True
        while chosen.any():
            at = np.flatnonzero(chosen)
            goal = np.zeros(len(b))
            goal[at] = np.linalg.lstsq(gram[np.ix_(at, at)], b[at], rcond=1e-15)[0]
            bad = at[goal[at] <= 0]
            if not len(bad):
                theta = goal
                break
            step = (theta[bad] / (theta[bad] - goal[bad])).min()
            theta = theta + step * (goal - theta)
            leaving = bad[np.argmin(theta[bad])]
            barred[leaving] = leaving == j  # it adds nothing: do not come back to it
            theta[leaving], chosen[leaving] = 0.0, False
        else:
            theta[:] = 0.0
        barred[:] = barred & (np.arange(len(b)) == j)
    return theta


def slack_of(gram: FloatArray, cross: FloatArray, theta: FloatArray) -> FloatArray:
    """Bound what similarities that are wrong in their last digits do to weights.

    It is 0 for atoms that are clearly not wanted; others may enter by rounding.
    """
    chosen = np.flatnonzero(theta > 0)
    slack = np.zeros(len(theta))
    if not len(chosen):
        return slack
    block = gram[np.ix_(chosen, chosen)]
    wrong = 4e-15 * (np.abs(block) @ theta[chosen] + np.abs(cross[chosen]))
    slack[chosen] = np.abs(np.linalg.pinv(block)) @ wrong
    near = cross - gram @ theta > -1e-13 * np.abs(cross).max()
    slack[(theta <= 0) & near] = slack.max()
    return slack


def _pursuits(gram: FloatArray, cross: FloatArray) -> list[tuple[FloatArray, float]]:
    """Pursue as Algorithm 2 says; where atoms tie up to rounding, each in turn."""
    there = np.diagonal(gram) > 0
    size = np.where(there, np.diagonal(gram), 1.0)
    unit = np.where(there, 1.0 / np.sqrt(size), 0.0)
    scale = float(np.abs(cross * unit).max(initial=0.0))
    done: list[tuple[FloatArray, float]] = []
    open_ = [(np.zeros(len(cross)), cross.copy(), 0)]
    while open_ and len(done) < _LEAVES:
        theta, residual, steps = open_.pop()
        score = np.where(there, residual * unit, -np.inf)
        best = float(score.max(initial=-np.inf))
        if steps == len(cross) or best <= 1e-15 * scale:
            done.append((theta, 0.0))
            continue
        ways = np.flatnonzero(score >= best - 1e-13 * scale)
        ways = ways[np.lexsort((ways, -score[ways]))]
        for j in ways[:4][::-1]:
            move = residual[j] / size[j]
            then = theta.copy()
            then[j] += move
            open_.append((then, residual - move * gram[:, j], steps + 1))
    return done


def _kstar(beta: FloatArray) -> FloatArray:
    order = np.sort(beta) - beta.min(initial=0.0 if not len(beta) else np.inf)
    level = 1.0
    for k in range(1, len(order) + 1):
        if level <= order[k - 1]:
            break
        total, squares = order[:k].sum(), np.square(order[:k]).sum()
        level = (total + np.sqrt(max(0.0, k + total**2 - k * squares))) / k
    weights = np.maximum(level - (beta - beta.min(initial=np.inf)), 0.0)
    total = float(weights.sum())
    shares: FloatArray = weights / (total if total > 0 else 1.0)
    return shares


def _lle(space: Space, node: int, index: IndexArray) -> Solution:
    moved = space.rows(index) - space.rows(node)
    gram = moved @ moved.T
    trace, m = float(np.trace(gram)), len(index)
    if trace <= 0:
        return Solution(index, np.full(m, 1.0 / max(1, m)), np.zeros(m), 0.0, 1.0, 0.0)
    gram = gram / trace + space.recipe.weigher.ridge * np.eye(m)
    theta, residual = nonnegative(gram, np.ones(m))
    slack = slack_of(gram, np.ones(m), theta)
    return Solution(index, theta / theta.sum(), slack / theta.sum(), 0.0, 1.0, residual)
