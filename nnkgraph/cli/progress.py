"""Progress on stderr: a bar on a terminal, otherwise a line every tenth."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from nnkgraph.cli import files, talk
from nnkgraph.runtime.progress import Stages

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 3.0
"""Seconds a stage may take in silence when there is no terminal."""


class Progress(Stages):
    """Stages that the user can watch."""

    def begin(
        self, name: str, total: int, unit: str
    ) -> tuple[Callable[[int], object], Callable[[], object]]:
        """Show a bar or write lines, or neither with --quiet; look at the inputs."""
        files.check()
        if compiled := sys.modules.get("nnkgraph.runtime.compiling"):
            compiled.announce(talk.summary)  # in a log, too: it could look like a hang
        advance, end = self._shown(name, total, unit)

        def checked(units: int) -> None:
            files.check_pages()
            advance(units)

        return checked, end

    def _shown(
        self, name: str, total: int, unit: str
    ) -> tuple[Callable[[int], object], Callable[[], object]]:
        counted = total > 0 or unit == "steps"
        if not counted or talk.level.verbosity < 0:
            return super().begin(name, total, unit)
        if _watched():
            from tqdm import tqdm

            bar = tqdm(
                total=total or None,
                desc=name,
                unit=f" {unit}",
                leave=False,
                delay=0.5,
            )
            return bar.update, bar.close
        if not total:
            return _Counted(name, unit).advance, _nothing
        return _Lines(name, total).advance, _nothing


def _watched() -> bool:
    # The interpreter sets it to None where the descriptor is closed at the start.
    stream: object = sys.stderr
    return stream is not None and sys.stderr.isatty()


class _Lines:
    """A line for each tenth of a stage that takes long."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._done, self._tenths = 0, 0
        self._start = time.monotonic()

    def advance(self, rows: int) -> None:
        self._done += rows
        tenths = 10 * self._done // self._total
        if tenths > self._tenths and time.monotonic() - self._start > _PATIENCE:
            talk.summary(f"{self._name}: {10 * tenths} % of {self._total} rows")
        self._tenths = tenths


class _Counted:
    """A line now and then where nobody knows how many steps there will be."""

    def __init__(self, name: str, unit: str) -> None:
        self._name, self._unit, self._done = name, unit, 0
        self._next = time.monotonic() + _PATIENCE

    def advance(self, steps: int) -> None:
        self._done += steps
        if time.monotonic() >= self._next:
            talk.summary(f"{self._name}: {self._done} {self._unit}")
            self._next = time.monotonic() + _PATIENCE


def _nothing() -> None:
    """Leave no trace: lines stay as they are."""
