"""The paper's sparsity figure: edges per node over k."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import report, solve
from nnkgraph.build.run import (
    DEFAULT_K,
    estimated_seconds,
    make_plan,
    prepared_rows,
    wanted_of,
    warm_up,
)
from nnkgraph.build.symmetrize import symmetrize
from nnkgraph.data import Candidates, Features, Graph
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.executors import open_pool
from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks.plot import new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nnkgraph.build.run import Plan
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.runtime.executors import Pool
    from nnkgraph.search import Wanted


METHODS = ("knn", "nnk", "omp", "mp")
"""What is compared where nobody says otherwise: the paper's sparsity figure."""

NUMBERS = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Comparison:
    """One line per method, rule and k."""

    lines: list[dict[str, Any]]
    sigma: float | None
    search: str
    notes: list[str]


def compare(
    features: Features | ArrayLike,
    /,
    *,
    methods: Sequence[str] = METHODS,
    k: Sequence[int] | None = None,
    kernel: str = "gaussian",
    sigma: str | float | None = None,
    search: str = "auto",
    scale: str = "none",
    min_weight: float = 1e-8,
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    stages: Stages | None = None,
) -> Comparison:
    """Build graphs by several methods for several k, and describe each.

    Candidates are searched once. A bandwidth rule is applied once, to k = 30 (or the
    largest k below that), so that only k changes from line to line.

    Parameters
    ----------
    methods : sequence of str
        Methods; ``knn`` appears with the rules ``max`` (union) and ``mutual``.
    k : sequence of int, optional
        By default 10, 20, 30, 40, 50, as far as there are rows.
    """
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    if len(features.x) < 2:
        raise InputError(
            f"{features.name}: there is only one row, and no edge to build"
        )
    numbers = _numbers(k, len(features.x))
    shared: dict[str, Any] = {
        "kernel": kernel,
        "sigma": sigma,
        "search": search,
        "scale": scale,
        "min_weight": min_weight,
        "executor": executor,
    }
    if not methods:
        raise ParameterError("there is no method to compare")
    plans = {
        name: make_plan(features, k=numbers[-1], method=name, **shared)
        for name in methods
    }
    first = plans[methods[0]]
    with stages("start"):
        rows = prepared_rows(features, first)
    n = len(rows.x)
    if n < 2:
        raise InputError(
            f"{features.name}: only {n} row is distinct: no edge is possible"
        )
    width = min(n - 1, max(plan.method.width(numbers[-1]) for plan in plans.values()))
    seconds = estimated_seconds(rows.x, width)
    lines = []
    with open_pool(executor, workers, seconds=seconds) as pool:
        with stages("start"):
            for plan in plans.values():
                warm_up(pool, rows.x, plan.kernel, plan.method)
        wanted = wanted_of(first, rows, width, pool, seed)
        with stages("search", n) as on_rows:
            found = first.search.find(replace(wanted, on_rows=on_rows))
        reference = _cut(found, min(DEFAULT_K, numbers[-1]))
        fitted = first.kernel.fit(reference)
        with stages("solve", len(plans) * len(numbers), "graphs") as on_graphs:
            for name, plan in plans.items():
                for number in numbers:
                    lines += _lines(
                        name,
                        plan,
                        number,
                        found,
                        fitted,
                        wanted,
                        pool,
                        rows,
                        min_weight,
                    )
                    on_graphs(1)
    bandwidth = fitted.bandwidth(reference)
    copies = [f"{rows.copies} copies of rows are left out"] if rows.copies else []
    return Comparison(lines, bandwidth, found.backend, [*found.notes, *copies])


def _numbers(k: Sequence[int] | None, n: int) -> list[int]:
    """Return the values of k, smallest first."""
    if k is None:
        return [one for one in NUMBERS if one < n] or [n - 1]
    numbers = sorted(set(k))
    if not numbers or numbers[0] < 1:
        raise ParameterError("k must be at least 1")
    if numbers[-1] >= n:
        raise InputError(
            f"k is {numbers[-1]}, but a node of {n} can have at most {n - 1} candidates"
        )
    return numbers


def _cut(found: Candidates, k: int) -> Candidates:
    """Return the k best of all candidates."""
    return replace(
        found,
        index=np.ascontiguousarray(found.index[:, :k]),
        distance=np.ascontiguousarray(found.distance[:, :k]),
    )


def _lines(
    name: str,
    plan: Plan,
    k: int,
    found: Candidates,
    fitted: Kernel,
    wanted: Wanted,
    pool: Pool,
    rows: Rows,
    min_weight: float,
) -> list[dict[str, Any]]:
    """Build the graphs of one method and one k."""
    start = time.perf_counter()
    method = plan.method
    candidates = _cut(found, method.width(k))
    candidates = method.gather(replace(wanted, k=k), candidates, fitted)
    solved = solve.solve(pool, rows.x, candidates, kernel=fitted, method=method, k=k)
    seconds = time.perf_counter() - start
    errors = report.error_facts(solved.errors)
    lines = []
    for rule in ("max", "mutual") if name == "knn" else (plan.rule,):
        begin = time.perf_counter()
        own = report.own_similarity(rows.x, candidates, fitted, method)
        adjacency, _ = symmetrize(
            candidates, solved, rule=rule, min_weight=min_weight, own=own
        )
        facts = report.facts(Graph(adjacency))
        lines.append(
            {
                "method": name,
                "rule": rule,
                "k": k,
                "edges": facts["edges"],
                "edges_per_node": facts["edges_per_node"],
                "components": facts["components"],
                "isolated": facts["isolated"],
                "mean_error": errors["mean"] if errors else None,
                "seconds": seconds + time.perf_counter() - begin,
                "failure": solved.failure,
            }
        )
    return lines


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
