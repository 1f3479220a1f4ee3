"""Fill the cache of compiled code: what two processes can compile side by side.

``python tests/warm.py ours`` is for nnkgraph's own functions, ``theirs`` for those of
pynndescent. Both return at once where it was done before.
"""

import os
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from nnkgraph import build_graph, find_candidates
from nnkgraph.runtime import jit  # noqa: F401 - settles where the cache is

X = np.random.default_rng(0).normal(size=(60, 3))


def ours() -> None:
    build_graph(X, k=5)
    build_graph(X.astype(np.float32), k=5)
    build_graph(csr_array(X), k=5)
    build_graph(X, k=1, connect="mst", kernel="laplacian")
    for method in ("mp", "omp", "aew", "kalofolias"):
        build_graph(X, k=5, method=method)


def theirs() -> None:
    x = np.random.default_rng(0).normal(size=(1500, 8))
    find_candidates(x, k=20, search="pynndescent:threads=2")


if __name__ == "__main__":
    # The folder's name changes with the sources, and with it what was done.
    mark = Path(os.environ["NUMBA_CACHE_DIR"], f"warm-{sys.argv[1]}")
    if not mark.exists():
        {"ours": ours, "theirs": theirs}[sys.argv[1]]()
        mark.touch()
