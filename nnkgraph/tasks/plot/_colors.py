"""Colors of nodes, told apart by color-blind readers too, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.tasks.plot._figure import INK, QUIET

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Okabe and Ito; yellow is left out, which nobody sees on white.
_FEW = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
# Krzywinski's twelve.
_MANY = (
    *("#008df9", "#ff6e3a", "#009f81", "#a40122", "#ffb2fd", "#8400cd"),
    *("#00c2f9", "#ffc33b", "#00fccf", "#e20134", "#ff5aaf", "#9f0162"),
)
_MARKERS = ("o", "^")
_MOST = len(_MANY) * len(_MARKERS)
"""Of more classes each has its place on a scale instead of a color."""

_NONE = "#bdbdbd"
_NODE = "#d55e00"
_SCALE = "viridis"


@dataclass(frozen=True)
class Coloring:
    """How nodes are drawn, in every panel alike."""

    marks: tuple[Any, ...] = ()
    """Handles of the legend, where classes have one."""

    mappable: Any = None
    """What a color bar shows, where there is one."""

    ticks: tuple[tuple[float, str], ...] = ()
    """Places and names on the color bar, where it shows classes."""

    name: str = ""
    """What stands beside the color bar."""

    plain: str = ""
    """The color of all nodes, where they are drawn alike."""

    count: int = 0
    """How many classes there are."""

    def paint(self, own: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return a color for each class or value, and which marker has which node."""
        from matplotlib.colors import to_rgba_array

        shape = np.zeros(len(own), np.int64)
        if self.plain:
            return to_rgba_array([self.plain] * len(own)), shape
        if self.mappable is not None:
            known = own >= 0 if self.ticks else np.isfinite(own)
            colors = self.mappable.to_rgba(np.ma.masked_where(~known, own))
            return np.asarray(colors), shape
        table = to_rgba_array([*class_colors(self.count), _NONE])
        shape = np.where(own < 0, 0, own // len(_MANY))
        return table[own], shape


def class_colors(count: int) -> list[str]:
    """Return a color for each of up to 24 classes; beyond 12 they come again."""
    palette = _FEW if count <= len(_FEW) else _MANY
    return [palette[at % len(palette)] for at in range(count)]


def marker(shape: int) -> str:
    """Return the marker of the first twelve classes, or of the others."""
    return _MARKERS[shape]


def all_alike(*, many: bool) -> Coloring:
    """Return the coloring where nothing is known about nodes.

    Many dots, in a color of their own, would hide the edges.
    """
    return Coloring(plain=INK if many else _NODE)


def by_class(classes: tuple[str, ...], *, gaps: bool) -> Coloring:
    """Return a color for each class, with a legend; many lie on a scale.

    `gaps` says whether some nodes have none.
    """
    from matplotlib.lines import Line2D

    names = [_short(one) for one in classes]
    if len(names) > _MOST:
        shown = np.unique(np.linspace(0, len(names) - 1, 8).round().astype(int))
        ticks = tuple((float(at), names[at]) for at in shown)
        return Coloring(mappable=_scale(0, len(names) - 1), ticks=ticks, name="class")
    styles = [
        (name, color, _MARKERS[at // len(_MANY)])
        for at, (name, color) in enumerate(
            zip(names, class_colors(len(names)), strict=True)
        )
    ]
    if gaps:
        styles.append(("no label", _NONE, _MARKERS[0]))
    marks = tuple(
        Line2D(
            [], [], color=color, marker=shape, linestyle="", markersize=6, label=name
        )
        for name, color, shape in styles
    )
    return Coloring(marks=marks, count=len(names))


def by_value(values: list[NDArray[np.float64]], name: str) -> Coloring:
    """Return a scale that all values of all panels lie on."""
    known = np.concatenate([one[np.isfinite(one)] for one in values])
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    return Coloring(mappable=_scale(low, high), name=_short(name))


def legend_columns(marks: Any, width: float) -> int:
    """Return how many marks fit beside each other, in rows of equal length."""
    longest = max(len(one.get_label()) for one in marks)
    most = max(1, int(width / (0.42 + 0.085 * longest)))
    rows = -(-len(marks) // most)
    return -(-len(marks) // rows)


def add_key(figure: Any, panels: list[Any], coloring: Coloring, marks: Any) -> None:
    """Put the legend below all panels, and the color bar beside them."""
    if marks:
        width = figure.get_size_inches()[0]
        figure.legend(
            handles=list(marks),
            loc="outside lower center",
            ncols=legend_columns(marks, width),
            frameon=False,
            fontsize=10,
            columnspacing=1.2,
            handlelength=1.0 if coloring.marks else 2.0,
            handletextpad=0.5,
        )
    if coloring.mappable is not None:
        bar = figure.colorbar(coloring.mappable, ax=panels, shrink=0.8, pad=0.02)
        bar.set_label(coloring.name, fontsize=10)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=9, color=QUIET)
        if coloring.ticks:
            bar.set_ticks([at for at, _ in coloring.ticks])
            bar.set_ticklabels([text for _, text in coloring.ticks])


def _scale(low: float, high: float) -> Any:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colors = colormaps[_SCALE].with_extremes(bad=_NONE)
    return ScalarMappable(Normalize(float(low), float(high)), colors)


def _short(text: str) -> str:
    """Return a name that fits a legend; a leading underscore would hide it."""
    text = text if len(text) <= 24 else text[:22] + "..."
    return " " * text.startswith("_") + text.replace("$", r"\$")
