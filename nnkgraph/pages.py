"""Pages of mapped files: given back while a process works, so that few are in use.

A page that was looked at counts as memory of the process until it is given back; it
stays in the system's cache of files, which can drop it, and comes back when it is
looked at again. Nothing is lost: what was written goes to the file.
"""

from __future__ import annotations

import mmap
import resource
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np

_FASTEST = 4 << 30
"""Bytes in a second that a process could map: how soon to look again."""

_SHORTEST, _IDLE, _LONGEST = 0.002, 0.02, 1.0
"""Seconds between two looks: at least, where nothing moves, and at most."""

_PAGE = resource.getpagesize()

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_lock = threading.Lock()


def watch(array: Any) -> None:
    """Let pages of a mapped array be given back; other arrays are left alone."""
    if not isinstance(array, np.memmap) or array.mode not in {"r", "r+", "w+"}:
        return  # what was written into a private copy would be lost
    known = getattr(array, "_mmap", None)
    if isinstance(known, mmap.mmap):
        with _lock:
            _maps.add(known)


def give_back() -> None:
    """Give back all pages of watched arrays."""
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    with _lock:
        known = list(_maps)
    for one in known:
        try:
            one.madvise(mmap.MADV_DONTNEED)
        except (ValueError, OSError):  # closed since, or locked in memory
            continue


def _resident() -> tuple[int, int]:
    """Return the bytes of this process alone that are in use, and of mapped files."""
    try:
        words = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0, 0
    files = int(words[2])
    return (int(words[1]) - files) * _PAGE, files * _PAGE


class Keeper:
    """Keeps this process's memory below a target, as far as mapped files make it up.

    It looks the more often the less is left. Programs and libraries are mapped files
    as well: what of them is in use when it begins does not count.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self._libraries = self._files = _resident()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    @property
    def libraries(self) -> int:
        """Bytes of programs and libraries in use."""
        return self._libraries

    def stop(self) -> None:
        """Look no longer."""
        self._ended.set()
        self._thread.join()

    def look(self) -> float:
        """Give back pages where too many are in use; return seconds until next time."""
        own, files = _resident()
        self._files = files
        # However much else there is, some pages must stay for the work to go on.
        most = max(self.target - own, self.target // 8)
        mapped = files - self._libraries
        if mapped > most:
            give_back()
            self._libraries, mapped = _resident()[1], 0
        return min(_LONGEST, max(_SHORTEST, (most - mapped) / _FASTEST))

    def _keep(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            before = self._files
            soon = self.look()
            idle = self._files == before
            pause = max(soon, min(_IDLE, 2 * pause)) if idle else soon
