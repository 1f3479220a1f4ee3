"""Worker processes on this machine."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.runtime.arrays import SHORT, scratch_folder, shared_with
from nnkgraph.runtime.executors import forget_maps
from nnkgraph.runtime.executors._crew import Crew, Files
from nnkgraph.runtime.limits import files_left, processes_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from nnkgraph.runtime.executors import Executor, Mapped, Pool

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

_LONGEST = 70
"""Bytes of a folder's path: that of a socket in it must stay below 108."""


class _ProcessPool:
    in_place = True
    stretch = 1

    def __init__(
        self,
        workers: int,
        start: str,
        folder: str,
        block_timeout: float | None,
        room: int | None,
    ) -> None:
        self.workers = self.threads = workers
        self.block_timeout = block_timeout
        self._context = multiprocessing.get_context(start)
        if start == "forkserver":
            # Imported once in the server, so that each worker starts at once.
            self._context.set_forkserver_preload(
                ["nnkgraph.methods.qp", "nnkgraph.data.pairs"]
            )
        self._files = Files(folder)
        self._room = room
        self._crew = Crew(self._context, workers, room)

    def share(self, array: NDArray[Any], /) -> Mapped:
        return self._files.share(array)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Mapped:
        # Results go to a file and not through a pipe: a worker that dies in the middle
        # of a long message would leave its reader waiting for ever.
        return self._files.output(shape, dtype)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._crew.submit(function, *args)

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        last = time.monotonic()
        while not (done := {one for one in running if one.done()}):
            left = None
            if self.block_timeout is not None:
                left = self.block_timeout - (time.monotonic() - last)
                if left <= 0:
                    break
            self._crew.wait(left)
        return done

    def revive(self) -> None:
        self.stop()
        self._crew = Crew(self._context, self.workers, self._room)

    def stop(self) -> None:
        """End all workers at once, whatever they are doing."""
        self._crew.stop()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Keep BLAS in processes that start meanwhile to one thread."""
    old = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _files() -> Iterator[str]:
    """Make a folder for the workers' files, and remove it in the end."""
    with scratch_folder() as folder:
        _keep_sockets_beside(folder)
        try:
            yield folder
        finally:
            forget_maps()


def _keep_sockets_beside(folder: str) -> None:
    """Give Python's fork server a folder that is found again if we are killed.

    It lives as long as this process, which may open many pools.
    """
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None:
        parent, name = os.path.split(folder)
        if len(os.fsencode(folder)) > _LONGEST:
            parent = SHORT
        with suppress(OSError):  # then Python makes one
            sockets = tempfile.mkdtemp(prefix=f"{name}-", dir=parent)
            config["tempdir"] = sockets
            atexit.register(shutil.rmtree, sockets, ignore_errors=True)


@dataclass(frozen=True)
class Processes:
    """Worker processes that map their input read-only; the default."""

    in_process: ClassVar[bool] = False
    attached: ClassVar[bool] = False

    start: str = "forkserver"
    """How Python starts them: ``forkserver`` or ``spawn``."""

    def __post_init__(self) -> None:
        if self.start not in {"forkserver", "spawn"}:
            raise ParameterError(
                f"processes: start must be forkserver or spawn, not {self.start!r}"
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
        # Processes that Python starts for us would fail with tracebacks of their own.
        for what, left, needed, option in (
            ("processes and threads", processes_left(), 3 + 2 * workers, "-u"),
            ("open files", files_left(), 12 + 5 * workers, "-n"),
        ):
            if left is not None and left < needed:
                raise ResourceError(
                    f"{workers} workers need {needed} {what}, and {left} are left "
                    f"(ulimit {option}); use `workers=1`, or raise the limit"
                )
        with (
            _files() as folder,
            _one_thread_each(),
            shared_with(workers) as room,
        ):
            pool = _ProcessPool(workers, self.start, folder, block_timeout, room)
            try:
                yield pool
            finally:
                pool.stop()


plugin: type[Executor] = Processes
