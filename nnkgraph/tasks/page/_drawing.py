"""The drawing of a graph: where nodes are, and everything about them in few bytes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.tasks.laplacian import pieces
from nnkgraph.tasks.layout import lay_out
from nnkgraph.tasks.plot._places import for_nodes, places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph
    from nnkgraph.labels import Labels
    from nnkgraph.stages import Stages

MOST_NODES = 20_000
"""Graphs with more nodes are described, but not drawn."""

_COLORED = 11
"""Components that have a color of their own."""


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
    parts = sorted(pieces(graph.adjacency), key=len, reverse=True)
    if coordinates is None:
        at = lay_out(graph, stages=stages)
        caption = (
            "Nodes are laid out by the graph alone: the more edges lie between two, "
            "the farther they are apart."
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
