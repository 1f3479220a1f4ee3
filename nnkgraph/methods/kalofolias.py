"""Graph learning with logarithms of degrees."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Candidates, FloatArray, Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain, need_features
from nnkgraph.methods._logdegree import allowed_edges, solve, squared

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.kernels import Kernel, Problem
    from nnkgraph.methods import Method
    from nnkgraph.methods._logdegree import Edges, Solution


_NEAR = 0.05
"""A mean degree that is off by this share is near enough."""

_BAD = 1e-4
"""Weights that violate the optimality conditions by more than this are wrong."""

_TRIALS = 40
"""Values of theta that are tried; three are usual."""

_LARGEST = math.log(1e6)
"""How far above the first guess theta may go: there the graph no longer changes."""

_NARROW = 1e-4
"""Where log theta is known this well, the degree jumps over what is wanted."""

_TIED = 1e-9
"""Nodes whose bound is a difference of nearly equal numbers say nothing."""


@dataclass(frozen=True)
class Trial:
    """A theta and what it gives."""

    log_theta: float
    degree: float
    solution: Solution


# C libraries differ in the last digit, from one processor to the next: decimals do not.
_EXACT = decimal.Context(prec=30)


def _exp(x: float) -> float:
    return float(_EXACT.exp(decimal.Decimal(x)))


def _log(x: float) -> float:
    return float(_EXACT.ln(decimal.Decimal(x)))


def first_theta(squares: FloatArray, k: int) -> float:
    """Return the theta that gives k edges a node if all neighborhoods were alike.

    A node alone has k edges for theta between two bounds, which follow from its
    distances; the bounds are averaged over the nodes.

    Parameters
    ----------
    squares : (n, m) array
        Squared distances of the candidates, inf where there is none.
    k : int
        Edges that a node should have.
    """
    ordered = np.sort(squares, axis=1)
    m = ordered.shape[1]
    total = ordered[:, :k].sum(axis=1)
    lower = _mean_bound(ordered[:, k], total, k) if k < m else None
    upper = _mean_bound(ordered[:, k - 1], total, k) if k <= m else None
    if lower and upper:
        return math.sqrt(lower * upper)
    if lower or upper:
        return 1.1 * lower if lower else (upper or 1.0)
    # Ties everywhere: something of the right size has to do.
    there = squares[(squares > 0) & np.isfinite(squares)]
    return 1.0 / float(np.median(there)) if len(there) else 1.0


def _mean_bound(edge: FloatArray, total: FloatArray, k: int) -> float | None:
    """Return the mean bound, or None where no node has one."""
    known = np.isfinite(edge) & (edge > 0)
    edge, room = edge[known], k - total[known] / edge[known]
    clear = room > _TIED * k
    bound = 1.0 / (edge[clear] * np.sqrt(room[clear]))
    return float(bound.mean()) if len(bound) else None


def search(
    edges: Edges,
    squares: FloatArray,
    *,
    nodes: int,
    degree: float,
    theta: float,
    on_step: Callable[[int], object],
) -> tuple[Trial, int]:
    """Change theta until the mean degree is near the wanted one.

    Parameters
    ----------
    edges : Edges
        The allowed edges.
    squares : (e,) array
        Their squared distances.
    nodes : int
        The nodes that the mean is over.
    degree : float
        The mean degree that is wanted.
    theta : float
        Where to begin.
    on_step : callable
        Hears of every Newton step.

    Returns
    -------
    best : Trial
        The one that came nearest.
    steps : int
        Newton steps of all trials.
    """
    goal = min(degree, 2.0 * len(squares) / nodes)
    near = max(_NEAR * goal, 1.0 / nodes)
    begin = at = _log(theta)
    best = last = _tried(edges, squares, nodes, at, on_step)
    dense: Trial | None = None
    sparse: Trial | None = None
    steps = last.solution.steps
    for count in range(1, _TRIALS):
        if abs(last.degree - goal) <= near or last.solution.worst > _BAD:
            break
        dense, sparse = (last, sparse) if last.degree > goal else (dense, last)
        if dense is None or sparse is None:
            at += _leap(last.degree / goal, count)
        else:
            at = _between(dense, sparse, goal, count)
            if abs(sparse.log_theta - dense.log_theta) < _NARROW:
                break
        if at > begin + _LARGEST:
            break
        last = _tried(edges, squares, nodes, at, on_step)
        steps += last.solution.steps
        best = min(best, last, key=lambda trial: abs(trial.degree - goal))
    return best, steps


def _tried(
    edges: Edges,
    squares: FloatArray,
    nodes: int,
    log_theta: float,
    on_step: Callable[[int], object],
) -> Trial:
    solution = solve(edges, _exp(log_theta) * squares, on_step)
    degree = 2.0 * int(np.count_nonzero(solution.weights)) / nodes
    return Trial(log_theta, degree, solution)


def _leap(ratio: float, count: int) -> float:
    """Return a change of log theta; degrees fall about like a root of theta."""
    step = 2.0 * _log(ratio)
    return math.copysign(max(abs(step), 0.1 * 2.0**count), step)


def _between(dense: Trial, sparse: Trial, goal: float, count: int) -> float:
    """Return a log theta between two, by a secant of logarithms."""
    share = _log(dense.degree / goal) / _log(dense.degree / sparse.degree)
    if count % 3 == 0:
        share = 0.5  # a secant alone may come nearer from one side only, for ever
    share = min(0.95, max(0.05, share))
    return dense.log_theta + share * (sparse.log_theta - dense.log_theta)


def shortfall(best: Trial, k: int, n: int, most: float) -> str:
    """Say what was not reached, or nothing.

    Parameters
    ----------
    best : Trial
        What was.
    k : int
        The mean degree that was wanted; off by a tenth or by one edge is near enough.
    n : int
        Number of nodes.
    most : float
        The mean degree with all allowed edges.
    """
    if best.solution.worst > _BAD:
        return (
            "kalofolias did not converge: the optimality conditions are violated by "
            f"{best.solution.worst:.1e}, more than {_BAD:g}: remove rows that are far "
            "from all others, or scale the features"
        )
    if abs(best.degree - k) <= max(0.1 * k, 2.0 / n):
        return ""
    if most < 0.9 * k:
        why = f"the candidates allow no more than {most:.4g}: search more candidates"
    elif best.degree > k:
        why = "no theta gives fewer edges: use a larger k"
    else:
        why = "with equal distances many edges come and go at once: use another k"
    return f"kalofolias reached {best.degree:.4g} edges a node instead of {k}: {why}"


@dataclass(frozen=True)
class Kalofolias(Plain):
    """Smooth graph with k edges a node on average, learned from 2k candidates each."""

    local: ClassVar[bool] = False

    def check(self, kernel: Kernel, /) -> None:
        """Refuse kernels without Euclidean distances."""
        need_features("kalofolias", kernel)
        if kernel.nearness != "squared-distance":
            what = "Euclidean distances: use kernel gaussian or cosine"
            raise ParameterError(f"method 'kalofolias' needs {what}")

    def width(self, k: int, /) -> int:
        """Return 2k."""
        return 2 * k

    def weigh(self, problem: Problem, /) -> Neighborhoods:
        """Return the weights w of min 2 w . z - sum(log degree) + |w|^2.

        z is theta times the squared distance; theta is the one for k edges a node.
        """
        n, m = problem.index.shape
        allowed = allowed_edges(problem.index, problem.distance)
        if not len(allowed.length):
            return Neighborhoods(np.zeros((n, m)), facts={"mean_degree": 0.0})
        k = min(problem.k or max(1, m // 2), n - 1)
        unit = allowed.unit
        best, steps = search(
            allowed.edges,
            squared(allowed.length, unit),
            nodes=n,
            degree=k,
            theta=first_theta(squared(problem.distance, unit), k),
            on_step=problem.on_step,
        )
        facts = {
            "certificate": best.solution.certificate,
            "iterations": steps,
            "mean_degree": best.degree,
            "theta": _exp(min(709.0, best.log_theta - unit * _log(4.0))),
        }
        return Neighborhoods(
            allowed.spread(best.solution.weights, (n, m)),
            facts=facts,
            failure=shortfall(best, k, n, 2 * len(allowed.length) / n),
        )

    def remarks(self, candidates: Candidates, found: Neighborhoods, /) -> list[str]:
        """Say how many nodes have nothing but weights that are dropped by default."""
        top = found.weights.max(axis=1, initial=0.0)
        there = candidates.index >= 0
        np.maximum.at(top, candidates.index[there], found.weights[there])
        faint = int(((top > 0) & (top < 1e-8)).sum())
        remark = (
            f"kalofolias: {faint} of {len(top)} nodes are so far from all others that "
            "their weights are below 1e-8: use `min_weight=0` to keep their edges"
        )
        return [remark] if faint else []


plugin: type[Method] = Kalofolias
