"""nnkgraph: exact non-negative kernel regression graphs from feature matrices."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnkgraph import errors as errors
    from nnkgraph import kernels as kernels
    from nnkgraph import methods as methods
    from nnkgraph.build.graph import build_graph as build_graph
    from nnkgraph.build.graph import find_candidates as find_candidates
    from nnkgraph.build.query import query as query
    from nnkgraph.build.update import update as update
    from nnkgraph.data import Answers as Answers
    from nnkgraph.data import Candidates as Candidates
    from nnkgraph.data import Features as Features
    from nnkgraph.data import Graph as Graph
    from nnkgraph.data import Neighborhoods as Neighborhoods
    from nnkgraph.data.labels import Labels as Labels
    from nnkgraph.data.report import Report as Report
    from nnkgraph.formats import read_answers as read_answers
    from nnkgraph.formats import read_candidates as read_candidates
    from nnkgraph.formats import read_features as read_features
    from nnkgraph.formats import read_graph as read_graph
    from nnkgraph.formats import read_labels as read_labels
    from nnkgraph.formats import write_answers as write_answers
    from nnkgraph.formats import write_candidates as write_candidates
    from nnkgraph.formats import write_graph as write_graph
    from nnkgraph.tasks import testing as testing
    from nnkgraph.tasks.audit import audit as audit
    from nnkgraph.tasks.classify import classify as classify
    from nnkgraph.tasks.cluster import cluster as cluster
    from nnkgraph.tasks.compare import compare as compare
    from nnkgraph.tasks.doctor import doctor as doctor
    from nnkgraph.tasks.embed import embed as embed
    from nnkgraph.tasks.explain import explain as explain
    from nnkgraph.tasks.neighbors import neighbors as neighbors
    from nnkgraph.tasks.page import report as report
    from nnkgraph.tasks.propagate import propagate as propagate
    from nnkgraph.tasks.verify import verify as verify
    from nnkgraph.tasks.warm import warm as warm

__version__ = "1.0.0"

_HOMES = {
    "build.graph": "build_graph find_candidates",
    "build.query": "query",
    "build.update": "update",
    "data": "Answers Candidates Features Graph Neighborhoods",
    "data.labels": "Labels",
    "data.report": "Report",
    "formats": "read_answers read_candidates read_features read_graph read_labels "
    "write_answers write_candidates write_graph",
    "tasks.audit": "audit",
    "tasks.classify": "classify",
    "tasks.cluster": "cluster",
    "tasks.compare": "compare",
    "tasks.doctor": "doctor",
    "tasks.embed": "embed",
    "tasks.explain": "explain",
    "tasks.neighbors": "neighbors",
    "tasks.page": "report",
    "tasks.propagate": "propagate",
    "tasks.verify": "verify",
    "tasks.warm": "warm",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = {
    "errors": "errors",
    "kernels": "kernels",
    "methods": "methods",
    "testing": "tasks.testing",
}

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the start-up stays light."""
    if name in _MODULES:
        return importlib.import_module(f"nnkgraph.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"nnkgraph.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
