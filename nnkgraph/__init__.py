"""nnkgraph: exact non-negative kernel regression graphs from feature matrices."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnkgraph.build.graph import build_graph as build_graph
    from nnkgraph.data import Candidates as Candidates
    from nnkgraph.data import Features as Features
    from nnkgraph.data import Graph as Graph
    from nnkgraph.data import Neighborhoods as Neighborhoods
    from nnkgraph.formats import read_features as read_features
    from nnkgraph.formats import read_graph as read_graph
    from nnkgraph.formats import write_graph as write_graph

__version__ = "0.1.0"

_HOMES = {
    "build_graph": "nnkgraph.build.graph",
    "Candidates": "nnkgraph.data",
    "Features": "nnkgraph.data",
    "Graph": "nnkgraph.data",
    "Neighborhoods": "nnkgraph.data",
    "read_features": "nnkgraph.formats",
    "read_graph": "nnkgraph.formats",
    "write_graph": "nnkgraph.formats",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the start-up stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
