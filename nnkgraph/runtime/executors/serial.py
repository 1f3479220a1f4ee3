"""One after the other, in this process."""

from __future__ import annotations

import sys
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.runtime.arrays import AnyArray, new_array
from nnkgraph.runtime.executors import Executor, Here, Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass
class InProcessPool:
    """Calls in this process, at once or in threads; arrays are shared as they are."""

    threads: int
    workers: int = 1
    executor: ThreadPoolExecutor | None = None
    block_timeout: float | None = None
    in_place: bool = True
    returns: bool = True
    block_factor: int = 1

    def share(self, array: AnyArray, /) -> Here:
        """Return the array itself."""
        return Here(array)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Here:
        """Return a new array."""
        return Here(new_array(shape, dtype))

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Call the function, now where there are no threads."""
        if self.executor:
            return self.executor.submit(function, *args)
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        """Return the calls that are done, at least one."""
        return wait(running, return_when=FIRST_COMPLETED).done

    def revive(self) -> None:
        """Nothing in this process dies alone."""


def limited_products(threads: int) -> Any:
    """Return a context in which matrix products have so many threads."""
    # scipy loads a library of its own.
    libraries = _libraries("scipy.linalg" in sys.modules)
    return libraries.limit(limits=threads, user_api="blas")


@cache
def _libraries(_with_scipy: bool, /) -> Any:
    """Find the libraries of this process, which takes longer than a small job."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True)
class Serial:
    """Everything in this process: starts nothing, easy to debug."""

    in_process: ClassVar[bool] = True
    attached: ClassVar[bool] = False

    @contextmanager
    def open(self, workers: int, /, **_unused: Any) -> Iterator[Pool]:
        """Open a pool of one; ``workers`` limits the threads of matrix products."""
        with limited_products(workers):  # what hangs in this process cannot be ended
            yield InProcessPool(workers)


plugin: type[Executor] = Serial
