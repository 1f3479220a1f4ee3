"""What is settled before the stages run: kernel, k, rows and workers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import blocks, neighborhoods, registry
from nnkgraph.data import SparseGram, SparseRows
from nnkgraph.duplicates import POLICIES, distinct_rows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.scaling import SCALES, scaled
from nnkgraph.search import Wanted
from nnkgraph.search.auto import Auto, exact_seconds, kdtree_seconds
from nnkgraph.search.exact import Exact
from nnkgraph.search.precomputed import Precomputed
from nnkgraph.sparse_rows import work_columns
from nnkgraph.symmetrize import check_rule

if TYPE_CHECKING:
    from nnkgraph.data import Features
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Executor, Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
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


def create_kernel(spec: str, sigma: str | float | None) -> Kernel:
    """Make a kernel, with its bandwidth given apart."""
    kernel: Kernel = registry.create("kernels", spec)
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
    return 2.0 * search + n * neighborhoods.row_seconds(k, d)


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
            neighborhoods.solve(pool, x, found, kernel=fitted, method=method, k=1)
    return ()


def similarity_of(kernel: Kernel) -> Any:
    """Return what a search asks where no base says how similar rows are."""
    return kernel if kernel.nearness == "similarity" else None
