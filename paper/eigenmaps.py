"""Laplacian eigenmaps of a Swiss roll and of a severed sphere."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnkgraph.formats import write_file
from nnkgraph.tasks.embed import embed
from paper import data, figures
from paper.graphs import Kind, build
from paper.published import EDGES_PER_NODE
from paper.results import Row, Table, where
from paper.setting import Setting

METHODS = ("knn", "lle", "nnk")
_NUMBERS = (10, 20, 40)
_KEYS = ("data", "rows", "k", "method")
_VALUES = (
    *("edges", "edges_per_node", "published_edges_per_node", "components"),
    *("embedded", "seconds", "rank_correlation_first", "rank_correlation_second"),
)
_POSITION = {"swiss_roll": "angle", "severed_sphere": "longitude"}


def run(setting: Setting) -> None:
    """Write eigenmaps.csv, coordinates, and a figure for each shape."""
    shapes = {
        "swiss_roll": data.swiss_roll(setting.rows(5000), 0.0),
        "severed_sphere": data.severed_sphere(setting.rows(3000)),
    }
    cases = [
        {"data": name, "rows": len(x), "k": k, "method": method}
        for name, (x, _) in shapes.items()
        for k in _NUMBERS
        for method in METHODS
    ]

    def compute(some: list[Row]) -> Iterable[Row]:
        for case in some:
            x, position = shapes[case["data"]]
            values, places = _embed(case, x, position)
            _keep(_file(setting.out, case), places)
            yield values

    table = Table(setting.out / "eigenmaps.csv", _KEYS, _VALUES)
    rows = table.fill(cases, compute, also=lambda one: _file(setting.out, one).exists())
    for name, (_, position) in shapes.items():
        picture = _figure(setting.out, where(rows, data=name), position)
        figures.save(setting.out / f"eigenmaps_{name}.png", picture)


def _embed(
    case: Row, x: NDArray[np.float64], position: NDArray[np.float64]
) -> tuple[Row, NDArray[np.float64]]:
    """Build a graph, embed it, and compare with where the points really are."""
    from scipy.stats import spearmanr

    graph, seconds = build(Kind(case["method"], case["method"], case["k"]), x)
    found = embed(graph)
    there = found.component >= 0
    places = found.coordinates
    along = [
        abs(float(spearmanr(places[there, one], position[there]).statistic))
        for one in (0, 1)
    ]
    values = {
        "edges": graph.n_edges,
        "edges_per_node": round(graph.n_edges / graph.n_nodes, 4),
        "published_edges_per_node": (
            EDGES_PER_NODE[case["data"]] if case["method"] == "nnk" else None
        ),
        "components": found.facts["components"],
        "embedded": found.facts["embedded_nodes"],
        "seconds": round(seconds, 4),
        "rank_correlation_first": round(along[0], 4),
        "rank_correlation_second": round(along[1], 4),
    }
    return values, np.asarray(places, np.float64)


def _file(out: Path, case: Row) -> Path:
    name = "{data}_{rows}_{method}_{k}.npy".format(**case)
    return out / "eigenmaps" / name


def _keep(path: Path, places: NDArray[np.float64]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, places.astype(np.float32))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, buffer.getvalue())


def _figure(out: Path, rows: list[Row], position: NDArray[np.float64]) -> Any:
    """Draw embeddings, a line for each k and a column for each method."""
    figure, axes = figures.panels(len(_NUMBERS), len(METHODS), width=3.4, height=3.0)
    for k, line in zip(_NUMBERS, axes, strict=True):
        for method, panel in zip(METHODS, line, strict=True):
            (row,) = where(rows, k=k, method=method)
            places = _turned(np.load(_file(out, row)), position)
            drawn = panel.scatter(
                *places.T, c=position, s=3, cmap="viridis", linewidths=0
            )
            drawn.set_rasterized(True)
            panel.set_xticks([])
            panel.set_yticks([])
            text = (
                f"{figures.title_of(method)}, k = {k}: {row['edges_per_node']:.1f} "
                f"edges a node\nrank correlation {row['rank_correlation_first']:.3f}"
            )
            panel.set_title(text, fontsize=10)
    bar = figure.colorbar(drawn, ax=axes, shrink=0.6)
    bar.set_label(_POSITION[rows[0]["data"]])
    name = rows[0]["data"].replace("_", " ").capitalize()
    figure.suptitle(f"{name}, {rows[0]['rows']} points: eigenmaps", fontsize=13)
    return figure


def _turned(
    places: NDArray[np.float32], position: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Mirror an embedding, whose signs mean nothing, so that panels look alike."""
    middle = position - position.mean()
    found = np.nan_to_num(places)
    signs = [middle @ found[:, 0], (middle**2 - (middle**2).mean()) @ found[:, 1]]
    return places * np.where(np.array(signs) < 0, -1, 1)
