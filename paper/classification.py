"""Table 1: local classifiers on sets with a standard split, by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nnkgraph.tasks.classify import classify
from paper import data, figures, published
from paper.local import METHODS, VALUES, tested
from paper.results import Row, Table, mean, where, write_csv
from paper.setting import GRID, Setting, say

LARGEST = 20_000
"""Larger sets, as MNIST, are left out."""

_KEYS = ("data", "print", "seed", "k", "method")
_TRIED = tuple(f"cv_error_{one:g}" for one in GRID)
_VALUES = (*VALUES, *_TRIED)
_TABLE = (
    *("data", "train", "test", "features", "classes", "method", "error", "deviation"),
    *("published", "k", "parameter", "value", "repetitions"),
)


def run(setting: Setting) -> None:
    """Write sigma.csv, and table1.csv with a figure anew after every repetition."""
    sets = [data.load(setting, one) for one in data.names(setting)]
    sets = [one for one in sets if one.split is not None and len(one.x) <= LARGEST]
    if not sets:
        say("table1: no set of the data folder has a split: nothing to do")
        return
    _sigma(setting, sets)
    table = Table(setting.out / "classification.csv", _KEYS, _VALUES)
    known = {one.name: one for one in sets}

    def compute(some: list[Row]) -> Iterable[Row]:
        own = known[some[0]["data"]]
        for row, line in tested(setting, own, some, split=own.split):
            which = row["parameter"]
            yield row | {
                f"cv_error_{one[which]:g}": one["error"] for one in line["tried"]
            }

    rows: list[Row] = []
    for seed in range(setting.repeats(10)):
        cases = [
            {"data": s.name, "print": s.print, "seed": seed, "k": k, "method": m}
            for s in sets
            for k in setting.numbers
            for m in METHODS
        ]
        rows += table.fill(cases, compute, group=("data", "k"))
        lines = [
            _line(s, where(rows, data=s.name, method=m)) for s in sets for m in METHODS
        ]
        write_csv(setting.out / "table1.csv", _TABLE, lines)
        picture = _figure(rows, [s.name for s in sets])
        figures.save(setting.out / "ablation.png", picture)


def chosen(rows: list[Row]) -> list[Row]:
    """Return for every seed the row of the k with the least error on the folds."""
    best: dict[int, Row] = {}
    for row in rows:
        known = best.get(row["seed"])
        if known is None or row["cv_error"] < known["cv_error"]:
            best[row["seed"]] = row
    return list(best.values())


def _line(own: data.Set, rows: list[Row]) -> Row:
    """Return a line of Table 1, in percent."""
    best = chosen(rows)
    error = 100 * mean(best, "error")
    spread = sum((100 * row["error"] - error) ** 2 for row in best) / len(best)
    method = best[0]["method"]
    test = int(np.sum(own.split == 1))
    return {
        "data": own.name,
        "train": len(own.x) - test,
        "test": test,
        "features": own.x.shape[1],
        "classes": int(own.y.max()) + 1,
        "method": method,
        "error": round(error, 2),
        "deviation": round(spread**0.5, 2),
        "published": published.table_1(own.name, method),
        "k": _several(best, "k"),
        "parameter": best[0]["parameter"],
        "value": _several(best, "value"),
        "repetitions": len(best),
    }


def _several(rows: list[Row], column: str) -> str:
    """Return the values that were chosen, the most frequent first."""
    values = [row[column] for row in rows]
    order = sorted(set(values), key=lambda one: (-values.count(one), one))
    return " ".join(f"{one:g}" for one in order)


def _sigma(setting: Setting, sets: list[data.Set]) -> None:
    """Check that NNK is nowhere worse than kNN by over a point, with k = 30."""
    known = {one.name: one for one in sets}
    table = Table(
        setting.out / "sigma.csv",
        ("data", "print", "k", "sigma"),
        ("knn", "nnk", "difference", "within_one_point"),
    )

    def compute(cases: list[Row]) -> Iterable[Row]:
        for case in cases:
            own = known[case["data"]]
            found = classify(
                own.x,
                own.y,
                split=own.split,
                methods=("knn", "nnk"),
                k=case["k"],
                sigma=case["sigma"],
                scale="standard",
                preset="paper",
                workers=setting.workers,
            )
            knn, nnk = (100 * line["error"] for line in found.lines)
            yield {
                "knn": round(knn, 2),
                "nnk": round(nnk, 2),
                "difference": round(nnk - knn, 2),
                "within_one_point": int(nnk <= knn + 1),
            }

    cases = [
        {"data": s.name, "print": s.print, "k": 30, "sigma": one}
        for s in sets
        for one in GRID
    ]
    table.fill(cases, compute)


def _figure(rows: list[Row], names: list[str]) -> Any:
    """Draw the paper's ablation: errors over sigma or L/C, and over k."""
    figure, axes = figures.panels(2, len(names))
    numbers = sorted({row["k"] for row in rows})
    for at, name in enumerate(names):
        for method in METHODS:
            own = where(rows, data=name, method=method)
            least = where(own, k=numbers[0])
            tried = [100 * mean(least, column) for column in _TRIED]
            axes[0, at].plot(GRID, tried, **figures.style(method))
            test = [100 * mean(where(own, k=k), "error") for k in numbers]
            axes[1, at].plot(numbers, test, **figures.style(method))
        axes[0, at].set_xscale("log")
        axes[0, at].set_xticks(GRID, [f"{one:g}" for one in GRID])
        axes[0, at].minorticks_off()
        text = f"{name}, k = {numbers[0]}"
        figures.finish(axes[0, at], text, "sigma or L/C", "error on the folds, %")
        text = f"{name}, sigma or L/C from the folds"
        figures.finish(axes[1, at], text, "k", "test error, %")
    figures.key_below(figure, axes[0, 0], len(METHODS))
    return figure
