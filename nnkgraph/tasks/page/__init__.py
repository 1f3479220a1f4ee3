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
from collections import Counter
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__
from nnkgraph.build.report import CERTIFICATE_LIMIT, description, readable, support
from nnkgraph.errors import InputError
from nnkgraph.runtime.files import show
from nnkgraph.tasks.laplacian import pieces
from nnkgraph.tasks.page.drawing import drawn_facts
from nnkgraph.tasks.plot import histograms
from nnkgraph.tasks.sample import MOST, Marks
from nnkgraph.tasks.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Features, Graph
    from nnkgraph.data.labels import Labels
    from nnkgraph.runtime.progress import Stages
    from nnkgraph.tasks.findings import Findings

_LISTED = 12
_WHOLE = {"degrees", "support"}  # distributions of whole numbers
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
    kind = "A directed" if about["directed"] else "An undirected"
    nodes, edges = about["nodes"], about["edges"]
    tiles = [
        ["nodes", nodes],
        ["edges", edges],
        ["edges per node", about["edges_per_node"]],
        ["components", about["components"]],
        ["isolated nodes", about["isolated"]],
    ]
    if about["error"]:
        tiles.append(["mean error J", about["error"]["mean"]])
    return {
        "lead": f"{kind} graph of {nodes:,} nodes and {edges:,} edges.",
        "tiles": tiles,
        "proof": proof,
        "checks": checks,
        "checked": looked,
        "charts": [*_charts(graph, name)],
        "groups": [_components(graph), *_classes(graph, labels)],
        "parameters": _parameters(readable(graph.provenance)),
        "foot": f"Written by nnkgraph {__version__}. It loads nothing from anywhere.",
    }


def _proof(
    graph: Graph, features: Features | None, name: str, progress: Stages | None
) -> tuple[dict[str, str], list[list[str]] | None, str]:
    """Return what is known about the correctness of the graph."""
    facts = graph.provenance
    failed, why = facts.get("nodes_failed"), facts.get("failure")
    state, text = "unknown", "The file carries no certificate."
    if why or failed:
        text = f"{why or f'{failed} nodes miss the certificate'} (as the file says)"
        state = "bad"
    elif failed == 0 and graph.errors is not None:
        text = "Every node's solution was proven optimal when the graph was built: its "
        text += f"conditions hold to {CERTIFICATE_LIMIT:g}."
        state = "good"
    proof = {"state": state, "text": text}
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
        f"{_told(features)}. {found.looked:,} of {found.nodes:,} nodes were derived "
        "again from the features, by a slow independent path:"
    )
    return proof, [[one.name, one.status, one.text] for one in found.checks], looked


def _told(features: Features) -> str:
    """Say what features are, and what was done to them: the graph's file does not."""
    name, count = show(PurePath(features.name).name), features.x.shape[1]
    text = f"{name}: {count:,} {'column' if count == 1 else 'columns'}"
    if features.columns is not None:
        text += f" ({', '.join(features.columns[:_LISTED])}"
        text += ", ...)" if count > _LISTED else ")"
    said = (one.removeprefix(f"{features.name}: ") for one in features.warnings)
    return "; ".join([text, *said])


def _charts(graph: Graph, name: str) -> Iterator[dict[str, Any]]:
    """Yield the distributions that there is something to count of."""
    empty = {
        "support": not len(support(graph)),
        "weights": not graph.adjacency.nnz,
        "errors": graph.errors is None,
    }
    for what, (of, counted) in histograms.HISTOGRAMS.items():
        if empty.get(what):
            continue
        values, whole = histograms.values_of(name, graph, what), what in _WHOLE
        edges = histograms.bins_of(values, whole=whole)
        yield {
            "title": what.capitalize(),
            "of": of,
            "counted": counted,
            "whole": whole,
            "edges": [float(one) for one in edges],
            "counts": [int(one) for one in np.histogram(values, edges)[0]],
            "min": float(values.min()),
            "median": float(np.median(values)),
            "mean": float(values.mean()),
            "max": float(values.max()),
        }


def _components(graph: Graph) -> dict[str, Any]:
    sizes = [len(part) for part in pieces(graph.adjacency)]
    count, times = len(sizes), Counter(sizes)
    rows = [
        [size, times[size], _percent(size * times[size], graph.n_nodes)]
        for size in sorted(times, reverse=True)
    ]
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
    head = ["class", "nodes", "edges inside"]
    rows: list[list[Any]] = [
        [name, int(sizes[at]), _percent(own[at], ends[at])]
        for at, name in enumerate(labels.classes)
    ]
    if graph.errors is not None:
        head.append("mean error J")
        codes = labels.codes[labels.known]
        errors = np.bincount(codes, graph.errors[labels.known], count)
        for row, total, size in zip(rows, errors, sizes, strict=True):
            row.append(float(total / max(1, size)))
    same = _percent(own.sum(), ends.sum())
    text = f"{same} of the edges between labeled nodes join nodes of the same class."
    return [{"title": "Classes", "text": text, "head": head, "rows": rows}]


def _percent(part: Any, whole: Any) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"  # noqa: RUF001 - no edges


def _parameters(facts: dict[str, Any]) -> list[list[str]]:
    """Return the provenance as text, in the order that readers look for."""
    first = ("method", "k", "kernel", "sigma", "rule", "search", "min_degree", "scale")
    names = [name for name in first if name in facts]
    hidden = {"support_sizes", "nodes_failed", "failure"}
    names += sorted(set(facts) - {*first} - hidden)
    return [[name.replace("_", " "), _shown(facts[name])] for name in names]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " x ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_SCRIPTS = (
    *(
        "data.js",
        "charts.js",
        "colors.js",
        "graph.js",
        "hands.js",
        "side.js",
        "page.js",
    ),
)
# What could end a script early, or begin a comment in it.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def report(graph: Graph, *, name: str = "graph", **options: Any) -> str:
    """Return the page as HTML; the options are those of `page_facts`.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> text = nnkgraph.report(nnkgraph.build_graph(x, k=10), name="ball")
    >>> text[:15]
    '<!doctype html>'
    """
    return written(name, page_facts(graph, name=name, **options))


def page_facts(
    graph: Graph,
    *,
    name: str,
    features: Features | None = None,
    labels: Labels | None = None,
    clusters: Labels | None = None,
    findings: Findings | None = None,
    coordinates: Features | None = None,
    most: int = MOST,
    seed: int = 0,
    progress: Stages | None = None,
) -> dict[str, Any]:
    """Return all that a page says; plain JSON values.

    Where features are given, a sample of the nodes is derived again and compared.
    Clusters or labels color the nodes, and findings of an audit mark them; coordinates
    are two columns, or laid out. Of more than `most` nodes a sample is drawn.
    """
    own = (graph.n_nodes, graph.ids, name)
    marks = Marks(
        None if labels is None else labels.for_rows(*own),
        None if clusters is None else clusters.for_rows(*own),
        findings,
    )
    return {
        **figures(graph, name, features, marks.labels, progress),
        **drawn_facts(graph, name, marks, coordinates, most, seed, progress),
    }


def written(name: str, facts: dict[str, Any]) -> str:
    """Put everything into the template, in one go: values are not looked into."""
    style, script = part("page.css"), "".join(map(part, _SCRIPTS))
    data = json.dumps(facts, allow_nan=False, separators=(",", ":"), sort_keys=True)
    parts = {
        "title": html.escape(show(PurePath(name).name)),
        "style": style,
        "style hash": _hash(style),
        "script": script,
        "script hash": _hash(script),
        "data": "".join(_ESCAPED.get(one, one) for one in data),
    }
    return re.sub(r"{{([a-z ]+)}}", lambda at: parts[at[1]], part("template.html"))


def part(name: str) -> str:
    """Return a file beside this one."""
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what allows a browser to run this text, and no other."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
