"""Features and spreadsheets that are given where a graph or a table is asked for."""

from __future__ import annotations

SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
"""Endings of files that are not read; every program that makes them writes CSV."""

MADE = "'nnkgraph build' makes a graph of features"

_MOST = 3
"""Fields of a line that describes an edge."""


def looks_like_features(fields: list[str]) -> bool:
    """Return whether a line that is no edge may belong to a table of features."""
    if len(fields) == 1:  # it may have another separator
        return max(fields[0].count(mark) for mark in ";,\t") >= _MOST
    return len(fields) > _MOST
