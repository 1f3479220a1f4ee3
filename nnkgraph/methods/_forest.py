"""Newton steps of log-degree graph learning: conjugate gradients with a forest.

The matrix is diag(own) + sum of stiffness_e (x_i + x_j)^2 over the edges with a weight.
Among nodes that are far from everything the sums x_i + x_j are nearly fixed, and what
is left to decide is smaller by many orders of magnitude: plain conjugate gradients
fail there. But such nodes have few edges. A forest of the stiffest edges is solved
exactly, without differences of nearly equal numbers, and corrects the other steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnkgraph.compiled import compiled

_STIFF = 10.0
"""Edges whose stiffness * price^2 is above this at some end are in the forest."""

_STEPS = 300
"""Steps of conjugate gradients after which it ends anyway; ten are usual."""


@compiled
def _root(head: Any, i: int) -> int:
    while head[i] != i:
        head[i] = head[head[i]]
        i = head[i]
    return i


@compiled
def _grow(one: Any, two: Any, stiff: Any, chosen: Any, head: Any) -> None:
    """Choose edges that close no circle, in the order they are given in."""
    for e in stiff:
        a, b = _root(head, one[e]), _root(head, two[e])
        if a != b:
            head[b] = a
            chosen[e] = True


@compiled
def _peel(
    one: Any, two: Any, chosen: Any, order: Any, parent: Any, count: Any, edge: Any
) -> int:
    """Take leaves off the forest: set their order, parents and edges to them."""
    for e in range(one.shape[0]):
        if chosen[e]:
            for i in (one[e], two[e]):
                count[i] += 1
                edge[i] ^= e  # what is left when all other edges are gone
    found = 0
    for start in range(count.shape[0]):
        i = start
        while count[i] == 1:
            j = one[edge[i]] + two[edge[i]] - i
            order[found], parent[i] = i, j
            found += 1
            count[i] = 0
            count[j] -= 1
            edge[j] ^= edge[i]
            if j > start:
                break  # its own turn comes
            i = j
    return found


@compiled
def _solve_forest(forest: Any, pivot: Any, b: Any, x: Any, sums: Any) -> None:
    """Solve the system of the forest; ``sums`` are x at a node and at its parent.

    ``pivot`` is what holds a node and all below it: sums of positive numbers only.
    """
    order, parent, gain = forest
    for i in range(b.shape[0]):
        x[i] = b[i]
    for i in order:
        x[parent[i]] -= gain[i] / (gain[i] + pivot[i]) * x[i]
    for i in range(b.shape[0]):
        if parent[i] < 0:
            x[i] /= pivot[i]
    for place in range(order.shape[0] - 1, -1, -1):
        i = order[place]
        above, own, both = x[parent[i]], x[i], gain[i] + pivot[i]
        x[i] = (own - gain[i] * above) / both
        sums[i] = (own + pivot[i] * above) / both


@compiled
def _product(edges: Any, forest: Any, own: Any, x: Any, sums: Any, out: Any) -> None:
    """Multiply x by the matrix, with its sums along the edges of the forest."""
    for i in range(x.shape[0]):
        out[i] = own[i] * x[i]
    one, two, stiffness = edges
    for e in range(one.shape[0]):
        force = stiffness[e] * (x[one[e]] + x[two[e]])
        out[one[e]] += force
        out[two[e]] += force
    order, parent, gain = forest
    for i in order:
        force = gain[i] * sums[i]
        out[i] += force
        out[parent[i]] += force


@compiled
def _pivots(edges: Any, forest: Any, own: Any) -> Any:
    """Return the pivots of the forest; other edges count at their ends only."""
    one, two, stiffness = edges
    order, parent, gain = forest
    pivot = own.copy()
    for e in range(one.shape[0]):
        pivot[one[e]] += stiffness[e]
        pivot[two[e]] += stiffness[e]
    for i in order:
        pivot[parent[i]] += gain[i] * pivot[i] / (gain[i] + pivot[i])
    return pivot


@compiled
def _inner(a: Any, b: Any) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled
def _conjugate(
    edges: Any, forest: Any, own: Any, left: Any, accuracy: float, most: int
) -> Any:
    """Solve by conjugate gradients.

    ``edges`` are the ends and stiffness of those outside the forest, ``forest`` the
    order of its leaves, their parents and the stiffness of the edge to the parent.
    """
    n = own.shape[0]
    pivot = _pivots(edges, forest, own)
    x, along, sums, product = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    solved, solved_sums = np.zeros(n), np.zeros(n)
    _solve_forest(forest, pivot, left, solved, solved_sums)
    size, before = _inner(left, solved), np.inf
    goal = accuracy**2 * size
    for _ in range(most):
        for i in range(n):
            along[i] = solved[i] + size / before * along[i]
            sums[i] = solved_sums[i] + size / before * sums[i]
        _product(edges, forest, own, along, sums, product)
        length = size / _inner(along, product)
        for i in range(n):
            x[i] += length * along[i]
            left[i] -= length * product[i]
        _solve_forest(forest, pivot, left, solved, solved_sums)
        before, size = size, _inner(left, solved)
        if not size > goal:
            break
    return x


def newton_step(
    one: Any, two: Any, stiffness: Any, price: Any, left: Any, accuracy: float
) -> Any:
    """Solve (diag(1 / price^2) + edges) x = left.

    Parameters
    ----------
    one, two : (e,) arrays of int
        Ends of the edges with a weight.
    stiffness : (e,) array
        What each of them adds to the matrix at all four places of its ends.
    price, left : (n,) arrays
        The prices, and the right-hand side, which is lost.
    accuracy : float
        How far the residual goes down, in the norm of the preconditioner.

    Returns
    -------
    (n,) array
    """
    n = len(price)
    a, b = price[one], price[two]
    stiff = np.flatnonzero(stiffness * np.maximum(a, b) ** 2 > _STIFF)
    first = np.argsort(-(stiffness * a * b)[stiff], kind="stable")
    chosen = np.zeros(len(one), np.bool_)
    _grow(one, two, stiff[first], chosen, np.arange(n))
    order, parent = np.empty(n, np.int64), np.full(n, -1)
    count, edge = np.zeros(n, np.int64), np.zeros(n, np.int64)
    order = order[: _peel(one, two, chosen, order, parent, count, edge)]
    gain = np.zeros(n)
    gain[order] = stiffness[edge[order]]
    others = one[~chosen], two[~chosen], stiffness[~chosen]
    own = 1.0 / price**2
    return _conjugate(others, (order, parent, gain), own, left, accuracy, _STEPS)
