"""What runs on dask's workers: a look around, then our tasks, with good manners."""

from __future__ import annotations

import os
import platform
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph import __version__
from nnkgraph.errors import ResourceError
from nnkgraph.runtime.executors import forget_maps

if TYPE_CHECKING:
    from collections.abc import Callable

Versions = tuple[tuple[str, str], ...]
Place = tuple[str, int, int]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Terms:
    """What has to hold on a worker before it may work for us."""

    versions: Versions
    probe: str
    """A file in the folder of the arrays."""
    token: str
    """What is written in it."""
    place: Place | None
    """Where it is, as this machine sees it, if workers write into arrays themselves."""
    own: bool
    """Whether the worker is one of ours, so that it may not print to our stdout."""


@dataclass(frozen=True)
class Sight:
    """What a worker sees."""

    host: str
    versions: Versions
    token: str
    place: Place | None


def own_versions() -> Versions:
    """Return the versions that results, and what is sent, depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    packages = ((name, version(name)) for name in ("numpy", "numba", "scipy"))
    return ("nnkgraph", __version__), ("Python", python), *packages


def look(probe: str) -> Sight:
    """Say who one is, and whether one sees a file."""
    token, place = "", None
    with suppress(OSError, UnicodeDecodeError):
        token, place = Path(probe).read_text(encoding="ascii"), _place(probe)
    return Sight(platform.node(), own_versions(), token, place)


def stamp(path: str) -> tuple[int, int] | None:
    """Return what changes with a file's content, None where there is no file."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _place(path: str) -> Place:
    """Tell a file from any other: two machines have one place never in common.

    Only where all see a file in the same place, one sees at once what another writes
    into its map.
    """
    found = Path(path).stat()
    boot = _BOOT.read_text(encoding="ascii") if _BOOT.exists() else ""
    return f"{platform.node()} {boot.strip()}", found.st_dev, found.st_ino


def objection(terms: Terms, sight: Sight) -> str:
    """Return why a worker cannot work for us, or ""."""
    there = dict(sight.versions)
    for name, here in terms.versions:
        if there.get(name) != here:
            return (
                f"the dask worker on {sight.host} has {name} {there.get(name)}, and "
                f"this is {here}: install the same version there"
            )
    if sight.token != terms.token:
        folder = os.path.dirname(os.path.dirname(terms.probe))  # noqa: PTH120
        return (
            f"the dask worker on {sight.host} does not see {folder}: name a directory "
            "that all machines see, as in `executor='dask:...,folder=DIR'`"
        )
    if terms.place is not None and sight.place != terms.place:
        return f"the dask worker on {sight.host} came when work had begun elsewhere"
    return ""


def work(terms: Terms, function: Callable[..., Any], *args: Any) -> Any:
    """Do a task; a worker that came late is looked at first."""
    _agree(terms)
    with _one_thread:
        return function(*args)


@lru_cache(maxsize=8)
def _agree(terms: Terms) -> None:
    reason = objection(terms, look(terms.probe))
    if reason:
        raise ResourceError(reason)
    # A run before this one may have ended without a word: its files may be others now.
    forget_maps()
    if terms.own:
        os.dup2(2, 1)  # what a user's kernel prints must not get into the output


class _OneThread:
    """Keeps matrix products to one thread while at least one task is done.

    A worker may do several at once, in threads: the first begins, the last ends it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._tasks == 0:
                self._limits = _thread_pools().limit(limits=1)
            self._tasks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._tasks -= 1
            if self._tasks == 0:
                self._limits.restore_original_limits()


_one_thread = _OneThread()


@lru_cache(maxsize=1)
def _thread_pools() -> Any:
    """Find the libraries that have threads, once: it takes a while."""
    import scipy.linalg  # noqa: F401 - brings a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
