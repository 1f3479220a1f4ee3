"""Trials of a classifier: methods, k and bandwidths, tried on splits of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from nnkgraph.build.query import check_settings, twins, with_twins
from nnkgraph.build.settings import Settings
from nnkgraph.build.solve import row_seconds
from nnkgraph.data.duplicates import distinct_rows
from nnkgraph.data.scaling import Scaling
from nnkgraph.data.sparse import share_rows, work_columns
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Problem
from nnkgraph.runtime import blocks, registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnkgraph.build.run import Run
    from nnkgraph.data import Candidates, Features, FloatArray, IndexArray
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.runtime.executors import Shared
    from nnkgraph.search import Search

    Sigma = str | float


@dataclass(frozen=True)
class Trial:
    """One method with one k and one bandwidth or L/C."""

    name: str  # the method as it was asked for
    settings: Settings  # its plug-ins and k
    sigma: Sigma | None = None  # the bandwidth or its rule, as it was asked for
    lc: float | None = None

    @property
    def k(self) -> int:
        """Candidates."""
        return self.settings.k


def make_trials(
    train: Features,
    methods: Sequence[str],
    k: Sequence[int],
    sigma: Sequence[Sigma] | None,
    lc: Sequence[float] | None,
    shared: dict[str, Any],
) -> list[Trial]:
    """Return all trials: by method, then k and bandwidth or L/C, smallest first."""
    if not methods:
        raise ParameterError("there is no method to classify with")
    if len(set(methods)) < len(methods):
        raise ParameterError("a method is named twice")
    kinds = {name: registry.create("methods", name) for name in methods}
    if lc is not None and not any(hasattr(kind, "lc") for kind in kinds.values()):
        raise ParameterError("lc is for method kstar, which is not asked for")
    trials = []
    for name, kind in kinds.items():
        values: list[dict[str, Any]] = [{}]
        if hasattr(kind, "lc"):
            values = [{"lc": one} for one in _costs(name, kind, lc)]
        elif kind.uses_kernel and sigma is not None:
            values = [{"sigma": one} for one in _ordered(sigma)]
        plans = [_settings(train, name, value, shared) for value in values]
        trials += [
            Trial(name, replace(plan, k=number), **value)
            for number in sorted(set(k))
            for plan, value in zip(plans, values, strict=True)
        ]
    return trials


def _costs(name: str, kind: Any, lc: Sequence[float] | None) -> list[float]:
    """Return the values of L/C, from the list or the method itself."""
    if lc is None:
        return [kind.lc]
    if "lc=" in name:
        raise ParameterError(f"lc is given twice, by itself and in method {name!r}")
    return sorted(set(lc))


def _ordered(sigma: Sequence[Sigma]) -> list[Sigma]:
    """Return rules as they come, then numbers from the smallest."""
    rules: dict[Sigma, None] = {}
    numbers: set[float] = set()
    for one in sigma:
        try:
            numbers.add(float(one))
        except ValueError:
            rules[one] = None
    return [*rules, *sorted(numbers)]


def _settings(
    train: Features, name: str, value: dict[str, Any], shared: dict[str, Any]
) -> Settings:
    made = Settings.of(train, method=name, sigma=value.get("sigma"), **shared)
    check_settings(made)
    if made.search.reads:
        raise ParameterError(
            "classify searches in every part of the rows anew: use search exact"
        )
    if "lc" in value:
        method: Any = replace(made.method, lc=value["lc"])  # type: ignore[type-var]
        made = replace(made, method=method)
    return made


def best_of(trials: Sequence[Trial], wrong: Sequence[int]) -> dict[str, int]:
    """Return for every method the place of the trial with the fewest mistakes.

    The first of equals wins: the smallest k, then the smallest bandwidth or L/C.
    """
    best: dict[str, int] = {}
    for place, trial in enumerate(trials):
        if trial.name not in best or wrong[place] < wrong[best[trial.name]]:
            best[trial.name] = place
    return best


_TIE = 1e-12  # classes this close to the best, as a share, are equal: sums are rounded


def shares_of_classes(rows: Rows, codes: IndexArray, classes: int) -> Any:
    """Return the classes of the distinct rows: the mean one-hot label of all copies."""
    place = np.arange(len(codes))
    if rows.origin is not None and rows.first is not None:
        place = np.searchsorted(rows.origin, rows.first)
    shape = len(rows.x), classes
    counts = coo_array((np.ones(len(codes)), (place, codes)), shape).tocsr()
    counts.sort_indices()
    counts.data /= np.repeat(np.bincount(place), np.diff(counts.indptr))
    return counts


def class_weights(
    weights: FloatArray, index: IndexArray, shares: tuple[Any, ...], classes: int
) -> FloatArray:
    """Return the (b, classes) shares of the neighbors' weights.

    Where no candidate has a weight (all similarities vanish, say), the nearest one has
    it all.
    """
    b, m = index.shape
    some = (weights > 0).any(axis=1, keepdims=True)
    weights = np.where(some, weights, np.arange(m) == 0)
    indptr = np.arange(0, b * m + 1, m)
    rows = len(shares[2]) - 1
    given = csr_array((weights.ravel(), index.ravel(), indptr), (b, rows))
    votes: FloatArray = (given @ csr_array(shares, (rows, classes))).toarray()
    votes /= votes.sum(axis=1, keepdims=True)
    return votes


def winners(votes: FloatArray) -> IndexArray:
    """Return the heaviest class of every row, the first of equals."""
    best = votes.max(axis=1, keepdims=True)
    winner: IndexArray = (votes >= best * (1.0 - _TIE)).argmax(axis=1)
    return winner


_BLOCK_SECONDS = 0.2


@dataclass(frozen=True)
class Found:
    """What every trial says about every point: (points, trials) arrays."""

    predicted: IndexArray
    neighbors: IndexArray  # rows with a weight; with 0 the nearest decides
    sigma: list[float | None]  # the bandwidth of every trial
    weights: Any = None  # (points, trials, classes) shares
    errors: Any = None  # J, NaN where a method has none
    certificate: Any = None


@dataclass(frozen=True)
class _Task:
    """What every block needs; small, because it travels to the workers."""

    rows: tuple[Any, Any]  # those that learn, and points
    arrays: tuple[Shared, ...]  # candidates of the points, their distances, twins
    shares: tuple[Shared, ...]
    classes: int
    trials: tuple[Trial, ...]
    full: bool


def run_split(
    run: Run,
    trials: list[Trial],
    x: Any,
    codes: IndexArray,
    classes: int,
    points: Any,
    *,
    names: tuple[str, str],
    full: bool,
    on_rows: Callable[[int], object],
) -> Found:
    """Learn from rows x and their classes, then classify every point by every trial.

    All are scaled by the rows that learn, which are searched once for the largest k.
    """
    settings, pool = trials[0].settings, run.pool
    scaling = Scaling.of(x, settings.scale, settings.pca, names[0])
    x, points = (
        settings.kernel.prepare(scaling.applied(one, name), name)
        for one, name in zip((x, points), names, strict=True)
    )
    dtype = np.result_type(x.dtype, points.dtype)
    x, points = x.astype(dtype, copy=False), points.astype(dtype, copy=False)
    rows = distinct_rows(x, "merge", names[0])
    shares = shares_of_classes(rows, codes, classes)
    twin = twins(rows.x, points)
    # Shared once: what is a map of a file already is not written again.
    x = share_rows(pool, rows.x).open()
    run = replace(run, rows=replace(rows, x=x))
    width = min(max(trial.k for trial in trials), len(x))
    exact: Search = registry.create("search", "exact")
    found = exact.query(run.wanted(width), points)
    fitted = _fitted(run, trials, width)
    n, t = len(points), len(trials)
    task = _Task(
        (share_rows(pool, x), share_rows(pool, points)),
        tuple(map(pool.share, (found.index, found.distance, twin))),
        tuple(map(pool.share, (shares.data, shares.indices, shares.indptr))),
        classes,
        tuple(fitted),
        full,
    )
    outputs = [pool.output((n, t), np.int32), pool.output((n, t), np.int32)]
    if full:
        shapes = ((n, t, classes), (n, t), (n, t))
        outputs += [pool.output(shape, np.float64) for shape in shapes]
    seconds = sum(row_seconds(trial.k, work_columns(x)) for trial in trials)
    block = int(np.clip(_BLOCK_SECONDS / seconds, 16, 1024))
    blocks.run(pool, _block, task, tuple(outputs), rows=n, block=block, on_rows=on_rows)
    sigma = [
        trial.settings.kernel.bandwidth(_cut(found, trial.k))
        if trial.settings.method.uses_kernel
        else None
        for trial in fitted
    ]
    predicted, neighbors, *more = (np.array(one.open()) for one in outputs)
    return Found(predicted, neighbors, sigma, *more)


def _fitted(run: Run, trials: list[Trial], width: int) -> list[Trial]:
    """Apply rules for the bandwidth to the distances among the rows that learn."""
    width = min(width, len(run.rows.x) - 1)
    own: Candidates | None = None
    kernels: dict[tuple[Any, int], Any] = {}
    fitted = []
    for trial in trials:
        kernel, key = trial.settings.kernel, (trial.settings.kernel, trial.k)
        rule = getattr(kernel, "sigma", None)
        idle = not trial.settings.method.uses_kernel
        if idle or not isinstance(rule, str) or rule == "local":
            fitted.append(trial)
            continue
        if not width:
            raise InputError(
                "only one training row is distinct: it has no distances to take "
                "sigma from: give one"
            )
        own = own or registry.create("search", "auto").find(run.wanted(width))
        if key not in kernels:
            kernels[key] = kernel.fit(_cut(own, trial.k))
        settings = replace(trial.settings, kernel=kernels[key])
        fitted.append(replace(trial, settings=settings))
    return fitted


def _cut(found: Candidates, k: int) -> Candidates:
    """Return the k best of all candidates."""
    return replace(found, index=found.index[:, :k], distance=found.distance[:, :k])


def _block(task: _Task, start: int, stop: int) -> tuple[Any, ...]:
    """Classify some points by every trial."""
    rows, n, t = slice(start, stop), stop - start, len(task.trials)
    x, points = (one.open() for one in task.rows)
    points = points[rows]
    index, distance, twin = (one.open()[rows] for one in task.arrays)
    shares = tuple(np.asarray(one.open()) for one in task.shares)
    predicted, neighbors = np.empty((2, n, t), np.int32)
    weights = np.empty((n, t, task.classes)) if task.full else None
    errors, certificate = np.full((2, n, t), np.nan)
    for at, trial in enumerate(task.trials):
        method, kernel = trial.settings.method, trial.settings.kernel
        best, far = (np.ascontiguousarray(a[:, : trial.k]) for a in (index, distance))
        found = method.weigh(Problem(x, points, best, far, kernel))
        found = with_twins(found, best, twin, has_error=method.has_error)
        votes = class_weights(found.weights, best, shares, task.classes)
        predicted[:, at] = winners(votes)
        neighbors[:, at] = (found.weights > 0).sum(axis=1)
        if weights is not None:
            weights[:, at] = votes
        if found.errors is not None:
            errors[:, at] = found.errors
        if found.certificate is not None:
            certificate[:, at] = found.certificate
    result = predicted, neighbors
    return (*result, weights, errors, certificate) if task.full else result
