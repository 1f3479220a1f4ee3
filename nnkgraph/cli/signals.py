"""Signals that ask a run to end: heard anywhere, acted upon where that is safe.

An exception that is raised inside a callback of the compiler, or while an object is
taken apart, is lost, or comes back as another one; between two steps of LLVM it can
even leave memory that is freed twice. So the handler remembers the signal and looks
where it is. From a bad place it has the nearest good caller traced, and for as long as
nobody cleans up a timer brings it back. Whatever a run ends with after a signal, its
exit code is the signal's.
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
    """Raise, here or in a caller, unless others clean up already."""
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    if not _first or _cleaning_up():
        return
    safe = _safe_frame(frame)
    if safe is frame:
        raise Stopped
    if safe is not None:
        safe.f_trace = _raise
        sys.settrace(lambda *_: None)


def _raise(frame: FrameType, _event: str, _arg: object) -> Any:
    """Raise when a traced frame goes on."""
    if _cleaning_up():
        return _raise
    sys.settrace(None)
    frame.f_trace = None
    raise Stopped


def _cleaning_up() -> bool:
    error = sys.exception()
    while error is not None and not isinstance(error, Stopped):
        error = error.__cause__ or error.__context__
    return error is not None


def _safe_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame, or the nearest caller's, where an exception does no harm.

    That is outside of the compiler, or between two of its passes.
    """
    known = (sys.modules.get(name) for name in ("numba", "llvmlite"))
    compiler = tuple(f"{one.__path__[0]}/" for one in known if one is not None)
    safe = frame
    while frame is not None:
        code = frame.f_code
        name, file = code.co_name, code.co_filename
        if name == "run" and file.endswith("numba/core/compiler_machinery.py"):
            return safe or frame
        if file.startswith(compiler) or name == "__del__" or "weakref" in file:
            safe = None
        elif safe is None:
            safe = frame
        frame = frame.f_back
    return safe


def _unraisable(lost: Any) -> None:
    """Be silent about what breaks on the way to the end."""
    if not _first:
        sys.__unraisablehook__(lost)
