"""An explanation as text that fits a terminal; JSON has all digits."""

from __future__ import annotations

from typing import Any

from nnkgraph.cli import say

_SHORT = 8
"""Ids up to this length stand for their nodes; longer ones come last in a line."""


_ROUNDING = 1e-12
"""Residuals below this are what arithmetic leaves of zero."""


def table_of(entries: list[dict[str, Any]]) -> str:
    """Return aligned columns, numbers to the right."""
    ids = [say.printable(entry["id"]) for entry in entries if entry["id"] is not None]
    named = bool(ids) and max(map(len, ids)) <= _SHORT
    head = ["#", "node", "distance", "K", "weight", "residual", "behind", "term"]
    cells = [[*head, "pairwise"], *(_cells(entry, named=named) for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    if ids and not named:
        last = ["id", *ids]
        lines = [f"{line}  {one}" for line, one in zip(lines, last, strict=True)]
    return "\n".join(line.rstrip() for line in lines)


def _cells(entry: dict[str, Any], *, named: bool) -> list[str]:
    behind = entry["redundant_to_id" if named else "redundant_to"]
    return [
        str(entry["rank"]),
        say.printable(str(entry["id" if named else "node"])),
        _number(entry["distance"]),
        _number(entry["similarity"]),
        _number(entry["weight"]) if entry["kept"] else "dropped",
        "0" if abs(entry["residual"]) < _ROUNDING else f"{entry['residual']:.2g}",
        "-" if behind is None else say.printable(str(behind)),
        _number(entry["term"]),
        _pairwise(entry, behind, named=named),
    ]


def _pairwise(entry: dict[str, Any], behind: object, *, named: bool) -> str:
    if entry["kept"]:
        return "-"
    if entry["unwanted"]:
        return "alone"
    by = entry["pairwise_by_ids" if named else "pairwise_by"]
    if not by:
        return "no"
    return "yes" if by[0] == behind else f"by {say.printable(str(by[0]))}"


def below(facts: dict[str, Any]) -> str:
    """Return what is known of the node as a whole, a line each."""
    dropped = facts["candidate_count"] - facts["kept"]
    name = str(facts["node"])
    lines: list[tuple[str, Any]] = [
        ("node", name if facts["id"] is None else f"{name} ({facts['id']})"),
        ("kept", f"{facts['kept']} of {facts['candidate_count']}"),
        (
            "dropped",
            f"{dropped}, a single neighbor suffices for {facts['dropped_pairwise']}",
        ),
        ("J", facts["error"]),
        ("K_qq", facts["own_similarity"]),
        ("sum of weights", facts["weight_sum"]),
        ("effective neighbors", facts["effective_neighbors"]),
        ("sigma", facts["sigma"]),
        ("certificate", facts["certificate"]),
    ]
    if facts["kept_against_pairwise"]:
        lines.insert(
            3, ("kept although", f"{facts['kept_against_pairwise']} excluded pairwise")
        )
    if "edges" in facts:
        lines.append(("edges in the graph", f"{facts['edges']}, rule {facts['rule']}"))
    return "\n".join(f"{name:<19}  {_short(value)}" for name, value in lines)


def _short(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else say.printable(str(value))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
