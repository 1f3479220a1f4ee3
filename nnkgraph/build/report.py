"""What is said about a graph: its facts, its provenance and its warnings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__
from nnkgraph.data import (
    SCHEMA,
    Answers,
    Candidates,
    Features,
    Graph,
    Neighborhoods,
    SparseGram,
)
from nnkgraph.data.edges import component_labels
from nnkgraph.data.report import Certificate
from nnkgraph.kernels import Kernel, Problem
from nnkgraph.runtime.arrays import FloatArray, IndexArray, row_slices

if TYPE_CHECKING:
    from nnkgraph.build.grow import Growth
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.methods import Method


CERTIFICATE_LIMIT = 1e-9
"""A node whose certificate is above this counts as failed."""


_PACKAGES = ("h5py", "numba", "numpy", "pynndescent", "scipy")


def facts(graph: Graph) -> dict[str, Any]:
    """Count nodes, edges, components and isolated nodes."""
    n = graph.n_nodes
    degree = np.diff(graph.adjacency.indptr).astype(np.int64)
    for some in row_slices(graph.adjacency.nnz, 16):
        degree += np.bincount(graph.adjacency.indices[some], minlength=n)
    components = component_labels(graph.adjacency)[0]
    return {
        "nodes": n,
        "edges": int(graph.n_edges),
        "edges_per_node": graph.n_edges / n,
        "components": int(components),
        "isolated": int((degree == 0).sum()),
        "directed": graph.directed,
    }


def copies_apart(graph: Graph, first: IndexArray | None) -> int:
    """Count components that consist only of copies of one row."""
    if first is None:
        return 0
    count, label = component_labels(graph.adjacency)
    kinds = np.unique(np.stack([label, first]), axis=1)[0]
    alike = np.bincount(kinds, minlength=count) == 1
    return int((alike & (np.bincount(label, minlength=count) > 1)).sum())


def certificate(found: Neighborhoods, origin: IndexArray | None) -> Certificate | None:
    """Sum up the optimality of all nodes, and name the first that miss it."""
    if found.certificate is None:
        return None
    values = found.certificate
    failed = np.flatnonzero(~(values <= CERTIFICATE_LIMIT))
    finite = np.nan_to_num(values, nan=1e300, posinf=1e300)  # JSON knows no others
    named = failed if origin is None else origin[failed]
    return Certificate(
        float(finite.max(initial=0.0)),
        float(finite.sum() / max(1, len(values))),
        len(failed),
        [int(node) for node in named[:10]],
    )


def error_facts(errors: FloatArray | None) -> dict[str, float] | None:
    """Sum up J over all nodes."""
    if errors is None:
        return None
    total = math.fsum(errors) / max(1, len(errors))
    return {"mean": total, "max": float(errors.max(initial=0.0))}


def growth_facts(growth: Growth, rows: Rows) -> dict[str, Any]:
    """Return what is known about points outside: in sum, and for every node."""
    outside = growth.outside
    if rows.origin is not None and rows.first is not None:  # a copy has its first row's
        outside = outside[np.searchsorted(rows.origin, rows.first)]
    used = (growth.candidates.index >= 0).sum(axis=1)
    return {
        "outside": {
            "max": float(outside.max(initial=0.0)),
            "mean": float(outside.mean()),
            "nodes_above_0.01": int((outside > 0.01).sum()),
            "nodes_bounded": growth.bounded,
            "largest_k": int(used.max(initial=0)),
            "nodes": outside.tolist(),
        }
    }


def support_sizes(found: Neighborhoods) -> list[int]:
    """Count the nodes that keep 0, 1, 2, ... of their candidates."""
    n, m = found.weights.shape
    counts = np.zeros(m + 1, np.int64)
    for rows in row_slices(n, m):
        sizes = (found.weights[rows] > 0).sum(axis=1)
        counts += np.bincount(sizes, minlength=m + 1)
    return [int(n) for n in np.trim_zeros(counts, "b")]


def versions() -> dict[str, str]:
    """Return the versions of everything that took part."""
    import platform
    from importlib.metadata import version

    found = {name: version(name) for name in _PACKAGES}
    return {"nnkgraph": __version__, "python": platform.python_version(), **found}


def provenance(features: Features, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what determines a result, to be stored with it."""
    return provenance_of(input_facts(features), settings)


def provenance_of(known: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return what determines a result, from the facts about its input.

    Never the command, paths, workers or times: equal results are equal bytes.
    """
    return {
        "schema": SCHEMA,
        "nnkgraph": __version__,
        **settings,
        "shape": known["shape"],
        "sha256": known["sha256"],
    }


def readable(facts: dict[str, Any]) -> dict[str, Any]:
    """Return provenance for people: numbers of each column are counted, not listed."""
    told = {name: one for name, one in facts.items() if name != "projection"}
    numbers = told.pop("scaling", None)
    if isinstance(numbers, dict) and "low" in numbers:
        count = len(numbers["low"])
        column = "column" if count == 1 else "columns"
        told["scale"] = f"{told.get('scale')}, by the numbers of {count} {column}"
    return told


def search_facts(candidates: Candidates) -> dict[str, Any]:
    """Describe how candidates were found."""
    return {
        "backend": candidates.backend,
        "recall": 1.0 if candidates.exact else candidates.recall,
        "recall_interval": candidates.recall_interval,
        "threads": candidates.threads,
    }


def own_similarity(
    x: Any, candidates: Candidates, kernel: Kernel, method: Method, start: int = 0
) -> FloatArray | None:
    """Return every node's similarity with itself, the unit of its error.

    None where no error is compared, or where it is the same for all nodes. The
    candidates are those of all rows, or of a part of them that begins at ``start``.
    """
    if not method.has_error or not kernel.form:
        return None
    stop = start + len(candidates.index)
    every = np.arange(start, stop)
    queries = None if isinstance(x, SparseGram) else x[start:stop]
    return Problem(
        x, queries, candidates.index, candidates.distance, kernel, every
    ).own()


def input_facts(features: Features) -> dict[str, Any]:
    """Describe the features."""
    return {
        "name": features.name,
        "shape": list(features.x.shape),
        "dtype": features.dtype,
        "sha256": features.sha256,
    }


def reach(candidates: Candidates) -> tuple[FloatArray, FloatArray]:
    """Return the distances of first and last candidates; not finite without any."""
    distance = candidates.distance
    if not distance.shape[1]:
        none = np.full(len(distance), np.inf)
        return none, none
    far = np.empty(len(distance))
    for rows in row_slices(len(distance), 24 * distance.shape[1]):
        known = distance[rows]
        far[rows] = np.where(np.isfinite(known), known, -np.inf).max(axis=1)
    return distance[:, 0], far


def bandwidth_warnings(
    sigma: float | None, known: tuple[FloatArray, FloatArray]
) -> list[str]:
    """Say so where a bandwidth is far from the distances it is meant for."""
    if sigma is None:
        return []
    near, far = (one[np.isfinite(one)] for one in known)
    if len(near) and np.median(near) > 6.5 * sigma:
        lost = int((near > 6.5 * sigma).sum())
        what = (
            f"is small beside the distances: {lost} of {len(near)} nodes have no "
            "candidate with a similarity above 1e-9"
        )
    elif len(far) and 0 < np.median(far) < 0.05 * sigma:
        what = (
            "is large beside most distances: half of the nodes or more see only "
            "similarities within 0.2 % of 1, and their weights rest on the last digits"
        )
    else:
        return []
    return [f"sigma {sigma:.4g} {what}; try `sigma='local'`"]


def graph_warnings(known: dict[str, Any], apart: int, tips: str) -> list[str]:
    """Say so where nodes are alone, or copies of a row see nothing but each other."""
    n, isolated, found = known["nodes"], known["isolated"], []
    if apart:
        found.append(f"{apart} components consist only of copies of one row{tips}")
    if n > 1 and isolated > 0.01 * n:
        found.append(f"{isolated} of {n} nodes ({isolated / n:.1%}) are isolated{tips}")
    return found


def description_of(
    result: Graph | Answers | Candidates, provenance: dict[str, Any]
) -> dict[str, Any]:
    """Describe what a file holds: everything ``info`` shows."""
    if isinstance(result, Candidates):
        return _candidates(result, provenance)
    if isinstance(result, Answers):
        return _answers(result)
    return description(result)


def description(graph: Graph) -> dict[str, Any]:
    """Describe a graph."""
    degree = np.diff(graph.adjacency.indptr)
    weight = graph.adjacency.data
    return {
        **facts(graph),
        "degree": _spread(degree),
        "support": _spread(support(graph)),
        "weight": _spread(weight),
        "distance": _spread(graph.distances),
        "metric": graph.provenance.get("metric"),
        "error": _spread(graph.errors),
        "ids": "yes" if graph.ids else "no",
        "candidates": "stored" if graph.candidates is not None else "not stored",
        "provenance": {
            name: value
            for name, value in graph.provenance.items()
            if name not in {"support_sizes", "projection"}
        },
    }


def _answers(answers: Answers) -> dict[str, Any]:
    """Describe neighborhoods of queries."""
    queries, rows = answers.weights.shape
    count, far = np.diff(answers.weights.indptr), answers.distances
    return {
        "holds": "neighborhoods of queries, a line of the matrix each",
        "queries": queries,
        "rows": rows,
        "without": int((count == 0).sum()),
        "neighbors": _spread(count),
        "weight": _spread(answers.weights.data),
        "distance": _spread(None if far is None else far.data),
        "metric": answers.provenance.get("metric"),
        "error": _spread(answers.errors),
        "query_ids": "yes" if answers.query_ids else "no",
        "ids": "yes" if answers.ids else "no",
        "provenance": answers.provenance,
    }


def _candidates(found: Candidates, provenance: dict[str, Any]) -> dict[str, Any]:
    """Describe candidates; without a metric they have no distances but scores."""
    far, metric = found.distance, provenance.get("metric")
    known = far[np.isfinite(far)]
    return {
        "holds": "candidates, the nearest first",
        "rows": len(found.index),
        "k": found.index.shape[1],
        "missing": int((found.index < 0).sum()),
        "distance" if metric or not provenance else "score": _spread(known),
        "metric": metric,
        "ids": "yes" if found.ids else "no",
        "provenance": provenance,
    }


def _spread(values: Any) -> dict[str, float]:
    """Return the extremes, the quartiles and the mean."""
    if values is None or not len(values):
        return {}
    names = ("min", "q1", "median", "q3", "max")
    found = np.percentile(values, [0, 25, 50, 75, 100]).tolist()
    mean = math.fsum(values) / len(values)
    return dict(zip(names, found, strict=True)) | {"mean": mean}


def support(graph: Graph) -> Any:
    """Return how many candidates nodes kept, as the build counted them."""
    counts = graph.provenance.get("support_sizes")
    # A graph of another program may have anything there.
    if not isinstance(counts, list) or not all(type(one) is int for one in counts):
        return np.empty(0)
    if min(counts, default=0) < 0 or sum(counts) > graph.n_nodes:
        return np.empty(0)
    return np.repeat(np.arange(len(counts)), counts)
