"""Small results of everything that is compiled; as a program, without the compiler.

``NUMBA_DISABLE_JIT=1 python uncompiled.py FILE`` computes them in plain Python, for a
debugger, for the count of covered lines, and for ``test_uncompiled.py``.
"""

import importlib
import sys

import numpy as np


def draw(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def graphs():
    """Return options of graphs that use every compiled function of the package."""
    narrow, wide = draw(70, 3), draw(60, 20, seed=1)
    grid = np.stack(np.meshgrid(np.arange(7), np.arange(7)), -1).reshape(-1, 2)
    near = np.concatenate([narrow[:30], narrow[:30] + 1e-9 * draw(30, 3, seed=2)])
    islands = narrow + 30 * (np.arange(70) % 3)[:, None]
    gram = np.exp(-0.5 * ((narrow[:, None] - narrow) ** 2).sum(-1))
    thin = np.where(gram > 0.4, gram, 0.0)
    apart = abs(np.subtract.outer(narrow[:, 0] ** 2, narrow[:, 1]))
    apart = (apart + apart.T) * (1 - np.eye(70))  # of no points
    thin_apart = np.where(apart < 2.0, apart, 0.0)
    cases = {
        **{f"narrow {name}": (narrow, {"method": name}) for name in METHODS},
        **{f"wide {name}": (wide, {"method": name}) for name in METHODS},
        **{f"kernel {name}": (wide, {"kernel": name}) for name in KERNELS},
        **{f"rule {name}": (narrow, {"symmetrize": name}) for name in RULES},
        "eps of l1": (wide, {"method": "eps:radius=18", "kernel": "laplacian"}),
        "eps of few": (wide, {"method": "eps:radius=4"}),
        "grid": (grid, {}),
        "grid, pursued": (grid, {"method": "mp"}),
        "singles": (wide.astype(np.float32), {"search": "exact"}),
        "many": (draw(400, 12).astype(np.float32), {"search": "exact", "k": 4}),
        "sorted": (np.sort(draw(300, 9), axis=0), {"search": "exact", "k": 5}),
        "copies": (np.repeat(narrow[:12], 5, axis=0), {}),
        "copies kept": (np.repeat(narrow[:12], 5, axis=0), {"duplicates": "keep"}),
        "near copies": (near, {"sigma": 20.0, "k": 40}),
        "flat": (narrow, {"sigma": 300.0, "k": 60}),
        "sharp": (narrow, {"sigma": 0.02}),
        "islands": (islands, {"connect": "mst", "k": 4}),
        "degrees": (wide, {"min_degree": 3, "k": 5}),
        "grown": (narrow, {"grow": 1e-3, "k": 4}),
        "local": (narrow, {"sigma": "local"}),
        "pursued far": (narrow, {"method": "omp", "sigma": 4.0, "k": 30}),
        "zero row": (narrow * (np.arange(70) != 3)[:, None], {"kernel": "linear"}),
        "own kernel": (narrow, {"kernel": "uncompiled:similarity"}),
        "gram": (gram, {"kernel": "precomputed"}),
        "thin gram": (sparse(thin), {"kernel": "precomputed", "k": 6}),
        "distances": (apart, {"kernel": "distance"}),
        "thin distances": (sparse(thin_apart), {"kernel": "distance", "k": 6}),
        "counts": (np.floor(2 * abs(wide)), {"kernel": "jaccard"}),
        "sets": (1.0 * (wide > 0), {"kernel": "jaccard"}),
        "thin rows": (thin_rows(wide), {"kernel": "cosine"}),
        "thin rows, far": (thin_rows(wide), {"sigma": 3.0}),
    }
    return {name: (x, {"k": 9} | options) for name, (x, options) in cases.items()}


METHODS = ("aew", "eps", "kalofolias", "knn", "kstar", "l1", "lle", "mp", "nnk", "omp")
KERNELS = ("correlation", "cosine", "laplacian", "linear", "lle", "polynomial")
RULES = ("error", "error-union", "max", "mean", "min", "mutual", "none")


def sparse(matrix):
    from scipy.sparse import csr_array

    from nnkgraph.data import Features, SparseGram

    return Features(SparseGram.of(csr_array(matrix)))


def thin_rows(matrix):
    from scipy.sparse import csr_array

    from nnkgraph.data import Features
    from nnkgraph.data.sparse import SparseRows

    return Features(SparseRows.of(csr_array(np.where(matrix > 0.5, matrix, 0)), ""))


def similarity(a, b):
    """A kernel of a user's own."""
    return np.exp(-abs(a[:, None] - b).sum(-1))


def two_groups():
    """Return what the exact search keeps of two groups of rows that see each other."""
    from nnkgraph.search._reservoir import scan_both

    rng = np.random.default_rng(6)
    product = rng.normal(size=(200, 75)).astype(np.float32)
    offsets = [np.zeros(n, np.float32) for n in product.shape]
    kept = [
        array
        for n in product.shape
        for array in (
            np.zeros((n, 80), np.float32),
            np.zeros((n, 80), np.int32),
            np.zeros(n, np.int64),
            np.full(n, np.inf, np.float32),
        )
    ]
    scan_both(product, *offsets, 0, 200, *kept, 9)
    return kept


def joined():
    """Return the rows of a matrix whose two directions were joined, in many blocks."""
    from nnkgraph.build.symmetrize import symmetrize
    from nnkgraph.data import Candidates, Neighborhoods
    from nnkgraph.runtime.arrays import limited

    rng = np.random.default_rng(7)
    index = np.argsort(rng.random((400, 400)), axis=1)[:, :6].astype(np.int32)
    index[index == np.arange(400)[:, np.newaxis]] = -1
    weights = np.where(index < 0, 0.0, rng.random(index.shape))
    found = Neighborhoods(weights, rng.random(400))
    candidates = Candidates(index, np.zeros(index.shape))
    with limited(1):
        a = symmetrize(candidates, found, rule="error", min_degree=1).adjacency
    return a.data, a.indices, a.indptr


def problems():
    """Return quadratic programs: sound ones, singular ones, and some with a twist."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 20, 33):
        for _ in range(4):
            a = rng.normal(size=(size + 3, size)) + 2 * rng.normal(size=(size + 3, 1))
            yield a.T @ a, a.T @ (a @ np.maximum(rng.normal(size=size), 0))
    a = rng.normal(size=(4, 12))
    yield a.T @ a, a.T @ rng.normal(size=4)  # of rank 4
    x = rng.normal(size=(21, 2))
    k = np.exp(-((x[:, None] - x) ** 2).sum(-1) / 2e5)
    yield k[1:, 1:], k[1:, 0]  # all but singular
    yield np.eye(3), np.array([-1.0, 0.0, np.nan])


def results():
    """Return all numbers, by name."""
    from nnkgraph.build.graph import build_graph
    from nnkgraph.build.query import query
    from nnkgraph.methods import qp
    from nnkgraph.search.pynndescent import repair

    found = {}
    for name, (x, options) in graphs().items():
        graph = build_graph(x, **options)
        found[name] = graph.adjacency.toarray()
        if graph.errors is not None:
            found[f"{name}, J"] = graph.errors
    for at, (k, b) in enumerate(problems()):
        packed = k[np.tril_indices(len(k))][None]
        solved = qp.solve(packed, b[None], np.ones((1, len(b)), bool))
        for part, values in zip(("theta", "certificate", "gain"), solved, strict=True):
            found[f"problem {at}, {part}"] = values
    asked = query(draw(60, 5), draw(9, 5, seed=4), k=8)
    found["queries"] = asked.weights.toarray()
    for at, values in enumerate(two_groups()):
        found[f"two groups, {at}"] = values
    for at, values in enumerate(joined()):
        found[f"joined in files, {at}"] = values
    rng = np.random.default_rng(5)
    index = np.argsort(rng.random((30, 30)), axis=1)[:, :6].astype(np.int32)
    score = np.sort(rng.integers(1, 9, (30, 6)).astype(float), axis=1)
    index[rng.random((30, 6)) < 0.2] = -1
    found["repaired"], found["repaired scores"] = repair(index, score)
    return found


def main():
    import numba.extending

    def stand_in(written):
        def call(*args):
            return getattr(importlib.import_module("plain"), written.__name__)(*args)

        return call

    numba.extending.intrinsic = stand_in
    np.seterr(all="ignore")  # compiled code does not warn
    np.savez(sys.argv[1], **results())


if __name__ == "__main__":
    main()
