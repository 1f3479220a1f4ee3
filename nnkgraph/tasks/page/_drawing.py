"""The drawing of a graph: where nodes are, and everything about them in few bytes."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.tasks.embed import embed
from nnkgraph.tasks.laplacian import pieces
from nnkgraph.tasks.plot._places import for_nodes, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph, IndexArray
    from nnkgraph.labels import Labels
    from nnkgraph.stages import Stages

MOST_NODES = 20_000
"""Graphs with more nodes are described, but not drawn."""

_COLORED = 11
"""Components that have a color of their own."""

_VECTORS = 8
"""Eigenvectors that the two axes are chosen from."""

_FEW, _OWN = 200, 0.2
"""From so many nodes on, this share of the second axis is not said by the first."""

_GAP = 0.12
"""Room between components, as a share of their size."""


def drawing(
    graph: Graph,
    name: str,
    labels: Labels | None,
    coordinates: Features | None,
    stages: Stages | None,
) -> dict[str, Any]:
    """Return ``graph``, what is drawn, or None, and its ``caption``."""
    if graph.nodes > MOST_NODES:
        text = (
            f"{graph.nodes:,} nodes are too many to be drawn here: the limit is "
            f"{MOST_NODES:,}. `nnkgraph plot` draws them as a picture."
        )
        return {"graph": None, "caption": text}
    both = graph.adjacency.maximum(graph.adjacency.T).tocsr()
    parts = sorted(pieces(both), key=len, reverse=True)
    if coordinates is None:
        at = _packed(replace(graph, adjacency=both, directed=False), parts, stages)
        caption = (
            "Nodes are where the Laplacian eigenmap of the graph puts them: along its "
            "first vector and the next that does not follow from it, both stretched so "
            "that nodes spread evenly."
        )
        if len(parts) > 1:
            caption += " Components lie beside each other, in no order but by size."
    else:
        at, caption = _given(graph, name, coordinates)
    component = np.full(graph.nodes, -1, np.int32)
    for number, part in enumerate(parts[:_COLORED]):
        component[part] = number
    edges = graph.adjacency.tocoo()
    keep = np.arange(edges.nnz) if graph.directed else edges.row < edges.col
    row, column, weight = edges.row[keep], edges.col[keep], edges.data[keep]
    order = np.argsort(-weight, kind="stable")
    short = "u2" if graph.nodes <= 1 << 16 else "u4"
    return {
        "caption": caption,
        "graph": {
            "x": _pack(at[:, 0], "f4"),
            "y": _pack(at[:, 1], "f4"),
            "source": _pack(row[order], short),
            "target": _pack(column[order], short),
            "weight": _pack(weight[order], "f4"),
            "error": None if graph.errors is None else _pack(graph.errors, "f4"),
            "label": None if labels is None else _pack(labels.codes, "i4"),
            "classes": [] if labels is None else list(labels.classes),
            "component": _pack(component, "i4"),
            "sizes": [len(part) for part in parts[:_COLORED]],
            "ids": None if graph.ids is None else list(graph.ids),
            "directed": graph.directed,
        },
    }


def _pack(values: Any, kind: str) -> dict[str, str]:
    """Return numbers as text that a browser makes a typed array of."""
    raw = np.ascontiguousarray(values, f"<{kind}").tobytes()
    return {"kind": kind, "data": base64.b64encode(raw).decode()}


def _given(
    graph: Graph, name: str, coordinates: Features
) -> tuple[NDArray[np.float64], str]:
    """Return the places that the user gave, in a frame of their own."""
    if coordinates.x.shape[1] < 2:
        raise InputError(f"{coordinates.name}: one column; a drawing needs two")
    at = for_nodes(places(coordinates, (0, 1)), coordinates, graph, name)
    there = np.isfinite(at[:, 0])
    low, high = at[there].min(axis=0), at[there].max(axis=0)
    at = (at - (low + high) / 2) / (np.max(high - low) or 1.0)
    more = coordinates.x.shape[1] > 2
    caption = "Nodes are at the given coordinates"
    caption += f" (the first two of {coordinates.x.shape[1]} columns)." if more else "."
    if not there.all():
        caption += f" {int((~there).sum()):,} nodes have none and are left out."
    return at, caption


def _packed(
    graph: Graph, parts: list[IndexArray], stages: Stages | None
) -> NDArray[np.float64]:
    """Embed every component and lay them out, the largest first, row by row."""
    found: NDArray[Any] = np.zeros((graph.nodes, 2))
    if graph.adjacency.nnz:
        most = min(_VECTORS, max(2, len(parts[0]) - 1))
        found = embed(
            graph, dimensions=most, component="each", stages=stages
        ).coordinates
    at = np.empty((graph.nodes, 2))
    sides = [np.sqrt(len(part)) for part in parts]
    total = max(sides[0], np.sqrt(sum(side * side for side in sides)))
    x = y = 0.0
    below = sides[0]
    for part, side in zip(parts, sides, strict=True):
        if x and x + side > total:
            x, y, below = 0.0, y - below * (1 + _GAP), side
        at[part] = _two(_evenly(found[part])) * side + [x + side / 2, y - side / 2]
        x += side * (1 + _GAP)
    return _framed(at)


def _two(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first axis and the next one that does not follow from it.

    On a long strip the second eigenvector is an overtone of the first, and the drawing
    would be a curve.
    """
    n = len(ranks)
    second = 1
    if n >= _FEW:
        bins = int(np.sqrt(n))
        group = np.minimum((ranks[:, 0] + 0.5) * bins, bins - 1).astype(np.int64)
        size = np.maximum(1, np.bincount(group, minlength=bins))
        for axis in range(1, ranks.shape[1]):
            mean = np.bincount(group, ranks[:, axis], bins) / size
            left = np.var(ranks[:, axis] - mean[group])
            if left > _OWN * np.var(ranks[:, axis]):
                second = axis
                break
    return ranks[:, [0, second]]


def _evenly(at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places by their ranks along each axis, from -1/2 to 1/2; ties stay so.

    The first eigenvectors of a graph with clusters are nearly constant on each of them:
    as they are, most nodes would lie on a few dots.
    """
    ranks = np.empty_like(at)
    for axis in range(at.shape[1]):
        _, place, times = np.unique(
            at[:, axis], return_inverse=True, return_counts=True
        )
        ranks[:, axis] = (np.cumsum(times) - (times + 1) / 2)[place]
    return ranks / max(1, len(at) - 1) - 0.5


def _framed(at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move and shrink places into the square from -1/2 to 1/2."""
    low, high = at.min(axis=0), at.max(axis=0)
    width = float(np.max(high - low))
    framed: NDArray[np.float64] = (at - (low + high) / 2) / (width or 1.0)
    return framed
