"""The changes that change no result, each with the reason: ``equivalent.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants.sites import Mutant

TABLE = Path(__file__).with_suffix(".toml")
ANY = "*"


def read() -> dict[tuple[str, str, str, str], str]:
    """Return the reasons, by what mutants are known by; ``*`` stands for every line."""
    return {
        (path, one["in"], was, now): one["why"]
        for path, some in tomllib.loads(TABLE.read_text()).items()
        for one in some
        for was in [one.get("was", ANY)]
        for now in one.get("now", [ANY])
    }


def reasons(mutant: Mutant) -> list[tuple[str, str, str, str]]:
    """Return the keys that may explain a mutant: the line's, and its function's."""
    path, inside, was, now = mutant.key
    return [
        (path, inside, was, now),
        (path, inside, was, ANY),
        (path, inside, ANY, ANY),
    ]
