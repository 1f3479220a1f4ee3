"""Plug-ins by file name: no central list, no decorator.

A plug-in is one module in a folder of this package. Its file name is the name that
users type, and its last line binds ``plugin`` to a frozen dataclass whose fields are
its parameters. Names are listed from the folder, without importing anything.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import os
import types
import typing
from functools import cache
from typing import Any

from nnkgraph.errors import ParameterError

_HERE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - pathlib would slow the start-up
_ROOMS = {"executors": "runtime.executors"}


@cache
def names(folder: str) -> tuple[str, ...]:
    """Return the names of the plug-ins in a folder, sorted."""
    place = _ROOMS.get(folder, folder).replace(".", "/")
    with os.scandir(f"{_HERE}/{place}") as entries:
        files = [entry.name for entry in entries]
    return tuple(
        sorted(f[:-3] for f in files if f.endswith(".py") and not f.startswith("_"))
    )


def load(folder: str, name: str) -> Any:
    """Import a plug-in module and return its ``plugin``.

    Raises
    ------
    ParameterError
        Where there is no such plug-in; the message lists the choices.
    """
    known = names(folder)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ParameterError(
            f"unknown {noun(folder)} {name!r}; choose from {', '.join(known)}{hint}"
        )
    return importlib.import_module(
        f"nnkgraph.{_ROOMS.get(folder, folder)}.{name}"
    ).plugin


def create(folder: str, spec: str) -> Any:
    """Make a plug-in from ``name`` or ``name:key=value,key=value``."""
    spec = full_spec(folder, spec)
    name, _, rest = spec.partition(":")
    cls = load(folder, name)
    what = f"{noun(folder)} {name!r}"
    types_ = parameter_types(cls)
    values: dict[str, Any] = {}
    for part in _parts(rest):
        key, equals, text = part.partition("=")
        if not equals or not key:
            raise ParameterError(f"{what}: write parameters as key=value, not {part!r}")
        if key not in types_:
            close = difflib.get_close_matches(key, types_, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            known = ", ".join(types_) or "none"
            raise ParameterError(
                f"{what}: no parameter {key!r}; there are: {known}{hint}"
            )
        values[key] = _convert(text, types_[key], f"{what}: parameter {key!r}")
    try:
        return cls(**values)
    except TypeError as error:
        missing = [f.name for f in dataclasses.fields(cls) if _required(f)]
        raise ParameterError(f"{what} needs {', '.join(missing)}") from error


def full_spec(folder: str, spec: str) -> str:
    """Return a spec as it is, or ``module:function`` as the plug-in that takes it."""
    name, colon, rest = spec.partition(":")
    if folder != "kernels" or not colon or name in names(folder) or "=" in rest:
        return spec
    return f"function:path={spec}"


def spec(plugin: Any) -> str:
    """Return the ``name:key=value`` text that makes this plug-in again.

    Parameters that have their default are left out.
    """
    name = type(plugin).__module__.rpartition(".")[2]
    parts = [
        f"{f.name}={getattr(plugin, f.name)}"
        for f in dataclasses.fields(plugin)
        if f.init and getattr(plugin, f.name) != f.default
    ]
    return f"{name}:{','.join(parts)}" if parts else name


def parameter_types(cls: Any) -> dict[str, Any]:
    """Return the parameters of a plug-in class with their types."""
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


def noun(folder: str) -> str:
    """Return the word for one plug-in of a folder."""
    return folder if folder == "search" else folder.removesuffix("s")


def _parts(text: str) -> list[str]:
    """Split at commas; what has no ``=`` belongs to the value before (file names)."""
    parts: list[str] = []
    for part in filter(None, text.split(",")):
        if parts and "=" not in part:
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


def _required(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING


def _convert(text: str, wanted: Any, what: str) -> Any:
    """Convert a parameter's text to the first of its types that fits."""
    choices = (
        typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    )
    for choice in choices:
        if choice is bool and text.lower() in {"true", "false"}:
            return text.lower() == "true"
        if choice in {int, float}:
            try:
                return choice(text)
            except ValueError:
                continue
        if choice is str:
            return text
    kinds = " or ".join(c.__name__ for c in choices if c is not types.NoneType)
    raise ParameterError(f"{what}: {text!r} is not {kinds}")
