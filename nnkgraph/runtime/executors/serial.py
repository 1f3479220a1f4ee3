"""One after the other, in this process."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.runtime.arrays import new_array
from nnkgraph.runtime.executors import Executor, Here, Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray


@dataclass
class InProcessPool:
    """Calls in this process, at once; arrays are shared as they are."""

    threads: int
    workers: int = 1
    block_timeout: float | None = None
    in_place: bool = True
    block_factor: int = 1

    def share(self, array: NDArray[Any], /) -> Here:
        """Return the array itself."""
        return Here(array)

    def output(self, shape: tuple[int, ...], dtype: Any, /) -> Here:
        """Return a new array."""
        return Here(new_array(shape, dtype))

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Call the function now."""
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    def wait(self, running: Iterable[Future[Any]], /) -> set[Future[Any]]:
        """Return the calls that are done, at least one."""
        return wait(running, return_when=FIRST_COMPLETED).done

    def revive(self) -> None:
        """Nothing in this process dies alone."""


@dataclass(frozen=True)
class Serial:
    """Everything in this process: starts nothing, easy to debug."""

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
        """Open a pool of one; ``workers`` limits the threads of matrix products."""
        from threadpoolctl import threadpool_limits

        del block_timeout, shared_dir  # what hangs in this process cannot be ended
        with threadpool_limits(limits=workers, user_api="blas"):
            yield InProcessPool(workers)


plugin: type[Executor] = Serial
