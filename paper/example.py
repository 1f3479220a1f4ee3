"""The 2-D example: who is whose neighbor, by kNN, LLE and NNK."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnkgraph.build.graph import build_graph
from nnkgraph.data import Features
from nnkgraph.tasks.explain import explain
from nnkgraph.tasks.explain.picture import draw_explanation
from nnkgraph.tasks.plot import draw
from paper import figures
from paper.results import write_csv
from paper.setting import Setting

_METHODS = ("knn", "lle", "nnk")
_TITLES = {
    "seven": "Seven nodes, k = 5, sigma = 1",
    "circles": "Two noisy circles, k = 5, sigma = 1",
}


def seven() -> NDArray[np.float64]:
    """Return a node with three neighbors around it, and one more behind each."""
    angle = np.deg2rad([90, 210, 330])
    around = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([np.zeros((1, 2)), around, 2 * around])


def circles(seed: int = 0) -> NDArray[np.float64]:
    """Return two circles around each other, with noise."""
    draw_ = np.random.default_rng(seed)
    angle = 2 * np.pi * (np.arange(60) + draw_.random(60)) / 30
    radius = np.repeat([3.0, 6.0], 30) + 0.25 * draw_.normal(size=60)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def run(setting: Setting) -> None:
    """Write example.csv and three figures."""
    lines = []
    for name, x in (("seven", seven()), ("circles", circles())):
        graphs = [
            (method, build_graph(x, k=5, sigma=1.0, method=method, preset="paper"))
            for method in _METHODS
        ]
        lines += [
            {"data": name, "method": method, "edges": graph.n_edges}
            for method, graph in graphs
        ]
        where = Features.of(x, name=name)
        picture = draw(graphs, where, edges="both", title=_TITLES[name])
        figures.save(setting.out / f"example_{name}.png", picture)
    write_csv(setting.out / "example.csv", ("data", "method", "edges"), lines)
    points = Features.of(seven(), name="seven")
    found = explain(points, 0, k=5, sigma=1.0, preset="paper")
    figures.save(setting.out / "example_center.png", draw_explanation(found, points))
