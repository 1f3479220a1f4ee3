"""Which graph serves what people do next: one factor at a time, over many sets.

Graphs differ in bandwidth, rule, least degree, weights, kernel or method; tasks are
leave-one-out classification, label propagation, two ways of clustering and eigenmaps.
Every graph is judged by its difference to the paper's, set by set.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from nnkgraph.formats import write_file
from nnkgraph.runtime.limits import granted_cpus
from paper import data, figures
from paper.results import Row, Table, mean, where, write_csv
from paper.setting import Setting, say
from paper.study_graphs import MULTIPLES, PAPER, Kind, Prepared, graph_of, kinds
from paper.study_tasks import TASKS, judged

ROWS = 1500
"""Rows of a set at most: so many graphs are inverted in an hour or two."""

_KEYS = ("data", "print", "rows", "graph")
_VALUES = ("sigma", "edges_per_node", "isolated", "components", *TASKS)
_LARGER_IS_BETTER = {"leiden", "spectral", "trustworthiness", "continuity"}
_SHOWN = ("loo", "propagate_L", "propagate_Lsym", "leiden", "spectral")
_DRAWS = 2000
"""Bootstrap samples of the sets."""


def run(setting: Setting) -> None:
    """Write study.csv, what it comes to, and figures."""
    names = data.names(setting)
    if not names:
        say("study: there is no data; name a folder with --data")
        return
    wanted = kinds(quick=setting.quick)
    rows = setting.rows(ROWS)
    cases = [
        {"data": name, "print": mark, "rows": rows, "graph": kind.name}
        for name in names
        for mark in [data.load(setting, name).print]
        for kind in wanted
    ]
    table = Table(setting.out / "study.csv", _KEYS, _VALUES)
    count = setting.workers
    processes = count if isinstance(count, int) else granted_cpus()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = table.fill(
            cases, _Compute(setting), group=("data", "graph"), mapper=pool.map
        )
    summary = [_line(kind, found) for kind in wanted]
    columns = list(summary[0])
    write_csv(setting.out / "study_means.csv", columns, summary)
    write_file(setting.out / "study.md", _table(summary).encode())
    figures.save(setting.out / "study_sigma.png", _over_sigma(found))
    figures.save(setting.out / "study.png", _differences(summary))


class _Compute:
    """Builds and judges one graph; travels to the workers."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def __call__(self, cases: list[Row]) -> Iterable[Row]:
        known = {kind.name: kind for kind in kinds()}
        with threadpool_limits(limits=1):
            return [self._one(case, known[case["graph"]]) for case in cases]

    def _one(self, case: Row, kind: Kind) -> Row:
        ready = _prepared(self._setting, case["data"], case["rows"])
        return judged(ready, *graph_of(ready, kind))


@lru_cache(maxsize=1)
def _prepared(setting: Setting, name: str, rows: int) -> Prepared:
    """Return distinct rows of a set; the same graphs are built on them."""
    return Prepared.of(data.load(setting, name), rows)


def gains(rows: list[Row], kind: Kind, task: str, base: str = PAPER) -> np.ndarray:
    """Return by how much a graph is better than another, for every set."""
    own = {row["data"]: row[task] for row in where(rows, graph=kind.name)}
    other = {row["data"]: row[task] for row in where(rows, graph=base)}
    sign = 1.0 if task in _LARGER_IS_BETTER else -1.0
    both = [
        sign * (own[one] - other[one])
        for one in own
        if own[one] is not None and other.get(one) is not None
    ]
    return np.array(both)


def _line(kind: Kind, rows: list[Row]) -> Row:
    """Return the means of a graph, and how it stands beside the paper's."""
    own = where(rows, graph=kind.name)
    line: Row = {"graph": kind.name, **asdict(kind)}
    for one in ("edges_per_node", "isolated", "components", *TASKS):
        line[one] = round(mean(own, one), 4)
    for task in TASKS:
        gain = gains(rows, kind, task)
        low, high = _interval(gain)
        line |= {
            f"{task}_gain": round(float(gain.mean()), 4),
            f"{task}_low": round(low, 4),
            f"{task}_high": round(high, 4),
            f"{task}_better": int((gain > _TIE).sum()),
            f"{task}_worse": int((gain < -_TIE).sum()),
        }
    return line


def _table(summary: list[Row]) -> str:
    """Return what docs/study.md shows: means, and sets better and worse."""
    head = ["graph", "edges", "isolated", *(_TITLES[one] for one in _SHOWN)]
    lines = [head, ["---"] * len(head)]
    for row in summary:
        tasks = [
            f"{row[one]:.3f} ({row[f'{one}_better']}/{row[f'{one}_worse']})"
            for one in _SHOWN
        ]
        alone = f"{100 * row['isolated']:.2f} %"
        lines.append([row["graph"], f"{row['edges_per_node']:.1f}", alone, *tasks])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_TIE = 1e-3
"""Differences below a tenth of a percent are none."""


def _interval(gain: np.ndarray) -> tuple[float, float]:
    """Return the mean's interval of 95 % over sets, by bootstrap."""
    draw = np.random.default_rng(0)
    means = gain[draw.integers(0, len(gain), (_DRAWS, len(gain)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _over_sigma(rows: list[Row]) -> Any:
    """Draw every task over the bandwidth."""
    figure, axes = figures.panels(2, 3)
    for panel, task in zip(axes.flat, (*_SHOWN, "edges_per_node"), strict=True):
        for weights, mark in (("regression", "s-"), ("one", "o--"), ("kernel", "^:")):
            points = []
            for multiple in MULTIPLES:
                kind = Kind(sigma=multiple, min_degree=3, weights=weights)
                own = [row[task] for row in where(rows, graph=kind.name)]
                if own:
                    points.append((multiple, float(np.mean(own))))
            if points:
                panel.plot(*zip(*points, strict=True), mark, label=weights)
        panel.set_xscale("log")
        ticks = ["1/6", "1/3", "1/2", "2/3", "1", "3/2", "2", "3"]
        panel.set_xticks(MULTIPLES, ticks, fontsize=8)
        panel.minorticks_off()
        figures.finish(panel, _TITLES.get(task, task), "sigma / mean k-th distance", "")
    figures.key_below(figure, axes[0, 0], 3)
    return figure


_TITLES = {
    "loo": "leave-one-out error",
    "propagate_L": "label propagation error, L",
    "propagate_Lsym": "label propagation error, L_sym",
    "leiden": "Leiden, AMI",
    "spectral": "spectral clustering, AMI",
    "edges_per_node": "edges per node",
}


def _differences(summary: list[Row]) -> Any:
    """Draw what every graph gains over the paper's, with its interval."""
    shown = _SHOWN
    figure, axes = figures.panels(1, len(shown), width=3.4, height=11.0)
    at = np.arange(len(summary))[::-1]
    for panel, task in zip(axes[0], shown, strict=True):
        gain = np.array([row[f"{task}_gain"] for row in summary])
        low = np.array([row[f"{task}_low"] for row in summary])
        high = np.array([row[f"{task}_high"] for row in summary])
        spread = np.clip([gain - low, high - gain], 0, None)
        panel.errorbar(gain, at, xerr=spread, fmt="o", markersize=3, linewidth=1)
        panel.axvline(0.0, color="black", linewidth=0.8)
        panel.set_xlim(-0.12, 0.12)
        first = panel is axes[0, 0]
        labels = [row["graph"] for row in summary] if first else []
        panel.set_yticks(at if first else [], labels, fontsize=7)
        panel.set_ylim(-1, len(summary))
        figures.finish(panel, _TITLES[task], "better than the paper's by", "")
    return figure
