"""Worker processes on this machine."""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import types
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.executors import Mapped, forget_maps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from nnkgraph.executors import Executor, Pool

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def _start_worker() -> None:
    """Prepare a worker: one BLAS thread, deaf to Ctrl-C, gone with its parent."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(limits=1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _ProcessPool:
    def __init__(self, workers: int, start: str, folder: str) -> None:
        self.workers = self.threads = workers
        self._context = multiprocessing.get_context(start)
        if start == "forkserver":
            # Imported once in the server, so that each worker starts at once.
            self._context.set_forkserver_preload(["nnkgraph.qp", "nnkgraph.pairs"])
        self._folder = folder
        self._files = 0
        self._executor = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.workers, mp_context=self._context, initializer=_start_worker
        )

    def share(self, array: NDArray[Any], /) -> Mapped:
        if isinstance(array, np.memmap) and array.flags.c_contiguous:
            whole = array.base is None or not isinstance(array.base, np.memmap)
            if whole and array.filename is not None and Path(array.filename).is_file():
                path = str(Path(array.filename).absolute())
                return Mapped(path, array.dtype.str, array.offset, array.shape)
        with self._new_file(array.nbytes) as file:
            np.ascontiguousarray(array).tofile(file)
        return Mapped(file.name, array.dtype.str, 0, array.shape)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Mapped:
        # Results go to a file and not through a pipe: a worker that dies in the middle
        # of a long message would leave its reader waiting for ever. Space is reserved,
        # because a full disk would otherwise be a bus error in a worker.
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with self._new_file(size) as file:
            if size:
                os.posix_fallocate(file.fileno(), 0, size)
        return Mapped(file.name, np.dtype(dtype).str, 0, shape, writable=True)

    @contextmanager
    def _new_file(self, size: int) -> Iterator[BinaryIO]:
        self._files += 1
        try:
            with Path(self._folder, f"{self._files}.bin").open("xb") as file:
                yield file
        except OSError as error:
            raise ResourceError(
                f"{self._folder}: cannot write {size} bytes for the workers "
                f"({error.strerror}); set TMPDIR to a directory with room"
            ) from error

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        with _hidden_main(), _deaf():  # the executor starts its processes here
            return self._executor.submit(function, *args)

    def revive(self) -> None:
        self.stop()
        self._executor = self._new()

    def stop(self) -> None:
        """End all workers at once, whatever they are doing."""
        own: Any = self._executor
        workers = list((own._processes or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()


@contextmanager
def _deaf() -> Iterator[None]:
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
def _hidden_main() -> Iterator[None]:
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
def _scratch() -> Iterator[str]:
    """Make a folder for the workers' files, and remove it in the end."""
    mine = f"nnkgraph-{platform.node()}-"
    try:
        _remove_orphans(Path(tempfile.gettempdir()), mine)
        folder = tempfile.mkdtemp(prefix=f"{mine}{os.getpid()}-")
    except OSError as error:
        raise ResourceError(
            f"no temporary directory can be made ({error.strerror}); set TMPDIR to a "
            "directory with room"
        ) from error
    try:
        yield folder
    finally:
        forget_maps()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_orphans(parent: Path, prefix: str) -> None:
    """Remove folders of runs on this machine that were killed."""
    for folder in parent.glob(f"{prefix}*"):
        pid = folder.name.removeprefix(prefix).partition("-")[0]
        if (
            pid.isdigit()
            and not Path("/proc", pid).exists()
            and Path("/proc/1").exists()
        ):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Processes:
    """Worker processes that map their input read-only; the default."""

    in_process: ClassVar[bool] = False

    start: str = "forkserver"
    """How Python starts them: ``forkserver`` or ``spawn``."""

    def __post_init__(self) -> None:
        if self.start not in {"forkserver", "spawn"}:
            raise ParameterError(
                f"processes: start must be forkserver or spawn, not {self.start!r}"
            )

    @contextmanager
    def open(self, workers: int, /) -> Iterator[Pool]:
        """Start a pool; its workers and files are gone when the context ends."""
        with _scratch() as folder, _one_thread_each():
            pool = _ProcessPool(workers, self.start, folder)
            try:
                yield pool
            finally:
                pool.stop()


plugin: type[Executor] = Processes
