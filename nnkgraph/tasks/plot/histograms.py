"""How degrees, weights, supports and errors are distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build.report import support
from nnkgraph.errors import InputError
from nnkgraph.tasks.plot import figure as figures
from nnkgraph.tasks.plot.figure import INK, QUIET, WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Graph

_BARS = 50
_MEAN = "#d55e00"

HISTOGRAMS = {
    "degrees": ("edges of a node", "nodes"),
    "weights": ("weight of an edge", "edges"),
    "support": ("candidates that a node kept", "nodes"),
    "errors": ("error J of a node", "nodes"),
}
"""What there are, and what stands below and beside each."""


def draw_histograms(
    graphs: figures.Graphs, what: str, *, title: str | None = None
) -> Any:
    """Draw one of the HISTOGRAMS of each graph, side by side on the same axes."""
    values = [values_of(name, graph, what) for name, graph in graphs]
    edges = bins_of(np.concatenate(values), whole=what in {"degrees", "support"})
    below, beside = HISTOGRAMS[what]
    figure = figures.new_panels(WIDTH * len(graphs), 3.8, title)
    panels = figure.subplots(1, len(graphs), sharex=True, sharey=True, squeeze=False)[0]
    style = {"align": "edge", "color": INK, "edgecolor": "white", "linewidth": 0.6}
    for panel, own, text in zip(panels, values, figures.titles(graphs), strict=True):
        counts = np.histogram(own, edges)[0]
        panel.bar(edges[:-1], counts, np.diff(edges), **style)
        if len(own):
            _mark_mean(panel, float(own.mean()))
        panel.set_title(text, fontsize=11)
        panel.set_xlabel(below, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=9, color=QUIET)
        panel.yaxis.get_major_locator().set_params(integer=True)
    if what in {"degrees", "support"}:
        panels[0].xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel(beside, fontsize=10)
    panels[0].set_ylim(0, 1.12 * panels[0].get_ylim()[1])  # room for the mean's text
    return figure


def values_of(name: str, graph: Graph, what: str) -> NDArray[Any]:
    """Return what is counted; each undirected edge once."""
    if what == "degrees":
        return np.diff(graph.adjacency.indptr)
    if what == "errors":
        return figures.errors_of(graph, name)
    if what == "support":
        found: NDArray[Any] = support(graph)
        if not len(found):
            raise InputError(
                f"{name}: the file does not say how many candidates each node kept; "
                "build it again: graphs in .npz files hold it"
            )
        return found
    edges = graph.adjacency.tocoo()
    return edges.data if graph.directed else edges.data[edges.row < edges.col]


def bins_of(values: NDArray[Any], *, whole: bool) -> NDArray[Any]:
    """Return the edges of bars that hold all values, of all panels alike."""
    low, high = (values.min(), values.max()) if len(values) else (0, 1)
    if whole:
        # Bars around whole numbers, several to a bar where there are too many.
        step = max(1, -(-(int(high) - int(low) + 1) // _BARS))
        return np.arange(int(low), int(high) + step + 1, step) - 0.5
    low = min(0.0, float(low))
    return np.linspace(low, float(high) if high > low else low + 1.0, _BARS + 1)


def _mark_mean(panel: Any, mean: float) -> None:
    panel.axvline(mean, color=_MEAN, linewidth=1.4, linestyle=(0, (4, 2)))
    panel.annotate(
        f"mean {mean:.3g}",
        (mean, 1.0),
        xycoords=panel.get_xaxis_transform(),
        xytext=(5, -4),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=10,
        color=_MEAN,
    )
