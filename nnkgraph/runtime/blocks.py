"""Cut rows into blocks, compute them on a pool, put them together in order."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ResourceError
from nnkgraph.runtime.checkpoint import Block, Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nnkgraph.runtime.arrays import AnyArray
    from nnkgraph.runtime.executors import Pool, Shared

TRIES = 3
"""How often the workers are replaced before a dying one is reported."""


_GRAIN = 64
"""Blocks have a multiple of so many rows where they are made smaller."""

_LEAST = 256
"""Rows of the smallest block; less is not worth the way to a worker."""


def run(
    pool: Pool,
    function: Callable[..., tuple[AnyArray | None, ...]],
    arguments: Any,
    outputs: tuple[Shared | None, ...],
    *,
    rows: int,
    block: int,
    first: int = 0,
    on_rows: Callable[[int], object] = lambda _: None,
    kept: Kept | None = None,
) -> None:
    """Fill ``outputs`` with ``function(arguments, start, stop)`` of all blocks.

    Every output has one row per row of the input, from ``first`` on. The function's
    results for a row must not depend on the block the row is in: then neither the
    number of workers nor the block size nor a lost worker can be seen in the outputs.
    Workers that die again and again, or one that hangs, are a `ResourceError`.
    """
    # Kept blocks are alike for all workers; else they suit who is to do them.
    factor, workers = (1, 1) if kept else (pool.block_factor, pool.workers)
    waiting = _cut(first, rows, block * factor, workers)
    if kept:
        waiting = [one for one in waiting if not kept.found(outputs, first, *one)]
        on_rows(rows - sum(stop - start for start, stop in waiting))
    waiting.reverse()
    running: dict[Future[Any], tuple[int, int]] = {}
    deaths = 0
    while waiting or running:
        try:
            while waiting and len(running) < 2 * pool.workers:
                places = outputs if pool.in_place else None
                task = (function, arguments, places, first, *waiting[-1])
                future = pool.submit(_compute, *task)
                running[future] = waiting.pop()
            for future in next_done(pool, running):
                start, stop = running[future]
                results = _result(future, start, stop)
                if results is not None:
                    _put(outputs, results, first, start, stop)
                del running[future]
                if kept:
                    kept.keep(outputs, first, start, stop)
                on_rows(stop - start)
        except BrokenExecutor as error:
            deaths += 1
            lost = sorted(running.values(), reverse=True)
            if deaths > TRIES:
                start, stop = lost[-1] if lost else waiting[-1]
                raise ResourceError(
                    f"workers died {deaths} times, last at rows {start} to "
                    f"{stop - 1}; they may have run out of memory: use fewer "
                    "`workers`"
                ) from error
            waiting += lost
            running.clear()
            pool.revive()


@contextmanager
def without_timeout(pool: Pool) -> Iterator[None]:
    """Let blocks take as long as they need: they do not count as hung meanwhile."""
    block_timeout, pool.block_timeout = pool.block_timeout, None
    try:
        yield
    finally:
        pool.block_timeout = block_timeout


def _result(future: Future[Any], start: int, stop: int) -> Any:
    """Return what a block returned; an error says which rows it was in."""
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"in rows {start} to {stop - 1}")
        raise


def next_done(pool: Pool, running: Iterable[Future[Any]]) -> set[Future[Any]]:
    """Wait until something is done; not for ever where a worker hangs."""
    done = pool.wait(running)
    if done:
        return done
    raise ResourceError(
        f"no worker finished a block within {pool.block_timeout:g} s; it may hang, or "
        "need more time: a larger `block_timeout`"
    )


@dataclass(frozen=True)
class Kept:
    """The blocks of one stage in a checkpoint."""

    checkpoint: Checkpoint
    stage: str

    def found(
        self, outputs: tuple[Shared | None, ...], first: int, start: int, stop: int
    ) -> bool:
        """Return whether a block is there; if so, it is put where it belongs."""
        views = _opened(outputs)
        block = self.checkpoint.load(self.stage, range(start, stop), views)
        if block is None:
            return False
        for name, view in views.items():
            if view is not None:
                view[start - first : stop - first] = block.arrays[name]
        return True

    def keep(
        self, outputs: tuple[Shared | None, ...], first: int, start: int, stop: int
    ) -> None:
        """Keep a block that is done."""
        rows = slice(start - first, stop - first)
        arrays = {
            name: None if one is None else one[rows]
            for name, one in _opened(outputs).items()
        }
        self.checkpoint.save(Block(self.stage, range(start, stop), arrays))


def _opened(outputs: tuple[Shared | None, ...]) -> dict[str, AnyArray | None]:
    """Return outputs by their place, as blocks have them."""
    return {
        str(at): None if one is None else one.open() for at, one in enumerate(outputs)
    }


def kept_in(checkpoint: Checkpoint | None, stage: str) -> Kept | None:
    """Return a stage's part of a checkpoint, where there is one."""
    return None if checkpoint is None else Kept(checkpoint, stage)


def _cut(first: int, rows: int, block: int, workers: int) -> list[tuple[int, int]]:
    """Return the blocks, smaller ones last, so that all workers end together."""
    least = rows if workers == 1 else min(max(_LEAST, block // 4), block)
    cuts, start, end = [], first, first + rows
    while start < end:
        # Some functions are asked about so many rows at a time, wherever they are cut.
        share = -(-(end - start) // (2 * workers * _GRAIN)) * _GRAIN
        stop = min(start + min(block, max(least, share)), end)
        cuts.append((start, stop))
        start = stop
    return cuts


def _compute(
    function: Callable[..., tuple[AnyArray | None, ...]],
    arguments: Any,
    outputs: tuple[Shared | None, ...] | None,
    first: int,
    start: int,
    stop: int,
) -> tuple[AnyArray | None, ...] | None:
    """Compute one block where it is sent to; return it, or put it where it belongs."""
    results = function(arguments, start, stop)
    if outputs is None:
        return results
    _put(outputs, results, first, start, stop)
    return None


def _put(
    outputs: tuple[Shared | None, ...],
    results: tuple[AnyArray | None, ...],
    first: int,
    start: int,
    stop: int,
) -> None:
    for output, result in zip(outputs, results, strict=True):
        if output is not None:
            output.open()[start - first : stop - first] = result
