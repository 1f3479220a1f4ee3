"""The file of a shard: arrays of its rows, and the run that they belong to.

Compiled code trusts row numbers, so that everything is looked at when it is read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.fingerprint import fingerprint, read_rows, run_of, write_rows
from nnkgraph.formats._extras import parse_provenance
from nnkgraph.formats._output import Outputs, is_temporary
from nnkgraph.formats._source import open_source, show
from nnkgraph.formats._zip import open_archive
from nnkgraph.resume import ABOUT
from nnkgraph.shard import Shard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.formats._zip import Archive

SCHEMA = 1

_LISTS = {"index", "distance", "score", "weights"}
"""Arrays with a line of candidates for every row."""

_INPUT = {"first", "ids"}
"""Arrays about the rows of the input file, of which some may be copies."""

_NEEDED = {
    "search": {"index", "distance"},
    "part": {"index", "score"},
    "graph": {"index", "weights", "near", "far"},
}
_ALLOWED = {
    "search": {"first"},
    "part": {"first"},
    "graph": {"errors", "certificate", "own", "sigma", "first", "ids"},
}
"""Arrays that shards hold, always or where there are such."""


@dataclass(frozen=True)
class Part:
    """A shard: what it is, and its arrays, which may be yet to be read."""

    kind: str
    """``search`` for candidates, ``graph`` for solved neighborhoods.

    ``part`` for candidates of all rows among some of them.
    """

    shard: Shard

    rows: range
    """Its rows among the distinct ones."""

    lines: range
    """Its rows in the input file."""

    common: dict[str, Any]
    """What all shards of a run have in common; plain JSON values."""

    said: dict[str, Any]
    """What users are told; it may differ between the shards of a run."""

    arrays: dict[str, NDArray[Any]]

    path: str = ""
    """The file it was read from."""

    width: int = 0
    """Candidates of a row."""

    notes: tuple[str, ...] = ()
    """What to tell who has just made it; never stored."""

    @property
    def name(self) -> str:
        """The file, safe to print."""
        return show(self.path)

    @property
    def run(self) -> str:
        """Fingerprint of all that the shards of a run have in common."""
        return fingerprint({"kind": self.kind, "of": self.shard.count, **self.common})


def write_part(path: str | os.PathLike[str], part: Part) -> None:
    """Write a shard, whole or not at all."""
    target = os.fspath(path)
    about = {
        "schema": SCHEMA,
        "kind": part.kind,
        "shard": [part.shard.number, part.shard.count],
        "rows": [part.rows.start, part.rows.stop],
        "lines": [part.lines.start, part.lines.stop],
        "common": part.common,
        "said": part.said,
    }
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        text = json.dumps(about, sort_keys=True, allow_nan=False)
        write_rows(stream, part.run, text, part.arrays)


def read_part(path: str | os.PathLike[str]) -> Part:
    """Read what a shard is; its arrays are left where they are.

    Raises
    ------
    InputError
        Where it is no shard, or a damaged one.
    """
    spec = os.fspath(path)
    if is_temporary(spec):
        raise InputError(f"{show(spec)}: is being written; wait for the shard itself")
    source = open_source(spec)
    if source.path is None:
        raise InputError(f"{source.name}: a shard has to be a file: it is read twice")
    with open_archive(source) as archive:
        run = run_of(archive)
        if not run:
            raise InputError(
                f"{archive.name}: is no shard of nnkgraph search or build --shard"
            )
        about = parse_provenance(archive.text("about"), archive.name)
        try:
            part = _part(about, archive, spec)
        except (ValueError, TypeError, LookupError) as error:
            raise InputError(
                f"{archive.name}: is no shard of nnkgraph, or a damaged one"
            ) from error
        if part.run != run:
            raise InputError(
                f"{archive.name}: is damaged: it is not of the run it says"
            )
        return part


def _part(about: Any, archive: Archive, path: str) -> Part:
    if about["schema"] != SCHEMA or about["kind"] not in _NEEDED:
        raise InputError(f"{archive.name}: was written by another version of nnkgraph")
    rows, lines = (range(*_ends(about[key])) for key in ("rows", "lines"))
    common, said = about["common"], about["said"]
    if not (isinstance(common, dict) and isinstance(said, dict)):
        raise TypeError("objects are needed")
    _ends([rows.stop, common["distinct"]])
    _ends([lines.stop, common["shape"][0]])
    _ends([common["distinct"], common["shape"][0]], least=1)
    if not all(isinstance(common[key], dict) for key in ("facts", "settings")):
        raise TypeError("objects are needed")
    _check_search(common["search"])
    shape, kind = archive.headers["index"].shape, about["kind"]
    others = {*common["arrays"]} - _NEEDED[kind]
    whole = others | _NEEDED[kind] == {*common["arrays"]} and others <= _ALLOWED[kind]
    if not whole or len(shape) != 2 or shape[0] != len(rows):
        raise InputError(f"{archive.name}: is not the block it should be")
    shard = Shard(*_ends(about["shard"], least=1))
    return Part(kind, shard, rows, lines, common, said, {}, path, shape[1])


def _check_search(about: dict[str, Any]) -> None:
    kinds = {name: kind for name, kind in ABOUT.items() if name != "notes"}
    if about.keys() != kinds.keys():
        raise ValueError("other facts are needed")
    for name, kind in kinds.items():
        if not isinstance(about[name], kind):
            raise TypeError(f"{name} is no {kind}")


def _ends(pair: Any, least: int = 0) -> tuple[int, int]:
    """Return two whole numbers that are in order."""
    start, stop = pair
    if not (type(start) is type(stop) is int and least <= start <= stop < 2**62):
        raise ValueError("two numbers in order are needed")
    return start, stop


def read_arrays(part: Part) -> dict[str, Any]:
    """Read the arrays of a shard and check them."""
    n, rows, width = part.common["distinct"], len(part.rows), part.width
    small = np.int32 if n <= np.iinfo(np.int32).max else np.int64
    found: dict[str, Any] = {}
    with open_archive(open_source(part.path)) as archive:
        if run_of(archive) != part.run:
            raise InputError(f"{archive.name}: was changed while it was read")
        for key in part.common["arrays"]:
            if key == "ids":
                found[key] = archive.strings(key)
                if len(found[key]) != len(part.lines):
                    raise InputError(f"{archive.name}: is not the block it should be")
                continue
            length = len(part.lines) if key in _INPUT else rows
            shape = (length, width) if key in _LISTS else (length,)
            dtype = {"index": small, "first": np.int64}.get(key, np.float64)
            found[key] = read_rows(archive, key, shape, dtype)
    _check_index(found["index"], part.rows, n, part.name)
    for key in ("weights", "errors", "own", "sigma"):
        values = found.get(key)
        if values is not None and not np.isfinite(values).all():
            raise InputError(f"{part.name}: {key!r} has values that are no number")
    if "weights" in found and (found["weights"] < 0).any():
        raise InputError(f"{part.name}: has weights below zero")
    return found


def _check_index(index: NDArray[Any], rows: range, n: int, name: str) -> None:
    """Refuse row numbers that do not exist, are the row's own, or come twice."""
    if not index.size:
        return
    own = np.arange(rows.start, rows.stop)[:, np.newaxis]
    ordered = np.sort(index, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    outside = ordered[:, 0].min() < -1 or ordered[:, -1].max() >= n
    if outside or (index == own).any() or twice.any():
        raise InputError(f"{name}: its candidates are damaged")
