"""Inputs that shrink while they are mapped: an error instead of a bus error.

A file that is cut while a program has it mapped takes its pages away; who then looks
at them is killed. Here lost pages become zeros, so that the code at work can go on,
and the run ends with an error at the next block of rows or stage.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nnkgraph import formats
from nnkgraph.errors import InputError, NnkGraphError, ResourceError

if TYPE_CHECKING:
    from nnkgraph.data import Features

_FIXED = 0x10  # MAP_FIXED, which Python does not name
_ADDRESS = 16  # where siginfo_t has the address, on 64-bit Linux
_SIGINFO = 4  # SA_SIGINFO
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """``struct sigaction`` of the C library."""

    _fields_ = (
        ("handler", _HANDLER),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_sizes: dict[str, int] = {}
_ranges: list[tuple[int, int]] = []
_lost: list[int] = []


def watch(spec: str) -> None:
    """Be ready for an input that shrinks, from before it is read."""
    path = formats.split_item(spec)[0]
    if path == "-" or not Path(path).is_file():
        return
    _sizes[path] = Path(path).stat().st_size
    if sys.platform == "linux" and sys.maxsize > 2**32:
        ctypes.CDLL(None).sigaction(signal.SIGBUS, ctypes.byref(_action), None)


def check() -> None:
    """Refuse to go on with an input that has shrunk."""
    error = _changed()
    if error:
        raise error


def check_pages() -> None:
    """Refuse to go on where pages were lost; cheap enough for every block."""
    if _lost:
        check()
        raise ResourceError(
            "memory that was mapped from a file is gone: its disk may be full"
        )


def remember(features: Features) -> None:
    """Note where the values are mapped, so that they are replaced in one go."""
    import numpy as np

    if isinstance(features.x, np.memmap):
        start = features.x.ctypes.data
        _ranges.append((start, start + features.x.nbytes))


def blamed(error: NnkGraphError) -> NnkGraphError:
    """Return the error that is behind one: an input that has changed, perhaps.

    Workers that lose pages die, and all that is known here is that they died.
    """
    return _changed() or error if isinstance(error, ResourceError) else error


def _changed() -> InputError | None:
    for path, size in _sizes.items():
        now = os.path.getsize(path) if os.path.exists(path) else size  # noqa: PTH110, PTH202
        if now < size:
            return InputError(f"{path}: the file became shorter while it was read")
    return None


def _replace(_number: int, info: int, _context: int) -> None:
    """Put zeros where pages are gone, and note it."""
    address = ctypes.c_uint64.from_address(info + _ADDRESS).value
    start = address - address % mmap.PAGESIZE
    ends = [stop for first, stop in _ranges if first <= address < stop]
    length = max([*ends, start + mmap.PAGESIZE]) - start
    _mmap(start, length, mmap.PROT_READ, _FLAGS, -1, 0)
    _lost.append(address)


_FLAGS = _FIXED | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_mmap = ctypes.CDLL(None).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_action = _Action(_HANDLER(_replace), flags=_SIGINFO)
