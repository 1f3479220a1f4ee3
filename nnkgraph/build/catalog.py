"""All plug-ins with their parameters, defaults and first docstring lines."""

from __future__ import annotations

import dataclasses
from typing import Any

from nnkgraph.runtime import registry


def catalog(folders: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Describe the plug-ins of some folders, and the rules where asked for."""
    return {
        folder: _rules() if folder == "rules" else _plugins(folder)
        for folder in folders
    }


def _plugins(folder: str) -> list[dict[str, Any]]:
    entries = []
    for name in registry.names(folder):
        cls = registry.load(folder, name)
        about = (cls.__doc__ or "").strip().partition("\n")[0]
        parameters = {
            f.name: f.default
            for f in (dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ())
            if f.init
        }
        entries.append({"name": name, "about": about, "parameters": parameters})
    return entries


def _rules() -> list[dict[str, Any]]:
    from nnkgraph.build.symmetrize import RULES

    return [
        {"name": name, "about": about, "parameters": {}}
        for name, about in RULES.items()
    ]
