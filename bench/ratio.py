"""Measuring two things in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

_SHORTEST = 0.1
"""Seconds that one measurement should take at least."""


@dataclass(frozen=True)
class Line:
    """One comparison: seconds of nnkgraph over seconds of the other."""

    suite: str
    case: str
    ours: str
    other: str
    ratio: float
    lowest: float
    highest: float
    our_seconds: float
    other_seconds: float
    aim: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the ratio is what we aim at, where there is an aim."""
        return None if self.aim is None else self.ratio <= self.aim


def compare(
    suite: str,
    case: str,
    ours: tuple[str, Callable[[], object]],
    other: tuple[str, Callable[[], object]],
    *,
    repeat: int = 5,
    shares: tuple[float, float] = (1.0, 1.0),
    aim: float | None = None,
    warm: bool = True,
) -> Line:
    """Run two things in turns and compare their times.

    ``shares`` says what part of the whole job each of them does, where one is too
    slow to do all of it.
    """
    runs = [_times(job[1]) if warm else 1 for job in (ours, other)]
    seconds: list[tuple[float, float]] = []
    for _ in range(repeat):
        a, b = (
            _measure(job[1], n) / share
            for job, n, share in zip((ours, other), runs, shares, strict=True)
        )
        seconds.append((a, b))
    ratios = [a / b for a, b in seconds]
    return Line(
        suite,
        case,
        ours[0],
        other[0],
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        statistics.median(a for a, _ in seconds),
        statistics.median(b for _, b in seconds),
        aim,
    )


def _times(job: Callable[[], object]) -> int:
    """Return how often a job must run to take long enough, warming it up."""
    job()
    once = _measure(job, 1)
    return max(1, min(100, round(_SHORTEST / once)))


def _measure(job: Callable[[], object], runs: int) -> float:
    start = time.perf_counter()
    for _ in range(runs):
        job()
    return (time.perf_counter() - start) / runs
