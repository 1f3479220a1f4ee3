"""The changes that change no result, each with the reason: ``equivalent.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

TABLE = Path(__file__).with_suffix(".toml")


def read() -> dict[tuple[str, str, str, str], str]:
    """Return the reasons, by what mutants are known by."""
    return {
        (path, one["inside"], one["was"], now): one["why"]
        for path, some in tomllib.loads(TABLE.read_text()).items()
        for one in some
        for now in one["now"]
    }
