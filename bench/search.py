"""The exact search against its own matrix products, scikit-learn and faiss."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from bench import data
from bench.ratio import Line, compare
from nnkgraph.runtime import registry
from nnkgraph.search import Wanted
from nnkgraph.search._products import COLUMNS

_K = 30


def products(x: np.ndarray, threads: int) -> None:
    """Multiply the blocks that the search multiplies, and keep nothing."""

    def block(start):
        rows = x[start : start + Wanted.block]
        out = np.empty((len(rows), COLUMNS), np.float32)
        for column in range(0, len(x), COLUMNS):
            part = x[column : column + COLUMNS]
            np.matmul(rows, part.T, out=out[:, : len(part)])

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(block, range(0, len(x), Wanted.block)))


def ours(x: np.ndarray, threads: int):
    """Search exactly, on threads."""
    with registry.create("executors", "threads").open(threads) as pool:
        wanted = Wanted(x, _K, "squared-distance", pool)
        return registry.create("search", "exact").find(wanted)


def by_sklearn(x: np.ndarray, threads: int):
    """Search by scikit-learn's brute force."""
    from sklearn.neighbors import NearestNeighbors

    with threadpool_limits(threads):
        model = NearestNeighbors(n_neighbors=_K, algorithm="brute").fit(x)
        return model.kneighbors()


def suite(threads: int, repeat: int) -> Iterator[Line]:
    """Compare on a narrow and a wide matrix."""
    import faiss

    faiss.omp_set_num_threads(threads)
    for n, d in ((50_000, 64), (20_000, 784)):
        x = data.manifold(n, d)

        def by_faiss(x=x):
            index = faiss.IndexFlatL2(x.shape[1])
            index.add(x)
            return index.search(x, _K + 1)

        _check(ours(x, threads), by_faiss())
        for label, job, aim in (
            ("its float32 products", lambda x=x: products(x, threads), 1.25),
            ("scikit-learn brute force", lambda x=x: by_sklearn(x, threads), 1 / 1.5),
            ("faiss IndexFlatL2", by_faiss, 1.0),
        ):
            yield compare(
                "exact search",
                f"generated {n} x {d}, k={_K}",
                ("exact search", lambda x=x: ours(x, threads)),
                (label, job),
                repeat=repeat,
                aim=aim,
            )


def _check(found, by_faiss) -> None:
    """Make sure that both have found the same, but for rounding."""
    same = np.mean(
        [
            len(np.intersect1d(a, b)) / _K
            for a, b in zip(found.index[:200], by_faiss[1][:200], strict=True)
        ]
    )
    if same < 0.99:
        raise AssertionError(f"faiss found only {same:.3f} of the same neighbors")
