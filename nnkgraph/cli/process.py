"""How the process of a command begins and ends: signals, threads, last words."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from nnkgraph.cli import say

if TYPE_CHECKING:
    from types import FrameType


class Stopped(BaseException):
    """A signal asked the process to end; passes every ``except Exception``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def catch(number: signal.Signals) -> None:
    """Turn a signal into an exception, unless the caller had it ignored (nohup)."""

    def stop(received: int, _frame: FrameType | None) -> None:
        # Others that come now must not disturb the cleaning up; a second Ctrl-C ends
        # the process at once, and its workers end with it.
        for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(one, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise Stopped(received)

    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, stop)


def warn_of_cache() -> None:
    """Say that compiled code was not kept, where its directory was not safe."""
    compiled = sys.modules.get("nnkgraph.compiled")
    refused = getattr(compiled, "REFUSED", "")
    if refused:
        say.warning(
            f"{refused}: others could write to this directory, so it is not used and "
            "all is compiled again; remove it, or set NUMBA_CACHE_DIR to another"
        )


def flushed(code: int) -> int:
    """Flush what was printed; a reader that has gone away is no error to report."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            # What could not be written must not be tried again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = 141 if isinstance(error, BrokenPipeError) else code or 4
    return code
