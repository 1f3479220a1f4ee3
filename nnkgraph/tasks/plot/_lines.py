"""Edges as lines, their weight shown by how faint or thin they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Graph

RASTERIZED = 20_000
"""Of more edges, vector graphics hold a picture instead of every line."""

NO_WEIGHT = 1e-300
"""Stands for the largest weight where there are no edges."""


@dataclass(frozen=True)
class Lines:
    """How edges are drawn."""

    shows: str
    """What weight shows as: ``alpha``, ``width``, ``both`` or ``none``."""

    heaviest: float
    """The weight drawn strongest, in all panels."""

    width: float
    """Of the strongest line, in points."""

    color: str

    def style(self, weight: NDArray[np.float64]) -> tuple[Any, Any]:
        """Return a color and a width for each weight."""
        from matplotlib.colors import to_rgba

        # By the root: of weights over several decades the light ones still show.
        share = np.sqrt(weight / self.heaviest)
        colors = np.tile(to_rgba(self.color), (len(weight), 1))
        if self.shows in {"alpha", "both"}:
            colors[:, 3] = 0.25 + 0.75 * share
        thick = np.full(len(weight), self.width)
        if self.shows in {"width", "both"}:
            thick = self.width * (0.25 + 2.0 * share)
        return colors, thick

    def key(self) -> list[Any]:
        """Return handles of the legend for a heavy and a light edge."""
        from matplotlib.lines import Line2D

        if self.shows == "none" or self.heaviest <= NO_WEIGHT:
            return []
        weight = np.array([1.0, 0.01]) * self.heaviest
        colors, thick = self.style(weight)
        return [
            Line2D(
                [], [], color=color, linewidth=max(0.8, wide), label=f"weight {w:.2g}"
            )
            for color, wide, w in zip(colors, thick, weight, strict=True)
        ]


def add_edges(panel: Any, graph: Graph, at: NDArray[np.float64], lines: Lines) -> None:
    """Add all edges as one collection of lines, heavy ones last and so on top."""
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    found = graph.adjacency.tocoo()
    there = ~np.isnan(at[:, 0])
    drawn = there[found.row] & there[found.col]
    if not graph.directed:
        drawn &= found.row < found.col
    order = np.flatnonzero(drawn)
    order = order[np.argsort(found.data[order], kind="stable")]
    ends = np.stack([found.row[order], found.col[order]], axis=1)
    colors, widths = lines.style(found.data[order])
    kind: Any = LineCollection if at.shape[1] == 2 else Line3DCollection
    panel.add_collection(
        kind(
            at[ends],
            colors=colors,
            linewidths=widths,
            zorder=2,
            rasterized=graph.edges > RASTERIZED,
        )
    )
