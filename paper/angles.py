"""Angles in the kernel's feature space, and what the paper's corollary says of them.

Let q be a node, i and j two candidates, and g_ab = 1 - K_ab half the squared distance
of a and b in that space. The corollary is about the triangle q, i, j: with alpha its
angle at j, theta_i is not zero if and only if cos(alpha) > d(q, j) d(i, j) / 4, that
is, g_qj + g_ij - g_qi > g_qj g_ij; and likewise beta, the angle at i, for theta_j.

- It is proven for two candidates: pairs that are solved alone never violate it.
- The right-hand side lies between 0 and 1/2. A weight is therefore certain below 60
  degrees, and impossible from 90 on. The paper prints "iff pi/3 < alpha < -pi/3": the
  signs are a slip, and 60 degrees is sufficient, not necessary.
- With more candidates it is no theorem. Other neighbors explain part of q, so that two
  neighbors may violate it, and pairs that satisfy it need not be neighbors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnkgraph.build.graph import find_candidates
from nnkgraph.data.pairs import within_values
from nnkgraph.kernels import Problem
from nnkgraph.kernels.gaussian import Gaussian
from nnkgraph.methods.nnk import Nnk
from paper import data, figures
from paper.graphs import Kind, build
from paper.results import Row, Table, where
from paper.setting import Setting

_K = 30
_KEYS = ("data", "print", "rows", "k", "neighbors")
_VALUES = (
    *("proven", "pairs", "smallest", "median", "largest_at_neighbor"),
    *("share_violating", "share_left_out", "share_beyond_60"),
    *("histogram", "histogram_at_neighbor"),
)
_EDGES = np.linspace(0, 180, 37)
_LABELS = {
    "knn": f"kNN: all of {_K} candidates",
    "nnk": f"NNK: chosen from {_K} candidates",
    "nnk of two": "NNK: chosen from two candidates",
}
_CLOSE = 1e-9
"""Cosines nearer to the bound than this are on it: rounding decides there."""


def run(setting: Setting) -> None:
    """Write angles.csv and a figure."""
    sets = data.for_graphs(setting, "usps")
    cases = [
        {"data": s.name, "print": s.print, "rows": len(s.x), "k": _K, "neighbors": one}
        for s in sets.values()
        for one in _LABELS
    ]

    def compute(some: list[Row]) -> Iterable[Row]:
        found = angles_of(sets[some[0]["data"]].x, _K)
        return [found[case["neighbors"]] for case in some]

    table = Table(setting.out / "angles.csv", _KEYS, _VALUES)
    rows = table.fill(cases, compute, group=("data", "rows"))
    figures.save(setting.out / "angles.png", _figure(rows, list(sets.values())))


def angles_of(x: NDArray[Any], k: int) -> dict[str, Row]:
    """Return a row for the pairs of neighbors by kNN, by NNK, and by NNK of two."""
    k = min(k, len(x) - 1)
    graph, _ = build(Kind("nnk", "nnk", k, "none"), x)
    sigma = graph.report.settings["sigma"]
    index = find_candidates(x, k=k).index
    nodes = np.arange(len(x))[:, np.newaxis]
    weight: Any = graph.adjacency[nodes, index]
    one, other = np.tril_indices(k, -1)
    chosen = weight.toarray() > 0
    both = {
        "knn": np.ones((len(x), len(one)), np.bool_),
        "nnk": chosen[:, one] & chosen[:, other],
        "nnk of two": np.vstack([*_alone(x, index, sigma)]),
    }
    triangles = Triangles.of(x, index, sigma)
    return {name: _summary(triangles, own, name) for name, own in both.items()}


class Triangles:
    """Every node with every two of its candidates; arrays are (nodes, pairs).

    Parameters
    ----------
    near, far, across : array
        Half the squared distances g, of the node to either and of the two.
    """

    def __init__(
        self, near: NDArray[Any], far: NDArray[Any], across: NDArray[Any]
    ) -> None:
        self.at_node = _cosine(near, far, across)
        self.at_far = _cosine(far, across, near)  # alpha, which near's weight needs
        self.at_near = _cosine(near, across, far)
        margin = np.minimum(
            self.at_far - np.sqrt(far * across) / 2,
            self.at_near - np.sqrt(near * across) / 2,
        )
        self.satisfied = margin > _CLOSE
        self.violated = margin < -_CLOSE

    @classmethod
    def of(cls, x: NDArray[Any], index: NDArray[Any], sigma: float) -> Triangles:
        """Measure the triangles of all nodes and their (n, k) candidates."""
        count = index.shape[1]
        whole = np.column_stack([np.arange(len(x)), index])
        squared = within_values(np.asarray(x, np.float64), whole, "squared-distance")
        # 1 - K, without the digits that are lost where K is nearly 1
        half = -np.expm1(squared / (-2 * sigma**2))
        place = np.zeros((count + 1, count + 1), np.int64)
        rows, columns = np.tril_indices(count + 1)
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        one, other = np.tril_indices(count, -1)
        sides = (place[0, one + 1], place[0, other + 1], place[one + 1, other + 1])
        return cls(*(half[:, side] for side in sides))


def _cosine(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """Return the cosine between sides a and b, opposite c; halves of squares are given.

    NaN where rows are identical, which have no angle.
    """
    with np.errstate(invalid="ignore"):
        cosine: NDArray[Any] = (a + b - c) / (2 * np.sqrt(a * b))
    return cosine.clip(-1, 1)


def _alone(
    x: NDArray[Any], index: NDArray[Any], sigma: float
) -> Iterator[NDArray[np.bool_]]:
    """Solve every two candidates of every node alone; yield where both get a weight."""
    x = np.ascontiguousarray(x, np.float64)
    one, other = np.tril_indices(index.shape[1], -1)
    for start in range(0, len(x), 50):
        rows = np.arange(start, min(start + 50, len(x)))
        queries = x[np.repeat(rows, len(one))]
        pair = np.stack([index[rows][:, one], index[rows][:, other]], -1).reshape(-1, 2)
        distance = np.linalg.norm(x[pair] - queries[:, np.newaxis], axis=2)
        found = Nnk().weigh(Problem(x, queries, pair, distance, Gaussian(sigma)))
        yield (found.weights > 0).all(axis=1).reshape(len(rows), -1)


def _summary(triangles: Triangles, both: NDArray[np.bool_], name: str) -> Row:
    """Return a line about the pairs of which both are neighbors, in degrees."""
    at_node = np.rad2deg(np.arccos(triangles.at_node[both]))
    beside = [triangles.at_far[both], triangles.at_near[both]]
    at_neighbor = np.rad2deg(np.arccos(np.stack(beside)))
    satisfied = triangles.satisfied
    return {
        "proven": int(name == "nnk of two"),
        "pairs": len(at_node),
        "smallest": round(float(at_node.min()), 4),
        "median": round(float(np.median(at_node)), 4),
        "largest_at_neighbor": round(float(at_neighbor.max()), 4),
        "share_violating": round(float(triangles.violated[both].mean()), 6),
        "share_left_out": round(float((~both)[satisfied].mean()), 6),
        "share_beyond_60": round(float((at_neighbor.max(axis=0) >= 60).mean()), 6),
        "histogram": _counts(at_node),
        "histogram_at_neighbor": _counts(at_neighbor),
    }


def _counts(angles: NDArray[Any]) -> str:
    """Return the share of angles in every five degrees, in percent."""
    counts, _ = np.histogram(angles, _EDGES)
    return " ".join(f"{one:.3f}" for one in 100 * counts / max(1, angles.size))


def _figure(rows: list[Row], sets: list[data.Set]) -> Any:
    """Draw histograms of the angles at the nodes, and at the neighbors."""
    figure, axes = figures.panels(2, len(sets), width=5.2)
    looks = {"knn": ("knn", "-"), "nnk": ("nnk", "-"), "nnk of two": ("omp", "--")}
    for line, own in zip(axes.T, sets, strict=True):
        for name, (method, dashes) in looks.items():
            (row,) = where(rows, data=own.name, neighbors=name)
            for panel, column in zip(line, _VALUES[-2:], strict=True):
                panel.stairs(
                    [float(one) for one in row[column].split()],
                    _EDGES,
                    color=figures.style(method)["color"],
                    linestyle=dashes,
                    linewidth=1.6,
                    label=_LABELS[name],
                )
        for at in (60, 90):
            line[1].axvline(at, color="gray", linewidth=1, linestyle=":")
        n, d = own.x.shape
        text = f"{own.name.replace('_', ' ')}, {n} x {d}"
        below = "angle at the node between two edges, degrees"
        figures.finish(line[0], text, below, "pairs, % per 5 degrees")
        below = "angle at a neighbor, to node and other neighbor, degrees"
        text = "weights of two: certain below 60, impossible from 90"
        figures.finish(line[1], text, below, "angles, % per 5 degrees")
        for panel in line:
            panel.set_xticks(range(0, 181, 30))
    figures.key_below(figure, axes[0, 0], 1 if len(sets) == 1 else 3)
    return figure
