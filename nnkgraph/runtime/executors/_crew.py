"""Worker processes, each at the end of a pipe of its own.

There is no queue that they share: no lock that a dying worker could hold, no semaphore
that could outlive the run, and it is known which worker has which task.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections import deque
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ResourceError
from nnkgraph.runtime.arrays import Keeper, new_file, reserve
from nnkgraph.runtime.executors import Mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext

    from numpy.typing import NDArray


class Files:
    """The arrays of one pool: those that are files already, and new ones."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = 0

    def share(self, array: NDArray[Any], /) -> Mapped:
        """Return a handle on an array; it is written where it is no file yet."""
        return mapped_file(array) or self.write(array)

    def write(self, array: NDArray[Any]) -> Mapped:
        """Write an array into a file."""
        with new_file(self._folder, self._name(), array.nbytes) as file:
            np.ascontiguousarray(array).tofile(file)
        return Mapped(file.name, array.dtype.str, 0, array.shape)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Mapped:
        """Return a new array that can be written to, with its room reserved."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with new_file(self._folder, self._name(), size) as file:
            reserve(file, size)
        return Mapped(file.name, np.dtype(dtype).str, 0, shape, writable=True)

    def owns(self, path: str) -> bool:
        """Return whether a file is one of these."""
        return os.path.dirname(path) == self._folder  # noqa: PTH120

    def _name(self) -> str:
        self._count += 1
        return f"{self._count}.bin"


def mapped_file(array: NDArray[Any]) -> Mapped | None:
    """Return a handle on an array that is mapped from a file as it is."""
    if not (isinstance(array, np.memmap) and array.flags.c_contiguous):
        return None
    whole = array.base is None or not isinstance(array.base, np.memmap)
    if not (whole and array.filename is not None and Path(array.filename).is_file()):
        return None
    path = str(Path(array.filename).absolute())
    return Mapped(path, array.dtype.str, array.offset, array.shape)


_AHEAD = 2
"""Tasks in the hands of a worker: one to do, and the next, so that it never waits."""

_TRIES = 3
"""How often it is tried to start a worker."""


_PAUSE = 0.2
"""Seconds between two tries: until the system knows that a process is gone."""


class WorkerDied(BrokenExecutor):
    """A worker ended in the middle of its work."""


class InWorker(Exception):  # noqa: N818 - it is no error, but its place
    """The traceback of an error in the worker that it came from."""

    def __str__(self) -> str:
        return f"in a worker:\n{self.args[0]}"


class _Worker:
    def __init__(self, context: BaseContext, room: int | None) -> None:
        own, theirs = context.Pipe()
        self.pipe: Connection[Any, Any] = own
        self.tasks: deque[Future[Any]] = deque()
        with theirs, hidden_main(), block_signals():
            process: Any = context.Process  # type: ignore[attr-defined]
            self.process = process(target=_work, args=(theirs, room), daemon=True)
            self.process.start()

    def take(self, future: Future[Any], task: tuple[Any, ...]) -> None:
        try:
            self.pipe.send(task)
        except OSError as error:
            raise WorkerDied(str(error)) from error
        self.tasks.append(future)

    def deliver(self) -> None:
        """Take one result from the pipe."""
        try:
            trace, result = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(str(error)) from error
        except Exception as error:  # what came cannot be read
            trace, result = "while an answer was read", error
        future = self.tasks.popleft()
        if trace:
            result.__cause__ = InWorker(trace)
            future.set_exception(result)
        else:
            future.set_result(result)


class Crew:
    """A fixed number of workers; once one of them dies, all tasks are lost."""

    def __init__(
        self, context: BaseContext, workers: int, room: int | None = None
    ) -> None:
        self._workers: list[_Worker] = []
        self._waiting: deque[tuple[Future[Any], tuple[Any, ...]]] = deque()
        self._context = context
        self._room = room
        for _ in range(workers):
            self._workers.append(self._started())

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Give a task to a worker that has time, or keep it until one has."""
        future: Future[Any] = Future()
        self._waiting.append((future, (function, args)))
        self._hand_out()
        return future

    def wait(self, timeout: float | None) -> None:
        """Wait until some task is done; less long where nothing is to be done."""
        busy: dict[Any, _Worker] = {one.pipe: one for one in self._workers if one.tasks}
        for pipe in wait(list(busy), timeout):
            busy[pipe].deliver()
        self._hand_out()

    def stop(self) -> None:
        """End all workers at once, whatever they are doing."""
        for one in self._workers:
            one.process.kill()
        for one in self._workers:
            one.process.join()
            one.pipe.close()
            for future in one.tasks:
                future.cancel()
        for future, _ in self._waiting:
            future.cancel()
        self._workers.clear()
        self._waiting.clear()

    def _hand_out(self) -> None:
        while self._waiting:
            worker = min(self._workers, key=lambda one: len(one.tasks))
            if len(worker.tasks) >= _AHEAD:
                return
            worker.take(*self._waiting.popleft())

    def _started(self) -> _Worker:
        for _ in range(_TRIES - 1):
            # The process that starts others may have been killed; a new one comes.
            with suppress(EOFError, ConnectionError):
                return _Worker(self._context, self._room)
            time.sleep(_PAUSE)
        try:
            return _Worker(self._context, self._room)
        except (EOFError, OSError) as error:
            self.stop()
            raise ResourceError(
                f"worker processes cannot start ({str(error) or 'no answer'}); use "
                "`workers=1`, or raise the limit of processes and files"
            ) from error


def _work(pipe: Connection[Any, Any], room: int | None) -> None:
    """Do tasks until there is nobody left who asks for them."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a user's kernel prints must not get into the output
    threadpool_limits(limits=1)
    # A worker starts no processes. Numba's parallel code would else make a lock for
    # them, a semaphore that outlives a worker that is killed.
    multiprocessing.set_start_method("spawn", force=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if room is not None:
        Keeper(room)
    while True:
        try:
            function, args = pipe.recv()
        except (EOFError, OSError):
            os._exit(1)
        try:
            answer = ForkingPickler.dumps(("", function(*args)))
        except Exception as error:
            answer = _packed(error, traceback.format_exc())
        try:
            pipe.send_bytes(answer)
        except OSError:
            os._exit(1)


def _packed(error: Exception, trace: str) -> Any:
    """Return an error as bytes; as text where it could not be read again."""
    try:
        packed = ForkingPickler.dumps((trace, error))
        ForkingPickler.loads(packed)
    except Exception:
        told = RuntimeError(f"{type(error).__name__}: {error}")
        packed = ForkingPickler.dumps((trace, told))
    return packed


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def block_signals() -> Iterator[None]:
    """Keep signals meant for the parent from the processes that start meanwhile.

    A terminal sends Ctrl-C to all of them; the parent ends them in good order.
    """
    old = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGUSR1}
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


@contextmanager
def hidden_main() -> Iterator[None]:
    """Keep new processes from running the caller's script again.

    Python does that so that functions of the script can be sent to workers; ours are
    in modules. Scripts then need no ``if __name__ == "__main__"`` to use workers.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
