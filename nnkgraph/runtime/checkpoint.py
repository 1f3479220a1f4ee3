"""Finished blocks of a run, kept in a directory so that another run can go on.

A checkpoint belongs to one input and one set of parameters. Every block is a file of
its own that names its run, so that neither half a file nor one of another run is ever
taken for a result: such blocks are computed again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, OutputError, ResourceError
from nnkgraph.runtime.archive import open_archive, write_archive
from nnkgraph.runtime.files import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from numpy.typing import NDArray

    from nnkgraph.runtime.archive import Archive


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


_FACTS = "checkpoint.json"
_LOCK = "lock"
_BLOCK = re.compile(r"(candidates|search|solve)-\d+-\d+\.npz")
_PART = re.compile(r"\.part-[0-9a-f]{16}")


@dataclass(frozen=True)
class Block:
    """What was kept of one block."""

    arrays: list[NDArray[Any] | None]
    about: str


@dataclass
class Checkpoint:
    """An open checkpoint; nobody else has it."""

    folder: Path
    run: str
    """Fingerprint of all that determines the blocks."""

    reused: int = 0
    """Blocks that were there."""

    saved: int = 0
    """Blocks that were added."""

    warnings: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What it was good for."""
        every = self.reused + self.saved
        return [f"{self.folder}: {self.reused} of {every} blocks were there"]

    def load(
        self, stage: str, start: int, stop: int, like: Sequence[NDArray[Any] | None]
    ) -> Block | None:
        """Return a block whose arrays look as wanted, or None where there is none."""
        path = self._path(stage, start, stop)
        if not path.exists():
            return None
        try:
            with open_archive(open_source(str(path))) as archive:
                arrays = self._read(archive, stop - start, like)
                found = Block(arrays, archive.text("about"))
        except InputError as error:
            self.warnings.append(f"{error}; the block was computed again")
            return None
        self.reused += 1
        return found

    def save(
        self,
        stage: str,
        start: int,
        stop: int,
        arrays: Sequence[NDArray[Any] | None],
        about: str = "",
    ) -> None:
        """Keep the arrays of a block, and what else is to be known about it."""
        members = {str(at): one for at, one in enumerate(arrays)}
        with _writing(self.folder):
            part = self.folder / f".part-{secrets.token_hex(8)}"
            with part.open("xb") as stream:
                write_rows(stream, self.run, about, members)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(self._path(stage, start, stop))
        self.saved += 1

    def drop(self, stage: str) -> None:
        """Remove the blocks of a stage whose result is kept as a whole."""
        for path in _blocks(self.folder):
            if path.name.startswith(f"{stage}-"):
                path.unlink()

    def _path(self, stage: str, start: int, stop: int) -> Path:
        return self.folder / f"{stage}-{start}-{stop}.npz"

    def _read(
        self, archive: Any, rows: int, like: Sequence[NDArray[Any] | None]
    ) -> list[NDArray[Any] | None]:
        if run_of(archive) != self.run:
            raise InputError(f"{archive.name}: belongs to another run")
        return [
            None
            if one is None
            else read_rows(archive, str(at), (rows, *one.shape[1:]), one.dtype)
            for at, one in enumerate(like)
        ]


@contextlib.contextmanager
def open_checkpoint(folder: Path, facts: dict[str, Any]) -> Iterator[Checkpoint]:
    """Open a checkpoint, or begin one in a directory that is new or empty.

    The facts are all that determines the blocks, as plain JSON values.

    Raises
    ------
    InputError
        Where the directory is no checkpoint, or one of another input, other
        parameters or another version.
    ResourceError
        Where another run has it.
    """
    with _writing(folder):
        folder.mkdir(exist_ok=True)
        strange = [one.name for one in folder.iterdir() if not _is_ours(one)]
        if strange:
            raise InputError(
                f"{folder}: is no checkpoint, since it holds {strange[0]!r}; name a "
                "directory that is new or empty"
            )
        lock = (folder / _LOCK).open("a+")
    with lock:
        warnings = _locked(lock, folder)
        with _writing(folder):
            for path in folder.iterdir():
                if _PART.fullmatch(path.name):
                    path.unlink()
            _check(folder / _FACTS, facts)
        yield Checkpoint(folder, fingerprint(facts), warnings=warnings)


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint whose result is safe; other files are left alone.

    One that another run has begun to use is left to that run.
    """
    with _writing(folder), (folder / _LOCK).open("a+") as lock:
        try:
            _locked(lock, folder)
        except ResourceError:
            return
        for path in [*_blocks(folder), folder / _FACTS, folder / _LOCK]:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody put something else there
            folder.rmdir()


def _blocks(folder: Path) -> list[Path]:
    return [one for one in folder.iterdir() if _BLOCK.fullmatch(one.name)]


def _is_ours(path: Path) -> bool:
    name = path.name
    known = _BLOCK.fullmatch(name) or _PART.fullmatch(name)
    return bool(known) or name in {_FACTS, _LOCK}


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{folder}: the checkpoint cannot be written: {error.strerror}"
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
        part = path.with_name(f".part-{secrets.token_hex(8)}")
        part.write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")
        part.replace(path)
        return
    try:
        known = json.loads(path.read_text())
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise InputError(f"{path}: is damaged; remove the directory to begin anew")
    key, before, now = difference(known, facts)
    if key:
        raise InputError(
            f"{path.parent}: this checkpoint is of another run: {key} was {before}, "
            f"now it is {now}; name another directory, or remove this one"
        )
