"""The first half of every task: rows as the kernel sees them, and their candidates."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__, formats
from nnkgraph.build import report, solve
from nnkgraph.build.symmetrize import check_rule
from nnkgraph.data import Candidates, Features, SparseGram, SparseRows
from nnkgraph.data.duplicates import POLICIES, candidates_with_copies, distinct_rows
from nnkgraph.data.scaling import SCALES, scaled
from nnkgraph.data.sparse import work_columns
from nnkgraph.errors import InputError, OutputError, ParameterError, ResourceError
from nnkgraph.kernels.function import Function
from nnkgraph.runtime import arrays, blocks, registry
from nnkgraph.runtime.arrays import converted, memory_limit, row_slices, within_memory
from nnkgraph.runtime.checkpoint import open_checkpoint
from nnkgraph.runtime.executors import BLOCK_TIMEOUT, open_pool, pool_size
from nnkgraph.runtime.limits import (
    available_memory,
    free_addresses,
    in_words,
    taken_memory,
)
from nnkgraph.runtime.progress import Stages
from nnkgraph.search import Wanted, index_dtype, is_by_rows
from nnkgraph.search.auto import Auto, choose, exact_seconds, kdtree_seconds
from nnkgraph.search.exact import GRAIN, MULTIPLIED, Exact
from nnkgraph.search.precomputed import Precomputed
from nnkgraph.search.sharded import Sharded, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from nnkgraph.build.shards import Shard
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.runtime.checkpoint import Block, Checkpoint
    from nnkgraph.runtime.executors import Executor, Pool
    from nnkgraph.search import Search


DEFAULT_K = 30


@dataclass(frozen=True)
class Plan:
    """The plug-ins and numbers of a run, checked against each other and the data."""

    k: int
    method: Method
    kernel: Kernel
    search: Search
    rule: str
    scale: str
    duplicates: str
    executor: str


def make_plan(
    features: Features,
    *,
    k: int | None,
    method: str = "nnk",
    kernel: str = "gaussian",
    sigma: str | float | None = None,
    search: str = "auto",
    symmetrize: str | None = None,
    min_weight: float = 0.0,
    min_degree: int = 0,
    scale: str = "none",
    duplicates: str = "merge",
    executor: str = "processes",
) -> Plan:
    """Check everything that can be checked before the work begins."""
    weigher: Method = registry.create("methods", method)
    rule = symmetrize or weigher.rule
    check_rule(rule, has_error=weigher.has_error, method=method)
    if not (np.isfinite(min_weight) and min_weight >= 0 and min_degree >= 0):
        raise ParameterError("min_weight and min_degree must not be negative")
    check_choice("scale", scale, SCALES)
    check_choice("policy for duplicates", duplicates, POLICIES)
    registry.create("executors", executor)
    similarity = create_kernel(kernel, sigma)
    weigher.check(similarity)
    if similarity.base == "gram" and scale != "none":
        raise ParameterError("similarities cannot be scaled: leave scale out")
    if not weigher.local and duplicates == "keep":
        raise ParameterError(
            f"method {method!r} needs distinct rows: use duplicates merge or error"
        )
    finder: Search = registry.create("search", search)
    plan = Plan(
        checked_k(k, features),
        weigher,
        similarity,
        finder,
        rule,
        scale,
        duplicates,
        executor,
    )
    if isinstance(features.x, SparseRows):
        _check_sparse(plan)
    return plan


def _check_sparse(plan: Plan) -> None:
    """Refuse what would need all the zeros of sparse features."""
    by_pairs = plan.kernel.base in {"squared-distance", "inner-product"}
    if not by_pairs or plan.kernel.form not in {"affine", "exponential"}:
        raise ParameterError(
            "sparse features work with kernels cosine, gaussian and linear; others "
            "need a dense matrix"
        )
    if plan.method.dense:
        name = registry.spec(plan.method).partition(":")[0]
        raise ParameterError(f"method {name!r} needs a dense matrix of features")
    if plan.scale not in {"none", "unit"}:
        raise ParameterError(
            f"scale {plan.scale!r} would fill the zeros of sparse features: use none "
            "or unit"
        )
    if not isinstance(plan.search, Auto | Exact | Precomputed):
        raise ParameterError("sparse features are searched by 'exact' only")


def check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a word that is none of the choices."""
    if value not in choices:
        raise ParameterError(
            f"unknown {what} {value!r}; choose from {', '.join(choices)}"
        )


def create_kernel(spec: Any, sigma: str | float | None) -> Kernel:
    """Make a kernel of a name, a function or a kernel, with its bandwidth apart."""
    kernel: Kernel
    if isinstance(spec, str):
        kernel = registry.create("kernels", spec)
    else:
        kernel = spec if hasattr(spec, "nearness") else Function.of(spec)
    if sigma is None:
        return kernel
    if "sigma" not in registry.parameter_types(type(kernel)):
        raise ParameterError(f"kernel {spec!r} has no bandwidth: leave sigma out")
    if kernel != type(kernel)():
        raise ParameterError(
            f"the bandwidth is given twice, by sigma and in kernel {spec!r}: leave "
            "one out"
        )
    if isinstance(sigma, str):
        with suppress(ValueError):  # it is the name of a rule, which the kernel checks
            sigma = float(sigma)
    changed: Any = replace(kernel, sigma=sigma)  # type: ignore[type-var]
    return changed  # type: ignore[no-any-return]


def checked_k(k: int | None, features: Features) -> int:
    """Return the number of candidates, or refuse one that cannot be."""
    n = len(features.x)
    if k is None:
        return min(DEFAULT_K, n - 1)
    if k < 1:
        raise ParameterError(f"k must be at least 1, not {k}")
    if k >= n:
        raise InputError(
            f"{features.name}: k is {k}, but a node of {n} can have at most {n - 1} "
            "candidates: use a smaller k"
        )
    return k


def prepared_rows(features: Features, plan: Plan) -> Rows:
    """Return the rows as the kernel sees them, copies treated as asked."""
    x, name = features.x, features.name
    x = x if plan.scale == "none" else scaled(x, plan.scale, name)
    x = plan.kernel.prepare(x, name)
    square = plan.kernel.base == "gram"
    return distinct_rows(x, plan.duplicates, name, square=square)


def k_warnings(k: int, rows: Rows) -> list[str]:
    """Say so where too few rows are distinct."""
    n = len(rows.x)
    if k < n or k == 0:
        return []
    rows_ = "1 row is" if n == 1 else f"{n} rows are"
    return [f"only {rows_} distinct: k is {n - 1} instead of {k}"]


def worker_warnings(asked: int | str, used: int) -> list[str]:
    """Say so where fewer workers were used than asked for."""
    if isinstance(asked, str) or used >= asked:
        return []
    return [f"{used} workers were used instead of {asked}: more would only wait"]


def estimated_seconds(x: Any, k: int) -> float:
    """Estimate roughly how long one processor will work."""
    n, d = len(x), work_columns(x)
    search = min(exact_seconds(n, d), kdtree_seconds(n, d))
    return 2.0 * search + n * solve.row_seconds(k, d)


def warm_up(pool: Pool, x: Any, kernel: Kernel, method: Method) -> None:
    """Have everything compiled and every worker ready before the work is timed."""
    if kernel.base == "gram":
        tiny: Any = np.exp(-np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))))
        if isinstance(x, SparseGram):
            from scipy.sparse import csr_array

            tiny = SparseGram.of(csr_array(tiny))
    elif isinstance(x, SparseRows):
        from scipy.sparse import csr_array

        tiny = SparseRows.of(csr_array(np.arange(24.0).reshape(6, 4)), "")
    else:
        tiny = np.arange(24.0).reshape(6, 4).astype(x.dtype)
    task = (tiny, kernel, method)
    _tiny_run(task, 0, 1)  # workers then find everything in the cache
    if pool.workers > 1:
        blocks.run(pool, _tiny_run, task, (), rows=pool.workers, block=1)


def _tiny_run(task: tuple[Any, Kernel, Method], start: int, _stop: int) -> tuple[()]:
    x, kernel, method = task
    serial: Executor = registry.create("executors", "serial")
    search: Search = registry.create("search", "exact")
    with serial.open(1) as pool:
        wanted = Wanted(x, 2, kernel.nearness, pool, similarity=similarity_of(kernel))
        found = search.find(wanted)
        fitted = kernel.fit(found)
        if method.local or start == 0:  # others work in the first process only
            solve.solve(pool, x, found, kernel=fitted, method=method, k=1)
    return ()


def similarity_of(kernel: Kernel) -> Any:
    """Return what a search asks where no base says how similar rows are."""
    return kernel if kernel.nearness == "similarity" else None


# Fitted to the peaks that runs report: within a third for jobs from 2000 rows on.
_PROCESS, _WORKER, _DESCENT = 130 << 20, 60 << 20, 150 << 20
_NODE = 100
"""Bytes of a node in lists that are never cut into blocks."""

_MOST, _LEAST = 40, 2
"""Bytes of a candidate in the output: where all are kept as text, or few."""


@dataclass(frozen=True)
class Budget:
    """Bytes, estimated."""

    memory: int
    """Largest memory of all processes together: what is beyond the limit is in files,
    as far as it can be."""

    scratch: int
    """Temporary files."""

    output: int
    """The graph as a file, at most."""

    mapped: int = 0
    """Addresses that are needed: files take them as memory does."""

    whole: str = ""
    """What cannot be kept in files, where something cannot."""

    least: int = 0
    """Memory that is needed however much is in files."""


def estimate(
    features: Features,
    plan: Plan,
    workers: int | str,
    seconds: float,
    span: range | None = None,
) -> Budget:
    """Estimate what a run needs; the candidates are what counts for many rows.

    Where only a part of the rows, the span, is searched, so are its candidates.
    """
    x, n, k = features.x, len(features.x), plan.k
    listed = n if span is None or not is_by_rows(plan.search) else len(span)
    width = min(plan.method.width(k), max(n - 1, 1))
    sparse = isinstance(x, SparseGram | SparseRows)
    d = 0 if sparse else int(x.shape[1])
    rows = 12 * x.data.size if isinstance(x, SparseGram) else x.nbytes
    count, in_process = pool_size(plan.executor, workers, seconds=seconds)
    lists, edges = listed * width * (4 + 8 + 8), listed * width * 16
    copied = 0 if isinstance(x, np.memmap) and plan.scale == "none" else rows
    # What must be in memory as a whole, and what may be in files.
    fixed = _PROCESS + (0 if in_process else _WORKER * count) + _NODE * n
    search, held, searched = _search_memory(plan, n, d, width, span, count)
    if sparse:
        # Sparse rows are searched by their columns, of which there is a copy.
        held, searched = 2 * rows, 0
    whole = [f"search {search}"] * bool(held)
    fixed += held
    if not isinstance(x, np.memmap):
        fixed += rows
    if not plan.method.local:
        fixed += 8 * lists
        whole.append(f"method {registry.spec(plan.method)}")
    loose = rows + (rows if plan.scale != "none" else 0) + lists + edges + searched
    needed, limit = fixed + loose, memory_limit()
    scratch = 0 if in_process else lists + copied + edges
    if needed > limit:  # directions are then joined through files as well
        scratch = copied + lists + searched + listed * width * 80
    return Budget(
        min(needed, max(fixed, limit)),
        scratch,
        listed * width * _MOST,
        needed,
        " and ".join(whole),
        fixed,
    )


def _search_memory(
    plan: Plan, n: int, d: int, width: int, span: range | None, workers: int
) -> tuple[str, int, int]:
    """Return the search, what it must have in memory, and what may be in files."""
    name = registry.spec(plan.search).partition(":")[0]
    if isinstance(plan.search, Auto):
        name = choose(n, d, width, plan.kernel.nearness)[0]
    if name == "exact" and plan.kernel.nearness in MULTIPLIED:
        reservoirs = 0 if span is not None else n * (width + max(8, width // 4)) * 16
        return name, 0, n * d * 4 + reservoirs
    if isinstance(plan.search, Sharded):
        parts = plan.search.parts_of(n)
        tasks = 1 if span is not None else min(workers, parts)
        held = tasks * (_DESCENT + n // parts * (16 * d + 50 * width))
        return name, held, tasks * n * 12 * width_of(width, parts)
    if name == "precomputed":
        return name, 0, n * width * 24
    if name == "kdtree":
        return name, n * (8 * d + 24), 0
    if name == "pynndescent":
        return name, _DESCENT + n * d * 8 + n * width * 50, 0
    return name, 0, 0


def affordable_seconds(
    features: Features,
    x: Any,
    plan: Plan,
    workers: int | str,
    span: range | None = None,
) -> float:
    """Estimate how long one processor will work; refuse what cannot fit."""
    seconds = estimated_seconds(x, plan.k)
    if span is not None:
        seconds *= len(span) / len(x)
    check_budget(estimate(features, plan, workers, seconds, span))
    return seconds


def check_budget(budget: Budget) -> None:
    """Refuse a run for which memory or room for temporary files is missing."""
    # What this process has already taken is neither free nor still to be found.
    there = min(available_memory() + taken_memory(), memory_limit())
    # What there is changes from moment to moment; what may be in files gives way.
    if budget.memory > there and budget.least > there:
        whole = f" by {budget.whole}, as a whole" if budget.whole else ""
        raise ResourceError(
            f"about {in_words(budget.memory)} of memory are needed{whole}, and "
            f"{in_words(there)} are available; use fewer candidates (-k) or workers "
            "(-j), or a machine with more"
        )
    addresses = free_addresses()
    if 0 <= addresses < budget.mapped - taken_memory():
        raise ResourceError(
            f"about {in_words(budget.mapped)} of addresses are needed, and "
            f"{in_words(addresses)} are left; raise the limit of the address space "
            "(ulimit -v)"
        )
    folder = tempfile.gettempdir()
    advice = "for temporary files; set TMPDIR to a directory with room"
    _check_room(folder, budget.scratch, ResourceError, advice)


def check_output_room(output: str, n: int, k: int, copied: int = 0) -> None:
    """Refuse a disk that is too full even for a graph that keeps few candidates.

    `copied` is the size of a file that is copied to hold the graph.
    """
    if formats.is_stream(output):
        return
    folder = os.path.dirname(os.path.realpath(output))  # noqa: PTH120
    what = "a copy of the file with the graph" if copied else "the graph"
    advice = f"for {what}; write it elsewhere"
    _check_room(folder, copied + n * k * _LEAST, OutputError, advice)


def _check_room(folder: str, needed: int, kind: Any, advice: str) -> None:
    try:
        total, _, free = shutil.disk_usage(folder)
    except OSError:
        return  # writing will tell
    if needed > free and total:  # some file systems do not know
        raise kind(
            f"{folder}: {in_words(free)} are free, and about {in_words(needed)} are "
            f"needed {advice}"
        )


_WHOLE = "candidates"
ABOUT: dict[str, Any] = {
    "backend": str,
    "exact": bool,
    "threads": int,
    "recall": float | int | None,
    "notes": list,
}
"""What is known about candidates besides their arrays."""


@contextlib.contextmanager
def resumed(
    folder: str | Path | None, facts: dict[str, Any], shard: Shard | None = None
) -> Iterator[Checkpoint | None]:
    """Open the checkpoint of a run or of one of its shards, where one is wanted."""
    if folder is None:
        yield None
        return
    if shard is not None:
        facts = facts | {"shard": str(shard)}
    with open_checkpoint(Path(folder), facts) as checkpoint:
        yield checkpoint


def facts_of(features: Features, plan: Plan, seed: int) -> dict[str, Any]:
    """Return all that determines candidates and solutions.

    How directions are joined, what is written and by how many workers plays no part:
    such options may change from one run to the next.
    """
    return {
        "schema": 1,
        "nnkgraph": __version__,
        **{f"version of {name}": v for name, v in report.versions().items()},
        "sha256 of the features": features.sha256,
        "shape": list(features.x.shape),
        "k": plan.k,
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "source of the kernel": getattr(plan.kernel, "source", ""),
        "search": _search_fact(plan),
        "scale": plan.scale,
        "duplicates": plan.duplicates,
        "seed": seed,
    }


def _search_fact(plan: Plan) -> str:
    """Return how candidates are found; a file counts by its content."""
    if not isinstance(plan.search, Precomputed) or not plan.search.path:
        return registry.spec(plan.search)
    index, _ = formats.read_candidates(plan.search.path)
    digest = hashlib.sha256()
    for rows in row_slices(len(index), 16 * index.shape[1]):
        digest.update(np.ascontiguousarray(index[rows], dtype="<i8").data)
    return f"precomputed, sha256 {digest.hexdigest()}"


def _candidates(block: Block, n: int) -> Candidates | None:
    """Return the candidates of a block, or None where they are damaged.

    Compiled code takes row numbers without looking, so they are looked at here.
    """
    index: Any
    distance: Any
    index, distance = block.arrays
    try:
        about: Any = json.loads(block.about)
    except (ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or about.keys() != set(ABOUT):
        return None
    if not all(isinstance(about[name], kind) for name, kind in ABOUT.items()):
        return None
    if index.size and not (index.min() >= -1 and index.max() < n):
        return None
    about["notes"] = tuple(map(str, about["notes"]))
    return replace(Candidates(index, distance), **about)


def found_once(
    checkpoint: Checkpoint | None,
    n: int,
    k: int,
    search: Callable[[], Candidates],
    span: range | None = None,
) -> Candidates:
    """Return candidates from a checkpoint, or search them and keep them there."""
    if checkpoint is None:
        return search()
    rows = range(n) if span is None else span
    place = rows.start, rows.stop
    like: list[Any] = [np.empty((0, k), index_dtype(n)), np.empty((0, k))]
    block = checkpoint.load(_WHOLE, *place, like)
    kept = None if block is None else _candidates(block, n)
    if kept is not None:
        return kept
    if block is not None:
        checkpoint.warnings.append(
            f"{checkpoint.folder}: the candidates kept there are none; they were "
            "searched again"
        )
    # Solutions belong to their candidates, and a search may not repeat itself.
    checkpoint.drop("solve")
    found = search()
    about = {name: getattr(found, name) for name in ABOUT}
    if found.index.shape == (len(rows), k):
        arrays = [converted(found.index, like[0].dtype), found.distance]
        checkpoint.save(_WHOLE, *place, arrays, json.dumps(about))
        checkpoint.drop("search")
    return found


@dataclass(frozen=True)
class Run:
    """A run whose workers are ready."""

    plan: Plan
    rows: Rows
    pool: Pool
    seed: int
    checkpoint: Checkpoint | None = None
    span: range | None = None
    """The rows that are solved, where this run is one of several."""
    facts: dict[str, Any] = field(default_factory=dict)
    """All that determines its results, where somebody asks for it."""


@within_memory
def find_candidates(
    features: Features | ArrayLike,
    /,
    *,
    k: int | None = None,
    kernel: str = "gaussian",
    search: str = "auto",
    scale: str = "none",
    duplicates: str = "merge",
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    resume: str | Path | None = None,
    block_timeout: float = BLOCK_TIMEOUT,
    memory: int | None = None,  # noqa: ARG001 - a limit around it all
    shared_dir: str | None = None,
    stages: Stages | None = None,
) -> Candidates:
    """Find the candidates of every row; the parameters are those of ``build_graph``.

    Where copies are merged, lists hold only the first of identical rows, and a copy
    has the list of its first row: ``build_graph`` with these candidates gives the same
    graph as without them.
    """
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    plan = make_plan(
        features,
        k=k,
        kernel=kernel,
        search=search,
        scale=scale,
        duplicates=duplicates,
        executor=executor,
    )
    with started(
        features,
        plan,
        stages,
        seed=seed,
        workers=workers,
        resume=resume,
        block_timeout=block_timeout,
        shared_dir=shared_dir,
    ) as run:
        found = find(run, stages)
    return replace(candidates_with_copies(found, run.rows), notes=notes_of(run, found))


def notes_of(run: Run, found: Candidates) -> tuple[str, ...]:
    """Return what the user should know about a search."""
    known = run.checkpoint
    kept = [*known.warnings, *known.notes] if known else []
    return (*found.notes, *k_warnings(run.plan.k, run.rows), *kept)


@contextmanager
def started(
    features: Features,
    plan: Plan,
    stages: Stages,
    *,
    seed: int,
    workers: int | str,
    resume: str | Path | None,
    block_timeout: float,
    shared_dir: str | None,
    shard: Shard | None = None,
) -> Iterator[Run]:
    """Prepare rows, open the checkpoint and have workers ready."""
    rows = rows_of(features, plan, stages)
    span = None
    if shard is not None:
        # What a function says may depend on which rows it is asked about together.
        grain = GRAIN if plan.kernel.nearness == "similarity" else 1
        span = shard.rows(len(rows.x), grain)
    seconds = affordable_seconds(features, rows.x, plan, workers, span)
    facts = {}
    if resume is not None or shard is not None:
        facts = facts_of(features, plan, seed)
    limits = {"seconds": seconds, "block_timeout": block_timeout}
    with (
        resumed(resume, facts, shard) as checkpoint,
        open_pool(plan.executor, workers, **limits, shared_dir=shared_dir) as pool,
    ):
        if isinstance(rows.x, np.ndarray) and not isinstance(rows.x, np.memmap):
            # Written only once where workers need a file, whatever asks for it.
            rows = replace(rows, x=pool.share(rows.x).open())
        with stages("start"):
            warm_up(pool, rows.x, plan.kernel, plan.method)
        yield Run(plan, rows, pool, seed, checkpoint, span, facts)


def rows_of(features: Features, plan: Plan, stages: Stages) -> Rows:
    """Return the rows as the kernel sees them, copies treated as asked."""
    arrays.watch(features.x)
    with stages("start"):
        return prepared_rows(features, plan)


def find(run: Run, stages: Stages) -> Candidates:
    """Search as many candidates as the method wants to choose from."""
    plan, n = run.plan, len(run.rows.x)
    k = min(plan.method.width(plan.k), n - 1)
    asking = range(n) if run.span is None else run.span
    with stages("search", len(asking)) as on_rows:
        if k == 0:
            nothing = np.empty((len(asking), 0))
            return Candidates(nothing.astype(index_dtype(n)), nothing)
        wanted = replace(
            wanted_of(plan, run.rows, k, run.pool, run.seed, on_rows),
            checkpoint=run.checkpoint,
            span=run.span,
        )
        return found_once(
            run.checkpoint, n, k, lambda: plan.search.find(wanted), run.span
        )


def wanted_of(
    plan: Plan,
    rows: Rows,
    k: int,
    pool: Pool,
    seed: int,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Wanted:
    """Return what is searched: the k best of these rows for each of them."""
    return Wanted(
        rows.x,
        k,
        plan.kernel.nearness,
        pool,
        seed=seed,
        origin=rows.origin,
        first=rows.first,
        on_rows=on_rows,
        similarity=similarity_of(plan.kernel),
    )


def find_and_fit(run: Run, stages: Stages) -> tuple[Candidates, Kernel]:
    """Find what the method chooses from; the kernel is fitted to the k best of it."""
    plan, span = run.plan, run.span
    whole = span is not None and not is_by_rows(plan.search)
    # Candidates that are in a file need no second one.
    all_rows = replace(run, span=None, checkpoint=None) if whole else run
    candidates = find(all_rows, stages)
    best = replace(
        candidates,
        index=candidates.index[:, : plan.k],
        distance=candidates.distance[:, : plan.k],
    )
    fitted = plan.kernel.fit(best)
    if span is not None and whole:
        rows = slice(span.start, span.stop)
        index, distance = candidates.index[rows], candidates.distance[rows]
        candidates = replace(candidates, index=index, distance=distance)
    with stages("search"):
        wanted = wanted_of(plan, run.rows, plan.k, run.pool, run.seed)
        wanted = replace(wanted, span=span)
        return plan.method.gather(wanted, candidates, fitted), fitted
