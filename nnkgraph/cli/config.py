"""Options from a TOML file.

Keys are the names of options as they are typed, with ``-`` or ``_``. Those at the top
are for every command that has such an option, those in a table named after a command
for it alone. Values become the words that would be typed, so that an option checks them
as it checks the command line.
"""

from __future__ import annotations

import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nnkgraph.cli.types import WORKERS
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 1 << 20
"""Bytes; what is longer is no file of options."""


def settings_of(path: str, ctx: click.Context) -> dict[str, Any]:
    """Return what a file sets for a command, by the names of its parameters.

    All names in the file are checked, also those that are for other commands.

    Raises
    ------
    ParameterError
        Where the file cannot be read, is no TOML, has a key that is no option, or a
        value of a kind that the option does not take.
    """
    content = _read(path)
    known = {name: _options(one) for name, one in _commands(ctx).items()}
    every = {name for options in known.values() for name in options}
    tables = {key: one for key, one in content.items() if isinstance(one, dict)}
    shared = {key: one for key, one in content.items() if key not in tables}
    _check_names(path, "key", shared, every)
    _check_names(path, "table", tables, known)
    for name, table in tables.items():
        _check_names(path, f"[{name}] key", table, known[name])
    command = ctx.info_name or ""
    own = known[command]
    shared = {key: one for key, one in shared.items() if _spelled(key) in own}
    settings = _settings(f"{path}: key", shared, own)
    table = tables.get(command, {})
    settings |= _settings(f"{path}: [{command}] key", table, own)
    if WORKERS in os.environ:  # the environment stands above the file
        settings.pop("workers", None)
    return settings


def _read(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LONGEST + 1)
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        raise ParameterError(f"{path}: cannot be read as --config: {what}") from error
    if len(text) > _LONGEST:
        raise ParameterError(f"{path}: is too long for a file of options")
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        what = " ".join(str(error).split())
        raise ParameterError(f"{path}: is not TOML: {what}") from error


def _commands(ctx: click.Context) -> dict[str, click.Command]:
    """Return all commands by name."""
    found = {ctx.info_name or "": ctx.command}
    if ctx.parent and isinstance(ctx.parent.command, click.Group):
        group, parent = ctx.parent.command, ctx.parent
        for name in group.list_commands(parent):
            command = group.get_command(parent, name)
            found |= {name: command} if command else {}
    return found


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options that a file can set, by all of their names."""
    return {
        _spelled(name.lstrip("-")): one
        for one in command.params
        if isinstance(one, click.Option) and one.name != "config"
        for name in one.opts
    }


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _check_names(
    path: str, what: str, given: Iterable[str], known: Iterable[str]
) -> None:
    for key in given:
        if _spelled(key) not in known:
            close = get_close_matches(_spelled(key), list(known), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            kind = "command" if what == "table" else "option"
            raise ParameterError(
                f"{path}: {what} {key!r} is the name of no {kind}{hint}"
            )


def _settings(
    where: str, given: dict[str, Any], options: dict[str, click.Option]
) -> dict[str, Any]:
    """Return the values of some keys as words, by the names of their parameters."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        option = options[_spelled(key)]
        name = option.name or ""
        if name in found:
            raise ParameterError(f"{where} {key!r} sets an option for the second time")
        wanted, words = _words(option, value)
        if words is None:
            shown = f"{str(value)[:40]!r} ({type(value).__name__})"
            raise ParameterError(f"{where} {key!r} has to be {wanted}, not {shown}")
        found[name] = words
    return found


def _words(option: click.Option, value: Any) -> tuple[str, Any]:
    """Return what an option takes, and a value as if typed; None where it is not so."""
    if option.is_flag:
        return "true or false", value if isinstance(value, bool) else None
    if option.count:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "a number from 0 on", value if whole else None
    if not option.multiple:
        return "text or a number", _word(value)
    words = [_word(one) for one in (value if isinstance(value, list) else [value])]
    return "text, a number or a list of them", None if None in words else words


def _word(value: Any) -> str | None:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if plain else None
