"""Pictures of graphs: over coordinates, as a matrix, and how they are distributed."""

from __future__ import annotations

from nnkgraph.tasks.plot._adjacency import draw_adjacency
from nnkgraph.tasks.plot._network import draw
from nnkgraph.tasks.plot.figure import (
    SUFFIXES,
    count_unplaced,
    laid_out,
    new_figure,
    rendered,
)
from nnkgraph.tasks.plot.histograms import draw_histograms

__all__ = [
    "SUFFIXES",
    "count_unplaced",
    "draw",
    "draw_adjacency",
    "draw_histograms",
    "laid_out",
    "new_figure",
    "rendered",
]
