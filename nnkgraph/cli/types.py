"""What options take: words and numbers that are checked before anything is read."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nnkgraph import registry
from nnkgraph.cli.numbers import Value
from nnkgraph.errors import ParameterError
from nnkgraph.shard import Shard

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

WORKERS = "NNKGRAPH_WORKERS"
"""The environment variable that sets -j for all commands."""

CONFIG = "NNKGRAPH_CONFIG"
"""The one that sets --config for all commands."""


class Plugin(Value):
    """``name`` or ``name:key=value,...`` of a plug-in folder."""

    name = "spec"
    shown = "NAME[:KEY=VALUE,...]"

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check the name, mostly without importing anything."""
        name, _, rest = registry.full_spec(self.folder, value).partition(":")
        known = registry.names(self.folder)
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            self.fail(f"{name!r} is not one of {', '.join(known)}{hint}", param, ctx)
        if ctx is not None and not ctx.resilient_parsing:
            self._check_parameters(name, rest, param, ctx)
        return value

    def _check_parameters(
        self, name: str, rest: str, param: click.Parameter | None, ctx: click.Context
    ) -> None:
        """Refuse parameters that are options of the command and not of the plug-in."""
        options = {one.name: one.opts[0] for one in ctx.command.params}
        given = dict(part.partition("=")[::2] for part in rest.split(","))
        for key in options.keys() & given.keys():
            plugin = registry.load(self.folder, name)
            if key not in registry.parameter_types(plugin):
                flag = f"{options[key]} {given[key]}".rstrip()
                self.fail(
                    f"{registry.noun(self.folder)} {name!r} has no parameter {key!r}: "
                    f"it is an option of its own, {flag}",
                    param,
                    ctx,
                )

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names."""
        return _offered(registry.names(self.folder), incomplete)


class Workers(Value):
    """A number of workers, or ``auto``."""

    name = "workers"
    shown = "N|auto"

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | int:
        """Return "auto" or a number of at least 1."""
        if value == "auto":
            return "auto"
        general = f" (from {WORKERS})" if value == os.environ.get(WORKERS) else ""
        try:
            count = int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor 'auto'{general}", param, ctx)
        if count < 1:
            self.fail(f"{count} is not at least 1{general}", param, ctx)
        return count


class ShardOf(Value):
    """One part of a job that the tasks of an array share."""

    name = "shard"
    shown = "I/N|auto|auto/N"

    def convert(
        self,
        value: str | Shard,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Shard:
        """Read it, from the environment where it says ``auto``."""
        if isinstance(value, Shard):
            return value
        try:
            return Shard.of(value)
        except ParameterError as error:
            self.fail(str(error), param, ctx)


class Memory(Value):
    """A number of bytes: 800MB, 2GiB; units of 1000 without the i, of 1024 with it."""

    name = "memory"
    shown = "SIZE"
    units = ("", "k", "m", "g", "t", "p")

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the number of bytes."""
        if isinstance(value, int):
            return value
        word = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtp]?)(i?)b?", value.lower())
        if not word or (word[3] and not word[2]):
            self.fail(f"{value!r} is no size such as 800MB, 1.5GB or 2GiB", param, ctx)
        step = 1024 if word[3] else 1000
        size = float(word[1]) * step ** self.units.index(word[2])
        if not 1 <= size < 2**63:
            self.fail(f"{value!r} is no memory that there could be", param, ctx)
        return int(size)


class Sigma(Value):
    """A bandwidth or the rule that finds one."""

    name = "sigma"
    shown = "auto|kth-max|local|matlab|NUMBER"
    rules = ("auto", "kth-max", "local", "matlab")

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check the value; the kernel gets it as it was typed."""
        if value not in self.rules:
            try:
                number = float(value)
            except ValueError:
                self.fail(f"{value!r} is neither a number nor a rule", param, ctx)
            if not 0 < number < float("inf"):
                self.fail(f"{value} is not a positive finite number", param, ctx)
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the rules."""
        return _offered(self.rules, incomplete)


def _offered(words: tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in words if word.startswith(incomplete)]
