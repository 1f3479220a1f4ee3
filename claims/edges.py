"""How many edges regressions keep of those that kNN has."""

from __future__ import annotations

import numpy as np

import nnkgraph
from bench import data
from claims import sets
from claims.claim import Figure, Place, claim


def _count(x: np.ndarray, k: int, method: str) -> int:
    rule = {"symmetrize": "max"} if method == "knn" else {}
    return nnkgraph.build_graph(x, k=k, method=method, **rule).n_edges


@claim(
    "fewer-edges",
    "An NNK graph needs only a part of the edges of a kNN graph with the same k: the "
    "less, the fewer dimensions the rows fill.",
    ("README.md", "a symmetric graph that has only the edges it needs"),
    limit=">= 25",
    unit="% fewer edges at least, k = 30",
)
def _fewer_edges(_place: Place) -> Figure:
    share = {}
    for name, x in {
        **sets.shipped(),
        "surface 5000 x 64": data.manifold(5000, 64),
    }.items():
        nnk, knn = (_count(x, 30, method) for method in ("nnk", "knn"))
        share[name] = 100 * (1 - nnk / knn)
    said = ", ".join(f"{name} {one:.0f} %" for name, one in share.items())
    return Figure(min(share.values()), said)


@claim(
    "k-levels-off",
    "kNN graphs grow with k; regressions level off.",
    (
        "docs/checks.md",
        "kNN graphs grow with k; regressions take what they need and level off",
    ),
    ("README.md", "the number of neighbors follows the data and not the choice of k"),
    limit="<= 1.5",
    unit="times the edges with k = 50 as with k = 10",
)
def _k_levels_off(_place: Place) -> Figure:
    roll = np.load(sets.SAMPLES / "swiss_roll.npy")
    nnk, knn = (
        [_count(roll, k, method) for k in (10, 50)] for method in ("nnk", "knn")
    )
    said = f"sample Swiss roll: NNK {nnk[0]} and {nnk[1]}, kNN {knn[0]} and {knn[1]}"
    return Figure(nnk[1] / nnk[0], said)


@claim(
    "no-isolated",
    "By default no node is left alone.",
    ("docs/choices.md", "no node is left alone"),
    limit="== 0",
    unit="isolated nodes",
)
def _no_isolated(_place: Place) -> Figure:
    rows = {**sets.shipped(), "hard 20000 x 64": data.waves(20_000, 64)}
    alone = sum(nnkgraph.build_graph(x).report["isolated"] for x in rows.values())
    return Figure(alone, f"{sum(map(len, rows.values()))} nodes of {len(rows)} graphs")


@claim(
    "sparse-bits",
    "Sparse rows give the bits of the dense matrix.",
    ("docs/formats.md", "the graph has the same bits as that of the dense matrix"),
    limit="== 0",
    unit="graphs differ",
)
def _sparse_bits(_place: Place) -> Figure:
    from scipy.sparse import csr_array

    x, kernels = data.digits(), ("gaussian", "cosine", "jaccard", "linear")
    differ = 0
    for kernel in kernels:
        a, b = (nnkgraph.build_graph(one, kernel=kernel) for one in (x, csr_array(x)))
        same = [
            np.array_equal(getattr(a.adjacency, name), getattr(b.adjacency, name))
            for name in ("indptr", "indices", "data")
        ]
        differ += not all(same)
    return Figure(differ, f"digits, kernels {', '.join(kernels)}")
