"""One page about a graph: a single HTML file that loads nothing from anywhere.

What the page says is computed here and stands in it as JSON; the files beside this one
turn it into text, charts and a drawing. Names of users become text and never HTML.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__
from nnkgraph.build.report import CERTIFICATE_LIMIT, description, support
from nnkgraph.errors import InputError
from nnkgraph.tasks.laplacian import pieces
from nnkgraph.tasks.layout import lay_out
from nnkgraph.tasks.plot.figure import for_nodes, places
from nnkgraph.tasks.plot.histograms import HISTOGRAMS, bins_of, values_of
from nnkgraph.tasks.verify import verify

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Features, Graph
    from nnkgraph.data.labels import Labels
    from nnkgraph.runtime.progress import Stages


MOST_NODES = 20_000  # graphs with more nodes are described, but not drawn
_COLORED = 11  # components that have a color of their own


def drawing(
    graph: Graph,
    name: str,
    labels: Labels | None,
    coordinates: Features | None,
    progress: Stages | None,
) -> dict[str, Any]:
    """Return ``graph``, what is drawn, or None, and its ``caption``."""
    if graph.n_nodes > MOST_NODES:
        text = (
            f"{graph.n_nodes:,} nodes are too many to be drawn here: the limit is "
            f"{MOST_NODES:,}. A picture (plot) shows them."
        )
        return {"graph": None, "caption": text}
    parts = sorted(pieces(graph.adjacency), key=len, reverse=True)
    if coordinates is None:
        at = lay_out(graph, progress=progress)
        caption = (
            "Nodes are laid out by the graph alone: the more edges lie between two, "
            "the farther they are apart."
        )
        if len(parts) > 1:
            caption += " Components lie beside each other, in no order but by size."
    else:
        at, caption = _given(graph, name, coordinates)
    component = np.full(graph.n_nodes, -1, np.int32)
    for number, part in enumerate(parts[:_COLORED]):
        component[part] = number
    edges = graph.adjacency.tocoo()
    keep = np.arange(edges.nnz) if graph.directed else edges.row < edges.col
    row, column, weight = edges.row[keep], edges.col[keep], edges.data[keep]
    order = np.argsort(-weight, kind="stable")
    short = "u2" if graph.n_nodes <= 1 << 16 else "u4"
    return {
        "caption": caption,
        "graph": {
            "x": _pack(at[:, 0], "f4"),
            "y": _pack(at[:, 1], "f4"),
            "source": _pack(row[order], short),
            "target": _pack(column[order], short),
            "weight": _pack(weight[order], "f4"),
            "error": None if graph.errors is None else _pack(graph.errors, "f4"),
            "label": None if labels is None else _pack(labels.codes, "i4"),
            "classes": [] if labels is None else list(labels.classes),
            "component": _pack(component, "i4"),
            "sizes": [len(part) for part in parts[:_COLORED]],
            "ids": None if graph.ids is None else list(graph.ids),
            "directed": graph.directed,
        },
    }


def _pack(values: Any, kind: str) -> dict[str, str]:
    """Return numbers as text that a browser makes a typed array of."""
    raw = np.ascontiguousarray(values, f"<{kind}").tobytes()
    return {"kind": kind, "data": base64.b64encode(raw).decode()}


def _given(
    graph: Graph, name: str, coordinates: Features
) -> tuple[NDArray[np.float64], str]:
    """Return the places that the user gave, in a frame of their own."""
    if coordinates.x.shape[1] < 2:
        raise InputError(f"{coordinates.name}: one column; a drawing needs two")
    at = for_nodes(places(coordinates, (0, 1)), coordinates, graph, name)
    there = np.isfinite(at[:, 0])
    low, high = at[there].min(axis=0), at[there].max(axis=0)
    at = (at - (low + high) / 2) / (np.max(high - low) or 1.0)
    more = coordinates.x.shape[1] > 2
    caption = "Nodes are at the given coordinates"
    caption += f" (the first two of {coordinates.x.shape[1]} columns)." if more else "."
    if not there.all():
        caption += f" {int((~there).sum()):,} nodes have none and are left out."
    return at, caption


_LISTED = 12
_SAMPLE = 100  # nodes that are derived again where features are given


def figures(
    graph: Graph,
    name: str,
    features: Features | None,
    labels: Labels | None,
    progress: Stages | None,
) -> dict[str, Any]:
    """Return everything on the page but the drawing; plain JSON values."""
    about = description(graph)
    proof, checks, looked = _proof(graph, features, name, progress)
    return {
        "lead": _lead(about),
        "tiles": _tiles(about),
        "proof": proof,
        "checks": checks,
        "checked": looked,
        "charts": [
            _chart(graph, name, what) for what in HISTOGRAMS if _has(graph, what)
        ],
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
    graph: Graph, features: Features | None, name: str, progress: Stages | None
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
        found = verify(features, graph, sample=_SAMPLE, name=name, progress=progress)
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
    of, counted = HISTOGRAMS[what]
    values = values_of(name, graph, what)
    edges = bins_of(values, whole=what in {"degrees", "support"})
    return {
        "title": what.capitalize(),
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
        [int(v), int(t), _percent(v * t, graph.n_nodes)]
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


_SCRIPTS = ("data.js", "charts.js", "colors.js", "graph.js", "hands.js", "page.js")
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""What could end a script early, or begin a comment in it."""


def page(
    graph: Graph,
    *,
    name: str = "graph",
    features: Features | None = None,
    labels: Labels | None = None,
    coordinates: Features | None = None,
    progress: Stages | None = None,
) -> str:
    """Return the page as HTML; `page_facts` says what the parameters are."""
    return written(
        name,
        page_facts(
            graph,
            name=name,
            features=features,
            labels=labels,
            coordinates=coordinates,
            progress=progress,
        ),
    )


def page_facts(
    graph: Graph,
    *,
    name: str,
    features: Features | None = None,
    labels: Labels | None = None,
    coordinates: Features | None = None,
    progress: Stages | None = None,
) -> dict[str, Any]:
    """Return all that a page says; plain JSON values.

    Parameters
    ----------
    graph : Graph
        What the page is about. Up to ``MOST_NODES`` nodes are drawn.
    name : str
        The file of the graph, for the title and messages.
    features : Features, optional
        What it was built from: a sample of its nodes is derived again and compared.
    labels : Labels, optional
        Classes that color the nodes.
    coordinates : Features, optional
        Where nodes are, in the first two columns; by default it is laid out.
    stages : Stages, optional
        Hears how far the work is.

    Raises
    ------
    InputError
        Where features, labels or coordinates do not fit the graph.
    """
    known = None if labels is None else labels.for_rows(graph.n_nodes, graph.ids, name)
    return {
        **figures(graph, name, features, known, progress),
        **drawing(graph, name, known, coordinates, progress),
    }


def written(name: str, facts: dict[str, Any]) -> str:
    """Put everything into the template, in one go: values are not looked into."""
    style, script = _part("page.css"), "".join(map(_part, _SCRIPTS))
    data = json.dumps(facts, allow_nan=False, separators=(",", ":"), sort_keys=True)
    parts = {
        "title": html.escape(PurePath(name).name),
        "style": style,
        "style hash": _hash(style),
        "script": script,
        "script hash": _hash(script),
        "data": "".join(_ESCAPED.get(one, one) for one in data),
    }
    return re.sub(r"{{([a-z ]+)}}", lambda at: parts[at[1]], _part("template.html"))


def _part(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what allows a browser to run this text, and no other."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
