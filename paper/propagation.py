"""Label propagation: errors over the share of labels, and over k."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from nnkgraph.tasks.propagate import LAPLACIANS, errors, sample
from paper import data, figures
from paper.graphs import Kind, build, fair, published
from paper.inverse import InversePropagator
from paper.results import Row, Table, mean, where, write_csv
from paper.setting import NUMBERS, Setting, say

SHARES = tuple(round(0.01 * one, 2) for one in range(1, 11))
_KEYS = ("data", "print", "subset", "graph", "k", "laplacian", "share", "draws")
_VALUES = (
    *("rows", "edges_per_node", "seconds", "of_reached", "of_all", "unreached"),
    "deviation",
)
_SUMMARY = (
    "data",
    "graph",
    "k",
    "laplacian",
    "share",
    "subsets",
    "draws",
    *_VALUES[1:],
)
_BOXES = (
    *("data", "graph", "laplacian", "share", "k", "count", "least", "lower"),
    *("median", "upper", "most"),
)
_SIGNS = {"combinatorial": "L", "normalized": "L_sym"}
_SKEWED = [round(2.6 * one**2) for one in range(1, 11)]
"""Digits of each class in the paper's subsets of USPS, as in the work it cites."""


def run(setting: Setting) -> None:
    """Write propagation.csv, its means, boxes, and figures anew after every subset."""
    sources = _sources(setting)
    prints = {name: whole.print for name, (whole, _) in sources.items()}
    kinds = _kinds(setting)
    known = {(kind.name, kind.k): kind for kind, _ in kinds}

    @lru_cache(maxsize=1)
    def rows_of(name: str, subset: int) -> Any:
        whole, sizes = sources[name]
        return data.subset(whole, sizes, subset)

    def compute(some: list[Row]) -> Iterable[Row]:
        first = some[0]
        x, y = rows_of(first["data"], first["subset"])
        # More threads only wait for each other on graphs of a thousand nodes.
        with threadpool_limits(limits=1):
            return _propagate(known[first["graph"], first["k"]], x, y, some)

    table = Table(setting.out / "propagation.csv", _KEYS, _VALUES)
    rows: list[Row] = []
    for subset in range(setting.repeats(10)):
        cases = _cases(prints, subset, kinds, setting.repeats(10))
        rows += table.fill(cases, compute, group=("data", "subset", "graph", "k"))
        summary = [_mean(own) for own in _alike(rows)]
        write_csv(setting.out / "propagation_means.csv", _SUMMARY, summary)
        names = list(sources)
        for name, over in (("propagation", "share"), ("propagation_k", "k")):
            picture = _figure(summary, names, over)
            figures.save(setting.out / f"{name}.png", picture)
        boxes = [box(own) for own in _alike(_over_k(rows), "k", "subset")]
        write_csv(setting.out / "propagation_box.csv", _BOXES, boxes)
        picture = _box_figure(_over_k(rows), names)
        figures.save(setting.out / "propagation_box.png", picture)


def _kinds(setting: Setting) -> list[tuple[Kind, tuple[float, ...]]]:
    """Return the graphs, and for which shares of labels."""
    shares = (SHARES[0], SHARES[4], SHARES[9]) if setting.quick else SHARES
    numbers = setting.numbers if setting.quick else range(10, 51, 5)
    others = [kind for k in numbers if k != 30 for kind in _boxed(k)]
    return [
        *((kind, shares) for kind in (*published(), *fair())),
        *((kind, SHARES[-1:]) for kind in others),
    ]


def _boxed(k: int) -> tuple[Kind, ...]:
    """Return the graphs that are compared over k: the paper's, and mutual kNN."""
    return (*published(k), Kind("knn mutual", "knn", k, "mutual"))


def _cases(
    prints: dict[str, str],
    subset: int,
    kinds: list[tuple[Kind, tuple[float, ...]]],
    draws: int,
) -> list[Row]:
    return [
        {
            "data": name,
            "print": mark,
            "subset": subset,
            "graph": kind.name,
            "k": kind.k,
            "laplacian": laplacian,
            "share": share,
            "draws": draws,
        }
        for name, mark in prints.items()
        for kind, some in kinds
        for laplacian in LAPLACIANS
        for share in some
    ]


def _sources(setting: Setting) -> dict[str, tuple[data.Set, list[int]]]:
    """Return the sets that subsets are drawn from, and how many rows of each class."""
    sources = {}
    usps, mnist = data.named(setting, "usps"), data.named(setting, "mnist")
    if usps is not None and np.bincount(usps.y).min() >= max(_SKEWED):
        sources["usps_skewed"] = (usps, _SKEWED)
    for name, whole in (("usps", usps), ("mnist", mnist)):
        if whole is not None:
            sources[name] = (whole, [100] * (int(whole.y.max()) + 1))
    if not sources:
        say("propagation: the data folder has neither usps nor mnist: made-up clusters")
        sources["clusters"] = _clusters(setting)
    return sources


def _clusters(setting: Setting) -> tuple[data.Set, list[int]]:
    """Return blurred clusters in ten dimensions, where there are no digits."""
    draw = np.random.default_rng(0)
    size = setting.rows(1000)
    y = np.arange(2 * size) % 5
    x = draw.normal(size=(5, 10))[y] + 0.8 * draw.normal(size=(len(y), 10))
    return data.Set("clusters", x, y), [size // 5] * 5


def _propagate(
    kind: Kind, x: NDArray[Any], y: NDArray[np.int64], cases: list[Row]
) -> list[Row]:
    """Build one graph, and propagate labels on it as often as is asked for."""
    graph, seconds = build(kind, x)
    ready, found = InversePropagator(graph), []
    everywhere = np.ones(len(y), np.bool_)
    for case in cases:
        tried = []
        for draw in range(case["draws"]):
            labels = sample(y, case["share"], seed=1000 * case["subset"] + draw)
            answer = ready(labels, int(y.max()) + 1, laplacian=case["laplacian"])
            tried.append(errors(answer, y, everywhere))
        reached = [100 * one["of_reached"] for one in tried if one]
        found.append(
            {
                "rows": len(x),
                "edges_per_node": round(graph.n_edges / graph.n_nodes, 4),
                "seconds": round(seconds, 4),
                "of_reached": round(float(np.mean(reached)), 4),
                "of_all": round(
                    np.mean([100 * one["of_all"] for one in tried if one]), 4
                ),
                "unreached": np.mean([one["unreached"] for one in tried if one]),
                "deviation": round(float(np.std(reached)), 4),
            }
        )
    return found


def _alike(rows: list[Row], *but: str) -> list[list[Row]]:
    """Put together the rows that differ in these columns only, or in their subset."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[one] for one in _KEYS if one not in (but or ("subset",)))
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _mean(own: list[Row]) -> Row:
    means = {one: round(mean(own, one), 4) for one in _VALUES[1:]}
    return {**own[0], **means, "subsets": len(own)}


def _figure(rows: list[Row], names: list[str], over: str) -> Any:
    """Draw errors over the share of labels with k = 30, or over k with a tenth."""
    shares = over == "share"
    kinds = _boxed(30)
    fixed: Row = {"k": 30} if shares else {"share": SHARES[-1]}
    figure, axes = figures.panels(len(names), 2, width=5.0)
    for name, line in zip(names, axes, strict=True):
        for panel, laplacian in zip(line, LAPLACIANS, strict=True):
            for kind in kinds:
                own = where(rows, data=name, graph=kind.name, laplacian=laplacian)
                own = sorted(where(own, **fixed), key=lambda row: row[over])
                panel.plot(
                    [row[over] * (100 if shares else 1) for row in own],
                    [row["of_all"] for row in own],
                    **figures.style(kind.style),
                )
            text = f"{name.replace('_', ' ')}, {_SIGNS[laplacian]}, "
            text += "k = 30" if shares else "10 % labels"
            below = "labels, %" if shares else "k"
            panel.set_xticks([100 * one for one in SHARES[1::2]] if shares else NUMBERS)
            figures.finish(panel, text, below, "error (unreached = wrong), %")
    figures.key_below(figure, axes[0, 0], 4)
    return figure


def _over_k(rows: list[Row]) -> list[Row]:
    """Return the rows of the graphs that are built with every k, for a tenth."""
    names = {kind.name for kind in _boxed(30)}
    return [row for row in where(rows, share=SHARES[-1]) if row["graph"] in names]


def box(own: list[Row]) -> Row:
    """Return the quartiles of the errors of one graph, over all k and subsets."""
    parts = np.quantile([row["of_all"] for row in own], (0, 0.25, 0.5, 0.75, 1))
    numbers = sorted({row["k"] for row in own})
    return {
        **own[0],
        "k": " ".join(map(str, numbers)),
        "count": len(own),
        **dict(zip(_BOXES[-5:], parts.round(4), strict=True)),
    }


def _box_figure(rows: list[Row], names: list[str]) -> Any:
    """Draw boxes of the errors over all k and subsets, and the mean of every k."""
    kinds = _boxed(30)
    figure, axes = figures.panels(len(names), 2, width=5.4, height=3.6)
    for name, line in zip(names, axes, strict=True):
        for panel, laplacian in zip(line, LAPLACIANS, strict=True):
            for at, kind in enumerate(kinds):
                own = where(rows, data=name, graph=kind.name, laplacian=laplacian)
                look = figures.style(kind.style)
                drawn = panel.boxplot(
                    [row["of_all"] for row in own],
                    positions=[at],
                    widths=0.7,
                    whis=(0, 100),
                    patch_artist=True,
                    medianprops={"color": "black"},
                )
                drawn["boxes"][0].set(facecolor=look["markerfacecolor"], alpha=0.35)
                numbers = sorted({row["k"] for row in own})
                panel.plot(
                    at + np.linspace(-0.3, 0.3, len(numbers)),
                    [mean(where(own, k=k), "of_all") for k in numbers],
                    color="black",
                    linewidth=0.8,
                    marker=".",
                    markersize=4,
                    label=f"mean of every k, from {numbers[0]} to {numbers[-1]}",
                )
            titles = [figures.title_of(kind.style) for kind in kinds]
            panel.set_xticks(range(len(kinds)), titles, rotation=30, ha="right")
            text = f"{name.replace('_', ' ')}, {_SIGNS[laplacian]}, 10 % labels"
            figures.finish(panel, text, "", "error (unreached = wrong), %")
        line[1].sharey(line[0])
        line[1].autoscale(axis="y")
    figures.key_below(figure, axes[0, 0], 1)
    return figure
