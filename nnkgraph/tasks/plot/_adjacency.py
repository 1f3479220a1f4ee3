"""The matrix of a graph as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.tasks.plot import figure as figures
from nnkgraph.tasks.plot.figure import BAR, QUIET, WIDTH

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.data.labels import Labels

CELLS = 400  # per side: about the pixels of a panel, so that no edge falls between two
_MOST_NAMES = 24


def draw_adjacency(
    graphs: figures.Graphs, *, labels: Labels | None = None, title: str | None = None
) -> Any:
    """Draw matrices side by side: an edge from row to column is a colored cell.

    Up to 400 nodes a cell is one pair of nodes, and its color the weight. Of more nodes
    a cell stands for a square block of pairs, and its color counts the edges inside.
    Rows and columns are ordered by their labels.
    """
    from matplotlib.colors import LogNorm, Normalize

    ordered = [_codes(graph, labels, name) for name, graph in graphs]
    counted = any(graph.n_nodes > CELLS for _, graph in graphs)
    cells = [
        matrix_cells(graph, codes, counted=counted)
        for (_, graph), codes in zip(graphs, ordered, strict=True)
    ]
    most = max(float(one.max(initial=0)) for one in cells) or 1.0
    # One count is no range: a scale of logarithms needs one.
    norm = LogNorm(1, max(most, 2)) if counted else Normalize(0, most)
    figure = figures.new_panels(WIDTH * len(graphs) + BAR, WIDTH, title)
    panels = figure.subplots(1, len(graphs), squeeze=False)[0]
    for panel, (_, graph), codes, image, text in zip(
        panels, graphs, ordered, cells, figures.titles(graphs), strict=True
    ):
        shown = panel.imshow(
            np.ma.masked_equal(image, 0),
            cmap=_colors(),
            norm=norm,
            interpolation="nearest",
            extent=(0, graph.n_nodes, graph.n_nodes, 0),
        )
        panel.set_title(text, fontsize=11)
        panel.spines[:].set_color("#c0c0c0")
        panel.tick_params(labelsize=9, color=QUIET)
        if labels is not None:
            _separate(panel, codes, labels.classes)
    block = max(block_size(graph.n_nodes) for _, graph in graphs)
    what = f"edges per cell of {block} x {block} pairs" if counted else "weight"
    bar = figures.color_bar(figure, shown, list(panels), what)
    if counted:
        steps = [a * 10**b for b in range(7) for a in (1, 2, 5) if a * 10**b <= most]
        bar.set_ticks(steps, labels=[f"{one:,}" for one in steps])
        bar.ax.minorticks_off()
    return figure


def block_size(nodes: int) -> int:
    """Return how many nodes share a row of cells."""
    return -(-nodes // CELLS)


def matrix_cells(graph: Graph, codes: IndexArray, *, counted: bool) -> FloatArray:
    """Return the matrix, ordered by class, in at most 400 x 400 cells.

    They count entries, or sum up weights.
    """
    place = np.empty(graph.n_nodes, np.int64)
    # Nodes without a class come last.
    last = np.where(codes < 0, codes.max(initial=0) + 1, codes)
    place[np.argsort(last, kind="stable")] = np.arange(graph.n_nodes)
    block = block_size(graph.n_nodes)
    side = -(-graph.n_nodes // block)
    found = graph.adjacency.tocoo()
    cell = place[found.row] // block * side + place[found.col] // block
    weights = None if counted else found.data
    sums = np.bincount(cell, weights, minlength=side * side)
    return sums.reshape(side, side).astype(np.float64)


def _codes(graph: Graph, labels: Labels | None, name: str) -> IndexArray:
    if labels is None:
        return np.zeros(graph.n_nodes, np.int64)
    return labels.for_rows(graph.n_nodes, graph.ids, name).codes


def _separate(panel: Any, codes: IndexArray, classes: tuple[str, ...]) -> None:
    """Draw lines between classes, and name each beside its rows."""
    counts = np.bincount(np.where(codes < 0, len(classes), codes))
    ends = np.cumsum(counts)
    for end in ends[:-1]:
        panel.axhline(end, color=QUIET, linewidth=0.5)
        panel.axvline(end, color=QUIET, linewidth=0.5)
    names = [one.replace("$", r"\$")[:16] for one in (*classes, "no label")]
    there = np.flatnonzero(counts)
    if len(there) > _MOST_NAMES:
        return
    middle = (ends - counts / 2)[there]
    texts = [names[at] for at in there]
    upright = sum(map(len, texts)) > 30
    panel.set_yticks(middle, texts)
    panel.set_xticks(middle, texts, rotation=90 if upright else 0)
    panel.tick_params(length=0)


def _colors() -> Any:
    """Return blues, the lightest of which still stands out from white."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    blues = colormaps["Blues"](np.linspace(0.35, 1.0, 256))
    return LinearSegmentedColormap.from_list("edges", blues)
