"""Inputs that are mapped into memory, and what happens when their file changes.

A file that becomes shorter takes mapped pages along, and reading those would end the
process. Here they become zeros, and the run ends with an error that names the file.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError, NnkGraphError, ResourceError

if TYPE_CHECKING:
    from nnkgraph.data import Features


@dataclass(frozen=True)
class _Input:
    """A matrix that is mapped; it counts for as long as somebody uses it."""

    features: weakref.ref[Features]
    name: str
    path: str
    identity: tuple[int, int, int]
    """Which file it is, how long, and when it was changed."""
    start: int
    stop: int


_inputs: list[_Input] = []
_lost: list[int] = []
"""Addresses whose pages were gone."""


def guard() -> None:
    """Be ready for an input that shrinks, from before it is read."""
    _lost.clear()
    _inputs[:] = [one for one in _inputs if one.features() is not None]
    if sys.platform == "linux" and sys.maxsize > 2**32:
        ctypes.CDLL(None).sigaction(signal.SIGBUS, ctypes.byref(_action), None)


def remember(features: Features) -> None:
    """Note where the values are mapped, and how long their file has to be."""
    import numpy as np

    x = features.x
    if isinstance(x, np.memmap) and x.filename is not None:
        path, start = os.fspath(x.filename), x.ctypes.data
        place = (_identity(path), start, start + x.nbytes)
        _inputs.append(_Input(weakref.ref(features), features.name, path, *place))


def check() -> None:
    """Refuse to go on with an input that has changed."""
    if error := _changed():
        raise error


def check_pages() -> None:
    """Refuse to go on where pages were lost; cheap enough for every block."""
    if _lost:
        check()
        raise ResourceError(
            "memory that was mapped from a file is gone: its disk may be full"
        )


def blamed(error: NnkGraphError) -> NnkGraphError:
    """Return the error that is behind one: an input that has changed, perhaps.

    Workers that lose pages die, and all that is known here is that they died.
    """
    return _changed() or error if isinstance(error, ResourceError) else error


def _identity(path: str) -> tuple[int, int, int]:
    found = os.stat(path)  # noqa: PTH116 - any string
    return found.st_ino, found.st_size, found.st_mtime_ns


def _changed() -> InputError | None:
    for one in list(_inputs):
        if one.features() is None:
            continue
        try:
            now = _identity(one.path)
        except OSError:
            continue  # Removed, which leaves what is mapped as it is.
        if now != one.identity:
            _inputs.remove(one)  # Said once: other inputs may go on.
            shorter = now[0] == one.identity[0] and now[1] < one.identity[1]
            what = "became shorter" if shorter else "was changed"
            return InputError(f"{one.name}: the file {what} while it was read")
    return None


def _replace(_number: int, info: int, _context: int) -> None:
    """Put zeros where pages are gone, and note it."""
    address = ctypes.c_uint64.from_address(info + _ADDRESS).value
    start = address - address % mmap.PAGESIZE
    ends = [one.stop for one in _inputs if one.start <= address < one.stop]
    length = max([*ends, start + mmap.PAGESIZE]) - start
    _mmap(start, length, mmap.PROT_READ, _FLAGS, -1, 0)
    _lost.append(address)


_ADDRESS = 16  # where siginfo_t has the address, on 64-bit Linux
_SIGINFO = 4  # SA_SIGINFO
_FLAGS = 0x10 | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # MAP_FIXED has no name in Python
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_mmap = ctypes.CDLL(None).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


class _Action(ctypes.Structure):
    """``struct sigaction`` of the C library."""

    _fields_ = (
        ("handler", _HANDLER),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_action = _Action(_HANDLER(_replace), flags=_SIGINFO)
