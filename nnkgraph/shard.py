"""One part of a job that many processes share: which, of how many, and its rows."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRITTEN = re.compile(r"(auto|[0-9]{1,9})(?:/([0-9]{1,9}))?")
_SLURM = "SLURM_ARRAY_TASK_"
_PBS = ("PBS_ARRAY_INDEX", "PBS_ARRAYID")


@dataclass(frozen=True)
class Shard:
    """Part ``number`` of ``count``, counted from 1."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ParameterError(
                f"there is no shard {self.number} of {self.count}: they are counted "
                "from 1"
            )

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def rows(self, n: int, grain: int = 1) -> range:
        """Return its part of n rows; parts begin at multiples of ``grain``.

        All parts together are all rows, each once. Where there are more parts than
        rows, some have none.
        """
        units = -(-n // grain)
        start, stop = (
            units * at // self.count for at in (self.number - 1, self.number)
        )
        return range(min(start * grain, n), min(stop * grain, n))

    @classmethod
    def of(cls, text: str, environment: Mapping[str, str] = os.environ) -> Shard:
        """Read ``I/N``, or ``auto`` or ``auto/N`` in a task of a job array.

        ``auto`` is the task's place among those of its Slurm array. With ``auto/N``
        the number of the task is that of the shard.

        Raises
        ------
        ParameterError
            For anything else, and where the environment does not tell.
        """
        found = _WRITTEN.fullmatch(text)
        if found is None or (found[1] != "auto" and found[2] is None):
            raise ParameterError(
                f"{text!r} is no shard: write I/N with I from 1 to N, or auto or "
                "auto/N in a job array"
            )
        first, count = found.groups()
        if first != "auto":
            return cls(int(first), int(count))
        if count is None:
            return cls(*_place_in_slurm(environment))
        return cls(_task(environment)[1], int(count))


def _number(environment: Mapping[str, str], name: str) -> int | None:
    """Return the whole number that a variable holds; None where it is not set."""
    text = environment.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise ParameterError(f"{name} is {text!r}, which is no number") from error


def _task(environment: Mapping[str, str]) -> tuple[str, int]:
    """Return the variable with the number of this task, and the number."""
    for name in (f"{_SLURM}ID", *_PBS):
        number = _number(environment, name)
        if number is not None:
            return name, number
    raise ParameterError(
        f"auto is for the tasks of a job array, and neither {_SLURM}ID nor "
        f"{' nor '.join(_PBS)} is set; write I/N"
    )


def _place_in_slurm(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return the place of a task in its array, from 1, and the size of the array."""
    name, task = _task(environment)
    if name in _PBS:
        raise ParameterError(
            f"{name} says which task this is, but not of how many: write auto/N, with "
            "tasks from 1 to N"
        )
    low, high, step, count = (
        _number(environment, _SLURM + one) for one in ("MIN", "MAX", "STEP", "COUNT")
    )
    step = 1 if step is None else step
    if low is None or high is None or step < 1:
        raise ParameterError(
            f"{_SLURM}MIN and {_SLURM}MAX do not say how many tasks there are: write "
            "auto/N, with tasks from 1 to N"
        )
    place, beside = divmod(task - low, step)
    size = (high - low) // step + 1
    if beside or (count is not None and count != size) or not 0 <= place < size:
        raise ParameterError(
            f"tasks {low} to {high} of this array have gaps: write auto/N, with tasks "
            "from 1 to N"
        )
    return place + 1, size
