"""Cut rows into blocks, compute them on a pool, put them together in order."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ResourceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from nnkgraph.executors import Pool, Shared

_TRIES = 3
"""How often the workers are replaced before a dying one is reported."""


_LEAST = 256
"""Rows of the smallest block; less is not worth the way to a worker."""


def run(
    pool: Pool,
    function: Callable[..., tuple[NDArray[Any] | None, ...]],
    arguments: Any,
    outputs: tuple[Shared | None, ...],
    *,
    rows: int,
    block: int,
    on_rows: Callable[[int], object] = lambda _: None,
) -> None:
    """Fill ``outputs`` with ``function(arguments, start, stop)`` of all blocks.

    Every output has one row per row of the input. The function's results for a row
    must not depend on the block the row is in: then neither the number of workers nor
    the block size nor a lost worker can be seen in the outputs.

    Raises
    ------
    ResourceError
        When workers die again and again.
    """
    waiting = _cut(rows, block, pool.workers)
    waiting.reverse()
    running: dict[Future[Any], tuple[int, int]] = {}
    deaths = 0
    while waiting or running:
        try:
            while waiting and len(running) < 2 * pool.workers:
                task = (function, arguments, outputs, *waiting[-1])
                future = pool.submit(_compute, *task)
                running[future] = waiting.pop()
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                start, stop = running.pop(future)
                on_rows(stop - start)
        except BrokenExecutor as error:
            deaths += 1
            lost = sorted(running.values(), reverse=True)
            if deaths > _TRIES:
                first = lost[-1] if lost else waiting[-1]
                raise ResourceError(
                    f"workers died {deaths} times, last at rows {first[0]} to "
                    f"{first[1] - 1}; they may have run out of memory: use fewer "
                    "workers (-j)"
                ) from error
            waiting += lost
            running.clear()
            pool.revive()


def _cut(rows: int, block: int, workers: int) -> list[tuple[int, int]]:
    """Return the blocks, smaller ones last, so that all workers end together."""
    least = rows if workers == 1 else min(_LEAST, block)
    cuts, start = [], 0
    while start < rows:
        share = -(-(rows - start) // (2 * workers))
        stop = min(start + min(block, max(least, share)), rows)
        cuts.append((start, stop))
        start = stop
    return cuts


def _compute(
    function: Callable[..., tuple[NDArray[Any] | None, ...]],
    arguments: Any,
    outputs: tuple[Shared | None, ...],
    start: int,
    stop: int,
) -> None:
    """Compute one block where it is sent to, and put its rows where they belong."""
    results = function(arguments, start, stop)
    for output, result in zip(outputs, results, strict=True):
        if output is not None:
            output.open()[start:stop] = result
