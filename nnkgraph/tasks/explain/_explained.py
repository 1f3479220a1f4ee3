"""What an explanation says: an entry per candidate, and facts about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.pairs import DISTANCES

if TYPE_CHECKING:
    from nnkgraph.data import Features, Neighborhoods
    from nnkgraph.duplicates import Rows
    from nnkgraph.prepare import Plan
    from nnkgraph.problem import Problem
    from nnkgraph.tasks.explain._reasons import Reasons

_LIGHT = 1e-8
"""Edges below this are dropped by ``build_graph``, unless it is told otherwise."""


@dataclass(frozen=True)
class Explanation:
    """A node's candidates, nearest first, and what became of each."""

    node: int
    """The row that is explained: the first one with these values."""

    name: str
    """How people call it: its number, and its id where it has one."""

    candidates: list[dict[str, Any]]
    """One entry per candidate; plain JSON values."""

    facts: dict[str, Any]
    """What is known about the neighborhood as a whole; plain JSON values."""

    notes: list[str]
    """What the user should know."""


@dataclass(frozen=True)
class Solved:
    """One node's problem and its solution."""

    problem: Problem
    found: Neighborhoods
    reasons: Reasons
    own: float
    sigma: float | None


def entries_of(
    solved: Solved, rows: Rows, features: Features, plan: Plan
) -> list[dict[str, Any]]:
    """Describe the candidates, nearest first, with the row numbers of the input."""
    index, why = solved.problem.index[0], solved.reasons
    nodes = index if rows.origin is None else rows.origin[np.maximum(index, 0)]
    ids = features.ids
    measured = plan.kernel.nearness in DISTANCES  # others have similarities only
    entries: list[dict[str, Any]] = []
    for place in np.flatnonzero(index >= 0):
        by = int(why.hidden_by[place])
        kept = bool(why.kept[place])
        other = None if kept or by < 0 else int(nodes[by])
        enough = np.flatnonzero(why.excludes[:, place])
        # The neighbor that leaves least comes first.
        enough = enough[np.argsort(-why.margin[enough, place], kind="stable")]
        entries.append(
            {
                "rank": len(entries) + 1,
                "node": int(nodes[place]),
                "id": ids[nodes[place]] if ids else None,
                "distance": (
                    float(solved.problem.distance[0, place]) if measured else None
                ),
                "similarity": float(why.similarity[place]),
                "weight": float(solved.found.weights[0, place]),
                "residual": float(why.residual[place]),
                "kept": kept,
                "redundant_to": other,
                "redundant_to_id": ids[other] if ids and other is not None else None,
                "term": None if other is None else float(why.terms[by, place]),
                "pairwise": None if kept else bool(len(enough)),
                "pairwise_by": [int(nodes[i]) for i in enough],
                "pairwise_by_ids": [ids[nodes[i]] for i in enough] if ids else None,
                "unwanted": bool(why.unwanted[place]) and not kept,
            }
        )
    return entries


def facts_of(solved: Solved, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the neighborhood."""
    errors, proof = solved.found.errors, solved.found.certificate
    weights = solved.found.weights[0]
    largest = float(weights.max(initial=0.0)) or 1.0
    shares = weights / largest  # squares of tiny weights would vanish
    kept = [entry for entry in entries if entry["kept"]]
    return {
        "candidate_count": len(entries),
        "kept": len(kept),
        "dropped_pairwise": sum(entry["pairwise"] is True for entry in entries),
        "kept_against_pairwise": sum(bool(entry["pairwise_by"]) for entry in kept),
        "error": None if errors is None else float(errors[0]),
        "own_similarity": solved.own,
        "weight_sum": float(weights.sum()),
        "effective_neighbors": (
            float(shares.sum() ** 2 / (shares**2).sum()) if kept else 0.0
        ),
        "sigma": solved.sigma,
        "certificate": None if proof is None else float(proof[0]),
    }


def remarks_on(solved: Solved) -> list[str]:
    """Say what the table does not show."""
    weights, remarks = solved.found.weights[0], []
    light = int(((weights > 0) & (weights < _LIGHT)).sum())
    if light:
        remarks.append(
            f"{light} of the weights are below {_LIGHT:g}: build drops such edges "
            "unless --min-weight says otherwise"
        )
    if solved.reasons.far:
        remarks.append(
            "all similarities of this node vanish beside 1, and so do its weights: "
            "sigma is too small for it; try --sigma local"
        )
    return remarks


def find_node(features: Features, node: int | str) -> tuple[int, list[str]]:
    """Return the row of a node, and a remark where its name could mean two rows."""
    n, ids = len(features.x), features.ids
    number = int(node) if isinstance(node, int) or node.isdecimal() else -1
    if isinstance(node, str) and ids and node in ids:
        row = ids.index(node)
        if row != number and 0 <= number < n:
            named = f"{node!r} is the id of row {row}, which is explained, not row"
            return row, [f"{named} {number} (id {ids[number]!r})"]
        return row, []
    if not 0 <= number < n:
        also = f", or one of {n} ids such as {ids[0]!r}" if ids else ""
        raise InputError(
            f"{features.name}: there is no node {node!r}: it has {n} rows, use a number"
            f" from 0 to {n - 1}{also}"
        )
    return number, []


def name_of(features: Features, row: int) -> str:
    """Return what people call a row: its number, and its id where it has one."""
    return f"{row} ({features.ids[row]})" if features.ids else str(row)
