"""Dask's workers as a pool: tasks carry paths and row numbers, never features."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ResourceError
from nnkgraph.runtime.executors import forget_maps
from nnkgraph.runtime.executors._crew import WorkerDied, mapped_file
from nnkgraph.runtime.executors._dask_client import ask_all
from nnkgraph.runtime.executors._dask_worker import stamp, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from nnkgraph.runtime.executors import Mapped
    from nnkgraph.runtime.executors._crew import Files
    from nnkgraph.runtime.executors._dask_worker import Terms

_TICK = 1.0
"""Seconds without a result after which it is asked whether anybody is there."""

_ANSWER = 10.0
"""Seconds in which a scheduler answers that is there."""


class DaskPool:
    """The workers of one scheduler.

    Dask gives the tasks of a lost worker to another by itself. Where the connection is
    lost all of them are, which is `WorkerDied`; where nobody is left to do them for
    too long, that is the end.
    """

    stretch = 4
    """A task takes the scheduler some milliseconds."""

    def __init__(
        self,
        client: Any,
        files: Files,
        terms: Terms,
        *,
        hosts: set[str],
        threads: int,
        timeout: float,
        block_timeout: float | None,
    ) -> None:
        self.threads, self.block_timeout = threads, block_timeout
        self.in_place = terms.place is not None
        self._client, self._files, self._terms = client, files, terms
        # Who comes later from another machine cannot write into maps of this one.
        self._hosts = sorted(hosts) if self.in_place else None
        self._timeout = timeout
        self._address: str = client.scheduler.address
        self._tasks: dict[str, tuple[Future[Any], Any]] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._seen = time.monotonic()
        self.workers = max(1, self._count())

    def share(self, array: NDArray[Any], /) -> Mapped:
        known = mapped_file(array)
        if known is None or not self._all_see(known.path):
            return self._files.write(array)
        if isinstance(array, np.memmap) and self._files.owns(known.path):
            array.flush()  # so that other machines see what was written
        return known

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Mapped:
        return self._files.output(shape, dtype)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        if self._client.status != "running":
            raise WorkerDied(f"{self._address}: the connection was lost")
        remote = self._client.submit(
            work, self._terms, function, *args, pure=False, workers=self._hosts
        )
        future: Future[Any] = Future()
        self._tasks[remote.key] = future, remote
        remote.add_done_callback(self._done.put)
        return future

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        begin = self._seen = time.monotonic()
        while not (done := {one for one in running if one.done()}):
            left = _TICK
            if self.block_timeout is not None:
                left = min(left, self.block_timeout - (time.monotonic() - begin))
                if left <= 0:
                    break
            try:
                self._deliver(self._done.get(timeout=left))
            except Empty:
                self._look_after()
        return done

    def revive(self) -> None:
        """Forget all tasks, and wait for the scheduler if the connection was lost."""
        remotes = [remote for _, remote in self._tasks.values()]
        self._tasks.clear()
        end = time.monotonic() + self._timeout
        while self._client.status == "connecting" and time.monotonic() < end:
            time.sleep(0.05)
        if self._client.status != "running":
            raise ResourceError(f"{self._address}: the dask scheduler is gone")
        self._client.cancel(remotes)

    def _deliver(self, remote: Any) -> None:
        """Take the result of a task that is done."""
        from distributed import KilledWorker
        from distributed.scheduler import NoValidWorkerError

        if remote.key not in self._tasks:
            return  # forgotten since
        future, _ = self._tasks[remote.key]
        try:
            # What is known to be nothing need not be fetched.
            nothing = remote.status == "finished" and remote.type is type(None)
            result = None if nothing else remote.result(timeout=self._timeout)
        except CancelledError as error:
            future.set_exception(WorkerDied(str(error)))
        except KilledWorker as error:
            future.set_exception(self._killed(error))
        except NoValidWorkerError as error:  # the scheduler's block_timeout was shorter
            future.set_exception(self._nobody(error))
        except TimeoutError as error:
            if remote.status != "error":  # lost with its worker: somebody does it again
                remote.add_done_callback(self._done.put)
                self._look_after()
                return
            future.set_exception(error)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        del self._tasks[remote.key]
        remote.release()

    def _killed(self, error: Exception) -> ResourceError:
        told = ResourceError(
            f"{self._address}: dask's workers died again and again at the same rows; "
            "they may have run out of memory: start them with more, and with "
            "--memory-limit 0, because mapped files are no memory in use"
        )
        told.__cause__ = error
        return told

    def _nobody(self, error: Exception | None) -> ResourceError:
        gone = self._client.status != "running"
        who = "the scheduler is gone" if gone else "no dask worker is left"
        told = ResourceError(f"{self._address}: {who}, and none came in time")
        told.__cause__ = error
        return told

    def _look_after(self) -> None:
        """Give up where there was nobody to do the work for too long."""
        now = time.monotonic()
        if self._count():
            self._seen = now
        elif now - self._seen > self._timeout:
            raise self._nobody(None)

    def _count(self) -> int:
        """Return how many tasks the workers can do at once."""
        scheduler, threads = self._client.scheduler, dict[str, int]()
        if self._client.status == "running" and scheduler is not None:
            with suppress(OSError, CancelledError):
                threads = self._client.sync(scheduler.ncores, callback_timeout=_ANSWER)
        return sum(
            count
            for address, count in threads.items()
            if self._hosts is None or host_of(address) in self._hosts
        )

    def _all_see(self, path: str) -> bool:
        """Return whether workers see a file as it is here."""
        if self._files.owns(path):
            return True
        here = stamp(path)
        there = ask_all(self._client, stamp, path)
        return all(one == here for one in there.values())

    def forget(self, *, wait: bool) -> None:
        """Let workers let go of the files, which are removed: they live on."""
        with suppress(OSError, CancelledError):
            if self._client.status == "running":
                self._client.run(forget_maps, wait=wait, on_error="ignore")


def host_of(address: str) -> str:
    """Return the host of an address as dask writes it."""
    return address.partition("://")[2].rpartition(":")[0].strip("[]")
