"""The parts of the page, in its order; importing them enters all claims."""

from __future__ import annotations

import importlib

PARTS = {
    "exact": "Exact",
    "same": "The same bytes",
    "recall": "Recall",
    "kills": "Kills and damage",
    "faults": "Faults and tests",
    "memory": "Memory",
    "speed": "Speed",
    "edges": "Edges",
    "findings": "Findings of an audit",
    "quality": "What graphs are good for",
    "use": "In use",
}
"""Modules, and the headings that they have."""

for _name in PARTS:
    importlib.import_module(f"claims.{_name}")
