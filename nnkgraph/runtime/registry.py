"""Plug-ins by name: one file each in a folder of this package, or an entry point.

A plug-in of our own is one module. Its file name is the name that users type, and its
last line binds ``plugin`` to a frozen dataclass whose fields are its parameters. Names
are listed from the folder, without importing anything.

Other packages add theirs by entry points of the groups ``nnkgraph.methods``,
``nnkgraph.kernels``, ``nnkgraph.search``, ``nnkgraph.formats`` and
``nnkgraph.executors``: the entry point's name is what users type, and it stands for the
class, or for a module with ``plugin``. They are looked up where a name is not one of
ours, so that a run without them costs nothing; a name of ours cannot be taken.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import os
import sys
import types
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from nnkgraph.errors import NnkGraphError, ParameterError, ResourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import Distribution, EntryPoint

_HERE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - pathlib would slow the start-up
_ROOMS = {"executors": "runtime.executors"}
_CONTRACTS = {
    "methods": "Method",
    "kernels": "Kernel",
    "search": "Search",
    "formats": "Format",
    "executors": "Executor",
}
"""The folders that other packages can add to, and what a plug-in there has to be."""


@cache
def names(folder: str) -> tuple[str, ...]:
    """Return the names of our own plug-ins in a folder, sorted."""
    place = _ROOMS.get(folder, folder).replace(".", "/")
    with os.scandir(f"{_HERE}/{place}") as entries:
        files = [entry.name for entry in entries]
    return tuple(
        sorted(f[:-3] for f in files if f.endswith(".py") and not f.startswith("_"))
    )


@cache
def foreign(folder: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of other packages by name, without importing them.

    There is more than one for a name that several packages want.
    """
    found: dict[str, tuple[EntryPoint, ...]] = {}
    if folder in _CONTRACTS:
        for entry in sorted(_entry_points(f"nnkgraph.{folder}"), key=package_of):
            if entry.name not in names(folder):
                found[entry.name] = (*found.get(entry.name, ()), entry)
    return dict(sorted(found.items()))


def _entry_points(group: str) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions

    seen: set[str] = set()
    for package in distributions():
        own = _of_group(package, group)
        # One that is on the path twice counts once, as it is imported once.
        if own and package.name.lower() not in seen:
            seen.add(package.name.lower())
            yield from own


def _of_group(package: Distribution, group: str) -> tuple[EntryPoint, ...]:
    try:
        return tuple(package.entry_points.select(group=group))
    except (TypeError, ValueError, OSError):
        return ()  # Files of another package that cannot be read are not our business.


def package_of(entry: EntryPoint) -> str:
    """Return the package that an entry point belongs to, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?"


def all_names(folder: str) -> tuple[str, ...]:
    """Return the names of our own plug-ins, and those of other packages after them."""
    return (*names(folder), *foreign(folder))


def load(folder: str, name: str) -> Any:
    """Import a plug-in and return its class."""
    if name in names(folder):
        module = f"nnkgraph.{_ROOMS.get(folder, folder)}.{name}"
        return importlib.import_module(module).plugin
    if name in foreign(folder):
        return _load_foreign(folder, name)
    known = all_names(folder)
    choices = f"choose from {', '.join(known)}{_hint(name, known)}"
    raise ParameterError(f"unknown {noun(folder)} {name!r}; {choices}")


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


@cache
def _load_foreign(folder: str, name: str) -> Any:
    entry, *others = foreign(folder)[name]
    if others:
        packages = " and ".join(map(package_of, (entry, *others)))
        raise ParameterError(
            f"{noun(folder)} {name!r} is in more than one package: {packages}; "
            "uninstall all but one"
        )
    what = f"{noun(folder)} {name!r} of package {package_of(entry)}"
    module, _, attribute = (part.strip() for part in entry.value.partition(":"))
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, MemoryError):
            raise
        why = str(error).partition("\n")[0]
        raise ResourceError(
            f"{what} cannot be imported: {type(error).__name__}: {why}"
        ) from error
    try:
        found = reduce(getattr, filter(None, attribute.split(".")), found)
    except AttributeError as error:
        raise ParameterError(f"{what}: {module} has no {attribute!r}") from error
    if isinstance(found, types.ModuleType):
        if not hasattr(found, "plugin"):
            raise ParameterError(f"{what}: module {module} has no 'plugin'")
        found = found.plugin
    if fault := fault_of(folder, found):
        raise ParameterError(f"{what} is no {noun(folder)}: {fault}")
    return found


def fault_of(folder: str, cls: Any) -> str:
    """Return what a class lacks to be a plug-in of a folder, or nothing."""
    if not isinstance(cls, type):
        return f"{cls!r} is no class"
    params = getattr(cls, "__dataclass_params__", None)
    if params is None or not params.frozen:
        return f"{cls.__name__} is no frozen dataclass"
    try:
        parameter_types(cls)
    except (NameError, TypeError) as error:
        return f"the types of its parameters cannot be found: {error}"
    room = importlib.import_module(f"nnkgraph.{_ROOMS.get(folder, folder)}")
    contract = getattr(room, _CONTRACTS[folder])
    asked = {*vars(contract), *inspect.get_annotations(contract)}
    fields = {f.name for f in dataclasses.fields(cls)}
    lacking = sorted(
        name
        for name in asked
        if not (name.startswith("_") or name in fields or hasattr(cls, name))
    )
    return f"{cls.__name__} lacks {', '.join(lacking)}" if lacking else ""


def create(folder: str, spec: str) -> Any:
    """Make a plug-in from ``name`` or ``name:key=value,key=value``."""
    name, _, rest = full_spec(folder, spec).partition(":")
    return made(load(folder, name), rest, f"{noun(folder)} {name!r}")


def made(cls: Any, parameters: str, what: str) -> Any:
    """Make a plug-in of a class from ``key=value,key=value``."""
    types_ = parameter_types(cls)
    values: dict[str, Any] = {}
    for part in _parts(parameters):
        key, equals, text = part.partition("=")
        if not equals or not key:
            raise ParameterError(f"{what}: write parameters as key=value, not {part!r}")
        if key not in types_:
            known = f"{', '.join(types_) or 'none'}{_hint(key, types_)}"
            raise ParameterError(f"{what}: no parameter {key!r}; there are: {known}")
        values[key] = _convert(text, types_[key], f"{what}: parameter {key!r}")
    missing = [
        f.name for f in dataclasses.fields(cls) if _required(f) and f.name not in values
    ]
    if missing:
        raise ParameterError(f"{what} needs {', '.join(missing)}")
    try:
        return cls(**values)
    except NnkGraphError:
        raise
    except ValueError as error:  # what plug-ins of other packages may well raise
        raise ParameterError(f"{what}: {error}") from error


def full_spec(folder: str, spec: str) -> str:
    """Return a spec as it is, or ``module:function`` as the plug-in that takes it."""
    name, colon, rest = spec.partition(":")
    if folder != "kernels" or not colon or "=" in rest:
        return spec
    known = name in names(folder) or name in foreign(folder)
    return spec if known else f"function:path={spec}"


def spec(plugin: Any) -> str:
    """Return the ``name:key=value`` text that makes this plug-in again.

    Parameters that have their default are left out. A class that has no name, because
    neither a file nor an entry point holds it, is called by its module and its own.
    """
    parts = [
        f"{f.name}={getattr(plugin, f.name)}"
        for f in dataclasses.fields(plugin)
        if f.init and getattr(plugin, f.name) != f.default
    ]
    name = _name_of(type(plugin))
    return f"{name}:{','.join(parts)}" if parts else name


def _name_of(cls: type) -> str:
    if cls.__module__.startswith("nnkgraph."):
        return cls.__module__.rpartition(".")[2]
    home = cls.__module__.partition(".")[0]
    for folder in _CONTRACTS:
        for name, (entry, *others) in foreign(folder).items():
            module = entry.value.partition(":")[0].strip()
            # Nothing is imported that has nothing to do with the class.
            near = module in sys.modules or module.partition(".")[0] == home
            if near and not others and _is_class(folder, name, cls):
                return name
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_class(folder: str, name: str, cls: type) -> bool:
    try:
        return load(folder, name) is cls
    except NnkGraphError:
        return False  # a broken one, which is not this one


def parameter_types(cls: Any) -> dict[str, Any]:
    """Return the parameters of a plug-in class with their types."""
    hints = get_type_hints(cls)
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
    missing = dataclasses.MISSING
    return f.init and f.default is missing and f.default_factory is missing


def _convert(text: str, wanted: Any, what: str) -> Any:
    """Convert a parameter's text to the first of its types that fits."""
    choices = get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
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
