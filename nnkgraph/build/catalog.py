"""All plug-ins with their parameters, defaults and first docstring lines.

Those of other packages say which package; one that is broken says so in place of what
it does, because the others can still be listed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from nnkgraph.errors import NnkGraphError
from nnkgraph.runtime import registry


def catalog(folders: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Describe the plug-ins of some folders, rules and presets where asked for."""
    others = {"rules": _rules, "presets": _presets}
    return {
        folder: others[folder]()
        if folder in others
        else [*_ours(folder), *_foreign(folder)]
        for folder in folders
    }


def _ours(folder: str) -> list[dict[str, Any]]:
    names = registry.names(folder)
    return [_described(name, registry.load(folder, name)) for name in names]


def _foreign(folder: str) -> list[dict[str, Any]]:
    found = []
    for name, entries in registry.foreign(folder).items():
        packages = " and ".join(map(registry.package_of, entries))
        try:
            entry = _described(name, registry.load(folder, name))
        except NnkGraphError as error:
            entry = {"name": name, "about": "", "parameters": {}, "broken": str(error)}
        found.append({**entry, "package": packages})
    return found


def _described(name: str, cls: Any) -> dict[str, Any]:
    about = (cls.__doc__ or "").strip().partition("\n")[0]
    if about.startswith(f"{cls.__name__}("):  # what Python makes up under -OO
        about = ""
    parameters = {
        f.name: _default(f)
        for f in (dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ())
        if f.init
    }
    return {"name": name, "about": about, "parameters": parameters}


def _default(field: dataclasses.Field[Any]) -> Any:
    """Return a parameter's default, in words where it has none."""
    if field.default is not dataclasses.MISSING:
        return field.default
    made: Any = field.default_factory
    return "(required)" if made is dataclasses.MISSING else made()


def _presets() -> list[dict[str, Any]]:
    from nnkgraph.build.presets import PRESETS

    return [
        {"name": name, "about": one.in_words(), "parameters": {}}
        for name, one in PRESETS.items()
    ]


def _rules() -> list[dict[str, Any]]:
    from nnkgraph.build.symmetrize import RULES

    return [
        {"name": name, "about": about, "parameters": {}}
        for name, about in RULES.items()
    ]
