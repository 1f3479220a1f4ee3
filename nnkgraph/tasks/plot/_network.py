"""Graphs over coordinates: edges as lines, nodes as dots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.tasks.plot._colors import (
    Coloring,
    add_key,
    all_alike,
    by_class,
    by_value,
    legend_columns,
    marker,
)
from nnkgraph.tasks.plot._figure import BAR, INK, WIDTH, new_panels, titles
from nnkgraph.tasks.plot._lines import NO_WEIGHT, RASTERIZED, Lines, add_edges
from nnkgraph.tasks.plot._places import errors_of, for_nodes, places

if TYPE_CHECKING:
    from nnkgraph.data import Features
    from nnkgraph.labels import Labels
    from nnkgraph.tasks.plot._figure import Graphs

_UNDER_COLORS = "#808080"
"""Edges between colored nodes, which no class looks like."""


def draw(
    graphs: Graphs,
    coordinates: Features,
    *,
    labels: Labels | None = None,
    values: Features | str | None = None,
    edges: str = "alpha",
    axes: tuple[int, ...] | None = None,
    view: tuple[float, float] | None = None,
    title: str | None = None,
) -> Any:
    """Draw graphs side by side over the same 2-D or 3-D coordinates.

    Panels share their limits, their colors and their scale of weights. Nodes without
    coordinates are left out, and so are their edges.

    Parameters
    ----------
    graphs : list of (name, Graph)
        One panel each.
    coordinates : Features
        Where the nodes are; with ids on both sides, ids decide. NaN is nowhere.
    labels : Labels, optional
        Classes that color the nodes.
    values : Features, ``degree`` or ``error``, optional
        Numbers that color the nodes, in place of labels.
    edges : str
        How weight shows: ``alpha``, ``width``, ``both`` or ``none``.
    axes : tuple of int, optional
        The columns of the coordinates that are drawn.
    view : (float, float), optional
        Elevation and azimuth of the eye in 3-D, in degrees.
    title : str, optional
        Stands above all panels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    at = places(coordinates, axes)
    where = [for_nodes(at, coordinates, graph, name) for name, graph in graphs]
    coloring, own = _coloring(graphs, labels, values)
    most = max(graph.edges for _, graph in graphs)
    lines = Lines(
        edges,
        max(float(graph.adjacency.data.max(initial=NO_WEIGHT)) for _, graph in graphs),
        float(np.clip(65 / np.sqrt(most + 1), 0.2, 1.1)),
        INK if coloring.plain else _UNDER_COLORS,
    )
    low, high = np.nanmin(at, axis=0), np.nanmax(at, axis=0)
    marks = coloring.marks or lines.key()
    # Where there is much to see, there is more room to see it.
    width = WIDTH if most <= RASTERIZED else 1.5 * WIDTH
    figure = _sized_figure(len(graphs), width, high - low, coloring, marks, title)
    panels = []
    for place, (_, graph) in enumerate(graphs):
        panel = _panel(figure, len(graphs), place, low, high, view)
        add_edges(panel, graph, where[place], lines)
        _add_nodes(panel, where[place], coloring, own[place], most > RASTERIZED)
        panel.set_title(titles(graphs)[place], fontsize=11)
        panels.append(panel)
    add_key(figure, panels, coloring, marks)
    return figure


def _coloring(
    graphs: Graphs, labels: Labels | None, values: Features | str | None
) -> tuple[Coloring, list[Any]]:
    """Return the colors of all panels, and what each node is colored by."""
    if labels is not None:
        codes = [labels.for_rows(g.nodes, g.ids, name).codes for name, g in graphs]
        gaps = any((one < 0).any() for one in codes)
        return by_class(labels.classes, gaps=gaps), codes
    if values is None:
        many = max(graph.edges for _, graph in graphs) > RASTERIZED
        return all_alike(many=many), [np.zeros(graph.nodes) for _, graph in graphs]
    if values == "degree":
        own = [np.diff(graph.adjacency.indptr).astype(float) for _, graph in graphs]
        return by_value(own, "edges of a node"), own
    if isinstance(values, str):
        if values != "error":
            raise ParameterError(
                f"values {values!r} are neither 'degree' nor 'error' nor numbers"
            )
        own = [errors_of(graph, name) for name, graph in graphs]
        return by_value(own, "error J of a node"), own
    column = np.asarray(values.x[:, 0], np.float64)
    own = [for_nodes(column, values, graph, name) for name, graph in graphs]
    # The column says more than the file that it is in.
    file, _, item = values.name.rpartition("::")
    title = item if file else item.replace("\\", "/").rpartition("/")[2]
    return by_value(own, title), own


def _sized_figure(
    count: int, width: float, extent: Any, coloring: Coloring, marks: Any, title: Any
) -> Any:
    """Return a figure with room for panels, the legend below and the bar beside."""
    aspect = 0.95
    if len(extent) == 2:
        across, up = extent
        aspect = float(np.clip(up / across if across > 0 else 1.0, 0.4, 1.4))
    whole = width * count + BAR * (coloring.mappable is not None)
    rows = -(-len(marks) // legend_columns(marks, whole)) if marks else 0
    return new_panels(whole, width * aspect + 0.45 + 0.22 * rows, title)


def _panel(figure: Any, count: int, place: int, low: Any, high: Any, view: Any) -> Any:
    """Return axes with room for all coordinates, equal in all directions."""
    # Left to itself, a 3-D picture would put lines before nodes.
    three = {"projection": "3d", "computed_zorder": False} if len(low) == 3 else {}
    panel: Any = figure.add_subplot(1, count, place + 1, **three)
    margin = 0.03 * float((high - low).max()) or 1.0
    for name, start, stop in zip("xyz", low - margin, high + margin, strict=False):
        getattr(panel, f"set_{name}lim")(start, stop)
        getattr(panel, f"set_{name}ticks")([])
    if len(low) == 3:
        panel.set_box_aspect(high - low + 2 * margin, zoom=1.05)
        if view is not None:
            panel.view_init(*view)
        for axis in (panel.xaxis, panel.yaxis, panel.zaxis):
            axis.set_pane_color("#f4f4f4")
            axis.line.set_color("#c0c0c0")
    else:
        panel.set_aspect("equal")
        panel.spines[:].set_color("#c0c0c0")
    return panel


def _add_nodes(
    panel: Any, at: Any, coloring: Coloring, own: Any, rasterized: bool
) -> None:
    """Add nodes as dots, in their own order: no class lies on top of the others."""
    colors, shapes = coloring.paint(own)
    there = ~np.isnan(at[:, 0])
    three = {"depthshade": bool(coloring.plain)} if at.shape[1] == 3 else {}
    # Colors are told apart in larger dots only.
    size = float(np.clip((6000 if coloring.plain else 14000) / len(at), 0.4, 14))
    for shape in np.unique(shapes[there]):
        drawn = there & (shapes == shape)
        panel.scatter(
            *at[drawn].T,
            s=size,
            c=colors[drawn],
            marker=marker(shape),
            linewidths=0,
            zorder=3,
            rasterized=rasterized,
            **three,
        )
