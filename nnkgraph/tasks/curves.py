"""The paper's sparsity figure: edges per node over k."""

from __future__ import annotations

from typing import Any

from nnkgraph.tasks.plot import new_figure

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by color-blind readers too."""

_MARKERS = "osD^vPX*"


def draw_curves(lines: list[dict[str, Any]], title: str) -> Any:
    """Draw edges per node over k, one curve for every method and rule.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(6.4, 4.4)
    axes: Any = figure.add_subplot()
    names = list(dict.fromkeys((line["method"], line["rule"]) for line in lines))
    for place, (method, rule) in enumerate(names):
        own = [x for x in lines if (x["method"], x["rule"]) == (method, rule)]
        several = sum(name == method for name, _ in names) > 1
        axes.plot(
            [line["k"] for line in own],
            [line["edges_per_node"] for line in own],
            color=_COLORS[place % len(_COLORS)],
            marker=_MARKERS[place % len(_MARKERS)],
            linewidth=1.6,
            # Equal curves, as of nnk and omp, lie on each other: large marks below.
            markersize=max(3.5, 8 - 1.1 * place),
            linestyle=("-", "--", "-.", ":")[place % 4],
            label=f"{method} ({rule})" if several else method,
        )
    axes.set_xlabel("k")
    axes.set_ylabel("edges per node")
    axes.set_ylim(bottom=0)
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure
