"""The figures of a diagnosis: counts and shares, plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build import report
from nnkgraph.build.grow import outside_bounds
from nnkgraph.data.pairs import DISTANCES, GEOMETRIC, MATRICES, cross_values
from nnkgraph.kernels import Problem
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.search import Search
    from nnkgraph.tasks.doctor._searched import SearchedRows


SATURATED = 0.85  # kept / k above this: NNK prunes little
ENOUGH = 0.01  # more that a point outside could explain means a small k
# Near-duplicates: the cosine of rows of one length is above the first, or their
# distance below the second as a share of the median one to the last candidate; a
# smaller one in few dimensions, where more than so many rows are that near by chance.
NEAR_COSINE, NEAR, BY_CHANCE = 0.95, 0.05, 1e-3
_ONE_LENGTH = 1e-3  # lengths that differ by a smaller share are the same

# Similarities are alike where those of last candidates (median) and of random pairs
# (5th percentile) are above these. With sigma at the mean distance of last candidates
# the first is about exp(-1/2), 0.61; with a narrower one it is less.
_ALIKE_LAST, _ALIKE_RANDOM = 0.65, 0.35

# What is put side by side, after the default of ``build``.
GRAPHS = (
    ("nnk", "error", 0),
    ("nnk", "error", 3),
    ("nnk", "error-union", 0),
    ("nnk", "max", 0),
    ("nnk", "mutual", 0),
    ("knn", "mutual", 0),
    ("knn", "max", 0),
)


def row_facts(searched: SearchedRows) -> dict[str, Any]:
    """Count identical rows, and those that are nearly so."""
    rows = searched.rows
    group = 1 if rows.first is None else int(np.bincount(rows.first).max())
    facts: dict[str, Any] = {"distinct": len(rows.x), "copies": rows.copies}
    facts["largest_group"] = group
    base = searched.settings.kernel.nearness
    if base not in GEOMETRIC or not searched.k:
        return facts
    nearest, last = report.reach(searched.candidates)
    every = searched.drawn[:, np.newaxis]
    squares = cross_values(rows.x, searched.asking, every, "inner-product")[:, 0]
    length = np.sqrt(squares)
    if base == "squared-distance" and np.ptp(length) <= _ONE_LENGTH * length.min() > 0:
        cosine = 1 - np.square(nearest / length) / 2
        return facts | {
            "near_duplicates": int((cosine > NEAR_COSINE).sum()),
            "near_cosine": NEAR_COSINE,
        }
    share, dimension = NEAR, _dimension(searched)
    if dimension:
        share = min(share, (BY_CHANCE / searched.k) ** (1 / dimension))
    limit = share * float(np.median(last[np.isfinite(last)]))
    return facts | {
        "near_duplicates": int((nearest < limit).sum()),
        "near_distance": limit,
        "near_share": share,
    }


def support_facts(searched: SearchedRows) -> dict[str, Any]:
    """Say how many candidates NNK keeps."""
    there = (searched.candidates.index >= 0).sum(axis=1)
    size = (searched.weights() > 0).sum(axis=1)
    kept = float(size.sum() / there.sum()) if there.sum() else 0.0
    return {
        "k": searched.k,
        "mean": float(size.mean()),
        "min": int(size.min()),
        "max": int(size.max()),
        "kept_over_k": kept,
        "saturated": kept > SATURATED,
        "histogram": _histogram(size, _even_steps(searched.k)),
    }


def graph_facts(searched: SearchedRows) -> list[dict[str, Any]]:
    """Describe the graph of every rule."""
    names = ("edges", "edges_per_node", "components", "isolated")
    lines = []
    for method, rule, least in dict.fromkeys([("nnk", *searched.usual), *GRAPHS]):
        facts = searched.facts(method=method, symmetrize=rule, min_degree=least)
        way = {"method": method, "symmetrize": rule, "min_degree": least}
        lines.append(way | {name: facts[name] for name in names})
    return lines


def overlap_facts(searched: SearchedRows, sigma: str | None = None) -> dict[str, float]:
    """Say how much NNK and mutual kNN have in common.

    Their edges are those that ``build`` writes: with edges to copies of rows.
    ``jaccard`` is the share of all edges that both have, ``covered`` the share of the
    edges of mutual kNN that NNK has; both are 1 where there are no edges.
    """
    nnk, mutual = (
        searched.graph(*way, sigma).adjacency.astype(bool)
        for way in (("nnk", *searched.usual), ("knn", "mutual", 0))
    )
    both, mine, theirs = map(searched.edges, (nnk.multiply(mutual), nnk, mutual))
    either = mine + theirs - both
    return {
        "jaccard": both / either if either else 1.0,
        "covered": both / theirs if theirs else 1.0,
    }


def hub_facts(searched: SearchedRows, ids: tuple[str, ...] | None) -> dict[str, Any]:
    """Say how unevenly nodes are chosen as candidates; `ids` are those of all rows.

    Nobody knows from a sample whom no row chooses.
    """
    index = searched.candidates.index
    n, k, origin = len(searched.rows.x), searched.k, searched.rows.origin
    degree = np.bincount(index[index >= 0], minlength=n)
    row = largest = int(degree.argmax())
    most = int(degree[largest])
    if searched.sample:
        # Who was chosen most often by some had luck, too: others tell what is left.
        first, second = np.array_split(index, 2)
        count = np.bincount(first[first >= 0])
        row = largest = int(count.argmax())
        left = (n - len(first)) / len(second)
        most = int(count[row]) + round((second == row).sum() * left)
    if origin is not None:
        row = int(origin[largest])
    facts = {
        "largest": most,
        "largest_row": row,
        "largest_id": None if ids is None else ids[row],
        "largest_over_k": most / k if k else 0.0,
        "skewness": _skewness(degree, len(index)),
    }
    if searched.sample:
        return facts | {"unchosen": None, "unchosen_share": None, "histogram": []}
    steps = sorted({most, *(s for s in (0, k // 2, k, 2 * k, 4 * k) if s < most)})
    unchosen = int((degree == 0).sum()) if k else 0
    return facts | {
        "unchosen": unchosen,
        "unchosen_share": unchosen / n,
        "histogram": _histogram(degree, steps),
    }


def _skewness(count: IndexArray, drawn: int) -> float | None:
    """Return the skewness of how often nodes are candidates, None where all are alike.

    From how often they are candidates of the rows drawn: ``c (c - 1) (c - 2)`` and the
    like are in the mean those of all rows, times the share of triples that was drawn.
    """
    n, c, step = len(count), count.astype(np.float64), np.arange(3)
    share = np.cumprod((drawn - step) / np.maximum(n - step, 1))
    one, two, three = np.array(
        [c.mean(), (c * (c - 1)).mean(), (c * (c - 1) * (c - 2)).mean()]
    ) / np.where(share > 0, share, 1)
    two, three = two + one, three + 3 * two + one  # moments
    variance, third = two - one**2, three - 3 * one * two + 2 * one**3
    return float(third / variance**1.5) if variance > 1e-9 * two else None


def hardness_facts(searched: SearchedRows) -> dict[str, Any]:
    """Say how many dimensions are around a row, and what search would be chosen."""
    base, width = searched.settings.kernel.nearness, searched.settings.width
    auto: Search = registry.create("search", "auto")
    chosen, why = auto.chosen(searched.rows.x, width, base)
    name = registry.spec(chosen).partition(":")[0]
    return {"dimension": _dimension(searched), "auto": name, "auto_why": why}


def _dimension(searched: SearchedRows) -> float | None:
    """Return the median of the estimates by Levina and Bickel from the candidates.

    None where there are no distances, or fewer than three.
    """
    distance = searched.candidates.distance
    if searched.settings.kernel.nearness not in DISTANCES or searched.k < 3:
        return None
    near = distance[(distance[:, 0] > 0) & np.isfinite(distance[:, -1])]
    growth = np.log(near[:, -1:] / near[:, :-1]).sum(axis=1)
    growth = growth[growth > 0]
    return float(np.median((searched.k - 2) / growth)) if len(growth) else None


def similarity_facts(searched: SearchedRows) -> dict[str, Any] | None:
    """Set the similarities of candidates beside those of as many random pairs.

    None for kernels whose similarity need not fall with distance. ``alike`` says that
    random rows are similar as well, and so are far candidates.
    """
    kernel, candidates = searched.kernel, searched.candidates
    n, drawn = len(searched.rows.x), searched.drawn
    if kernel.base in MATRICES:  # pairs beyond the candidates may be unknown
        return None
    if not (kernel.form and kernel.nearness in DISTANCES and searched.k):
        return None
    step = np.random.default_rng(searched.settings.seed).integers(
        1, n, candidates.index.shape
    )
    others = (drawn[:, np.newaxis] + step) % n  # never the row itself
    near, random = (
        _similarities(searched, index) for index in (candidates.index, others)
    )
    there = np.maximum((candidates.index >= 0).sum(axis=1) - 1, 0)[:, np.newaxis]
    last = float(np.median(np.take_along_axis(near, there, axis=1)))
    near = near[candidates.index >= 0]
    names, at = ("q05", "median", "q95"), (5, 50, 95)
    spread = {
        name: dict(zip(names, np.percentile(values, at).tolist(), strict=True))
        for name, values in (("candidates", near), ("random", random))
    }
    alike = last > _ALIKE_LAST and spread["random"]["q05"] > _ALIKE_RANDOM
    return {**spread, "last_median": last, "alike": alike}


def _similarities(searched: SearchedRows, index: IndexArray) -> FloatArray:
    """Return those of the drawn rows with others, relative to that with themselves."""
    known = index, searched.candidates.distance, searched.kernel
    problem = Problem(searched.rows.x, searched.asking, *known)
    similar: FloatArray = problem.cross() / problem.own()[:, np.newaxis]
    return similar


def outside_facts(searched: SearchedRows) -> dict[str, Any] | None:
    """Bound what points outside the candidates could explain, where that is possible.

    None for kernels whose similarity does not fall to 0 with distance.
    """
    kernel, candidates = searched.kernel, searched.candidates
    falls = kernel.form == "exponential" and kernel.nearness in GEOMETRIC
    if not (falls and searched.k):
        return None
    points = searched.asking if searched.sample else None
    bound = outside_bounds(searched.rows.x, candidates, kernel, points)
    above = int((bound > ENOUGH).sum())
    last = searched.weights()[:, -1] > 0
    return {
        "limit": ENOUGH,
        "nodes_above": above,
        "share_above": above / len(bound),
        "median": float(np.median(bound)),
        "max": float(bound.max()),
        "last_kept_share": float(last.mean()),
    }


def distance_facts(searched: SearchedRows) -> dict[str, Any] | None:
    """Set the bandwidth against the distances it is meant for; None without them."""
    if searched.settings.kernel.nearness not in DISTANCES or not searched.k:
        return None
    distance = searched.candidates.distance
    nearest, there = distance[:, 0], np.isfinite(distance).sum(axis=1)
    kth = distance[np.arange(len(there)), there - 1][there > 0]
    names = ("min", "q05", "median", "q95", "max")
    spread = np.percentile(kth, [0, 5, 50, 95, 100])
    low, high = float(spread[1]), float(spread[3])
    sigma = searched.kernel.bandwidth(searched.candidates)
    return {
        "sigma": sigma,
        "nearest_median": float(np.median(nearest)),
        "kth": {name: float(value) for name, value in zip(names, spread, strict=True)},
        "kth_spread": high / low if low > 0 else None,
        "warnings": report.bandwidth_warnings(sigma, report.reach(searched.candidates)),
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
