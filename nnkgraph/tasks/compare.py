"""Methods and values of k side by side, and edges per node over k as curves."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph.build import report, settings, solve
from nnkgraph.build.run import Run, open_run
from nnkgraph.build.settings import DEFAULT_K, RunningOptions, Settings, features_of
from nnkgraph.build.symmetrize import symmetrize
from nnkgraph.data import Candidates, Features, Graph
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.arrays import within_memory
from nnkgraph.tasks.plot import new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nnkgraph.kernels import Kernel


class CompareCall(RunningOptions, total=False):
    """Keywords of ``compare`` that it has in common with ``build_graph``."""

    kernel: Any
    sigma: str | float | None
    preset: str | None
    search: Any
    scale: str
    pca: int | None
    seed: int


METHODS = ("knn", "nnk", "omp", "mp")  # as in the paper's sparsity figure
NUMBERS = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Comparison:
    """One line per method, rule and k."""

    lines: list[dict[str, Any]]
    sigma: float | None  # of the regressions, where there are any
    search: str
    notes: list[str]


@within_memory
def compare(
    features: Features | ArrayLike,
    /,
    *,
    methods: Sequence[str] = METHODS,
    k: Sequence[int] | None = None,
    min_weight: float = 1e-8,
    **options: Unpack[CompareCall],
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
    options
        The others of ``build_graph``.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.compare(x, methods=["knn", "nnk"], k=[10])
    >>> [line["method"] for line in found.lines]
    ['knn', 'knn', 'nnk']
    """
    chosen, running = settings.split(options, CompareCall)
    features = features_of(features)
    if len(features.x) < 2:
        raise InputError(
            f"{features.name}: there is only one row, and no edge to build"
        )
    numbers = _numbers(k, len(features.x))
    if not methods:
        raise ParameterError("there is no method to compare")
    given: dict[str, Any] = {"k": numbers[-1], "min_weight": min_weight, **chosen}
    each = {name: Settings.of(features, method=name, **given) for name in methods}
    first = max(each.values(), key=lambda one: one.width)
    lines = []
    others = [one.method for one in each.values()]
    with open_run(features, first, running, methods=others) as run:
        n = len(run.rows.x)
        if n < 2:
            raise InputError(
                f"{features.name}: only {n} row is distinct: no edge is possible"
            )
        with run.progress("search", n) as on_rows:
            found = first.search.find(run.wanted(min(n - 1, first.width), on_rows))
        reference = _cut(found, min(DEFAULT_K, numbers[-1]))
        fitted = {name: own.kernel.fit(reference) for name, own in each.items()}
        with run.progress("solve", len(each) * len(numbers), "graphs") as on_graphs:
            for name, own in each.items():
                for number in numbers:
                    lines += _lines(run, name, own, number, found, fitted[name])
                    on_graphs(1)
    rows = run.rows
    main = next((one for one in each if each[one].method.has_error), methods[0])
    bandwidth = fitted[main].bandwidth(reference)
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
    index, distance = found.index[:, :k], found.distance[:, :k]
    index, distance = np.ascontiguousarray(index), np.ascontiguousarray(distance)
    return replace(found, index=index, distance=distance)


def _lines(
    run: Run, name: str, chosen: Settings, k: int, found: Candidates, fitted: Kernel
) -> list[dict[str, Any]]:
    """Build the graphs of one method and one k."""
    start = time.perf_counter()
    method, x, min_weight = chosen.method, run.rows.x, chosen.min_weight
    candidates = method.gather(run.wanted(k), _cut(found, method.width(k)), fitted)
    solved = solve.solve(run.pool, x, candidates, kernel=fitted, method=method, k=k)
    seconds = time.perf_counter() - start
    errors = report.error_facts(solved.errors)
    lines = []
    for rule in ("max", "mutual") if name == "knn" else (chosen.rule,):
        begin = time.perf_counter()
        own = report.own_similarity(x, candidates, fitted, method)
        joined = symmetrize(
            candidates,
            solved,
            rule=rule,
            min_weight=min_weight,
            min_degree=chosen.min_degree,
            own=own,
        )
        facts = report.facts(Graph(joined.adjacency))
        names = ("edges", "edges_per_node", "components", "isolated")
        line = {"method": name, "rule": rule, "k": k, **{n: facts[n] for n in names}}
        line["mean_error"] = errors["mean"] if errors else None
        line["seconds"] = seconds + time.perf_counter() - begin
        lines.append({**line, "failure": solved.failure})
    return lines


# Told apart by color-blind readers too.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = "osD^vPX*"


def draw_curves(lines: list[dict[str, Any]], title: str) -> Any:
    """Draw edges per node over k, one curve for every method and rule."""
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
