"""Worker processes on this machine, each at the end of a pipe of its own.

Unlike in `concurrent.futures.ProcessPoolExecutor` there is no queue that workers share:
no lock that a dying worker could hold, no semaphore that could outlive the run, and all
workers can be killed at once, whatever they are doing.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
import types
from collections import deque
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.runtime.arrays import (
    SHORT,
    Keeper,
    make_held,
    scratch_folder,
    shared_with,
)
from nnkgraph.runtime.executors import Executor, FilePool, Pool, forget_maps
from nnkgraph.runtime.limits import files_left, processes_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

_LONGEST_PATH = 70
"""Bytes of a directory's path: that of a socket in it must stay below 104."""

_TASKS_PER_WORKER = 2
"""Tasks sent to a worker: one to do, and the next, so that it never waits."""

_LONGEST_WAIT = 86_400.0
_START_ATTEMPTS = 3
_START_PAUSE = 0.2
"""Seconds between two attempts: until the system knows that a process is gone."""


class WorkerDied(BrokenExecutor):
    """A worker ended in the middle of its work."""


class WorkerTraceback(Exception):  # noqa: N818 - it is no error, but its place
    """The cause of an error that came from a worker: the traceback there."""

    def __str__(self) -> str:
        return f"in a worker:\n{self.args[0]}"


class _Worker:
    """One process, its pipe, and the tasks that were sent to it."""

    def __init__(self, context: Any, memory: int | None) -> None:
        resource_tracker.ensure_running()  # it would let signals in, further down
        own, theirs = context.Pipe()
        self.pipe: Connection[Any, Any] = own
        self.tasks: deque[Future[Any]] = deque()
        with theirs, without_main_script(), block_signals():
            task = {"target": _work, "args": (theirs, memory)}
            self.process = context.Process(**task, daemon=True)
            self.process.start()

    def send(self, future: Future[Any], task: tuple[Any, ...]) -> None:
        try:
            self.pipe.send(task)
        except OSError as error:
            raise WorkerDied(str(error)) from error
        self.tasks.append(future)

    def receive(self) -> None:
        """Take the result of the oldest task from the pipe."""
        try:
            trace, result = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(str(error)) from error
        except Exception as error:  # what came cannot be read
            trace, result = "while an answer was read", error
        future = self.tasks.popleft()
        if trace:
            result.__cause__ = WorkerTraceback(trace)
            future.set_exception(result)
        else:
            future.set_result(result)


class _ProcessPool(FilePool):
    """A fixed number of worker processes; once one of them dies, all tasks are lost."""

    # Results go to a file and not through a pipe: a worker that dies in the middle of a
    # long message would leave its reader waiting for ever.
    in_place = True
    returns = False
    block_factor = 1

    def __init__(
        self,
        workers: int,
        start: str,
        folder: str,
        block_timeout: float | None,
        memory: int | None,
    ) -> None:
        self.workers = self.threads = workers
        self.block_timeout = block_timeout
        self._context = multiprocessing.get_context(start)
        if start == "forkserver":
            # Imported once in the server, so that each worker starts at once.
            self._context.set_forkserver_preload(
                ["nnkgraph.methods.qp", "nnkgraph.data.pairs"]
            )
        super().__init__(folder)
        self._memory = memory
        self._processes: list[_Worker] = []
        self._waiting: deque[tuple[Future[Any], tuple[Any, ...]]] = deque()

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, (function, args)))
        self._send_tasks()
        return future

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        begin = time.monotonic()
        while not (done := {one for one in running if one.done()}):
            left = None
            if self.block_timeout is not None:
                left = self.block_timeout - (time.monotonic() - begin)
                if left <= 0:
                    break
            busy: dict[Any, _Worker] = {
                one.pipe: one for one in self._processes if one.tasks
            }
            # The system cannot wait for more than a few centuries at once.
            for pipe in wait(list(busy), left and min(left, _LONGEST_WAIT)):
                busy[pipe].receive()
            self._send_tasks()
        return done

    def revive(self) -> None:
        self.stop()
        self.start()

    def start(self) -> None:
        """Start all workers."""
        try:
            for _ in range(self.workers):
                self._processes.append(self._started())
        except (EOFError, OSError) as error:
            self.stop()
            raise ResourceError(
                f"worker processes cannot start ({str(error) or 'no answer'}); use "
                "`workers=1`, or raise the limit of processes and files"
            ) from error

    def stop(self) -> None:
        """End all workers at once, whatever they are doing."""
        for one in self._processes:
            one.process.kill()
        for one in self._processes:
            one.process.join()
            one.pipe.close()
            for future in one.tasks:
                future.cancel()
        for future, _ in self._waiting:
            future.cancel()
        self._processes.clear()
        self._waiting.clear()

    def _send_tasks(self) -> None:
        while self._waiting:
            worker = min(self._processes, key=lambda one: len(one.tasks))
            if len(worker.tasks) >= _TASKS_PER_WORKER:
                return
            worker.send(*self._waiting.popleft())

    def _started(self) -> _Worker:
        for _ in range(_START_ATTEMPTS - 1):
            # The process that starts others may have been killed; a new one comes.
            with suppress(EOFError, ConnectionError):
                return _Worker(self._context, self._memory)
            time.sleep(_START_PAUSE)
        return _Worker(self._context, self._memory)


def _work(pipe: Connection[Any, Any], memory: int | None) -> None:
    """Do tasks until there is nobody left who asks for them."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a user's kernel prints must not get into the output
    threadpool_limits(limits=1)
    # A worker starts no processes. Numba's parallel code would else make a lock for
    # them, a semaphore that outlives a worker that is killed.
    multiprocessing.set_start_method("spawn", force=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if memory is not None:
        Keeper(memory)
    while True:
        try:
            function, args = pipe.recv()
        except (EOFError, OSError):
            os._exit(1)
        try:
            answer = ForkingPickler.dumps(("", function(*args)))
        except Exception as error:
            answer = _pickled(error, traceback.format_exc())
        try:
            pipe.send_bytes(answer)
        except OSError:
            os._exit(1)


def _pickled(error: Exception, trace: str) -> Any:
    """Return an error as bytes; as text where it could not be read again."""
    try:
        pickled = ForkingPickler.dumps((trace, error))
        ForkingPickler.loads(pickled)
    except Exception:
        told = RuntimeError(f"{type(error).__name__}: {error}")
        pickled = ForkingPickler.dumps((trace, told))
    return pickled


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
def without_main_script() -> Iterator[None]:
    """Keep processes that start meanwhile from running the caller's script again.

    Python does that so that functions of the script can be sent to workers; ours are
    in modules. Scripts then need no ``if __name__ == "__main__"`` to use workers.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Keep BLAS in processes that start meanwhile to one thread."""
    old = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in old.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _set_socket_folder(folder: str) -> None:
    """Give Python's fork server a directory that is found again if we are killed.

    It lives as long as this process, which may open many pools.
    """
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None:
        parent, name = os.path.split(folder)
        if len(os.fsencode(folder)) > _LONGEST_PATH:
            parent = SHORT
        sockets = Path(parent, f"{name}-{secrets.token_hex(4)}")
        # Before it is there: a signal may come in between.
        atexit.register(shutil.rmtree, sockets, ignore_errors=True)
        with suppress(OSError):  # then Python makes one
            make_held(str(sockets))
            config["tempdir"] = str(sockets)


def check_limits(workers: int, *, processes: int, files: int) -> None:
    """Refuse workers that the user's limits do not allow.

    Processes that are started for us would fail with tracebacks of their own.
    """
    for what, left, needed, option in (
        ("processes and threads", processes_left(), processes, "-u"),
        ("open files", files_left(), files, "-n"),
    ):
        if left is not None and left < needed:
            raise ResourceError(
                f"{workers} workers need {needed} {what}, and {left} are left "
                f"(ulimit {option}); use `workers=1`, or raise the limit"
            )


@dataclass(frozen=True)
class Processes:
    """Worker processes that map their input read-only; the default."""

    in_process: ClassVar[bool] = False
    attached: ClassVar[bool] = False

    start: str = "auto"
    """How Python starts them: ``forkserver``, ``spawn``, or what suits the system."""

    def __post_init__(self) -> None:
        if self.start not in {"auto", "forkserver", "spawn"}:
            raise ParameterError(
                "processes: start must be auto, forkserver or spawn, not "
                f"{self.start!r}"
            )

    @contextmanager
    def open(
        self,
        workers: int,
        /,
        *,
        block_timeout: float | None = None,
        shared_dir: str | None = None,
    ) -> Iterator[Pool]:
        """Start a pool; its workers and files are gone when the context ends."""
        del shared_dir  # this machine sees all of its files
        check_limits(workers, processes=3 + 2 * workers, files=12 + 5 * workers)
        with (
            scratch_folder() as folder,
            _one_thread_each(),
            shared_with(workers) as memory,
        ):
            _set_socket_folder(folder)
            start = self.start
            if start == "auto":  # libraries of macOS do not survive a fork
                start = "spawn" if sys.platform == "darwin" else "forkserver"
            pool = _ProcessPool(workers, start, folder, block_timeout, memory)
            try:
                pool.start()
                yield pool
            finally:
                pool.stop()
                forget_maps()


plugin: type[Executor] = Processes
