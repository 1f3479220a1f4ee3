"""Threads of this process."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.runtime.executors.serial import InProcessPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnkgraph.runtime.executors import Executor, Pool


class _ThreadPool(InProcessPool):
    def __init__(self, executor: ThreadPoolExecutor, workers: int) -> None:
        super().__init__(threads=workers, workers=workers)
        self._executor = executor

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._executor.submit(function, *args)


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
