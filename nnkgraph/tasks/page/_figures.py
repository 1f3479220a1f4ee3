"""The figures of a page: what is counted, listed and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__
from nnkgraph.describe import description, support
from nnkgraph.errors import InputError
from nnkgraph.report import CERTIFICATE_LIMIT
from nnkgraph.tasks.plot._histograms import bins_of, values_of
from nnkgraph.tasks.verify import verify

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph
    from nnkgraph.labels import Labels
    from nnkgraph.stages import Stages

_CHARTS = {
    "degrees": ("Degrees", "edges of a node", "nodes"),
    "weights": ("Weights", "weight of an edge", "edges"),
    "support": ("Support", "candidates that a node kept", "nodes"),
    "errors": ("Errors", "error J of a node", "nodes"),
}
_LISTED = 12
_SAMPLE = 100
"""Nodes that are derived again where features are given."""


def figures(
    graph: Graph,
    name: str,
    features: Features | None,
    labels: Labels | None,
    stages: Stages | None,
) -> dict[str, Any]:
    """Return everything on the page but the drawing; plain JSON values."""
    about = description(graph)
    proof, checks, looked = _proof(graph, features, name, stages)
    return {
        "lead": _lead(about),
        "tiles": _tiles(about),
        "proof": proof,
        "checks": checks,
        "checked": looked,
        "charts": [_chart(graph, name, what) for what in _CHARTS if _has(graph, what)],
        "groups": [_components(graph), *_classes(graph, labels)],
        "parameters": _parameters(graph.provenance),
        "foot": f"Written by nnkgraph {__version__}. It loads nothing from anywhere.",
    }


def _lead(about: dict[str, Any]) -> str:
    kind = "A directed" if about["directed"] else "An undirected"
    return f"{kind} graph of {about['nodes']:,} nodes and {about['edges']:,} edges."


def _tiles(about: dict[str, Any]) -> list[list[Any]]:
    tiles = [
        ["nodes", about["nodes"]],
        ["edges", about["edges"]],
        ["edges per node", about["edges_per_node"]],
        ["components", about["components"]],
        ["isolated nodes", about["isolated"]],
    ]
    if about["error"]:
        tiles.append(["mean error J", about["error"]["mean"]])
    return tiles


def _proof(
    graph: Graph, features: Features | None, name: str, stages: Stages | None
) -> tuple[dict[str, str], list[list[str]] | None, str]:
    """Return what is known about the correctness of the graph."""
    facts = graph.provenance
    failed, why = facts.get("nodes_failed"), facts.get("failure")
    if why or failed:
        text = f"{why or f'{failed} nodes miss the certificate'} (as the file says)"
        proof = {"state": "bad", "text": text}
    elif failed == 0 and graph.errors is not None:
        text = (
            f"Every node's solution was proven optimal when the graph was built: its "
            f"conditions hold to {CERTIFICATE_LIMIT:g}."
        )
        proof = {"state": "good", "text": text}
    else:
        proof = {"state": "unknown", "text": "The file carries no certificate."}
    if features is None:
        return proof, None, ""
    try:
        found = verify(features, graph, sample=_SAMPLE, name=name, stages=stages)
    except InputError as error:
        return proof, [["all", "not checked", str(error)]], "With the features:"
    if found.failed:
        names = ", ".join(one.name for one in found.failed)
        text = f"The graph is not what its features and parameters give: {names}."
        proof = {"state": "bad", "text": text}
    looked = (
        f"{found.looked:,} of {found.nodes:,} nodes were derived again from the "
        "features, by a slow independent path:"
    )
    return proof, [[one.name, one.status, one.text] for one in found.checks], looked


def _has(graph: Graph, what: str) -> bool:
    """Return whether there is something to count."""
    if what == "support":
        return len(support(graph)) > 0
    if what == "weights":
        return graph.adjacency.nnz > 0
    return what != "errors" or graph.errors is not None


def _chart(graph: Graph, name: str, what: str) -> dict[str, Any]:
    title, of, counted = _CHARTS[what]
    values = values_of(name, graph, what)
    edges = bins_of(values, whole=what in {"degrees", "support"})
    return {
        "title": title,
        "of": of,
        "counted": counted,
        "whole": what in {"degrees", "support"},
        "edges": [float(one) for one in edges],
        "counts": [int(one) for one in np.histogram(values, edges)[0]],
        "min": float(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": float(values.max()),
    }


def _components(graph: Graph) -> dict[str, Any]:
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(graph.adjacency, directed=False)
    sizes = np.sort(np.bincount(label, minlength=count))[::-1]
    values, times = np.unique(sizes, return_counts=True)
    rows = [
        [int(v), int(t), _percent(v * t, graph.nodes)]
        for v, t in zip(values, times, strict=True)
    ]
    rows.reverse()
    text = "All nodes are connected." if count == 1 else f"{count:,} components"
    if len(rows) > _LISTED:
        text += f"; the {_LISTED} largest sizes"
    return {
        "title": "Components",
        "text": text,
        "head": ["size", "components", "share of nodes"],
        "rows": rows[:_LISTED],
    }


def _classes(graph: Graph, labels: Labels | None) -> list[dict[str, Any]]:
    """Say how edges and errors lie between classes."""
    if labels is None:
        return []
    edges = graph.adjacency.tocoo()
    one, two = labels.codes[edges.row], labels.codes[edges.col]
    known = (one >= 0) & (two >= 0)
    count = len(labels.classes)
    ends = np.bincount(one[known], minlength=count)
    own = np.bincount(one[known & (one == two)], minlength=count)
    sizes = labels.counts()
    errors: NDArray[Any] = np.zeros(count)
    if graph.errors is not None:
        codes = labels.codes[labels.known]
        errors = np.bincount(codes, graph.errors[labels.known], count)
    head = ["class", "nodes", "edges inside"]
    rows: list[list[Any]] = []
    for at, name in enumerate(labels.classes):
        row = [name, int(sizes[at]), _percent(own[at], ends[at])]
        if graph.errors is not None:
            row.append(float(errors[at] / max(1, sizes[at])))
        rows.append(row)
    if graph.errors is not None:
        head.append("mean error J")
    same = _percent(own.sum(), ends.sum())
    text = f"{same} of the edges between labeled nodes join nodes of the same class."
    return [{"title": "Classes", "text": text, "head": head, "rows": rows}]


def _percent(part: Any, whole: Any) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"  # noqa: RUF001 - no edges


def _parameters(facts: dict[str, Any]) -> list[list[str]]:
    """Return the provenance as text, in the order that readers look for."""
    first = ("method", "k", "kernel", "sigma", "rule", "search", "min_degree", "scale")
    names = [name for name in first if name in facts]
    names += sorted(set(facts) - {*first, "support_sizes", "nodes_failed", "failure"})
    return [[name.replace("_", " "), _shown(facts[name])] for name in names]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " x ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
