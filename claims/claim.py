"""A claim: words of a page, a function that returns a figure, and a limit for it."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HOLDS, FAILS, NEEDS_DATA, NOT_RUN = "holds", "FAILS", "needs data", "not run"

_COMPARED = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True)
class Figure:
    """What was measured: the number that is compared, and what to print beside it."""

    value: float
    said: str = ""


@dataclass(frozen=True)
class Place:
    """Where a measurement may write, and what it may use."""

    scratch: Path
    data: Path | None = None
    """A folder of the user's with real data, as for ``make bench`` and ``make study``."""

    def file(self, name: str) -> Path:
        """Return a file of the user's folder."""
        path = (self.data or Path()) / name
        if self.data is None or not path.exists():
            raise NeedsDataError(name)
        return path


class NotRunError(Exception):
    """A claim that cannot be measured here, and why."""


class NeedsDataError(NotRunError):
    """A claim about a file that is not there."""


Measure = Callable[[Place], Figure]


@dataclass(frozen=True)
class Claim:
    """What is claimed, where, and how it is looked at."""

    key: str
    part: str
    text: str
    said: tuple[tuple[str, str], ...]
    """Pages, and words that stand there."""

    limit: str = ""
    """What the figure must be, as "<= 1e-9"; empty where nothing is measured."""

    unit: str = ""
    """What the figure counts."""

    measure: Measure | None = None
    data: tuple[str, ...] = ()
    """Files of the user's folder that are needed."""

    long: str = ""
    """How long it takes, where that is too long to be run unless it is named."""

    command: str = ""
    """What proves it instead, where nothing is measured, or besides."""

    why: str = ""
    """Why it is not run here."""

    def line(self) -> str:
        """Return the command that proves it."""
        own = f"make claims CLAIMS={self.key}{' DATA=DIR' if self.data else ''}"
        return self.command if self.measure is None else own


@dataclass(frozen=True)
class Verdict:
    """What came of a claim."""

    claim: Claim
    verdict: str
    figure: str
    seconds: float = 0.0


ALL: dict[str, Claim] = {}
"""Every claim by its key, in the order of the page."""


def register(claim: Claim) -> None:
    """Enter a claim; keys are unique."""
    if claim.key in ALL:
        raise ValueError(f"there are two claims called {claim.key}")
    ALL[claim.key] = claim


def claim(
    key: str,
    text: str,
    *said: tuple[str, str],
    limit: str,
    unit: str,
    data: tuple[str, ...] = (),
    long: str = "",
    command: str = "",
) -> Callable[[Measure], Measure]:
    """Return what enters a function as the measurement of a claim."""

    def enter(measure: Measure) -> Measure:
        part = measure.__module__.rpartition(".")[2]
        how = {"data": data, "long": long, "command": command}
        register(Claim(key, part, text, said, limit, unit, measure, **how))
        return measure

    return enter


def stated(
    part: str, key: str, text: str, *said: tuple[str, str], command: str, why: str
) -> None:
    """Enter a claim that nothing here measures, with what would."""
    register(Claim(key, part, text, said, command=command, why=why))


def holds(limit: str, value: float) -> bool:
    """Say whether a number is what it should be; what is no number is not."""
    sign, number = limit.split()
    return bool(_COMPARED[sign](value, float(number)))


def judged(one: Claim, place: Place) -> Verdict:
    """Measure a claim and draw the verdict."""
    if one.measure is None:
        return Verdict(one, NOT_RUN, one.why)
    start = time.monotonic()
    try:
        for name in one.data:
            place.file(name)
        figure = one.measure(place)
    except NeedsDataError as absent:
        return Verdict(one, NEEDS_DATA, f"DATA=DIR with {absent}")
    except NotRunError as reason:
        return Verdict(one, NOT_RUN, str(reason))
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip().splitlines()
        return Verdict(one, FAILS, text[0][:160], time.monotonic() - start)
    verdict = HOLDS if holds(one.limit, figure.value) else FAILS
    shown = f"{figure.value:.4g} {one.unit}" + (f" ({figure.said})" * bool(figure.said))
    return Verdict(one, verdict, shown, time.monotonic() - start)
