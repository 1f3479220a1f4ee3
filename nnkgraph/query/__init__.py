"""Neighborhoods of new points among rows that are known (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import neighborhoods
from nnkgraph.data import Answers, Features
from nnkgraph.duplicates import distinct_rows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.executors import open_pool
from nnkgraph.find import wanted_of
from nnkgraph.pairs import DISTANCES
from nnkgraph.prepare import DEFAULT_K, estimated_seconds, make_plan, warm_up
from nnkgraph.query._answers import as_given, facts, matrices, with_twins
from nnkgraph.query._candidates import candidates_of, fitted, twins
from nnkgraph.scaling import Scaling
from nnkgraph.search.auto import Auto
from nnkgraph.search.exact import Exact
from nnkgraph.search.precomputed import Precomputed
from nnkgraph.stages import Stages

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.prepare import Plan

__all__ = [
    "check_columns",
    "check_plan",
    "query_neighborhoods",
    "twins",
    "with_twins",
]


def query_neighborhoods(
    data: Features | ArrayLike,
    queries: Features | ArrayLike,
    /,
    *,
    k: int | None = None,
    method: str = "nnk",
    kernel: str = "gaussian",
    sigma: str | float | None = None,
    search: str = "auto",
    scale: str = "none",
    normalize: bool = False,
    exclude_identical: bool = False,
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    stages: Stages | None = None,
) -> Answers:
    """Find the neighborhood of every query among the rows of the data.

    Bandwidth and scaling come from the data. Identical rows of the data count as one,
    the first. The other parameters are those of ``build_graph``.

    Parameters
    ----------
    normalize : bool
        Whether the weights of every query are divided by their sum.
    exclude_identical : bool
        Whether a row of the data that equals the query is passed over, as for points
        that are in the data themselves.
    """
    stages = stages or Stages()
    data = data if isinstance(data, Features) else Features.of(data)
    queries = (
        queries
        if isinstance(queries, Features)
        else Features.of(queries, name="queries")
    )
    settings = {"method": method, "kernel": kernel, "sigma": sigma}
    plan = _plan(data, queries, k, search, scale, executor, settings)
    with stages("start"):
        scaling = Scaling.of(data.x, scale)
        x = plan.kernel.prepare(scaling.applied(data.x, data.name), data.name)
        points = scaling.applied(queries.x, queries.name)
        points = plan.kernel.prepare(points, queries.name).astype(x.dtype, copy=False)
        rows = distinct_rows(x, "merge", data.name)
        twin = twins(rows.x, points)
    seconds = estimated_seconds(rows.x, plan.k)
    with open_pool(executor, workers, seconds=seconds) as pool:
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        kernel_ = fitted(plan, rows, pool, seed, stages)
        most = min(plan.k, len(rows.x))
        with stages("search", len(points)) as on_rows:
            found = candidates_of(
                plan,
                wanted_of(plan, rows, most, pool, seed, on_rows),
                points,
                twin if exclude_identical else None,
                rows,
            )
        kernel_ = kernel_.fit(found)
        with stages("solve", len(points)) as on_rows:
            solved = neighborhoods.solve(
                pool,
                rows.x,
                found,
                kernel=kernel_,
                method=plan.method,
                points=points,
                on_rows=on_rows,
            )
            index = np.array(found.index)
            solved = with_twins(solved, index, twin, has_error=plan.method.has_error)
        used = pool.workers
    weights, distances = matrices(
        solved.weights, found.distance, index, rows, len(data.x), normalize=normalize
    )
    return Answers(
        weights,
        solved.errors,
        queries.ids,
        data.ids,
        *facts(
            data,
            queries,
            solved,
            {
                **settings,
                "k": plan.k,
                "sigma": kernel_.bandwidth(found),
                "scale": scale,
                "search": found.backend,
                "seed": seed,
                "normalize": normalize,
                "exclude_identical": exclude_identical,
            },
            {"identical": int((twin >= 0).sum()), "workers": used},
        ),
        distances=distances if plan.kernel.nearness in DISTANCES else None,
        nearest=as_given(index[:, 0], rows),
        identical=as_given(twin, rows),
    )


def _plan(
    data: Features,
    queries: Features,
    k: int | None,
    search: str,
    scale: str,
    executor: str,
    settings: dict[str, Any],
) -> Plan:
    """Check everything that can be checked before the work begins."""
    n = len(data.x)
    plan = make_plan(
        data, k=None, search=search, scale=scale, executor=executor, **settings
    )
    check_plan(plan, settings["method"], search)
    check_columns(data, queries)
    if k is None:
        k = min(DEFAULT_K, n)
    if not 1 <= k <= n:
        raise InputError(f"{data.name}: k is {k}, but there are only {n} rows to find")
    return replace(plan, k=k)


def check_plan(plan: Plan, method: str, search: str) -> None:
    """Refuse what cannot answer queries: it needs whole graphs or knows no points."""
    name = method.partition(":")[0]
    if not plan.method.local or name == "eps":
        raise ParameterError(
            f"method {name!r} looks at a whole graph; queries need one that looks at k "
            "candidates"
        )
    if plan.kernel.base == "gram":
        raise ParameterError(
            "kernel precomputed knows the similarities of its own rows only; queries "
            "need features"
        )
    if not isinstance(plan.search, (Auto, Exact, Precomputed)):
        raise ParameterError(
            f"search {search!r} is none for queries: use exact or precomputed:path=FILE"
        )


def check_columns(data: Features, queries: Features) -> None:
    """Refuse queries with other features than the data."""
    if data.x.shape[1] != queries.x.shape[1]:
        raise InputError(
            f"{queries.name}: {queries.x.shape[1]} columns, but {data.name} has "
            f"{data.x.shape[1]}"
        )
