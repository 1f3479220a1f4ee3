"""The solve stage against its lower bound, and against other solvers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from bench import data
from bench.bound import lower_bound
from bench.ratio import Line, compare
from nnkgraph.build import solve
from nnkgraph.data import Candidates, Features
from nnkgraph.data.duplicates import distinct_rows
from nnkgraph.runtime import registry
from nnkgraph.search import Wanted

_SAMPLE = 300
"""Nodes that slow peers are measured on."""


def cases(folder: Path | None) -> dict[str, np.ndarray]:
    """Return the data sets by name."""
    return {
        "noisy Swiss roll 5000 x 3": data.noisy_swiss_roll(),
        "digits 1797 x 64": data.digits(),
        "generated 20000 x 384": data.manifold(20_000, 384),
        **{
            f"{name} {len(x)} x {x.shape[1]}": x
            for name, x in data.of_folder(folder).items()
        },
    }


class Prepared:
    """Candidates and bandwidth of a data set, on a pool of threads."""

    def __init__(self, x: np.ndarray, most: int, pool) -> None:
        # As a build does: copies make the block singular, which has no bound.
        self.x = distinct_rows(Features.of(x).x, "merge", "").x
        self.pool, self._most = pool, min(most, len(self.x) - 1)
        search = registry.create("search", "exact")
        self._all = search.find(Wanted(self.x, self._most, "squared-distance", pool))

    def candidates(self, k: int) -> Candidates:
        """Return the k nearest."""
        return Candidates(
            np.ascontiguousarray(self._all.index[:, :k]),
            np.ascontiguousarray(self._all.distance[:, :k]),
        )

    def solve(self, k: int) -> tuple:
        """Return candidates, sigma, and the solve stage as a job."""
        candidates = self.candidates(k)
        kernel = registry.create("kernels", "gaussian").fit(candidates)
        method = registry.create("methods", "nnk")

        def stage():
            return solve.solve(
                self.pool, self.x, candidates, kernel=kernel, method=method
            )

        return candidates, kernel.bandwidth(candidates), stage


def against_bound(folder: Path | None, threads: int, repeat: int) -> Iterator[Line]:
    """Compare the solve stage with its lower bound for several k."""
    for name, x in cases(folder).items():
        with registry.create("executors", "threads").open(threads) as pool:
            prepared = Prepared(x, 100, pool)
            for k in (10, 30, 50, 100):
                candidates, sigma, stage = prepared.solve(k)
                theta, index = np.array(stage().weights), candidates.index

                bound = partial(
                    lower_bound, prepared.x, index, sigma, theta, pool.submit
                )

                # The bound checks no pivots: nearly equal rows may cost it digits.
                off = np.quantile(np.abs(bound() - theta).max(axis=1), 0.99)
                if off > 1e-6:
                    raise AssertionError(f"{name}: the bound is off by {off}")
                yield compare(
                    "solve / bound",
                    f"{name}, k={k}",
                    ("solve stage", stage),
                    ("lower bound", bound),
                    repeat=repeat,
                    aim=1.5,
                )


def kernel_block(x, q, index, sigma):
    """Return K of a node's candidates, and their similarity to the node."""
    rows = x[index].astype(np.float64)
    squares = ((rows[:, np.newaxis] - rows) ** 2).sum(axis=2)
    own = ((rows - x[q]) ** 2).sum(axis=1)
    return np.exp(-0.5 / sigma**2 * squares), np.exp(-0.5 / sigma**2 * own)


def by_nnls(K, b):
    """Solve with scipy.optimize.nnls, on a Cholesky factor."""
    L = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    return nnls(L.T, solve_triangular(L, b, lower=True))[0]


def by_pruning(K, b):
    """Solve, drop what is negative, and never take it back: not exact."""
    theta, kept = np.zeros(len(b)), np.arange(len(b))
    while len(kept):
        found = np.linalg.solve(K[np.ix_(kept, kept)], b[kept])
        positive = found > 0
        if positive.all():
            theta[kept] = found
            break
        kept = kept[positive]
    return theta


def _loop(solver, x, nodes, index, sigma):
    for q in nodes:
        solver(*kernel_block(x, q, index[q], sigma))


def against_solvers(folder: Path | None, repeat: int) -> Iterator[Line]:
    """Compare the solve stage, on one thread, with loops over other solvers."""
    aims = {
        ("noisy", by_nnls): 1 / 20,
        ("digits", by_nnls): 1 / 8,
        ("usps", by_nnls): 1 / 5,
        ("digits", by_pruning): 1 / 10,
    }
    rng = np.random.default_rng(0)
    for name, x in cases(folder).items():
        with registry.create("executors", "serial").open(1) as pool:
            prepared = Prepared(x, 30, pool)
            candidates, sigma, stage = prepared.solve(30)
            nodes = rng.choice(len(x), min(len(x), _SAMPLE), replace=False)
            for label, solver in (
                ("a loop over scipy nnls", by_nnls),
                ("a loop that only prunes", by_pruning),
            ):
                loop = partial(
                    _loop, solver, prepared.x, nodes, candidates.index, sigma
                )

                yield compare(
                    "solve / solvers",
                    f"{name}, k=30, 1 thread",
                    ("solve stage", stage),
                    (label, loop),
                    repeat=repeat,
                    shares=(1.0, len(nodes) / len(x)),
                    aim=aims.get((name.split()[0].split("_")[0], solver)),
                )
