"""Trials of a classifier: methods, k and bandwidths, tried on splits of the rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build.query import check_settings, twins, with_twins
from nnkgraph.build.settings import Settings
from nnkgraph.build.solve import row_seconds
from nnkgraph.data.duplicates import distinct_rows
from nnkgraph.data.scaling import Scaling
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Problem
from nnkgraph.runtime import blocks, registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.build.run import Run
    from nnkgraph.data import Features
    from nnkgraph.search import Search

    Sigma = str | float
    from collections.abc import Callable

    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.runtime.executors import Shared


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
    sigmas = [None] if sigma is None else _ordered(sigma)
    trials, used = [], False
    for name in methods:
        kind = registry.create("methods", name)
        values: list[dict[str, Any]]
        if hasattr(kind, "lc"):
            used = True
            values = [{"lc": one} for one in _costs(name, kind, lc)]
        elif kind.uses_kernel:
            values = [{"sigma": one} for one in sigmas]
        else:
            values = [{}]
        plans = [_settings(train, name, value, shared) for value in values]
        trials += [
            Trial(name, replace(plan, k=number), **value)
            for number in sorted(set(k))
            for plan, value in zip(plans, values, strict=True)
        ]
    if lc is not None and not used:
        raise ParameterError("lc is for method kstar, which is not asked for")
    return trials


def _costs(name: str, kind: Any, lc: Sequence[float] | None) -> list[float]:
    """Return the values of L/C, from the list or the method itself."""
    if lc is None:
        return [kind.lc]
    if "lc=" in name:
        raise ParameterError(f"lc is given twice, by itself and in method {name!r}")
    return sorted(set(lc))


def _ordered(sigma: Sequence[Sigma]) -> list[Sigma | None]:
    """Return rules as they come, then numbers from the smallest."""
    rules: list[Sigma | None] = []
    numbers: set[float] = set()
    for one in sigma:
        with suppress(ValueError):
            numbers.add(float(one))
            continue
        rules.append(one)
    return [*dict.fromkeys(rules), *sorted(numbers)]


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


def chosen(trials: Sequence[Trial], wrong: Sequence[int]) -> dict[str, int]:
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
    from scipy.sparse import coo_array

    place = np.arange(len(codes))
    if rows.origin is not None and rows.first is not None:
        place = np.searchsorted(rows.origin, rows.first)
    shape = len(rows.x), classes
    counts = coo_array((np.ones(len(codes)), (place, codes)), shape).tocsr()
    counts.sort_indices()
    counts.data /= np.repeat(np.bincount(place), np.diff(counts.indptr))
    return counts


def class_weights(
    weights: FloatArray,
    index: IndexArray,
    shares: tuple[Any, ...],
    classes: int,
) -> FloatArray:
    """Return the (b, classes) shares of the neighbors' weights.

    Where no candidate has a weight (all similarities vanish, say), the nearest one has
    it all.
    """
    from scipy.sparse import csr_array

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
class Split:
    """Rows that learn and rows that are classified, as the kernel sees them."""

    rows: Rows
    shares: Any  # (n, classes) csr: which share of the copies of a row has which class
    points: FloatArray
    twin: IndexArray


@dataclass(frozen=True)
class Found:
    """What every trial says about every point: (points, trials) arrays."""

    predicted: IndexArray
    neighbors: IndexArray  # rows with a weight; with 0 the nearest decides
    sigma: list[float | None]  # the bandwidth of every trial
    weights: FloatArray | None = None  # (points, trials, classes) shares
    errors: FloatArray | None = None  # J, NaN where a method has none
    certificate: FloatArray | None = None


@dataclass(frozen=True)
class _Task:
    """What every block needs; small, because it travels to the workers."""

    x: Shared
    points: Shared
    index: Shared
    distance: Shared
    twin: Shared
    shares: tuple[Shared, ...]
    classes: int
    trials: tuple[Trial, ...]
    full: bool


def make_split(
    x: Any,
    codes: IndexArray,
    classes: int,
    points: Any,
    *,
    kernel: Kernel,
    scale: str,
    names: tuple[str, str],
) -> Split:
    """Scale by the rows that learn, and put their copies together."""
    scaling = Scaling.of(x, scale)
    x = kernel.prepare(scaling.applied(x, names[0]), names[0])
    points = kernel.prepare(scaling.applied(points, names[1]), names[1])
    dtype = np.result_type(x, points)
    x, points = x.astype(dtype, copy=False), points.astype(dtype, copy=False)
    rows = distinct_rows(x, "merge", names[0])
    shares = shares_of_classes(rows, codes, classes)
    return Split(rows, shares, points, twins(rows.x, points))


def run_split(
    run: Run,
    split: Split,
    trials: list[Trial],
    *,
    full: bool = False,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Found:
    """Search once with the largest k, then classify every point by every trial."""
    pool = run.pool
    # Shared once: what is a map of a file already is not written again.
    split = replace(split, rows=replace(split.rows, x=pool.share(split.rows.x).open()))
    run, x = replace(run, rows=split.rows), split.rows.x
    width = min(max(trial.k for trial in trials), len(x))
    exact: Search = registry.create("search", "exact")
    found = exact.query(run.wanted(width), split.points)
    fitted = _fitted(run, trials, width)
    n, t, c = len(split.points), len(trials), split.shares.shape[1]
    task = _Task(
        pool.share(x),
        pool.share(split.points),
        pool.share(found.index),
        pool.share(found.distance),
        pool.share(split.twin),
        tuple(
            pool.share(one)
            for one in (split.shares.data, split.shares.indices, split.shares.indptr)
        ),
        c,
        tuple(fitted),
        full,
    )
    outputs = [pool.output((n, t), np.int32), pool.output((n, t), np.int32)]
    if full:
        shapes = ((n, t, c), (n, t), (n, t))
        outputs += [pool.output(shape, np.float64) for shape in shapes]
    seconds = sum(row_seconds(trial.k, x.shape[1]) for trial in trials)
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
    kernels: dict[tuple[Any, int], Kernel] = {}
    own: Candidates | None = None
    for trial in trials:
        kernel = trial.settings.kernel
        rule = getattr(kernel, "sigma", None)
        idle = not trial.settings.method.uses_kernel
        if idle or not isinstance(rule, str) or rule == "local":
            kernels[kernel, trial.k] = kernel
            continue
        if own is None:
            if not width:
                raise InputError(
                    "only one training row is distinct: it has no distances to take "
                    "sigma from: give one"
                )
            auto: Search = registry.create("search", "auto")
            own = auto.find(run.wanted(width))
        if (kernel, trial.k) not in kernels:
            kernels[kernel, trial.k] = kernel.fit(_cut(own, trial.k))
    return [
        replace(
            trial,
            settings=replace(trial.settings, kernel=kernels[trial.settings.kernel, k]),
        )
        for trial in trials
        for k in (trial.k,)
    ]


def _cut(found: Candidates, k: int) -> Candidates:
    """Return the k best of all candidates."""
    return replace(found, index=found.index[:, :k], distance=found.distance[:, :k])


def _block(task: _Task, start: int, stop: int) -> tuple[Any, ...]:
    """Classify some points by every trial."""
    rows, n, t = slice(start, stop), stop - start, len(task.trials)
    x, points = task.x.open(), task.points.open()[rows]
    twin = np.asarray(task.twin.open()[rows])
    shares = tuple(np.asarray(one.open()) for one in task.shares)
    predicted, neighbors = np.empty((2, n, t), np.int32)
    weights = np.empty((n, t, task.classes)) if task.full else None
    errors, certificate = np.full((2, n, t), np.nan)
    for at, trial in enumerate(task.trials):
        method, kernel = trial.settings.method, trial.settings.kernel
        index, distance = (
            np.ascontiguousarray(one.open()[rows, : trial.k])
            for one in (task.index, task.distance)
        )
        found = method.weigh(Problem(x, points, index, distance, kernel))
        found = with_twins(found, index, twin, has_error=method.has_error)
        votes = class_weights(found.weights, index, shares, task.classes)
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
