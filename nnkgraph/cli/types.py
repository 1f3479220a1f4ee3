"""Lists of values as options, and rows of cells as tables."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from nnkgraph.build.shards import Shard


class Value(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """What an option takes, and how help shows it."""

    shown = ""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Show what is accepted."""
        return self.shown


class Word(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of some words, with a hint at the nearest; a missing final s is forgiven."""

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the word as it is documented."""
        known = [str(one) for one in self.choices]
        found = next((one for one in (value, f"{value}s") if one in known), None)
        if found is None:
            near = get_close_matches(value, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            self.fail(f"{value!r} is not one of {', '.join(known)}{hint}", param, ctx)
        return found


class Whole(Value):
    """A whole number from the least on, up to the most where there is one."""

    name = "whole number"
    shown = "N"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the number."""
        try:
            found = int(value)
        except ValueError:
            found = self.least - 1
        if found < self.least or (self.most is not None and found > self.most):
            limits = f"of at least {self.least}"
            if self.most is not None:
                limits = f"from {self.least} to {self.most}"
            self.fail(f"{str(value)!r} is not a whole number {limits}", param, ctx)
        return found


class Number(Value):
    """A number between two limits, or above one; ``inside`` leaves them out."""

    name = "number"
    shown = "NUMBER"

    def __init__(
        self, low: float, high: float = float("inf"), *, inside: bool = False
    ) -> None:
        self.low, self.high, self.inside = low, high, inside

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number."""
        try:
            found = float(value)
        except ValueError:
            found = float("nan")
        low, high = self.low, self.high
        if not (low < found < high if self.inside else low <= found <= high):
            self.fail(f"{str(value)!r} is not a number {self._limits()}", param, ctx)
        return found

    def _limits(self) -> str:
        low, high = f"{self.low:g}", f"{self.high:g}"
        if high == "inf":
            return f"above {low}" if self.inside else f"of at least {low}"
        if self.inside:
            return f"above {low} and below {high}"
        return f"from {low} to {high}"


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
        # Our own names first: those of others are looked up where they are needed.
        if name not in registry.names(self.folder) and name not in (
            known := registry.all_names(self.folder)
        ):
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
        return _offered(registry.all_names(self.folder), incomplete)


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
        from nnkgraph.build.shards import Shard

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


class Numbers(Value):
    """Numbers as 10,20,30 or FIRST:LAST:STEP."""

    name = "numbers"
    shown = "N,N,...|FIRST:LAST:STEP"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return the numbers, all at least 1."""
        if isinstance(value, list):
            return value
        try:
            if ":" in value:
                first, last, *step = (int(part) for part in value.split(":"))
                found = list(range(first, last + 1, *step))
            else:
                found = [int(part) for part in value.split(",")]
        except (ValueError, TypeError):
            self.fail(f"{value!r} is neither N,N,... nor FIRST:LAST:STEP", param, ctx)
        if not found or min(found) < 1:
            self.fail(f"{value!r} has to name numbers of at least 1", param, ctx)
        return found


class Sigmas(Value):
    """Bandwidths and rules for them, with commas between."""

    name = "sigmas"
    shown = "auto|kth-max|local|matlab|NUMBER[,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """Check every value; the kernel gets it as it was typed."""
        if isinstance(value, list):
            return value
        return [Sigma().convert(one.strip(), param, ctx) for one in value.split(",")]


class Positive(Value):
    """Numbers above 0 with commas between."""

    name = "positive"
    shown = "NUMBER[,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        """Return the numbers."""
        if isinstance(value, list):
            return value
        try:
            found = [float(one) for one in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is no list of numbers", param, ctx)
        if not all(0 < one < float("inf") for one in found):
            self.fail(f"{value!r} has to name finite numbers above 0", param, ctx)
        return found


def aligned(cells: Sequence[Sequence[str]], *, left: int) -> str:
    """Return rows of cells as columns: so many to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )
