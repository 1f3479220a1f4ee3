"""Numbers that options take, with limits that are said in words."""

from __future__ import annotations

from difflib import get_close_matches

import click


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
