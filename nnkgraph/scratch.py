"""Temporary files of a run: a folder that ends with it, or is removed by the next."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from nnkgraph.errors import ResourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

SHORT = "/tmp"  # noqa: S108 - names in it are random
_CHUNK = 1 << 20
_OWN = re.compile(r"(\d+)-[a-z0-9_]{8}(-[a-z0-9_]{8})?")
"""The number of a process, and what makes its folders' names their own."""


@contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[str]:
    """Make a folder for temporary files, and remove it in the end.

    Parameters
    ----------
    parent : str, optional
        Where to make it; by default where TMPDIR says.
    """
    mine = f"nnkgraph-{platform.node()}-"
    place = parent or tempfile.gettempdir()
    try:
        for one in {place, SHORT}:
            _remove_orphans(Path(one), mine)
        folder = tempfile.mkdtemp(prefix=f"{mine}{os.getpid()}-", dir=place)
    except OSError as error:
        advice = "name another" if parent else "set TMPDIR to a directory with room"
        raise ResourceError(
            f"no temporary directory can be made in {place} ({error.strerror}); "
            f"{advice}"
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_file(folder: str, name: str, size: int) -> AbstractContextManager[BinaryIO]:
    """Open a new file; one that cannot be written is a lack of room."""
    return _opened(folder, name, "xb", size)


def longer_file(path: str, size: int) -> AbstractContextManager[BinaryIO]:
    """Open a file that gets longer by so many bytes."""
    folder, name = os.path.split(path)
    return _opened(folder, name, "ab", size)


@contextmanager
def _opened(
    folder: str, name: str, mode: Literal["xb", "ab"], size: int
) -> Iterator[BinaryIO]:
    try:
        with Path(folder, name).open(mode) as file:
            yield file
    except OSError as error:
        raise ResourceError(
            f"{folder}: cannot write {size} bytes of temporary files "
            f"({error.strerror or error}); set TMPDIR to a directory with room"
        ) from error


def reserve(file: BinaryIO, size: int) -> None:
    """Take room on the disk, by writing it where the system has no other way.

    A full disk would otherwise be a bus error for who writes to the mapped file.
    """
    try:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
    except AttributeError:  # macOS
        file.writelines(
            bytes(min(_CHUNK, size - start)) for start in range(0, size, _CHUNK)
        )


def free_scratch() -> int:
    """Return the bytes that temporary files could still take."""
    try:
        return shutil.disk_usage(tempfile.gettempdir()).free
    except OSError:
        return 0


def _remove_orphans(parent: Path, prefix: str) -> None:
    """Remove folders of runs on this machine that were killed."""
    for folder in parent.glob(f"{prefix}*"):
        # The name of another machine may begin with this one's.
        own = _OWN.fullmatch(folder.name.removeprefix(prefix))
        if own and not Path("/proc", own[1]).exists() and Path("/proc/1").exists():
            shutil.rmtree(folder, ignore_errors=True)
