"""Neighborhoods of new points among rows that are known (the paper's Algorithm 1)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph.build import report, solve
from nnkgraph.build.run import Run, open_run
from nnkgraph.build.settings import (
    DEFAULT_K,
    Settings,
    SolveCall,
    features_of,
    plugin_of,
    split,
)
from nnkgraph.data import (
    Answers,
    Candidates,
    Features,
    Graph,
    Neighborhoods,
    SparseRows,
)
from nnkgraph.data.checks import mismatch
from nnkgraph.data.duplicates import Rows, first_equal
from nnkgraph.errors import InputError, ParameterError, QualityWarning
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import FloatArray, IndexArray, within_memory
from nnkgraph.search.auto import judged

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nnkgraph.kernels import Kernel
    from nnkgraph.search import Search, Wanted


@within_memory
def query(
    data: Features | ArrayLike,
    queries: Features | ArrayLike,
    /,
    *,
    graph: Graph | None = None,
    normalize: bool = False,
    exclude_identical: bool = False,
    **options: Unpack[SolveCall],
) -> Answers:
    """Find the neighborhood of every query among the rows of the data.

    Bandwidth and scaling come from the data. Identical rows of the data count as one,
    the first. The other parameters are those of ``build_graph``.

    Parameters
    ----------
    graph : Graph, optional
        What was built from the data: k, method, kernel, sigma and scaling are its own.
    normalize : bool
        Whether the weights of every query are divided by their sum.
    exclude_identical : bool
        Whether a row of the data that equals the query is passed over, as for points
        that are in the data themselves.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = nnkgraph.query(x, x[:4] + 0.1, k=10)
    >>> found.weights.shape
    (4, 100)
    """
    chosen, running = split(options, SolveCall)
    if chosen.get("duplicates", "merge") != "merge":
        raise ParameterError("identical rows count as one where queries are answered")
    data, queries = features_of(data), features_of(queries, name="queries")
    if graph is None:
        k = chosen.pop("k", None)
        settings = Settings.of(data, **chosen)
        settings = replace(settings, k=_checked_k(k, data))
    else:
        settings = _of_graph(graph, data, chosen)
    check_settings(settings)
    check_columns(data, queries)
    with open_run(data, settings, running) as run:
        points = run.prepared(queries)
        twin = twins(run.rows.x, points)
        kernel = _fitted(run)
        most = min(settings.k, len(run.rows.x))
        with run.progress("search", len(points)) as on_rows:
            wanted = run.wanted(most, on_rows)
            if exclude_identical:
                found = _without_twins(settings, wanted, points, twin)
            else:
                found = settings.search.query(wanted, points)
            found = judged(found, wanted, settings.search, queries=True)
        kernel = kernel.fit(found)
        with run.progress("solve", len(points)) as on_rows:
            solved = solve.solve(
                run.pool,
                run.rows.x,
                found,
                kernel=kernel,
                method=settings.method,
                points=points,
                on_rows=on_rows,
            )
            index = np.array(found.index)
            has_error = settings.method.has_error
            solved = with_twins(solved, index, twin, has_error=has_error)
        used, rows = run.pool.workers, run.rows
    row, column = np.nonzero(solved.weights > 0)
    value = solved.weights[row, column]
    if normalize:
        value = value / solved.weights.sum(axis=1)[row]
    ends = row, _as_given(index[row, column], rows)
    shape = len(solved.weights), len(data.x)
    weights, distances = (
        _matrix(one, ends, shape) for one in (value, found.distance[row, column])
    )
    proof, remarks = report.certificate(solved, None), list(found.warnings)
    if proof is not None and proof.nodes_failed:
        remarks.append(
            f"{proof.nodes_failed} queries miss their certificate: {proof.max:.2g}"
        )
    for remark in remarks:
        warnings.warn(remark, QualityWarning, stacklevel=3)
    searched = report.search_facts(found)
    stored = settings.stored(
        sigma=kernel.bandwidth(found), search=found.backend, scaling=run.scaling
    )
    names = ("method", "kernel", "metric", "sigma", "k", "scale", "search", "seed")
    known = {
        **{name: stored[name] for name in names},
        "normalize": normalize,
        "exclude_identical": exclude_identical,
    }
    count = (solved.weights > 0).sum(axis=1)
    return Answers(
        weights,
        solved.errors,
        queries.ids,
        data.ids,
        {
            **report.provenance(data, known),
            "queries_shape": list(queries.x.shape),
            "queries_sha256": queries.sha256,
        },
        {
            "schema": 1,
            "queries": len(queries.x),
            "rows": len(data.x),
            "neighbors_per_query": float(count.mean()),
            "without_neighbors": int((count == 0).sum()),
            "certificate": proof.as_dict() if proof else None,
            "error": report.error_facts(solved.errors),
            **known,
            **{name: searched[name] for name in ("recall", "recall_interval")},
            "identical": int((twin >= 0).sum()),
            "workers": used,
            "warnings": remarks,
        },
        distances=distances if stored["metric"] else None,
        nearest=_as_given(index[:, 0], rows),
        identical=_as_given(twin, rows),
    )


def _of_graph(graph: Graph, data: Features, chosen: dict[str, Any]) -> Settings:
    """Return the settings of a graph of the data; others may name the search."""
    for name in chosen.keys() - {"search"}:
        raise ParameterError(f"`{name}` is what the graph says already: leave it out")
    wrong = mismatch(graph, data)
    if wrong:
        raise InputError(f"{data.name}: not what the graph was built from: {wrong}")
    search = plugin_of("search", chosen.get("search", "auto"))
    return replace(Settings.like(graph, data, search="exact"), search=search)


def _checked_k(k: int | None, data: Features) -> int:
    """Return the number of candidates; unlike a row, a query may have all rows."""
    n = len(data.x)
    k = min(DEFAULT_K, n) if k is None else k
    if not 1 <= k <= n:
        raise InputError(f"{data.name}: k is {k}, but there are only {n} rows to find")
    return k


def check_settings(settings: Settings) -> None:
    """Refuse what cannot answer queries: it needs whole graphs or knows no points."""
    name = registry.spec(settings.method).partition(":")[0]
    if not settings.method.local or name == "eps":
        raise ParameterError(
            f"method {name!r} looks at a whole graph; queries need one that looks at k "
            "candidates"
        )
    if settings.kernel.base == "gram":
        raise ParameterError(
            "kernel precomputed knows the similarities of its own rows only; queries "
            "need features"
        )
    if not settings.search.answers_queries:
        raise ParameterError(
            f"search {registry.spec(settings.search)!r} is none for queries: use exact "
            "or precomputed:path=FILE"
        )


def twins(x: Any, points: Any) -> IndexArray:
    """Return, for every point, the row with the same values, or -1."""
    sparse = isinstance(x, SparseRows)
    both = x.stacked(points) if sparse else np.concatenate([x, points])
    first = first_equal(both)[len(x) :]
    return np.where(first < len(x), first, -1)


def _fitted(run: Run) -> Kernel:
    """Return the kernel with a bandwidth rule applied to the data's own candidates."""
    kernel = run.settings.kernel
    rule = getattr(kernel, "sigma", None)
    k = min(run.settings.k, len(run.rows.x) - 1)
    if not isinstance(rule, str) or rule == "local":
        return kernel
    if k == 0:
        raise InputError("a single row has no distances to take sigma from: give one")
    with run.progress("search", len(run.rows.x)) as on_rows:
        auto: Search = registry.create("search", "auto")
        return kernel.fit(auto.find(run.wanted(k, on_rows)))


def _without_twins(
    settings: Settings, wanted: Wanted, points: FloatArray, twin: IndexArray
) -> Candidates:
    """Return the k best rows for every point that are not the point itself."""
    k = wanted.k
    more = replace(wanted, k=min(len(wanted.x), k + 1))
    found = settings.search.query(more, points)
    index, distance = np.array(found.index), np.array(found.distance)
    out = index == twin[:, np.newaxis]
    index[out], distance[out] = -1, np.inf
    order = np.argsort(index < 0, axis=1, kind="stable")
    index, distance = (
        np.ascontiguousarray(np.take_along_axis(one, order, axis=1)[:, :k])
        for one in (index, distance)
    )
    return replace(found, index=index, distance=distance)


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


def _matrix(values: FloatArray, ends: Any, shape: tuple[int, int]) -> Any:
    """Return values of queries and rows of the data as a matrix in order."""
    from scipy.sparse import coo_array

    found = coo_array((values, ends), shape).tocsr()
    found.sort_indices()
    return found


def _as_given(index: IndexArray, rows: Rows) -> IndexArray:
    """Return numbers among the distinct rows as numbers of the data; -1 stays."""
    if rows.origin is None:
        return index
    return np.where(index >= 0, rows.origin[np.maximum(index, 0)], -1)


def check_columns(data: Features, queries: Features) -> None:
    """Refuse queries with other features than the data."""
    if data.x.shape[1] != queries.x.shape[1]:
        raise InputError(
            f"{queries.name}: {queries.x.shape[1]} columns, but {data.name} has "
            f"{data.x.shape[1]}"
        )
