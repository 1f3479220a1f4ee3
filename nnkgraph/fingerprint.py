"""Facts that determine results: their fingerprint, and where two sets of them differ.

What is kept of some rows is an archive that names its run, for checkpoints and shards
alike, so that nothing of another run is ever taken for a result.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.formats._zip import write_archive

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from nnkgraph.formats._zip import Archive


def fingerprint(facts: dict[str, Any]) -> str:
    """Return a hash of facts: plain JSON values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def difference(known: dict[str, Any], facts: dict[str, Any]) -> tuple[str, str, str]:
    """Return the first fact that differs and its two values, or three times nothing."""
    for key in sorted(known.keys() | facts.keys()):
        one, other = known.get(key), facts.get(key)
        if one != other:
            # Files are not trusted: a key may be empty, or garble a terminal.
            shown = json.dumps(key)[1:-1] or "''"
            return shown, json.dumps(one), json.dumps(other)
    return "", "", ""


def write_rows(
    stream: BinaryIO, run: str, about: str, arrays: Mapping[str, Any]
) -> None:
    """Write arrays of some rows of a run, and what else is to be known about them."""
    members = {"run": np.array(run), "about": np.array(about)}
    write_archive(stream, members | {k: v for k, v in arrays.items() if v is not None})


def run_of(archive: Archive) -> str:
    """Return the run that an archive belongs to; none where it is another's."""
    own = "run" in archive and "about" in archive
    return archive.text("run") if own else ""


def read_rows(archive: Archive, key: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return one of the arrays, which has to look as it should."""
    header = archive.headers.get(key)
    if header is None or (header.shape, header.dtype) != (shape, np.dtype(dtype)):
        raise InputError(f"{archive.name}: is not the block it should be")
    return archive.read(key)
