"""One mutated file: how it is made from a seed and a number, and how it is read."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from fuzz import arrays, blind, hdf5, texts
from fuzz.readers import ROLES, read
from fuzz.seeds import Seed, make_seeds
from nnkgraph.errors import NnkGraphError

seeds = cache(make_seeds)
_MOST_BYTES = 1 << 22


@dataclass(frozen=True)
class Case:
    """A mutated file."""

    seed: Seed
    data: bytes
    chance: Random
    """What the reader's options are drawn from."""


def role_of(number: int) -> str:
    """Return which reader has its turn: each gets its share of the files."""
    return ROLES[number % len(ROLES)]


def draw(seed: int, number: int) -> Case:
    """Return a case; it depends on nothing but these two numbers."""
    chance = Random(f"{seed} {number}")
    chosen = chance.choice([one for one in seeds() if one.role == role_of(number)])
    other = chance.choice(seeds()).data
    mutator = chance.choice([blind.mutate, _fitting(chosen), _fitting(chosen)])
    data = mutator(chosen.data, other, chance)[:_MOST_BYTES]
    return Case(chosen, data, chance)


def _fitting(seed: Seed):
    if seed.name.endswith((".npy", ".npz")):
        return arrays.mutate
    return hdf5.mutate if hdf5.SIGNATURE in seed.data[:1024] else texts.mutate


def put(case: Case, folder: Path) -> Path:
    """Write the file, and what stands beside it, to an empty folder."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in case.seed.beside.items():
        (folder / name).write_bytes(data)
    path = folder / case.seed.name
    path.write_bytes(case.data)
    return path


def run(case: Case, path: Path) -> str:
    """Read the file: ``""`` where it was accepted, else the name of the error.

    Whatever else is raised is a finding, warnings included: users would see them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read(case.seed.role, path, case.chance)
        except NnkGraphError as error:
            message = str(error)
            if not message.isprintable():
                raise AssertionError(f"not printable: {message!r}") from error
            return type(error).__name__
    return ""
