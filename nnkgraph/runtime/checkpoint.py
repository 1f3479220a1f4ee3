"""Blocks of a run as files: finished ones, kept so that another run can go on.

A block is some rows after one stage, and every file of blocks says what determines
them. A checkpoint is a directory with a file for each, of one input and one set of
parameters: neither half a file nor one of another run is ever taken for a result, such
blocks are computed again. A shard is one file with all blocks of its rows.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from nnkgraph.errors import InputError, OutputError, ResourceError
from nnkgraph.runtime.archive import Archive, open_archive, write_archive
from nnkgraph.runtime.files import open_source, sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_MEMBER = re.compile(r"([a-z]+)-([0-9]{1,18})-([0-9]{1,18})/([a-z0-9]+)")


@dataclass(frozen=True)
class Block:
    """What is known of some rows after one stage of a run."""

    stage: str
    rows: range
    arrays: Mapping[str, Any]
    """They have a row for each; None is one that this run does not have."""

    about: dict[str, Any] = field(default_factory=dict)
    """What else is to be known; plain JSON values."""

    name: str = ""
    """The file that it was read from, safe to print."""

    @property
    def place(self) -> str:
        """Its name among the blocks of a run."""
        return f"{self.stage}-{self.rows.start}-{self.rows.stop}"


def write_blocks(
    stream: BinaryIO, facts: dict[str, Any], blocks: Iterable[Block]
) -> None:
    """Write blocks, and the facts that determine them."""
    members: dict[str, Any] = {"facts": np.array(json.dumps(facts, sort_keys=True))}
    for block in blocks:
        about = json.dumps(block.about, sort_keys=True, allow_nan=False)
        for name, array in {"about": np.array(about), **block.arrays}.items():
            if array is not None:
                members[f"{block.place}/{name}"] = array
    write_archive(stream, members)


def read_contents(archive: Archive) -> tuple[dict[str, Any], list[Block]]:
    """Return the facts and the blocks, with headers in place of their arrays."""
    found: dict[tuple[str, range], dict[str, Any]] = {}
    for key, header in archive.headers.items():
        if member := _MEMBER.fullmatch(key):
            stage, start, stop, name = member.groups()
            arrays = found.setdefault((stage, range(int(start), int(stop))), {})
            if name != "about":
                arrays[name] = header
    blocks = []
    for (stage, rows), arrays in found.items():
        about = _parsed(archive, f"{Block(stage, rows, {}).place}/about")
        blocks.append(Block(stage, rows, arrays, about, archive.name))
    return _parsed(archive, "facts"), blocks


def read_block(
    archive: Archive,
    facts: dict[str, Any],
    stage: str,
    rows: range,
    like: Mapping[str, Any],
) -> Block:
    """Return a block of the run that the facts determine.

    But for their length its arrays have to look like those given.
    """
    if _parsed(archive, "facts") != facts:
        raise InputError(f"{archive.name}: belongs to another run")
    arrays: dict[str, Any] = dict.fromkeys(like)
    place = Block(stage, rows, {}).place
    for name, one in like.items():
        if one is not None:
            header = archive.headers.get(f"{place}/{name}")
            wanted = (len(rows), *one.shape[1:]), one.dtype
            if header is None or (header.shape, header.dtype) != wanted:
                raise InputError(f"{archive.name}: is not the block it should be")
            arrays[name] = archive.read(f"{place}/{name}")
    about = _parsed(archive, f"{place}/about")
    return Block(stage, rows, arrays, about, archive.name)


def _parsed(archive: Archive, key: str) -> dict[str, Any]:
    if key not in archive:
        raise InputError(f"{archive.name}: is no shard of a run, and no block of one")
    return _object(archive.text(key), archive.name)


def _object(text: str, name: str) -> dict[str, Any]:
    """Return an object of plain values, with finite numbers only."""
    try:
        known = json.loads(text)
        json.dumps(known, allow_nan=False)
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise InputError(f"{name}: is damaged: what it says about itself is no JSON")
    return known


def difference(known: dict[str, Any], facts: dict[str, Any]) -> tuple[str, str, str]:
    """Return the first fact that differs and its two values, or three times nothing."""
    for key in sorted(known.keys() | facts.keys()):
        one, other = known.get(key), facts.get(key)
        if one != other:
            # Files are not trusted: a key may be empty, or garble a terminal.
            shown = json.dumps(key)[1:-1] or "''"
            return shown, json.dumps(one), json.dumps(other)
    return "", "", ""


_FACTS = "checkpoint.json"
_LOCK = "lock"
_KEPT = re.compile(rf"(candidates|search|solve)-\d+-\d+\.npz|{_FACTS}|{_LOCK}")
_PART = re.compile(r"\.part-[0-9a-f]{16}")
_OURS = re.compile(rf"{_KEPT.pattern}|{_PART.pattern}|\.nfs[0-9a-fA-F]+")
"""NFS keeps a removed file under such a name for as long as somebody has it open."""


@dataclass
class Checkpoint:
    """An open checkpoint; nobody else has it."""

    folder: Path
    facts: dict[str, Any]
    """All that determines the blocks."""

    reused: int = 0
    saved: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What it was good for."""
        every = self.reused + self.saved
        return [f"{self.folder}: {self.reused} of {every} blocks were there"]

    def load(
        self,
        stage: str,
        rows: range,
        like: Mapping[str, Any],
        check: Callable[[Block], object] = lambda _: None,
    ) -> Block | None:
        """Return a block whose arrays look as wanted, or None where there is none.

        ``check`` raises an `InputError` for one that makes no sense.
        """
        path = self.folder / f"{Block(stage, rows, {}).place}.npz"
        if not path.exists():
            return None
        try:
            with open_archive(open_source(str(path))) as archive:
                found = read_block(archive, self.facts, stage, rows, like)
            check(found)
        except InputError as error:
            self.warnings.append(f"{error}; the block was computed again")
            return None
        self.reused += 1
        return found

    def save(self, block: Block) -> None:
        """Keep a block."""
        with _writing(self.folder):
            part = _new_part(self.folder)
            with part.open("xb") as stream:
                write_blocks(stream, self.facts, [block])
                stream.flush()
                sync(stream.fileno())
            part.replace(self.folder / f"{block.place}.npz")
        self.saved += 1

    def drop(self, stage: str) -> None:
        """Remove the blocks of a stage whose result is kept as a whole."""
        for path in self.folder.glob(f"{stage}-*.npz"):
            path.unlink()


@contextlib.contextmanager
def open_checkpoint(folder: str | Path, facts: dict[str, Any]) -> Iterator[Checkpoint]:
    """Open a checkpoint, or begin one in a directory that is new or empty.

    The facts are all that determines the blocks, as plain JSON values.
    """
    folder = Path(folder)
    with _writing(folder):
        folder.mkdir(exist_ok=True)
        strange = {*folder.iterdir()} - {*_named(folder, _OURS)}
        if strange:
            raise InputError(
                f"{folder}: is no checkpoint, since it holds {min(strange).name!r}; "
                "name a directory that is new or empty"
            )
        lock = (folder / _LOCK).open("a+")
    with lock:
        warnings = _locked(lock, folder)
        with _writing(folder):
            for path in _named(folder, _PART):
                path.unlink()
            _check(folder / _FACTS, facts)
        yield Checkpoint(folder, facts, warnings=warnings)


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint whose result is safe; other files are left alone.

    One that another run has begun to use is left to that run.
    """
    with _writing(folder), (folder / _LOCK).open("a+") as lock:
        try:
            _locked(lock, folder)
        except ResourceError:
            return
        for path in _named(folder, _KEPT):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody put something else there
            folder.rmdir()


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    return [one for one in folder.iterdir() if pattern.fullmatch(one.name)]


def _new_part(folder: Path) -> Path:
    """Return a name for a file that is not whole yet."""
    return folder / f".part-{secrets.token_hex(8)}"


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = isinstance(error, (FileExistsError, NotADirectoryError))
        reason = "this is no directory" if place else error.strerror
        raise OutputError(
            f"{folder}: the checkpoint cannot be written: {reason}"
        ) from error


def _locked(lock: Any, folder: Path) -> list[str]:
    """Take the lock, which ends with this process however it ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        holder = lock.read(200).strip() or "unknown"
        raise ResourceError(
            f"{folder}: another run ({holder}) is using this checkpoint; wait for it, "
            "or name another directory"
        ) from error
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
            raise
        return [f"{folder}: this file system has no locks: let no other run use it"]
    if os.fstat(lock.fileno()).st_nlink == 0:
        raise ResourceError(f"{folder}: another run has just removed it; try again")
    lock.seek(0)
    lock.truncate()
    lock.write(f"process {os.getpid()} on {platform.node()}\n")
    lock.flush()
    return []


def _check(path: Path, facts: dict[str, Any]) -> None:
    """Compare with what a checkpoint was begun with, or begin one."""
    if not path.exists():
        part = _new_part(path.parent)
        part.write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")
        part.replace(path)
        return
    try:
        known = _object(path.read_text(errors="replace"), str(path))
    except InputError as error:
        raise InputError(f"{error}; remove the directory to begin anew") from error
    key, before, now = difference(known, facts)
    if key:
        raise InputError(
            f"{path.parent}: this checkpoint is of another run: {key} was {before}, "
            f"now it is {now}; name another directory, or remove this one"
        )
