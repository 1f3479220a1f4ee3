"""What is settled before the stages run: kernel, k, rows and workers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import blocks, neighborhoods, registry
from nnkgraph.duplicates import distinct_rows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.scaling import scaled
from nnkgraph.search import Wanted

if TYPE_CHECKING:
    from nnkgraph.data import Features, FloatArray
    from nnkgraph.duplicates import Rows
    from nnkgraph.executors import Executor, Pool
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method
    from nnkgraph.search import Search

DEFAULT_K = 30


def create_kernel(spec: str, sigma: str | float | None) -> Kernel:
    """Make a kernel, with its bandwidth given apart."""
    kernel: Kernel = registry.create("kernels", spec)
    if sigma is None:
        return kernel
    if "sigma" not in registry.parameter_types(type(kernel)):
        raise ParameterError(f"kernel {spec!r} has no bandwidth: leave sigma out")
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


def prepared_rows(
    features: Features, kernel: Kernel, scale: str, duplicates: str
) -> Rows:
    """Return the rows as the kernel sees them, copies treated as asked."""
    x = scaled(features.x, scale, features.name)
    x = kernel.prepare(x, features.name)
    return distinct_rows(x, duplicates, features.name)


def k_warnings(k: int, rows: Rows) -> list[str]:
    """Say so where too few rows are distinct."""
    n = len(rows.x)
    if k < n or k == 0:
        return []
    return [f"only {n} rows are distinct: k is {n - 1} instead of {k}"]


def estimated_seconds(x: FloatArray, k: int) -> float:
    """Estimate roughly how long one processor will work."""
    n, d = len(x), int(x.shape[1])
    search = n * n * (6e-9 + 2.4e-11 * d) if d > 8 else n * 2e-5
    return search + n * (k * k / 2) * (2e-8 + 2e-10 * d)


def warm_up(pool: Pool, x: FloatArray, kernel: Kernel, method: Method) -> None:
    """Have everything compiled and every worker ready before the work is timed."""
    tiny = np.arange(24.0).reshape(6, 4).astype(x.dtype)
    blocks.run(pool, _tiny_run, (tiny, kernel, method), (), rows=pool.workers, block=1)


def _tiny_run(
    task: tuple[FloatArray, Kernel, Method], _start: int, _stop: int
) -> tuple[()]:
    x, kernel, method = task
    serial: Executor = registry.create("executors", "serial")
    search: Search = registry.create("search", "exact")
    with serial.open(1) as pool:
        found = search.find(Wanted(x, 2, kernel.base, pool))
        neighborhoods.solve(pool, x, found, kernel=kernel.fit(found), method=method)
    return ()
