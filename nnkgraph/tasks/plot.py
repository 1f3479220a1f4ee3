"""Pictures of graphs over coordinates."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, ResourceError

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, Graph

SUFFIXES = (".png", ".svg", ".pdf")
_EDGE, _NODE = "#0072b2", "#d55e00"  # told apart by color-blind readers too


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, its size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ResourceError(
            "pictures need matplotlib: pip install 'nnkgraph[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def draw(graphs: list[tuple[str, Graph]], coordinates: FloatArray) -> Any:
    """Draw graphs side by side over the same 2-D or 3-D coordinates.

    Parameters
    ----------
    graphs : list of (name, Graph)
        One panel each.
    coordinates : (n, 2) or (n, 3) array
        Where the nodes are.

    Returns
    -------
    matplotlib.figure.Figure
    """
    size = coordinates.shape[1]
    if size not in {2, 3}:
        raise InputError(
            f"coordinates have {size} columns; a picture needs 2 or 3 of them"
        )
    width = 5.2
    height = 0.7 + width * (_aspect(coordinates) if size == 2 else 0.8)
    figure = new_figure(width * len(graphs), height)
    for at, (name, graph) in enumerate(graphs, start=1):
        if graph.nodes != len(coordinates):
            raise InputError(
                f"{name}: {graph.nodes} nodes, but coordinates of {len(coordinates)}"
            )
        three = {"projection": "3d"} if size == 3 else {}
        axes: Any = figure.add_subplot(1, len(graphs), at, **three)
        axes.add_collection(_edges(graph, coordinates))
        axes.scatter(*coordinates.T, s=_dot_size(graph.nodes), color=_NODE, zorder=3)
        axes.set_title(_title(name, graph), fontsize=11)
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.autoscale()
    return figure


def _title(name: str, graph: Graph) -> str:
    known = graph.provenance
    made = f"{known['method']}, k = {known['k']}" if "method" in known else name
    each = graph.edges / graph.nodes
    return f"{made}: {graph.edges} edges, {each:.1f} per node"


def _aspect(coordinates: FloatArray) -> float:
    """Return height over width of the picture, within what looks well."""
    across, up = np.ptp(coordinates, axis=0)
    return float(np.clip(up / across if across > 0 else 1.0, 0.4, 1.4))


def rendered(figure: Any, name: str) -> bytes:
    """Return a figure as the bytes of a file; equal figures give equal bytes."""
    import matplotlib as mpl

    ending = name.lower().rpartition(".")[2]
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "nnkgraph"}):
        figure.savefig(buffer, format=ending, dpi=120, metadata=dates.get(ending))
    return buffer.getvalue()


def _dot_size(nodes: int) -> float:
    return float(np.clip(3200 / nodes, 0.5, 12))


def _edges(graph: Graph, coordinates: FloatArray) -> Any:
    """Return all edges as one collection of lines; light ones are faint."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    edges = graph.adjacency.tocoo()
    once = np.ones(len(edges.row), bool) if graph.directed else edges.row < edges.col
    ends = np.stack([edges.row[once], edges.col[once]], axis=1)
    weight = edges.data[once]
    colors = np.tile(to_rgba(_EDGE), (len(weight), 1))
    colors[:, 3] = 0.25 + 0.75 * np.sqrt(weight / weight.max(initial=1e-300))
    kind = LineCollection if coordinates.shape[1] == 2 else Line3DCollection
    return kind(coordinates[ends], colors=colors, linewidths=0.8)
