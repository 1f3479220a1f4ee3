"""Threads of this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.runtime.executors.serial import InProcessPool, limited_products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.runtime.executors import Executor, Pool


@dataclass(frozen=True)
class Threads:
    """Threads of this process: nothing to start; what auto takes for small jobs."""

    # Compiled code and matrix products let other threads run, so threads keep all
    # processors busy; processes have the advantage once Python itself has more to do.
    in_process: ClassVar[bool] = True
    attached: ClassVar[bool] = False

    @contextmanager
    def open(self, workers: int, /, **_unused: Any) -> Iterator[Pool]:
        """Start threads; matrix products use one thread each."""
        with limited_products(1):  # what hangs in this process cannot be ended
            executor = ThreadPoolExecutor(workers)
            try:
                yield InProcessPool(workers, workers, executor)
            finally:
                executor.shutdown(wait=True, cancel_futures=True)


plugin: type[Executor] = Threads
