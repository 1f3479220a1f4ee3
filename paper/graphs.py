"""The graphs that are compared, by short names."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnkgraph.build.graph import build_graph
from nnkgraph.data import Graph


@dataclass(frozen=True)
class Kind:
    """A way to build a graph."""

    name: str
    method: str
    k: int = 30
    rule: str | None = None
    min_degree: int = 0
    matched: bool = False
    """Whether k is such that there are as many edges as NNK has with this k."""

    @property
    def style(self) -> str:
        """Return whose color it has in figures."""
        return "mutual" if self.rule == "mutual" else self.method


def published(k: int = 30) -> tuple[Kind, ...]:
    """Return the graphs of the paper, all with one k."""
    order = ("knn", "lle", "aew", "kalofolias", "mp", "omp", "nnk")
    return tuple(Kind(one, one, k) for one in order)


def fair() -> tuple[Kind, ...]:
    """Return what has to stand beside: kNN that is mutual, tuned, or as sparse."""
    return (
        Kind("knn mutual", "knn", 30, "mutual"),
        Kind("knn k=5", "knn", 5),
        Kind("knn k=10", "knn", 10),
        Kind("knn mutual k=5", "knn", 5, "mutual"),
        Kind("knn mutual k=10", "knn", 10, "mutual"),
        Kind("knn as sparse", "knn", 30, matched=True),
        Kind("knn mutual as sparse", "knn", 30, "mutual", matched=True),
        Kind("nnk min-degree 3", "nnk", 30, min_degree=3),
    )


def build(kind: Kind, x: NDArray[Any], seed: int = 0) -> tuple[Graph, float]:
    """Return a graph, and the seconds that it took after everything was compiled."""
    _compiled(kind.method)
    k = min(kind.k, len(x) - 1)
    if kind.matched:
        k = _matching(kind, x, build_graph(x, k=k, preset="paper").n_edges)
    start = time.perf_counter()
    graph = build_graph(
        x,
        k=k,
        method=kind.method,
        symmetrize=kind.rule,
        min_degree=kind.min_degree,
        preset="paper",
        seed=seed,
    )
    return graph, time.perf_counter() - start


def _matching(kind: Kind, x: NDArray[Any], edges: int) -> int:
    """Return the k whose kNN graph has most nearly so many edges."""
    low, high = 1, min(2 * kind.k, len(x) - 1)

    def count(k: int) -> int:
        return build_graph(
            x, k=k, method=kind.method, symmetrize=kind.rule, preset="paper"
        ).n_edges

    while low < high:
        middle = (low + high) // 2
        if count(middle) < edges:
            low = middle + 1
        else:
            high = middle
    return min((max(1, low - 1), low), key=lambda k: abs(count(k) - edges))


@cache
def _compiled(method: str) -> None:
    """Have a method compiled before its time is taken."""
    x = np.random.default_rng(0).random((40, 3))
    build_graph(x, k=5, method=method)
