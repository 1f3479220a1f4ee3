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
_ABLATION = (
    *("data", "method", "parameter", "value", "k", "cv_error", "deviation"),
    "repetitions",
)
_K = 30
"""The k that errors over sigma are drawn for, beside the paper's 10."""


def run(setting: Setting) -> None:
    """Write sigma.csv, and all else anew after every repetition."""
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
        names = [s.name for s in sets]
        figures.save(setting.out / "ablation.png", _figure(rows, names))
        lines = ablation(rows)
        write_csv(setting.out / "ablation.csv", _ABLATION, lines)
        figures.save(setting.out / "ablation_folds.png", _folds_figure(lines, names))


def chosen(rows: list[Row]) -> list[Row]:
    """Return for every seed the row of the k with the least error on the folds."""
    best: dict[int, Row] = {}
    for row in rows:
        known = best.get(row["seed"])
        if known is None or row["cv_error"] < known["cv_error"]:
            best[row["seed"]] = row
    return list(best.values())


def ablation(rows: list[Row]) -> list[Row]:
    """Return the error on the folds for every sigma or L/C and k, in percent."""
    alike: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        alike.setdefault((row["data"], row["method"], row["k"]), []).append(row)
    lines = []
    for own in alike.values():
        for value, column in zip(GRID, _TRIED, strict=True):
            errors = [100 * row[column] for row in own]
            found = {"value": value, "cv_error": round(float(np.mean(errors)), 4)}
            spread = round(float(np.std(errors)), 4)
            lines.append({**own[0], **found, "deviation": spread})
            lines[-1]["repetitions"] = len(own)
    return lines


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
        {"data": s.name, "print": s.print, "k": _K, "sigma": one}
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
        _over_grid(axes[0, at])
        text = f"{name}, k = {numbers[0]}"
        figures.finish(axes[0, at], text, "sigma or L/C", "error on the folds, %")
        text = f"{name}, sigma or L/C from the folds"
        figures.finish(axes[1, at], text, "k", "test error, %")
    figures.key_below(figure, axes[0, 0], len(METHODS))
    return figure


def _folds_figure(lines: list[Row], names: list[str]) -> Any:
    """Draw errors on the folds: over sigma or L/C, and over k for each of their values.

    A line of panels has one axis of errors, so that the curves' spread can be seen.
    """
    figure, axes = figures.panels(len(names), 1 + len(METHODS), width=3.6)
    for name, line in zip(names, axes, strict=True):
        first, *others = line
        for method, panel in zip(METHODS, others, strict=True):
            own = where(lines, data=name, method=method)
            at_k = where(own, k=_K)
            errors = [row["cv_error"] for row in at_k]
            first.plot(GRID, errors, **figures.style(method))
            for place, value in enumerate(GRID):
                curve = sorted(where(own, value=value), key=lambda row: row["k"])
                panel.plot(
                    [row["k"] for row in curve],
                    [row["cv_error"] for row in curve],
                    label=f"sigma or L/C = {value:g}",
                    **figures.shade(place, len(GRID)),
                )
            sign = "L/C" if method == "kstar" else "sigma"
            panel.set_xticks(sorted({row["k"] for row in own}))
            text = f"{name}, {figures.title_of(method)}, curves: {sign}"
            figures.finish(panel, text, "k", "")
        _over_grid(first)
        text = f"{name}, k = {_K}"
        figures.finish(first, text, "sigma or L/C", "error on the folds, %")
        top = max(panel.get_ylim()[1] for panel in line)
        low = min(panel.get_ylim()[0] for panel in line)
        for panel in line:
            panel.set_ylim(low, top)
    figures.key_below(figure, axes[0, :2], 4)
    return figure


def _over_grid(panel: Any) -> None:
    """Give a panel an axis of the values that cross-validation chooses from."""
    panel.set_xscale("log")
    panel.set_xticks(GRID, [f"{one:g}" for one in GRID])
    panel.minorticks_off()
