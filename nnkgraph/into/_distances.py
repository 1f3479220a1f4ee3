"""How long the edges of a graph are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import registry
from nnkgraph.errors import ParameterError
from nnkgraph.pairs import cross_values
from nnkgraph.scaling import scaled

if TYPE_CHECKING:
    from nnkgraph.data import Features, FloatArray
    from nnkgraph.kernels import Kernel

_BLOCK_VALUES = 1 << 22


def check_distances(kernel: Kernel) -> None:
    """Refuse a kernel that knows similarities only."""
    if kernel.base == "gram":
        raise ParameterError(
            "a matrix of similarities has no distances, which an AnnData file needs: "
            "write the graph with -o"
        )


def edge_distances(
    features: Features, edges: Any, kernel: Kernel, scale: str
) -> tuple[FloatArray, str]:
    """Return the length of every entry of an adjacency matrix, and its metric.

    The metric is what candidates are searched by: ``cosine`` and ``manhattan`` for the
    kernels of these distances, ``euclidean`` for all others.
    """
    check_distances(kernel)
    x = features.x if scale == "none" else scaled(features.x, scale, features.name)
    x = kernel.prepare(x, features.name)
    city = kernel.nearness == "l1-distance"
    base = "l1-distance" if city else "squared-distance"
    values = np.empty(edges.nnz)
    most = max(1, _BLOCK_VALUES // x.shape[1])
    for start in range(0, edges.nnz, most):
        stop = min(start + most, edges.nnz)
        rows = np.searchsorted(edges.indptr, np.arange(start, stop), side="right") - 1
        ends = edges.indices[start:stop, np.newaxis]
        values[start:stop] = cross_values(x, x[rows], ends, base)[:, 0]
    if city:
        return values, "manhattan"
    if registry.spec(kernel).partition(":")[0] == "cosine":
        return values / 2, "cosine"  # of rows of unit length
    return np.sqrt(values), "euclidean"
