"""From solved neighborhoods to a graph, and all that is said about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nnkgraph import registry, report
from nnkgraph.data import Graph
from nnkgraph.duplicates import with_copies
from nnkgraph.rounding import rounded_graph
from nnkgraph.symmetrize import symmetrize

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import Candidates, FloatArray, Neighborhoods
    from nnkgraph.duplicates import Rows
    from nnkgraph.methods import Method


@dataclass(frozen=True)
class Solved:
    """The neighborhoods of all rows, and what is known about them."""

    candidates: Candidates
    """Their distances are not looked at any more."""

    found: Neighborhoods

    rows: Rows
    """Which of them are copies; the features are not looked at any more."""

    own: FloatArray | None
    """(n,) similarities of the rows with themselves: see `report.own_similarity`."""

    reach: report.Reach

    settings: dict[str, Any]
    """The parameters that determine the graph, to be stored with it."""

    input: dict[str, Any]
    """What `report.input_facts` says."""

    ids: tuple[str, ...] | None = None

    grown: int = 0
    """Rows that got more candidates than they were given first."""

    facts: dict[str, Any] = field(default_factory=dict)
    """What else the report says."""

    tips: str = ""
    """What to try where nodes are left alone."""

    workers: int = 1

    warnings: tuple[str, ...] = ()

    notes: tuple[str, ...] = ()


def assembled(solved: Solved, bridge: Callable[[Graph], Graph] | None = None) -> Graph:
    """Join the directions, hang copies on, and sum everything up.

    Parameters
    ----------
    solved : Solved
        The neighborhoods.
    bridge : callable, optional
        Connects the components of the graph of the distinct rows.
    """
    candidates, found, rows = solved.candidates, solved.found, solved.rows
    settings = solved.settings
    rule, min_weight = settings["rule"], settings["min_weight"]
    adjacency, dropped = symmetrize(
        candidates,
        found,
        rule=rule,
        min_weight=min_weight,
        min_degree=settings["min_degree"],
        own=solved.own,
        first=rows.kept_copies,
    )
    kept = None if candidates.exact and not solved.grown else candidates.index
    bare = Graph(adjacency, None, rule == "none", found.errors, kept)
    if bridge is not None:
        bare = bridge(bare)
    graph = rounded_graph(with_copies(bare, rows), settings.get("digits", 0))
    graph = replace(graph, ids=solved.ids)
    method: Method = registry.create("methods", settings["method"])
    certificate = report.certificate(found, rows.origin)
    facts = report.facts(graph)
    apart = report.copies_apart(graph, rows.first) if facts["components"] > 1 else 0
    return replace(
        graph,
        provenance={
            **report.provenance_of(solved.input, settings),
            "nodes_failed": certificate["nodes_failed"] if certificate else 0,
            "support_sizes": report.support_sizes(found),
            **({"failure": found.failure} if found.failure else {}),
        },
        report={
            "schema": 1,
            **facts,
            **settings,
            "duplicates": rows.copies,
            "copies_apart": apart,
            "dropped": dropped,
            "candidates_grown": solved.grown,
            "bridges": 0 if graph.bridges is None else len(graph.bridges),
            **solved.facts,
            "certificate": certificate,
            "method_facts": found.facts,
            "failure": found.failure,
            "error": report.error_facts(graph.errors),
            "search": report.search_facts(candidates),
            "workers": solved.workers,
            "input": solved.input,
            "warnings": [
                *solved.warnings,
                *report.bandwidth_warnings(settings["sigma"], solved.reach),
                *method.remarks(candidates, found),
                *report.copy_warnings(apart, solved.tips),
                *report.graph_warnings(facts, solved.tips),
            ],
            "notes": list(solved.notes),
        },
    )
