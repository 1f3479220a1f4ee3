"""One finding of a diagnosis, and how shares and bars are written."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One line, with bars below it where there is something to see."""

    section: str
    text: str
    advice: bool = False
    """Whether it asks for something to be done."""

    bars: list[tuple[str, int]] = field(default_factory=list)
    """Labels and counts of a small histogram."""


def bars_of(histogram: list[dict[str, int]]) -> list[tuple[str, int]]:
    """Return the label and the count of every bar."""
    return [
        (
            f"{bar['from']}"
            if bar["from"] == bar["to"]
            else f"{bar['from']}-{bar['to']}",
            bar["count"],
        )
        for bar in histogram
    ]


def share(part: int, total: int) -> str:
    """Return "3 of 400 (0.8 %)"."""
    return f"{part} of {total} ({100 * part / total:.1f} %)"
