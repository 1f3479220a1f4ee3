"""Runtime beside sparsity: how much longer than kNN's a graph takes, and its edges."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from threadpoolctl import threadpool_limits

from paper import data, figures
from paper.graphs import build, published
from paper.published import RUNTIME
from paper.results import Row, Table, where
from paper.setting import Setting

_KEYS = ("data", "print", "rows", "k", "graph")
_VALUES = (
    *("edges_per_node", "seconds", "ratio_to_knn", "ratio_to_nnk"),
    *("published_ratio_to_nnk", "rounds"),
)
_ROUNDS = 20
_ENOUGH = 1.0
"""Seconds after which a graph is not built once more, if it was built twice."""


def run(setting: Setting) -> None:
    """Write runtime.csv and a figure."""
    sets = data.for_graphs(setting, "usps")
    cases = [
        {"data": own.name, "print": own.print, "rows": len(own.x), "k": k, "graph": g}
        for own in sets.values()
        for k in setting.numbers
        for g in _names()
    ]

    def compute(some: list[Row]) -> Iterable[Row]:
        first = some[0]
        asked = {case["graph"] for case in some}
        rounds = _ROUNDS // 4 if setting.quick else _ROUNDS
        found = measured(sets[first["data"]].x, first["k"], asked, rounds)
        return [found[case["graph"]] for case in some]

    table = Table(setting.out / "runtime.csv", _KEYS, _VALUES)
    rows = table.fill(cases, compute, group=("data", "rows", "k"))
    figures.save(setting.out / "runtime.png", _figure(rows, list(sets.values())))


def _names() -> list[str]:
    return [kind.name for kind in published()]


def measured(x: Any, k: int, asked: Iterable[str], rounds: int) -> dict[str, Row]:
    """Build graphs in turns, and return the shortest time of each, also as ratios.

    Only seconds of one run are divided by each other, so kNN and NNK are always in it.
    Taking turns, all of them suffer alike from what else the machine does.
    """
    kinds = [one for one in published(k) if one.name in {*asked, "knn", "nnk"}]
    edges: dict[str, float] = {}
    taken: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    # One thread for all: only some methods would make use of more.
    with threadpool_limits(limits=1):
        for _, kind in itertools.product(range(rounds), kinds):
            own = taken[kind.name]
            if len(own) < 2 or sum(own) < _ENOUGH:
                graph, seconds = build(kind, x)
                edges[kind.name] = graph.n_edges / graph.n_nodes
                own.append(seconds)
    knn, nnk = min(taken["knn"]), min(taken["nnk"])
    return {
        name: {
            "edges_per_node": round(edges[name], 4),
            "seconds": round(min(own), 6),
            "ratio_to_knn": round(min(own) / knn, 3),
            "ratio_to_nnk": round(min(own) / nnk, 3),
            "published_ratio_to_nnk": RUNTIME.get(name),
            "rounds": len(own),
        }
        for name, own in taken.items()
    }


def _figure(rows: list[Row], sets: list[data.Set]) -> Any:
    """Draw ratios of seconds over k, and edges over these ratios."""
    figure, axes = figures.panels(2, len(sets), width=4.8)
    for line, own in zip(axes.T, sets, strict=True):
        for name in _names():
            mine = where(rows, data=own.name, graph=name)
            look = figures.style(name)
            over, beside = line
            ratios = [row["ratio_to_knn"] for row in mine]
            over.plot([row["k"] for row in mine], ratios, **look)
            edges = [row["edges_per_node"] for row in mine]
            beside.plot(ratios, edges, **look)
        n, d = own.x.shape
        text = f"{own.name.replace('_', ' ')}, {n} x {d}"
        over.set_xticks(sorted({row["k"] for row in rows}))
        figures.finish(over, text, "k", "seconds, kNN = 1")
        numbers = sorted({row["k"] for row in rows})
        text = f"the same graphs, k from {numbers[0]} to {numbers[-1]}"
        figures.finish(
            beside, text, "seconds, kNN with the same k = 1", "edges per node"
        )
        beside.set_ylim(bottom=0)
        low = min(row["ratio_to_knn"] for row in where(rows, data=own.name))
        high = max(row["ratio_to_knn"] for row in where(rows, data=own.name))
        for axis in (over.yaxis, beside.xaxis):
            _ratios(axis, low, high)
    figures.key_below(figure, axes[0, 0], 4 if len(sets) == 1 else 7)
    return figure


def _ratios(axis: Any, low: float, high: float) -> None:
    """Give ratios an axis of powers with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.axes.set(**{f"{axis.axis_name}lim": (low / 1.15, high * 1.15)})
    steps = (1, 2, 5) if high / low > 4 else (1, 1.5, 2, 3, 5, 7)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
