"""The figures of a diagnosis: counts and shares, plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import report
from nnkgraph.grow import outside_bounds
from nnkgraph.pairs import DISTANCES
from nnkgraph.tasks.doctor._case import edge_overlap

if TYPE_CHECKING:
    from nnkgraph.data import IndexArray
    from nnkgraph.tasks.doctor._case import Case

SATURATED = 0.85
"""Kept / k above this: NNK prunes little."""

ENOUGH = 0.01
"""What a point outside the candidates may still explain before k counts as small."""

NEAR = 1e-3
"""Share of the median nearest distance below which a row is a near-duplicate."""

GRAPHS: tuple[dict[str, Any], ...] = (
    {"method": "nnk", "symmetrize": "error", "min_degree": 0},
    {"method": "nnk", "symmetrize": "error", "min_degree": 3},
    {"method": "nnk", "symmetrize": "error-union", "min_degree": 0},
    {"method": "nnk", "symmetrize": "max", "min_degree": 0},
    {"method": "nnk", "symmetrize": "mutual", "min_degree": 0},
    {"method": "knn", "symmetrize": "mutual", "min_degree": 0},
    {"method": "knn", "symmetrize": "max", "min_degree": 0},
)
"""What is put side by side; the first is the default of ``build``."""


def row_facts(case: Case) -> dict[str, Any]:
    """Count identical rows, and those that are nearly so."""
    rows = case.rows
    facts: dict[str, Any] = {"distinct": len(rows.x), "copies": rows.copies}
    facts["largest_group"] = 1
    if rows.first is not None:
        facts["largest_group"] = int(np.bincount(rows.first).max())
    if case.plan.kernel.nearness in DISTANCES and case.k:
        nearest = case.candidates.distance[:, 0]
        limit = NEAR * float(np.median(nearest))
        facts["near_duplicates"] = int((nearest < limit).sum())
    return facts


def support_facts(case: Case) -> dict[str, Any]:
    """Say how many candidates NNK keeps."""
    there = (case.candidates.index >= 0).sum(axis=1)
    size = (case.solved().weights > 0).sum(axis=1)
    kept = float(size.sum() / there.sum()) if there.sum() else 0.0
    return {
        "k": case.k,
        "mean": float(size.mean()),
        "min": int(size.min()),
        "max": int(size.max()),
        "kept_over_k": kept,
        "saturated": kept > SATURATED,
        "histogram": _histogram(size, _even_steps(case.k)),
    }


def graph_facts(case: Case) -> list[dict[str, Any]]:
    """Describe the graph of every rule."""
    names = ("edges", "edges_per_node", "components", "isolated")
    return [
        {**settings, **{name: case.facts(**settings)[name] for name in names}}
        for settings in GRAPHS
    ]


def overlap_facts(case: Case, sigma: str | None = None) -> dict[str, float]:
    """Say how much NNK and mutual kNN have in common.

    Their edges are those that ``build`` writes: with edges to copies of rows.
    ``jaccard`` is the share of all edges that both have, ``covered`` the share of the
    edges of mutual kNN that NNK has.
    """
    mutual = case.graph(method="knn", symmetrize="mutual", sigma=sigma)
    return edge_overlap(case.graph(sigma=sigma), mutual)


def hub_facts(case: Case, ids: tuple[str, ...] | None) -> dict[str, Any]:
    """Say how unevenly nodes are chosen as candidates; `ids` are those of all rows."""
    index = case.candidates.index
    n, k = len(index), case.k
    degree = np.bincount(index[index >= 0], minlength=n)
    largest = int(degree.argmax())
    most, row = int(degree[largest]), case.input_row(largest)
    steps = sorted({most, *(s for s in (0, k // 2, k, 2 * k, 4 * k) if s < most)})
    unchosen = int((degree == 0).sum()) if k else 0
    return {
        "largest": most,
        "largest_row": row,
        "largest_id": None if ids is None else ids[row],
        "largest_over_k": most / k if k else 0.0,
        "unchosen": unchosen,
        "unchosen_share": unchosen / n,
        "histogram": _histogram(degree, steps),
    }


def outside_facts(case: Case) -> dict[str, Any] | None:
    """Bound what points outside the candidates could explain, where that is possible.

    None for kernels whose similarity need not fall with distance.
    """
    kernel = case.kernel
    if not (kernel.form and kernel.nearness in DISTANCES and case.k):
        return None
    bound = outside_bounds(case.rows.x, case.candidates, kernel)
    above = int((bound > ENOUGH).sum())
    last = case.solved().weights[:, -1] > 0
    return {
        "limit": ENOUGH,
        "nodes_above": above,
        "share_above": above / len(bound),
        "median": float(np.median(bound)),
        "max": float(bound.max()),
        "last_kept_share": float(last.mean()),
    }


def distance_facts(case: Case) -> dict[str, Any] | None:
    """Set the bandwidth against the distances it is meant for; None without them."""
    if case.plan.kernel.nearness not in DISTANCES or not case.k:
        return None
    nearest, kth = case.candidates.distance[:, 0], case.kth_distance()
    names = ("min", "q05", "median", "q95", "max")
    spread = np.percentile(kth, [0, 5, 50, 95, 100])
    low, high = float(spread[1]), float(spread[3])
    sigma = case.kernel.bandwidth(case.candidates)
    return {
        "sigma": sigma,
        "nearest_median": float(np.median(nearest)),
        "kth": {name: float(value) for name, value in zip(names, spread, strict=True)},
        "kth_spread": high / low if low > 0 else None,
        "warnings": report.bandwidth_warnings(sigma, report.reach(case.candidates)),
    }


def _even_steps(most: int) -> list[int]:
    """Return the upper ends of at most ten steps from 0 to ``most``."""
    width = max(1, -(-most // 10))
    return sorted({*range(0, most, width), most})


def _histogram(values: IndexArray, tops: list[int]) -> list[dict[str, int]]:
    """Count whole numbers from above each of ``tops`` up to the next."""
    count = np.bincount(np.searchsorted(tops, values), minlength=len(tops))
    bottoms = [0, *(top + 1 for top in tops[:-1])]
    return [
        {"from": bottom, "to": top, "count": int(many)}
        for bottom, top, many in zip(bottoms, tops, count, strict=True)
    ]
