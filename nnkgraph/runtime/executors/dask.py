"""Workers of dask.distributed, on this machine or on many.

Tasks carry paths and row numbers, never features: workers map the files that all see.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import platform
import signal
import ssl
import time
import warnings
import weakref
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import nnkgraph
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.runtime import executors
from nnkgraph.runtime.arrays import (
    AnyArray,
    Keeper,
    scratch_folder,
    shared_with,
    temporary_place,
)
from nnkgraph.runtime.executors import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_CHECK_INTERVAL = 1.0
"""Seconds without a result after which it is asked whether any worker is left."""

_ANSWER_TIMEOUT, _CLOSE_TIMEOUT, _ABORT_TIMEOUT = 10.0, 10.0, 1.0
"""Seconds for an answer of the scheduler, and to close after a good or a bad end."""

_LARGEST_FILE = 1 << 20
"""Bytes of a scheduler file; they have a few hundred."""

_SCHEMES = {"tcp", "tls", "ucx", "ws", "wss"}

_LOCAL_CONFIG = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Keeps dask from watching itself many times a second, which takes time from work."""


@dataclass(frozen=True)
class _WorkerSetup:
    """What has to hold on a worker before it computes blocks of a run."""

    versions: tuple[tuple[str, str], ...]
    folder: str
    """The directory of the run's arrays."""
    local: bool
    """Whether the worker was started by this run."""
    memory: int | None
    """Bytes for each local worker."""
    folder_id: tuple[str, int, int] | None = None
    """That directory, where all workers are on one machine and write into arrays."""


def _versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that results, and what is sent, depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    packages = ((name, version(name)) for name in ("numpy", "numba", "scipy"))
    return ("nnkgraph", nnkgraph.__version__), ("Python", python), *packages


def _check_worker(setup: _WorkerSetup) -> tuple[str, int, int]:
    """Check versions and folder, on a worker; return machine, device and inode.

    Only where all see the same directory of the same machine, one sees at once what
    another writes into a map.
    """
    host, here = platform.node(), dict(_versions())
    for name, wanted in setup.versions:
        if here.get(name) != wanted:
            raise ResourceError(
                f"{host} has {name} {here.get(name)}, and this is {wanted}: install "
                "the same version there"
            )
    try:
        # Its name is random, so no other has it; other users may not look into it.
        status = os.stat(f"{setup.folder}/.")  # noqa: PTH116 - pathlib drops the dot
    except OSError as error:
        raise ResourceError(
            f"{host} does not see {Path(setup.folder).parent}: name a directory that "
            "all machines see, as in dask:...,folder=DIR"
        ) from error
    boot = Path("/proc/sys/kernel/random/boot_id")  # hosts may share a name
    machine = host + (boot.read_text() if boot.exists() else "")
    return machine, status.st_dev, status.st_ino


@lru_cache(maxsize=8)
def _prepare_worker(setup: _WorkerSetup) -> None:
    """Check a worker, which may have come late, and prepare it for its first task."""
    if setup.folder_id not in {None, _check_worker(setup)}:
        raise ResourceError(f"{platform.node()} came when work had begun elsewhere")
    # A run before this one may have been killed: its files may be others now.
    executors.forget_maps()
    if setup.local:
        os.dup2(2, 1)  # what a user's kernel prints must not get into the output
    if setup.memory is not None:
        Keeper(setup.memory)


def _run_task(setup: _WorkerSetup, function: Callable[..., Any], *args: Any) -> Any:
    _prepare_worker(setup)
    return function(*args)


def _file_stamp(path: str) -> tuple[int, int] | None:
    """Return what changes with a file's content, None where there is no file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


class _DaskPool(executors.FilePool):
    """The workers of one scheduler.

    Dask gives the tasks of a lost worker to another by itself. Where there is none for
    too long, or the scheduler is gone, that is the end.
    """

    returns = True
    block_factor = 4  # a task takes the scheduler some milliseconds

    def __init__(
        self,
        client: Any,
        setup: _WorkerSetup,
        *,
        hosts: set[str],
        threads: int,
        block_timeout: float | None,
        worker_timeout: float,
    ) -> None:
        self.in_place = setup.folder_id is not None
        self.threads, self.block_timeout = threads, block_timeout
        self._client, self._setup, self._worker_timeout = client, setup, worker_timeout
        # Who comes later from another machine cannot write into maps of this one.
        self._hosts = sorted(hosts) if self.in_place else None
        super().__init__(setup.folder)
        self._address, self._ncores = client.scheduler.address, client.scheduler.ncores
        self._connection = client.scheduler_comm
        self._tasks: weakref.WeakSet[Any] = weakref.WeakSet()
        self.workers = max(1, self._count_threads())

    def share(self, array: AnyArray, /) -> executors.Mapped:
        known = executors.mapped_file(array)
        if known is None:
            return self.write(array)
        if str(Path(known.path).parent) == self.folder:
            array.flush()  # type: ignore[attr-defined] # so that other machines see it
            return known
        seen = _ask(self._client, _file_stamp, known.path)
        same = {_file_stamp(known.path)} >= set(seen.values())
        return known if same else self.write(array)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        self._check_connection()
        task = self._client.submit(
            _run_task, self._setup, function, *args, pure=False, workers=self._hosts
        )
        self._tasks.add(task)
        future: Future[Any] = Future()
        self._client.loop.add_callback(_pass_on, task, future)
        return future

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        running, begin = list(running), time.monotonic()
        last_seen = begin
        while True:
            left = _CHECK_INTERVAL
            if self.block_timeout is not None:
                left = min(left, self.block_timeout - (time.monotonic() - begin))
            done = wait(running, max(0, left), FIRST_COMPLETED).done
            for future in done:
                self._raise_if_lost(future)
            if done or left <= 0:
                return done
            self._check_connection()
            if self._count_threads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > self._worker_timeout:
                raise ResourceError(
                    f"{self._address}: no dask worker is left, and none came in time"
                )

    def revive(self) -> None:
        """Forget all tasks; dask replaces workers by itself."""
        with suppress(OSError, CancelledError):  # who submits next is told
            self._client.cancel(list(self._tasks))

    def _count_threads(self) -> int:
        """Return how many tasks the workers can do at once."""
        threads = dict[str, int]()
        with suppress(OSError, CancelledError):
            threads = self._client.sync(self._ncores, callback_timeout=_ANSWER_TIMEOUT)
        return sum(
            count
            for address, count in threads.items()
            if self._hosts is None or _host_of(address) in self._hosts
        )

    def _check_connection(self) -> None:
        """Raise where the connection was lost, even if there is a new one."""
        if self._client.scheduler_comm is not self._connection:
            raise _scheduler_gone(self._address)

    def _raise_if_lost(self, future: Future[Any]) -> None:
        """Raise where a task ended because of dask, not because of itself."""
        from distributed import KilledWorker, scheduler

        error = future.exception()
        if isinstance(error, CancelledError):
            raise _scheduler_gone(self._address) from error
        if isinstance(error, (KilledWorker, scheduler.NoValidWorkerError)):
            raise ResourceError(
                f"{self._address}: dask's workers died again and again at the same "
                "rows; they may have run out of memory: start them with more, and with "
                "--memory-limit 0, because mapped files are no memory in use"
            ) from error


async def _pass_on(task: Any, future: Future[Any]) -> None:
    """Give a task's outcome to a future.

    The executor of `Client.get_executor` would wait for ever for a result that was lost
    with its worker and then fails when it is computed again.
    """
    try:
        result = await task
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _host_of(address: str) -> str:
    return address.partition("://")[2].rpartition(":")[0].strip("[]")


def _scheduler_gone(address: str) -> ResourceError:
    return ResourceError(f"{address}: the dask scheduler is gone")


def _ask(client: Any, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Call a function on every worker; an error is an answer as well."""
    address = client.scheduler.address
    try:
        answers: dict[str, Any] = client.run(function, *args, on_error="return")
    except (OSError, CancelledError) as error:
        raise _scheduler_gone(address) from error
    return answers


def _wait_for_workers(client: Any, count: int, timeout: float) -> None:
    from distributed.exceptions import WorkerStartTimeoutError

    address = client.scheduler.address
    try:
        client.wait_for_workers(count, timeout=timeout)
    except WorkerStartTimeoutError as error:
        raise ResourceError(
            f"{address}: {error.available_workers} of {count} dask workers were there "
            f"after {timeout:g} s; start more, or wait longer: dask:...,timeout=SECONDS"
        ) from error
    except (OSError, CancelledError) as error:
        raise _scheduler_gone(address) from error


def _set_up_workers(
    stack: ExitStack, client: Any, parents: Iterable[str], **local: Any
) -> tuple[_WorkerSetup, list[str]]:
    """Make a folder, which ``stack`` removes, in the first place that all workers see.

    Returns also the addresses of the workers.
    """
    first_error: ResourceError | None = None
    for parent in dict.fromkeys(str(Path(one).absolute()) for one in parents):
        with ExitStack() as trial:
            try:
                folder = trial.enter_context(scratch_folder(parent))
                setup = _WorkerSetup(_versions(), folder, **local)
                answers = _check_workers(client, setup)
            except ResourceError as error:
                first_error = first_error or error
                continue
            stack.push(trial.pop_all())
            if {here := _check_worker(setup)} >= set(answers.values()):
                setup = replace(setup, folder_id=here)
            return setup, list(answers)
    raise first_error or ResourceError("dask: there is no directory to try")


def _check_workers(client: Any, setup: _WorkerSetup) -> dict[str, Any]:
    """Return what `_check_worker` answers on all workers."""
    answers = _ask(client, _check_worker, setup)
    for address, answer in answers.items():
        if isinstance(answer, BaseException):
            raise ResourceError(
                f"the dask worker at {address} cannot be used: {answer}"
            ) from answer
    return answers


def _scheduler_address(path: str) -> str:
    """Read the address from a file that a scheduler has written."""
    try:
        with Path(path).open("rb") as file:
            address = str(json.loads(file.read(_LARGEST_FILE))["address"])
    except OSError as error:
        raise InputError(
            f"{path}: cannot read the scheduler file ({error.strerror}); is the "
            "scheduler running?"
        ) from error
    except (ValueError, TypeError, KeyError):
        address = ""
    if address.partition("://")[0] not in _SCHEMES:
        raise InputError(f"{path}: is no scheduler file: no JSON with an address")
    return address


@contextmanager
def _connected(scheduler: Any, timeout: float) -> Iterator[Any]:
    """Connect to a scheduler, with the keys that dask's configuration names."""
    from distributed import Client

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are looked at more closely by us
            client = Client(scheduler, timeout=timeout, set_as_default=False)
    except (ssl.SSLError, FileNotFoundError, PermissionError) as error:
        raise InputError(f"{scheduler}: cannot use the TLS files ({error})") from error
    except (ValueError, TypeError) as error:
        raise ParameterError(f"dask: cannot connect to {scheduler}: {error}") from error
    except OSError as error:
        raise ResourceError(
            f"{scheduler}: no dask scheduler answers within {timeout:g} s; see whether "
            "it runs and can be reached from here"
        ) from error
    with _closing(client):
        yield client


@contextmanager
def _local_cluster(workers: int, timeout: float) -> Iterator[Any]:
    """Start a scheduler and workers on this machine; they end with the context."""
    import dask
    from distributed import LocalCluster, Security

    processes.check_limits(
        workers, processes=12 + 12 * workers, files=40 + 12 * workers
    )
    with scratch_folder() as folder, ExitStack() as stack:
        config = {"temporary-directory": folder, **_LOCAL_CONFIG}
        with dask.config.set(config), processes.without_main_script():
            with processes.block_signals():  # in the thread that will start the workers
                cluster = LocalCluster(
                    n_workers=0,
                    threads_per_worker=1,
                    # Whoever reaches a scheduler can run anything: without keys that
                    # would be every user of this machine.
                    security=Security.temporary(),
                    dashboard_address=None,
                    # There is a page all the same: not where others may have theirs.
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    memory_limit=0,  # mapped files would count
                    silence_logs=logging.CRITICAL + 10,
                )
            stack.enter_context(_closing(cluster))
            client = stack.enter_context(_connected(cluster, timeout))
            cluster.scale(workers)
            _wait_for_workers(client, workers, timeout)
        yield client


@contextmanager
def _closing(thing: Any) -> Iterator[None]:
    """Close a client or cluster in the end; after an error, kill local workers first.

    Dask would wait for the tasks that they are doing.
    """
    timeout = _ABORT_TIMEOUT
    try:
        yield
        timeout = _CLOSE_TIMEOUT
    except BaseException:
        for nanny in getattr(thing, "_created", ()):
            nanny.auto_restart = False
            if nanny.pid:
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, signal.SIGKILL)
        raise
    finally:
        with suppress(TimeoutError, OSError):  # its other end may be gone
            thing.close(timeout=timeout)


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep dask from telling stderr what is told by one error, or need not be told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import distributed  # noqa: F401 - makes its loggers
    known = map(logging.getLogger, list(logging.root.manager.loggerDict))
    names = ("distributed", "tornado", "asyncio")
    loggers = [one for one in known if one.name.startswith(names) and not one.disabled]
    for one in loggers:
        one.disabled = True
    try:
        yield
    finally:
        for one in loggers:
            one.disabled = False


@dataclass(frozen=True)
class Dask:
    """Workers of a dask scheduler, of one of our own if none is named."""

    in_process: ClassVar[bool] = False

    scheduler_file: str = ""
    """The file that the scheduler has written its address to."""
    address: str = ""
    """The scheduler's address, as in ``tcp://node1:8786``."""
    workers: int = 1
    """How many workers of a scheduler to wait for before work begins."""
    timeout: float = 60.0
    """Seconds to wait for a scheduler or a worker."""
    folder: str = ""
    """A directory that all workers see, for arrays that are no files yet."""

    def __post_init__(self) -> None:
        if not all(map(importlib.util.find_spec, ("cryptography", "distributed"))):
            raise ResourceError(
                "executor 'dask' needs distributed and cryptography: pip install "
                "'nnkgraph[dask]'"
            )
        if self.scheduler_file and self.address:
            raise ParameterError("dask: give scheduler_file or address, not both")
        if self.scheduler_file:
            _scheduler_address(self.scheduler_file)  # found before any work
        if not (self.workers >= 1 and self.timeout > 0):
            raise ParameterError("dask: workers and timeout must be above 0")
        if self.workers > 1 and not self.attached:
            raise ParameterError("dask: workers needs a scheduler_file or an address")

    @property
    def attached(self) -> bool:
        """Whether there is a scheduler already."""
        return bool(self.scheduler_file or self.address)

    @contextmanager
    def open(
        self,
        workers: int,
        /,
        *,
        block_timeout: float | None = None,
        shared_dir: str | None = None,
    ) -> Iterator[executors.Pool]:
        """Find workers, or start some; what was started ends with the context."""
        with _silenced(), ExitStack() as stack:
            memory = None
            if self.attached:
                address = self.address or _scheduler_address(self.scheduler_file)
                client = stack.enter_context(_connected(address, self.timeout))
                _wait_for_workers(client, self.workers, self.timeout)
            else:
                memory = stack.enter_context(shared_with(workers))
                client = stack.enter_context(_local_cluster(workers, self.timeout))
            parents = [temporary_place(), shared_dir or ".", "."]
            setup, addresses = _set_up_workers(
                stack,
                client,
                [self.folder] if self.folder else parents,
                local=not self.attached,
                memory=memory,
            )
            stack.callback(executors.forget_maps)
            pool = _DaskPool(
                client,
                setup,
                hosts=set(map(_host_of, addresses)),
                threads=workers,
                block_timeout=block_timeout,
                worker_timeout=self.timeout,
            )
            finished = False
            try:
                yield pool
                finished = True
            finally:
                with suppress(OSError, CancelledError):
                    if client.status == "running":  # workers live on, files do not
                        client.run(
                            executors.forget_maps, wait=finished, on_error="ignore"
                        )


plugin: type[executors.Executor] = Dask
