"""Worker processes on this machine."""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import platform
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.executors import Mapped, forget_maps
from nnkgraph.executors._crew import Crew
from nnkgraph.resources import files_left, processes_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
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

_CHUNK = 1 << 20
_SHORT = "/tmp"  # noqa: S108 - made with a random name
_LONGEST = 70
"""Bytes of a folder's path: that of a socket in it must stay below 108."""


class _ProcessPool:
    def __init__(
        self, workers: int, start: str, folder: str, patience: float | None
    ) -> None:
        self.workers = self.threads = workers
        self.patience = patience
        self._context = multiprocessing.get_context(start)
        if start == "forkserver":
            # Imported once in the server, so that each worker starts at once.
            self._context.set_forkserver_preload(["nnkgraph.qp", "nnkgraph.pairs"])
        self._folder = folder
        self._files = 0
        self._crew = Crew(self._context, workers)

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
            _reserve(file, size)
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
                f"({error.strerror or error}); set TMPDIR to a directory with room"
            ) from error

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._crew.submit(function, *args)

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        last = time.monotonic()
        while not (done := {one for one in running if one.done()}):
            left = None
            if self.patience is not None:
                left = self.patience - (time.monotonic() - last)
                if left <= 0:
                    break
            self._crew.wait(left)
        return done

    def revive(self) -> None:
        self.stop()
        self._crew = Crew(self._context, self.workers)

    def stop(self) -> None:
        """End all workers at once, whatever they are doing."""
        self._crew.stop()


def _reserve(file: BinaryIO, size: int) -> None:
    """Take room on the disk, by writing it where the system has no other way."""
    try:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
    except AttributeError:  # macOS
        file.writelines(
            bytes(min(_CHUNK, size - start)) for start in range(0, size, _CHUNK)
        )


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
        for parent in {tempfile.gettempdir(), _SHORT}:
            _remove_orphans(Path(parent), mine)
        folder = tempfile.mkdtemp(prefix=f"{mine}{os.getpid()}-")
        _keep_sockets_beside(folder)
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


def _keep_sockets_beside(folder: str) -> None:
    """Give Python's fork server a folder that is found again if we are killed.

    It lives as long as this process, which may open many pools.
    """
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None:
        parent, name = os.path.split(folder)
        if len(os.fsencode(folder)) > _LONGEST:
            parent = _SHORT
        with suppress(OSError):  # then Python makes one
            sockets = tempfile.mkdtemp(prefix=f"{name}-", dir=parent)
            config["tempdir"] = sockets
            atexit.register(shutil.rmtree, sockets, ignore_errors=True)


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
    def open(self, workers: int, /, *, patience: float | None = None) -> Iterator[Pool]:
        """Start a pool; its workers and files are gone when the context ends."""
        # Processes that Python starts for us would fail with tracebacks of their own.
        for what, left, needed, option in (
            ("processes and threads", processes_left(), 3 + 2 * workers, "-u"),
            ("open files", files_left(), 12 + 5 * workers, "-n"),
        ):
            if left is not None and left < needed:
                raise ResourceError(
                    f"{workers} workers need {needed} {what}, and {left} are left "
                    f"(ulimit {option}); use -j 1, or raise the limit"
                )
        with _scratch() as folder, _one_thread_each():
            pool = _ProcessPool(workers, self.start, folder, patience)
            try:
                yield pool
            finally:
                pool.stop()


plugin: type[Executor] = Processes
