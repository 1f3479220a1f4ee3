"""Threads of this process."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.runtime.arrays import new_array
from nnkgraph.runtime.executors import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from nnkgraph.runtime.executors import Executor, Pool


@dataclass
class _ThreadPool:
    executor: ThreadPoolExecutor
    workers: int
    block_timeout: float | None = None
    in_place: bool = True
    stretch: int = 1

    @property
    def threads(self) -> int:
        return self.workers

    def share(self, array: NDArray[Any], /) -> Here:
        return Here(array)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Here:
        return Here(new_array(shape, dtype))

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self.executor.submit(function, *args)

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        return wait(running, return_when=FIRST_COMPLETED).done

    def revive(self) -> None:
        """Threads do not die alone."""


@dataclass(frozen=True)
class Threads:
    """Threads of this process: nothing to start; what auto takes for small jobs."""

    # Compiled code and matrix products let other threads run, so threads keep all
    # processors busy; processes have the advantage once Python itself has more to do.
    in_process: ClassVar[bool] = True
    attached: ClassVar[bool] = False

    @contextmanager
    def open(
        self,
        workers: int,
        /,
        *,
        block_timeout: float | None = None,
        shared_dir: str | None = None,
    ) -> Iterator[Pool]:
        """Start threads; matrix products use one thread each."""
        from threadpoolctl import threadpool_limits

        del block_timeout, shared_dir  # what hangs in this process cannot be ended
        with threadpool_limits(limits=1, user_api="blas"):
            executor = ThreadPoolExecutor(workers)
            try:
                yield _ThreadPool(executor, workers)
            finally:
                executor.shutdown(wait=True, cancel_futures=True)


plugin: type[Executor] = Threads
