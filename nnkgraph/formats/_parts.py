"""Features in several files: all that a pattern matches, in order of their names."""

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError
from nnkgraph.runtime.files import is_temporary, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import Features


_WILD = re.compile(r"[*?]|\[[^]]+\]")


def is_pattern(path: str) -> bool:
    """Return whether a path stands for all files that it matches."""
    return bool(_WILD.search(path)) and not os.path.lexists(path)


def read_parts(
    path: str, item: str | None, read: Callable[[str], Features]
) -> Features:
    """Read all files of a pattern and put their rows below each other."""
    from nnkgraph.data.rows import below

    found = sorted(one for one in glob.glob(path) if not is_temporary(one))  # noqa: PTH207 - any string
    name = show(path if item is None else f"{path}::{item}")
    if not found:
        raise InputError(f"{name}: no file has such a name")
    return below(
        [read(one if item is None else f"{one}::{item}") for one in found], name
    )
