"""Who hears how far the work is: stages with a name, a total and a duration."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Stages:
    """Clock of the stages of a run.

    Subclasses show progress by overriding :meth:`begin`; this one is silent.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Tell what is going to happen."""

    def begin(
        self, name: str, total: int, unit: str
    ) -> tuple[Callable[[int], object], Callable[[], object]]:
        """Return what is called with the number of units done, and at the end."""
        del name, total, unit  # this one is silent
        return (lambda _: None), (lambda: None)

    @contextmanager
    def __call__(
        self, name: str, total: int = 0, unit: str = "rows"
    ) -> Iterator[Callable[[int], object]]:
        """Time one stage; repeated stages of a name add up.

        The total is 0 where nothing is counted, or where nobody knows how many steps
        there will be: the unit says ``steps`` then.
        """
        start = time.perf_counter()
        advance, end = self.begin(name, total, unit)
        try:
            yield advance
        finally:
            end()
            spent = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent
