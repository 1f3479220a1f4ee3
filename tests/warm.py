"""Fill the cache of compiled code: what two processes can compile side by side.

``python tests/warm.py solver`` and ``python tests/warm.py others`` return at once where
it was done before.
"""

import os
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from nnkgraph import build_graph
from nnkgraph.runtime import jit  # noqa: F401 - settles where the cache is

X = np.random.default_rng(0).normal(size=(60, 3))


def solver() -> None:
    build_graph(X, k=5)
    build_graph(X.astype(np.float32), k=5)
    build_graph(csr_array(X), k=5)
    build_graph(X, k=1, connect="mst")


def others() -> None:
    import pynndescent  # noqa: F401 - compiles much while it is imported

    for method in ("mp", "omp", "aew", "kalofolias"):
        build_graph(X, k=5, method=method)
    build_graph(X, k=5, kernel="laplacian", method="knn")


if __name__ == "__main__":
    # The folder's name changes with the sources, and with it what was done.
    mark = Path(os.environ["NUMBA_CACHE_DIR"], f"warm-{sys.argv[1]}")
    if not mark.exists():
        {"solver": solver, "others": others}[sys.argv[1]]()
        mark.touch()
