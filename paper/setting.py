"""What a run is asked for, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")

GRID = (0.1, 0.5, 1.0, 5.0, 10.0)
"""Values of sigma and of L/C that cross-validation chooses from."""

NUMBERS = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Setting:
    """One run of the experiments."""

    out: Path
    """The folder for tables and figures."""

    data: Path | None = None
    """A folder of .npz files; without one, only synthetic data is used."""

    quick: bool = False
    """Whether a few minutes must do."""

    scale: float = 1.0
    """Share of the synthetic rows; tests use few."""

    workers: int | str = 1
    """Processes that classify."""

    def rows(self, full: int) -> int:
        """Return how many synthetic rows there are where the paper has so many."""
        return round(full * self.scale * (0.4 if self.quick else 1.0))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the values of k."""
        return NUMBERS[::2] if self.quick else NUMBERS

    def repeats(self, full: int) -> int:
        """Return how often something random is done that the paper does so often."""
        return min(full, 2) if self.quick else full


def watched(items: Iterable[Item], name: str, total: int) -> Iterator[Item]:
    """Show how far the work is: a bar on a terminal, else a line now and then."""
    from tqdm import tqdm

    shown = sys.stderr.isatty()
    bar = tqdm(
        items,
        desc=name,
        total=total,
        mininterval=0.1 if shown else 20.0,
        ascii=not shown,
        leave=True,
    )
    yield from bar


def say(text: str) -> None:
    """Tell the user something, apart from the data."""
    print(text, file=sys.stderr, flush=True)
