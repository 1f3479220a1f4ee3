"""What options take, and how help shows it."""

import os
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from math import inf
from typing import Any

import click

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry

WORKERS = "NNKGRAPH_WORKERS"
"""The environment variable that sets -j for all commands."""

CONFIG = "NNKGRAPH_CONFIG"
"""The one that sets --config for all commands."""

FOLDERS = ("methods", "kernels", "search", "executors", "formats")
"""What there are plug-ins of."""

_RULES = ("auto", "kth-max", "kth-mean", "local", "matlab")
"""Of the bandwidth."""

_MOST = 10_000
"""Numbers in a range; what is more is a slip."""

_UNITS = ("", "k", "m", "g", "t", "p")

_Param = click.Parameter | None
_Context = click.Context | None


class Word(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of some words, with a hint at the nearest; singular and plural both do."""

    def convert(self, value: str, param: _Param, ctx: _Context) -> str:
        """Return the word as it is documented."""
        known = [str(one) for one in self.choices]
        words = (value, f"{value}s", value.removesuffix("es"))
        found = next((one for one in words if one in known), None)
        return found or self.fail(_not_one_of(value, known), param, ctx)


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """What a function reads from a word; its ValueError says what is wrong.

    Help shows `shown`, and shells offer `words`.
    """

    name = "value"

    def __init__(
        self, shown: str, read: Callable[[str], Any], words: tuple[str, ...] = ()
    ) -> None:
        self.shown, self.read, self.words = shown, read, words

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Show what is accepted."""
        return self.shown

    def convert(self, value: Any, param: _Param, ctx: _Context) -> Any:
        """Return what the function makes of a word; defaults are no words."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except (ValueError, ParameterError) as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Offer words."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(one) for one in self.words if one.startswith(incomplete)]


class Plugin(Parsed):
    """``name`` or ``name:key=value,...`` of a plug-in folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__("NAME[:KEY=VALUE,...]", str)

    def convert(self, value: str, param: _Param, ctx: _Context) -> str:
        """Check the name, mostly without importing anything."""
        name, _, rest = registry.full_spec(self.folder, value).partition(":")
        # Our own names first: those of others are looked up where they are needed.
        if name not in registry.names(self.folder) and name not in (
            known := registry.all_names(self.folder)
        ):
            self.fail(_not_one_of(name, known), param, ctx)
        if ctx is None or ctx.resilient_parsing:
            return value
        # Parameters may be options of the command, and none of the plug-in.
        options = {one.name: one.opts[0] for one in ctx.command.params}
        given = dict(part.partition("=")[::2] for part in rest.split(","))
        for key in options.keys() & given.keys():
            plugin = registry.load(self.folder, name)
            if key not in registry.parameter_types(plugin):
                flag = f"{options[key]} {given[key]}".rstrip()
                what = f"{registry.noun(self.folder)} {name!r} has no parameter {key!r}"
                self.fail(f"{what}: it is an option of its own, {flag}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Offer the names."""
        self.words = registry.all_names(self.folder)
        return super().shell_complete(ctx, param, incomplete)


def _not_one_of(word: str, known: list[str] | tuple[str, ...]) -> str:
    near = get_close_matches(word, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{word!r} is not one of {', '.join(known)}{hint}"


def _try(kind: type[Any], word: str) -> Any:
    """Return a number, or NaN, which is within no limits."""
    try:
        return kind(word)
    except ValueError:
        return float("nan")


def whole(least: int, most: float = inf) -> Parsed:
    """Return the type of whole numbers within limits."""
    limits = f"from {least} to {most}" if most < inf else f"of at least {least}"

    def read(word: str) -> int:
        found: int = _try(int, word)
        if not least <= found <= most:
            raise ValueError(f"{word!r} is not a whole number {limits}")
        return found

    return Parsed("N", read)


def number(low: float, high: float = inf, *, inside: bool = False) -> Parsed:
    """Return the type of numbers within limits; ``inside`` leaves the limits out."""
    if high < inf:
        limits = "above {:g} and below {:g}" if inside else "from {:g} to {:g}"
    else:
        limits = "above {:g}" if inside else "of at least {:g}"

    def read(word: str) -> float:
        found: float = _try(float, word)
        if not (low < found < high if inside else low <= found <= high):
            raise ValueError(f"{word!r} is not a number {limits.format(low, high)}")
        return found

    return Parsed("NUMBER", read)


def _workers(word: str) -> str | int:
    if word == "auto":
        return word
    count: int = _try(int, word)
    if not count >= 1:
        general = f" (from {WORKERS})" if word == os.environ.get(WORKERS) else ""
        raise ValueError(f"{word!r} is neither a number from 1 on nor 'auto'{general}")
    return count


def _shard(word: str) -> Any:
    from nnkgraph.build.shards import Shard

    return Shard.of(word)


def _memory(word: str) -> int:
    """Return a number of bytes; units are of 1000 without the i, of 1024 with it."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtp]?)(i?)b?", word.lower())
    if not found or (found[3] and not found[2]):
        raise ValueError(f"{word!r} is no size such as 800MB, 1.5GB or 2GiB")
    size = float(found[1]) * (1024 if found[3] else 1000) ** _UNITS.index(found[2])
    if not 1 <= size < 2**63:
        raise ValueError(f"{word!r} is no memory that there could be")
    return int(size)


def _sigma(word: str) -> str:
    """Check a bandwidth or its rule; the kernel gets it as it was typed."""
    if word not in _RULES and not 0 < _try(float, word) < inf:
        raise ValueError(f"{word!r} is neither a positive number nor a rule")
    return word


def _numbers(word: str) -> list[int]:
    found: Sequence[int]
    try:
        if ":" in word:
            first, last, *step = (int(part) for part in word.split(":"))
            found = range(first, last + 1, *step)
        else:
            found = [int(part) for part in word.split(",")]
    except (ValueError, TypeError):
        raise ValueError(f"{word!r} is neither N,N,... nor FIRST:LAST:STEP") from None
    if not found or min(found[0], found[-1], *found[:_MOST]) < 1:
        raise ValueError(f"{word!r} has to name numbers of at least 1")
    if found[_MOST:]:
        raise ValueError(f"{word!r} names more than {_MOST} numbers")
    return list(found)


def _positive(word: str) -> list[float]:
    found = [_try(float, one) for one in word.split(",")]
    if not all(0 < one < inf for one in found):
        raise ValueError(f"{word!r} has to name finite numbers above 0")
    return found


def listed(shown: str, kind: type[int | float], counts: set[int]) -> Parsed:
    """Return the type of so many numbers with commas between them."""

    def read(word: str) -> tuple[float, ...]:
        found = tuple(_try(kind, part) for part in word.split(","))
        if len(found) not in counts or not all(-1e9 < one < 1e9 for one in found):
            raise ValueError(f"{word!r} is not {shown}")
        return found

    return Parsed(shown, read)


WORKER_COUNT = Parsed("N|auto", _workers, ("auto",))
SHARD = Parsed("I/N|auto|auto/N", _shard)
MEMORY = Parsed("SIZE", _memory)
SIGMA = Parsed(f"{'|'.join(_RULES)}|NUMBER", _sigma, _RULES)
SIGMAS = Parsed(
    f"{SIGMA.shown}[,...]",
    lambda word: [_sigma(one.strip()) for one in word.split(",")],
)
NUMBERS = Parsed("N,N,...|FIRST:LAST:STEP", _numbers)
POSITIVE = Parsed("NUMBER[,...]", _positive)
