"""Laplacian eigenmaps: coordinates in which joined nodes are close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, ParameterError
from nnkgraph.stages import Stages
from nnkgraph.tasks.embed._solve import SOLVERS, smallest
from nnkgraph.tasks.laplacian import block, check_undirected, pieces, scaled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, Graph, IndexArray

COMPONENTS = ("largest", "each")

_TIED = 1 - 1e-6
"""Entries of at least this share of the largest count as equally large."""


@dataclass(frozen=True)
class Embedding:
    """Coordinates of the nodes of a graph."""

    coordinates: FloatArray
    """(n, p); NaN where a node was left out, 0 where a component is too small."""

    eigenvalues: FloatArray
    """(components embedded, p), smallest first; NaN where a component is too small."""

    component: NDArray[np.int64]
    """(n,) the row of the eigenvalues that a node belongs to, -1 where left out."""

    facts: dict[str, Any]
    """Counts and the largest residual; plain JSON values."""


def embed(
    graph: Graph,
    *,
    dimensions: int = 2,
    component: str = "largest",
    solver: str = "auto",
    name: str = "graph",
    stages: Stages | None = None,
) -> Embedding:
    """Solve L f = lambda D f and keep the smallest eigenvalues but the zero.

    Vectors have f^T D f = 1, and their largest entry in size is positive.

    Parameters
    ----------
    component : str
        ``largest`` leaves all other nodes out; ``each`` embeds every component on its
        own, so that coordinates of different components must not be compared.
    solver : str
        ``dense``, ``factor`` (shift and invert), ``lanczos`` (products only), or
        ``auto``: by the size of a component and of its factor.
    """
    _check(dimensions, component, solver)
    check_undirected(graph, name)
    stages = stages or Stages()
    s, root = scaled(graph.adjacency)
    parts = sorted(pieces(s), key=len, reverse=True)
    taken = parts[:1] if component == "largest" else parts
    _check_size(len(parts[0]), dimensions, name, alone=component == "largest")
    coordinates = np.full((graph.nodes, dimensions), np.nan)
    eigenvalues = np.full((len(taken), dimensions), np.nan)
    place = np.full(graph.nodes, -1)
    worst = 0.0
    with stages("solve", sum(map(len, taken))) as on_rows, _one_thread():
        for at, part in enumerate(taken):
            place[part] = at
            coordinates[part] = 0.0
            p = min(dimensions, len(part) - 1)
            if p:
                inner = s if len(part) == graph.nodes else block(s, part, part)
                found = smallest(inner, root[part], p, solver)
                eigenvalues[at, :p] = found[0]
                worst = max(worst, found[2])
                coordinates[part, :p] = _signed(found[1] / root[part, np.newaxis])
            on_rows(len(part))
    facts = {
        "nodes": graph.nodes,
        "components": len(parts),
        "embedded_components": len(taken),
        "embedded_nodes": int((place >= 0).sum()),
        "padded_nodes": sum(len(one) for one in taken if len(one) <= dimensions),
        "dimensions": dimensions,
        "eigenvalues": [float(one) for one in eigenvalues[0] if one == one],  # noqa: PLR0124
        "residual": worst,
    }
    return Embedding(coordinates, eigenvalues, place, facts)


def _check(dimensions: int, component: str, solver: str) -> None:
    if dimensions < 1:
        raise ParameterError(f"{dimensions} dimensions: at least 1 is needed")
    for value, among in ((component, COMPONENTS), (solver, SOLVERS)):
        if value not in among:
            raise ParameterError(f"{value!r} is not one of {', '.join(among)}")


def _check_size(largest: int, dimensions: int, name: str, *, alone: bool) -> None:
    if largest < 2:
        raise InputError(f"{name}: the graph has no edge, and no coordinates follow")
    if alone and dimensions >= largest:
        raise InputError(
            f"{name}: the largest component has {largest} nodes, and at most "
            f"{largest - 1} coordinates; {dimensions} were asked for"
        )


def _one_thread() -> Any:
    """Keep sums in one order, so that equal calls give equal bytes."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


def _signed(vectors: FloatArray) -> FloatArray:
    """Turn every vector so that its largest entry in size, the first, is positive."""
    size = np.abs(vectors)
    first: IndexArray = (size >= _TIED * size.max(axis=0)).argmax(axis=0)
    return vectors * np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1, 1)
