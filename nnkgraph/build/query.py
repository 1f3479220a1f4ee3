"""Neighborhoods of new points among rows that are known (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import formats
from nnkgraph.build import report, solve
from nnkgraph.build.run import (
    DEFAULT_K,
    estimated_seconds,
    make_plan,
    wanted_of,
    warm_up,
)
from nnkgraph.data import Answers, Candidates, Features, SparseRows
from nnkgraph.data.duplicates import distinct_rows, first_equal
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.data.scaling import Scaling
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.executors import open_pool
from nnkgraph.runtime.progress import Stages
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search.auto import Auto
from nnkgraph.search.exact import Exact, nearest_to
from nnkgraph.search.precomputed import Precomputed, without_repeats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import csr_array

    from nnkgraph.build.run import Plan
    from nnkgraph.data import FloatArray, IndexArray, Neighborhoods
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.runtime.executors import Pool
    from nnkgraph.search import Wanted


def twins(x: Any, points: Any) -> IndexArray:
    """Return, for every point, the row with the same values, or -1."""
    sparse = isinstance(x, SparseRows)
    both = x.stacked(points) if sparse else np.concatenate([x, points])
    first = first_equal(both)[len(x) :]
    return np.where(first < len(x), first, -1)


def fitted(plan: Plan, rows: Rows, pool: Pool, seed: int, stages: Stages) -> Kernel:
    """Return the kernel with a bandwidth rule applied to the data's own candidates."""
    rule = getattr(plan.kernel, "sigma", None)
    k = min(plan.k, len(rows.x) - 1)
    if not isinstance(rule, str) or rule == "local":
        return plan.kernel
    if k == 0:
        raise InputError("a single row has no distances to take sigma from: give one")
    with stages("search", len(rows.x)) as on_rows:
        own = wanted_of(plan, rows, k, pool, seed, on_rows)
        return plan.kernel.fit(Auto().find(own))


def candidates_of(
    plan: Plan,
    asked: Wanted,
    points: FloatArray,
    twin: IndexArray | None,
    rows: Rows,
) -> Candidates:
    """Return the k best rows for every point, without its twin where one is given."""
    k, n = asked.k, len(asked.x)
    if isinstance(plan.search, Precomputed):
        found = _from_file(plan.search.path, asked, points, rows)
    else:
        more = replace(asked, k=min(n, k + (twin is not None)))
        found = nearest_to(more, points)
    index, distance = np.array(found.index), np.array(found.distance)
    if twin is not None:
        out = index == twin[:, np.newaxis]
        index[out], distance[out] = -1, np.inf
        order = np.argsort(index < 0, axis=1, kind="stable")
        index = np.take_along_axis(index, order, axis=1)
        distance = np.take_along_axis(distance, order, axis=1)
    return replace(
        found,
        index=np.ascontiguousarray(index[:, :k]),
        distance=np.ascontiguousarray(distance[:, :k]),
    )


def _from_file(path: str, asked: Wanted, points: FloatArray, rows: Rows) -> Candidates:
    """Return candidates of a file, ranked by distances of our own."""
    index, _ = formats.read_candidates(path)
    total = len(asked.x) if rows.first is None else len(rows.first)
    if len(index) != len(points):
        raise InputError(
            f"{path}: neighbors of {len(index)} queries, but there are {len(points)}"
        )
    if index.size and (index.min() < -1 or index.max() >= total):
        raise InputError(
            f"{path}: neighbors must be row numbers of the data, 0 to {total - 1} or -1"
        )
    if rows.first is not None and rows.origin is not None:
        place = np.searchsorted(rows.origin, rows.first)
        index = np.where(index >= 0, place[np.maximum(index, 0)], -1)
    index = without_repeats(index.astype(index_dtype(len(asked.x))))
    if asked.base not in DISTANCES | {"inner-product", "absolute-product"}:
        raise ParameterError("search 'precomputed' does not know this kernel")
    index, score = ranked(asked.x, points, index, asked.base)
    asked.on_rows(len(points))
    distance = distance_of(score, asked.base)
    return Candidates(index, distance, backend="precomputed", exact=False)


def with_twins(
    found: Neighborhoods, index: IndexArray, twin: IndexArray, *, has_error: bool
) -> Neighborhoods:
    """Let a row that equals its query explain it: weight 1, error 0."""
    if not has_error:
        return found
    same = (index == twin[:, np.newaxis]) & (index >= 0)
    copied = same.any(axis=1)
    weights = np.array(found.weights)
    weights[copied] = same[copied]
    values = [
        None if one is None else np.where(copied, 0.0, one)
        for one in (found.errors, found.certificate)
    ]
    return replace(found, weights=weights, errors=values[0], certificate=values[1])


def matrices(
    weights: FloatArray,
    distance: FloatArray,
    index: IndexArray,
    rows: Rows,
    n: int,
    *,
    normalize: bool,
) -> tuple[csr_array, csr_array]:
    """Put weights and distances of neighbors at the rows of the data as given."""
    from scipy.sparse import coo_array

    row, column = np.nonzero(weights > 0)
    target = as_given(index[row, column], rows)
    value = weights[row, column]
    if normalize:
        value = value / weights.sum(axis=1)[row]
    shape = len(weights), n
    joined = [
        coo_array((one, (row, target)), shape).tocsr()
        for one in (value, distance[row, column])
    ]
    for one in joined:
        one.sort_indices()
    return joined[0], joined[1]


def as_given(index: IndexArray, rows: Rows) -> IndexArray:
    """Return numbers among the distinct rows as numbers of the data; -1 stays."""
    if rows.origin is None:
        return index
    return np.where(index >= 0, rows.origin[np.maximum(index, 0)], -1)


def facts(
    data: Features,
    queries: Features,
    found: Neighborhoods,
    settings: dict[str, Any],
    more: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return provenance and report of answers."""
    provenance = {
        **report.provenance(data, settings),
        "queries_shape": list(queries.x.shape),
        "queries_sha256": queries.sha256,
    }
    count = (found.weights > 0).sum(axis=1)
    about = {
        "schema": 1,
        "queries": len(queries.x),
        "rows": len(data.x),
        "neighbors_per_query": float(count.mean()),
        "without_neighbors": int((count == 0).sum()),
        "certificate": report.certificate(found, None),
        "error": report.error_facts(found.errors),
        **settings,
        **more,
    }
    return provenance, about


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
            solved = solve.solve(
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
