"""Graph learning with logarithms of degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nnkgraph.data import Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.methods import Plain, need_features
from nnkgraph.methods._edges import allowed_edges, squared
from nnkgraph.methods._meandegree import first_theta, search, shortfall

if TYPE_CHECKING:
    from nnkgraph.data import Candidates
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.problem import Problem


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
            "theta": math.exp(min(709.0, best.log_theta - unit * math.log(4.0))),
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
            "their weights are below 1e-8: use --min-weight 0 to keep their edges"
        )
        return [remark] if faint else []


plugin: type[Method] = Kalofolias
