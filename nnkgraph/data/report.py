"""What is known about a graph and how it was built, besides the graph itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nnkgraph.data import SCHEMA


@dataclass(frozen=True)
class Certificate:
    """The optimality of all nodes: relative violations of the KKT conditions."""

    max: float
    mean: float
    nodes_failed: int
    """Nodes beyond the limit of 1e-9."""

    failed: list[int] = field(default_factory=list)
    """The first of them."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON reports have it."""
        return {
            "kkt_max": self.max,
            "kkt_mean": self.mean,
            "nodes_failed": self.nodes_failed,
            "failed": self.failed,
        }


@dataclass(frozen=True, eq=False)
class Report(Mapping[str, Any]):
    """What happened while a graph was built.

    Read attributes, or take it for a mapping: then it has the keys and the plain
    values of the JSON that ``nnkgraph build --report`` writes.
    """

    nodes: int
    edges: int
    components: int
    isolated: int
    directed: bool
    settings: dict[str, Any]
    """What determines the graph, as its provenance stores it."""

    certificate: Certificate | None
    """None for methods without one."""

    error: dict[str, float] | None
    """Mean and largest J, where the method has one."""

    search: dict[str, Any]
    """Backend, recall (None where nobody knows) and threads."""

    input: dict[str, Any]
    """Name, shape, dtype and sha256 of the features."""

    duplicates: int = 0
    """Rows that repeat an earlier one."""

    copies_apart: int = 0
    """Components that consist only of copies of one row."""

    dropped: int = 0
    """Candidate edges that the rule or the least weight left out."""

    candidates_grown: int = 0
    bridges: int = 0
    workers: int = 1
    failure: str = ""
    """Why the result is not what was asked for, where a method did not get there."""

    method_facts: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    """What only some runs say."""

    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sigma(self) -> float | None:
        """The bandwidth that was used."""
        found: float | None = self.settings["sigma"]
        return found

    @property
    def recall(self) -> float | None:
        """Share of the true nearest neighbors that were found, as far as is known."""
        found: float | None = self.search["recall"]
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "schema": SCHEMA,
            "nodes": self.nodes,
            "edges": self.edges,
            "edges_per_node": self.edges / self.nodes,
            "components": self.components,
            "isolated": self.isolated,
            "directed": self.directed,
            **{
                name: one for name, one in self.settings.items() if name != "projection"
            },
            "duplicates": self.duplicates,
            "copies_apart": self.copies_apart,
            "dropped": self.dropped,
            "candidates_grown": self.candidates_grown,
            "bridges": self.bridges,
            **self.more,
            "certificate": self.certificate.as_dict() if self.certificate else None,
            "method_facts": self.method_facts,
            "failure": self.failure,
            "error": self.error,
            "search": self.search,
            "workers": self.workers,
            "input": self.input,
            "warnings": self.warnings,
            "notes": self.notes,
        }

    def __getitem__(self, key: str) -> Any:
        return self.as_dict()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return len(self.as_dict())

    def __repr__(self) -> str:
        return f"<Report: {self.nodes} nodes, {self.edges} edges>"
