"""Progress on stderr: a bar on a terminal, otherwise a line every tenth."""

import sys
import time
from collections.abc import Callable, Iterable

from nnkgraph.cli import files, talk
from nnkgraph.runtime.progress import Stages

_Heard = tuple[Callable[[int], object], Callable[[], object]]
_PATIENCE = 3.0
"""Seconds a stage may take in silence when there is no terminal."""


class Progress(Stages):
    """Stages that the user can watch."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        """Say it at once, and once."""
        if text not in self.said:
            self.said.append(text)
            talk.summary(text)

    def unsaid(self, notes: Iterable[str]) -> list[str]:
        """Return what was not said before, be it as a warning about an input."""
        known = talk.state.warned
        return [n for n in notes if n not in self.said and not n.endswith(known)]

    def begin(self, name: str, total: int, unit: str) -> _Heard:
        """Show a bar or write lines, or neither with --quiet; look at the inputs."""
        files.check()
        if compiled := sys.modules.get("nnkgraph.runtime.compiling"):
            compiled.announce(talk.summary)  # in a log, too: it could look like a hang
        advance, end = self._shown(name, total, unit)

        def checked(units: int) -> None:
            files.check_pages()
            advance(units)

        return checked, end

    def _shown(self, name: str, total: int, unit: str) -> _Heard:
        counted = total > 0 or unit == "steps"
        if not counted or talk.state.verbosity < 0:
            return super().begin(name, total, unit)
        # The interpreter sets it to None where the descriptor is closed at the start.
        stream: object = sys.stderr
        if stream is not None and sys.stderr.isatty():
            from tqdm import tqdm

            bar = tqdm(
                total=total or None, desc=name, unit=f" {unit}", leave=False, delay=0.5
            )
            return bar.update, bar.close
        advance = _tenths(name, total) if total else _counted(name, unit)
        return advance, lambda: None


def _tenths(name: str, total: int) -> Callable[[int], object]:
    """Return what writes a line for each tenth of a stage that takes long."""
    done, start = 0, time.monotonic()

    def advance(rows: int) -> None:
        nonlocal done
        before, done = done, done + rows
        tenths = 10 * done // total
        late = time.monotonic() - start > _PATIENCE
        if late and tenths > 10 * before // total:
            talk.summary(f"{name}: {10 * tenths} % of {total} rows")

    return advance


def _counted(name: str, unit: str) -> Callable[[int], object]:
    """Return what writes a line now and then: nobody knows how many steps there are."""
    done, due = 0, time.monotonic() + _PATIENCE

    def advance(steps: int) -> None:
        nonlocal done, due
        done += steps
        if time.monotonic() >= due:
            talk.summary(f"{name}: {done} {unit}")
            due = time.monotonic() + _PATIENCE

    return advance
