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

from nnkgraph.tasks.page._drawing import MOST_NODES, drawing
from nnkgraph.tasks.page._figures import figures

if TYPE_CHECKING:
    from nnkgraph.data import Features, Graph
    from nnkgraph.labels import Labels
    from nnkgraph.stages import Stages

__all__ = ["MOST_NODES", "page", "page_facts", "written"]

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
    stages: Stages | None = None,
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
            stages=stages,
        ),
    )


def page_facts(
    graph: Graph,
    *,
    name: str,
    features: Features | None = None,
    labels: Labels | None = None,
    coordinates: Features | None = None,
    stages: Stages | None = None,
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
    known = None if labels is None else labels.for_rows(graph.nodes, graph.ids, name)
    return {
        **figures(graph, name, features, known, stages),
        **drawing(graph, name, known, coordinates, stages),
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
