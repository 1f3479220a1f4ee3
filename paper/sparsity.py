"""Edges per node over k, on a noisy Swiss roll and on digits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from paper import data, figures
from paper.graphs import Kind, build
from paper.results import Row, Table, where
from paper.setting import Setting

_KEYS = ("data", "print", "rows", "k", "graph")
_VALUES = ("edges", "edges_per_node", "components", "isolated", "seconds")
_NUMBERS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)


def _kinds(k: int) -> tuple[Kind, ...]:
    """Return all graphs but AEW's, whose edges are those of kNN by definition."""
    plain = [Kind(m, m, k) for m in ("knn", "lle", "kalofolias", "mp", "omp", "nnk")]
    return (*plain, Kind("knn mutual", "knn", k, "mutual"))


def run(setting: Setting) -> None:
    """Write sparsity.csv and a figure."""
    sets = data.for_graphs(setting, "mnist", "usps")
    numbers = _NUMBERS[1::2] if setting.quick else _NUMBERS
    kinds = {(one.name, one.k): one for k in numbers for one in _kinds(k)}
    cases = [
        {"data": own.name, "print": own.print, "rows": len(own.x), "k": k, "graph": g}
        for own in sets.values()
        for g, k in kinds
    ]

    def compute(some: list[Row]) -> Iterable[Row]:
        for case in some:
            kind = kinds[case["graph"], case["k"]]
            graph, seconds = build(kind, sets[case["data"]].x)
            degree = np.diff(graph.adjacency.indptr)
            yield {
                "edges": graph.n_edges,
                "edges_per_node": round(graph.n_edges / graph.n_nodes, 4),
                "components": _components(graph.adjacency),
                "isolated": int((degree == 0).sum()),
                "seconds": round(seconds, 4),
            }

    rows = Table(setting.out / "sparsity.csv", _KEYS, _VALUES).fill(cases, compute)
    figures.save(setting.out / "sparsity.png", _figure(rows, list(sets.values())))


def _components(adjacency: Any) -> int:
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(adjacency, directed=False)[0])


def _figure(rows: list[Row], sets: list[data.Set]) -> Any:
    figure, axes = figures.panels(1, len(sets), height=4.2)
    for panel, own in zip(axes[0], sets, strict=True):
        for kind in _kinds(0):
            line = where(rows, data=own.name, graph=kind.name)
            panel.plot(
                [row["k"] for row in line],
                [row["edges_per_node"] for row in line],
                **figures.style(kind.style),
            )
        panel.set_ylim(bottom=0)
        n, d = own.x.shape
        figures.finish(
            panel, f"{own.name.replace('_', ' ')}, {n} x {d}", "k", "edges per node"
        )
    figures.key_below(figure, axes[0, 0], 4 if len(sets) == 1 else 7)
    return figure
