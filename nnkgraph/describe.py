"""What a graph file says about its graph: everything that ``info`` shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.report import facts

if TYPE_CHECKING:
    from nnkgraph.data import Graph


def description(graph: Graph) -> dict[str, Any]:
    """Describe a graph: everything ``info`` shows."""
    degree = np.diff(graph.adjacency.indptr)
    weight = graph.adjacency.data
    return {
        **facts(graph),
        "degree": _spread(degree),
        "support": _spread(support(graph)),
        "weight": _spread(weight),
        "error": _spread(graph.errors) if graph.errors is not None else {},
        "ids": "yes" if graph.ids else "no",
        "candidates": "stored" if graph.candidates is not None else "not stored",
        "provenance": {
            name: value
            for name, value in graph.provenance.items()
            if name != "support_sizes"
        },
    }


def _spread(values: Any) -> dict[str, float]:
    """Return the extremes, the quartiles and the mean."""
    if not len(values):
        return {}
    low, first, middle, third, high = np.percentile(values, [0, 25, 50, 75, 100])
    return {
        "min": float(low),
        "q1": float(first),
        "median": float(middle),
        "q3": float(third),
        "max": float(high),
        "mean": math.fsum(values) / len(values),
    }


def support(graph: Graph) -> Any:
    """Return how many candidates nodes kept, as the build counted them."""
    counts = graph.provenance.get("support_sizes")
    # A graph of another program may have anything there.
    if not isinstance(counts, list) or not all(type(one) is int for one in counts):
        return np.empty(0)
    if min(counts, default=0) < 0 or sum(counts) > graph.nodes:
        return np.empty(0)
    return np.repeat(np.arange(len(counts)), counts)
