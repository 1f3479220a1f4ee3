"""What a run will take, estimated and checked before it begins."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features, SparseGram, SparseRows
from nnkgraph.errors import OutputError, ResourceError
from nnkgraph.runtime import limits, registry
from nnkgraph.runtime.arrays import memory_limit, temporary_place
from nnkgraph.runtime.executors import pool_size
from nnkgraph.runtime.files import is_stream
from nnkgraph.runtime.limits import available_memory, in_words, taken_memory

if TYPE_CHECKING:
    from nnkgraph.build.settings import Running, Settings

# Fitted to the peaks that runs report: within a third for jobs from 2000 rows on.
_PROCESS, _WORKER = 130 << 20, 60 << 20
_NODE = 100
"""Bytes of a node in lists that are never cut into blocks."""

_MOST, _LEAST = 40, 2
"""Bytes of a candidate in the output: where all are kept as text, or few."""


@dataclass(frozen=True)
class Budget:
    """Bytes, estimated."""

    memory: int
    """Of all processes together; what is beyond the limit is in files if it can be."""
    scratch: int
    """Temporary files."""
    output: int
    """The graph as a file, at most."""
    mapped: int = 0
    """Addresses that are needed: files take them as memory does."""
    whole: str = ""
    """What cannot be kept in files, where something cannot."""
    least: int = 0
    """Memory that is needed however much is in files."""


def estimate(
    features: Features,
    settings: Settings,
    running: Running,
    seconds: float,
    span: range | None = None,
) -> Budget:
    """Estimate what a run needs; the candidates are what counts for many rows.

    Where only a part of the rows, the span, is searched, so are its candidates.
    """
    given, x, n = features.x, settings.seen(features), len(features.x)
    listed = n if span is None or not settings.search.by_rows else len(span)
    width = min(settings.width, max(n - 1, 1))
    sparse = isinstance(x, SparseGram | SparseRows)
    rows = 12 * x.data.size if isinstance(x, SparseGram) else x.nbytes
    read = rows if settings.pca is None else given.nbytes
    count, in_process = pool_size(running.executor, running.workers, seconds=seconds)
    lists, edges = listed * width * (4 + 8 + 8), listed * width * 24
    scaled = settings.scale != "none"
    copied = 0 if isinstance(x, np.memmap) and not scaled else rows
    # What must be in memory as a whole, and what may be in files.
    fixed = _PROCESS + (0 if in_process else _WORKER * count) + _NODE * n
    base = settings.kernel.nearness
    search, _ = settings.search.chosen(x, width, base)
    # Sparse rows are searched by their columns: that is a copy, but none in full.
    columns = 0 if sparse else int(x.shape[1])
    taken = search.memory(n, columns, width, base, some=span is not None)
    held, searched = taken.held, taken.files
    if sparse:
        held, searched = 2 * rows, 0 if search.exact else searched
    whole = [f"search {registry.spec(search).partition(':')[0]}"] * bool(held)
    fixed += held
    if not isinstance(given, np.memmap):
        fixed += read
    if settings.pca is not None:
        from nnkgraph.data.pca import memory_of

        fixed += memory_of(given, settings.pca)
    if not settings.method.local:
        fixed += 8 * lists
        whole.append(f"method {registry.spec(settings.method)}")
    loose = rows + read * scaled + lists + edges + searched
    needed, limit = fixed + loose, memory_limit()
    scratch = 0 if in_process else lists + copied + edges
    if needed > limit:  # directions are then joined through files as well
        scratch = copied + lists + searched + listed * width * 96
    return Budget(
        min(needed, max(fixed, limit)),
        scratch,
        listed * width * _MOST,
        needed,
        " and ".join(whole),
        fixed,
    )


def check_budget(budget: Budget) -> None:
    """Refuse a run for which memory or room for temporary files is missing."""
    # What this process has already taken is neither free nor still to be found.
    there = min(available_memory() + taken_memory(), memory_limit())
    # What there is changes from moment to moment; what may be in files gives way.
    if budget.memory > there and budget.least > there:
        whole = f" by {budget.whole}, as a whole" if budget.whole else ""
        raise ResourceError(
            f"about {in_words(budget.memory)} of memory are needed{whole}, and "
            f"{in_words(there)} are available; use a smaller `k` or fewer `workers`, "
            "or a machine with more"
        )
    addresses = limits.free_addresses()
    if 0 <= addresses < budget.mapped - taken_memory():
        raise ResourceError(
            f"about {in_words(budget.mapped)} of addresses are needed, and "
            f"{in_words(addresses)} are left; raise the limit of the address space "
            "(ulimit -v)"
        )
    folder = temporary_place()
    advice = "for temporary files; set TMPDIR to a directory with room"
    _check_room(folder, budget.scratch, ResourceError, advice)


def check_output_room(output: str, n: int, k: int, copied: int = 0) -> None:
    """Refuse a disk that is too full even for a graph that keeps few candidates.

    `copied` is the size of a file that is copied to hold the graph.
    """
    if is_stream(output):
        return
    folder = os.path.dirname(os.path.realpath(output))  # noqa: PTH120
    what = "a copy of the file with the graph" if copied else "the graph"
    advice = f"for {what}; write it elsewhere"
    _check_room(folder, copied + n * k * _LEAST, OutputError, advice)


def _check_room(folder: str, needed: int, kind: Any, advice: str) -> None:
    try:
        total, _, free = shutil.disk_usage(folder)
    except OSError:
        return  # writing will tell
    if needed > free and total:  # some file systems do not know
        raise kind(
            f"{folder}: {in_words(free)} are free, and about {in_words(needed)} are "
            f"needed {advice}"
        )
