"""Figures in one style: a method has its color and mark wherever it is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nnkgraph.formats import write_file
from nnkgraph.tasks.plot import new_figure, rendered

# Okabe and Ito's colors, told apart by color-blind readers too.
_STYLES = {
    "knn": ("kNN", "#0072b2", "o", "-"),
    "kstar": ("k*NN", "#009e73", "D", "-."),
    "nnk": ("NNK", "#d55e00", "s", "-"),
    "omp": ("OMP", "#000000", "x", ""),
    "mp": ("MP", "#e69f00", "^", "--"),
    "lle": ("LLE", "#009e73", "v", "-."),
    "kalofolias": ("Kalofolias", "#56b4e9", "P", "--"),
    "aew": ("AEW", "#cc79a7", "D", "-."),
    "mutual": ("kNN mutual", "#0072b2", "o", ":"),
}


def style(method: str, name: str | None = None) -> dict[str, Any]:
    """Return how the curve of a method is drawn."""
    label, color, mark, line = _STYLES[method]
    return {
        "label": name or label,
        "color": color,
        "marker": mark,
        "linestyle": line,
        "linewidth": 1.6,
        "markersize": 4.5,
        # Marks with a hole let equal curves below them be seen.
        "markerfacecolor": "white" if method == "mutual" else color,
        # NNK and OMP are one graph: crosses on squares.
        "zorder": 3 if method == "omp" else 2,
    }


def shade(place: int, count: int) -> dict[str, Any]:
    """Return how a curve is drawn that stands for one of several values in order."""
    from matplotlib import colormaps

    return {
        "color": colormaps["viridis"](0.9 * place / max(1, count - 1)),
        "marker": "osD^v"[place % 5],
        "linewidth": 1.6,
        # Equal curves lie on each other: larger marks below smaller ones.
        "markersize": 4.0 + 1.2 * (count - 1 - place),
    }


def title_of(method: str) -> str:
    """Return how a method is called in figures."""
    return _STYLES[method][0]


def panels(rows: int, columns: int, *, width: float = 4.2, height: float = 3.4) -> Any:
    """Return a figure and its panels, as a matrix."""
    figure = new_figure(width * columns, height * rows)
    return figure, figure.subplots(rows, columns, squeeze=False)


def finish(axes: Any, title: str, x: str, y: str) -> None:
    """Label a panel."""
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)


def key_below(figure: Any, axes: Any, columns: int) -> None:
    """Put one legend below all panels: what is drawn in these, each name once."""
    drawn: dict[str, Any] = {}
    for panel in np.ravel(axes):
        handles, labels = panel.get_legend_handles_labels()
        drawn |= dict(zip(labels, handles, strict=True))
    figure.legend(
        drawn.values(),
        drawn.keys(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def save(path: Path, figure: Any) -> None:
    """Write a figure, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, rendered(figure, path.name))
