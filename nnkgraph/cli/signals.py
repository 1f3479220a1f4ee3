"""Signals that ask a run to end: heard anywhere, acted upon where that is safe.

An exception that is raised inside a callback of the compiler, or while an object is
taken apart, is lost, or comes back as another one. So the handler remembers the signal
and looks where it is; from a bad place, and for as long as nobody cleans up, a timer
brings it back. Whatever a run ends with after a signal, its exit code is the signal's.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_AGAIN = 0.05
"""Seconds until the next try."""

_first: list[int] = []
"""The first signal that came, if any."""


class Stopped(BaseException):
    """A signal asked the process to end; passes every ``except Exception``."""


def install() -> None:
    """Turn signals into exceptions, but those that the caller had ignored (nohup)."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)
    signal.signal(signal.SIGALRM, _act)
    sys.unraisablehook = _unraisable


def received() -> bool:
    """Return whether a signal has come."""
    return bool(_first)


def outcome() -> tuple[str, int]:
    """Return what to say of the signal, and the exit code."""
    if _first[0] == signal.SIGINT:
        return "interrupted", 130
    return f"stopped by {signal.Signals(_first[0]).name}", 143


def end() -> None:
    """Hear nothing more: what is left to do is short."""
    for number in (*_ENDING, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _hear(number: int, frame: FrameType | None) -> None:
    _first.append(number)
    # A second Ctrl-C ends the process at once, and its workers end with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _act(number, frame)


def _act(_number: int, frame: FrameType | None) -> None:
    """Raise; not where it would be lost, and not again while others clean up."""
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    if _first and not _cleaning_up() and not _within_callback(frame):
        raise Stopped


def _cleaning_up() -> bool:
    error = sys.exception()
    while error is not None and not isinstance(error, Stopped):
        error = error.__cause__ or error.__context__
    return error is not None


def _within_callback(frame: FrameType | None) -> bool:
    """Return whether Python was called from where no exception gets out."""
    while frame is not None:
        code, caller = frame.f_code, frame.f_back
        if code.co_name == "__del__" or code.co_filename.endswith("weakref.py"):
            return True
        if caller and caller.f_code.co_filename.endswith("llvmlite/binding/ffi.py"):
            return True
        frame = caller
    return False


def _unraisable(lost: Any) -> None:
    """Be silent about what breaks on the way to the end."""
    if not _first:
        sys.__unraisablehook__(lost)
