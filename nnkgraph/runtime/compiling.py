"""What is being compiled: said once, noted for those who count."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.runtime.cache import Cache, settle_cpu

if TYPE_CHECKING:
    from collections.abc import Callable

settle_cpu()

import numba.core.event  # noqa: E402 - it reads then what to compile for

LOG = "_NNKGRAPH_COMPILED"
"""The environment variable with a file that names all functions that are compiled."""

STOP = "_NNKGRAPH_STOP"
"""The environment variable with an exit code for a process that has to compile."""


class _Listener(numba.core.event.Listener):  # type: ignore[misc]
    """Hears of every function that is not found in the cache."""

    tell: Callable[[str], object] | None = None
    told: bool = False

    def on_start(self, event: Any) -> None:
        """Say it, of the first function only; note it, where that is wanted."""
        if self.tell is not None and not self.told:
            self.told = True
            self.tell("compiling what runs for the first time: some seconds")
        if log := os.environ.get(LOG):
            function = event.data["dispatcher"].py_func
            with Path(log).open("a") as stream:
                stream.write(f"{function.__module__}.{function.__qualname__}\n")
        if code := os.environ.get(STOP):
            os._exit(int(code))

    def on_end(self, event: Any) -> None:
        """Let other processes try what has failed here."""
        dispatcher = event.data["dispatcher"]
        failed = tuple(event.data["args"]) not in dispatcher.overloads
        if failed and isinstance(dispatcher._cache, Cache):
            dispatcher._cache.release()


listener = _Listener()


def listen() -> None:
    """Hear of every function that is compiled from now on."""
    numba.core.event.register("numba:compile", listener)


def announce(tell: Callable[[str], object]) -> None:
    """Have it told, once in a process, that there is code to be compiled."""
    listener.tell = tell
