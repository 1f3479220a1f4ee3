"""What a run will take, estimated before it begins."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import formats, registry
from nnkgraph.bounded import memory_limit
from nnkgraph.data import SparseGram, SparseRows
from nnkgraph.errors import OutputError, ResourceError
from nnkgraph.executors import pool_size
from nnkgraph.memory import available_memory, free_addresses, in_words, taken_memory
from nnkgraph.prepare import estimated_seconds
from nnkgraph.search import is_by_rows
from nnkgraph.search._part import width_of
from nnkgraph.search.auto import Auto, choose
from nnkgraph.search.exact import MULTIPLIED
from nnkgraph.search.sharded import Sharded

if TYPE_CHECKING:
    from nnkgraph.data import Features
    from nnkgraph.prepare import Plan

# Fitted to the peaks that runs report: within a third for jobs from 2000 rows on.
_PROCESS, _WORKER, _DESCENT = 130 << 20, 60 << 20, 150 << 20
_NODE = 100
"""Bytes of a node in lists that are never cut into blocks."""

_MOST, _LEAST = 40, 2
"""Bytes of a candidate in the output: where all are kept as text, or few."""


@dataclass(frozen=True)
class Budget:
    """Bytes, estimated."""

    memory: int
    """Largest memory of all processes together: what is beyond the limit is in files,
    as far as it can be."""

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
    plan: Plan,
    workers: int | str,
    seconds: float,
    span: range | None = None,
) -> Budget:
    """Estimate what a run needs; the candidates are what counts for many rows.

    Where only a part of the rows, the span, is searched, so are its candidates.
    """
    x, n, k = features.x, len(features.x), plan.k
    listed = n if span is None or not is_by_rows(plan.search) else len(span)
    width = min(plan.method.width(k), max(n - 1, 1))
    sparse = isinstance(x, SparseGram | SparseRows)
    d = 0 if sparse else int(x.shape[1])
    rows = 12 * x.data.size if isinstance(x, SparseGram) else x.nbytes
    count, in_process = pool_size(plan.executor, workers, seconds=seconds)
    lists, edges = listed * width * (4 + 8 + 8), listed * width * 16
    copied = 0 if isinstance(x, np.memmap) and plan.scale == "none" else rows
    # What must be in memory as a whole, and what may be in files.
    fixed = _PROCESS + (0 if in_process else _WORKER * count) + _NODE * n
    search, held, searched = _search_memory(plan, n, d, width, span, count)
    if sparse:
        # Sparse rows are searched by their columns, of which there is a copy.
        held, searched = 2 * rows, 0
    whole = [f"search {search}"] * bool(held)
    fixed += held
    if not isinstance(x, np.memmap):
        fixed += rows
    if not plan.method.local:
        fixed += 8 * lists
        whole.append(f"method {registry.spec(plan.method)}")
    loose = rows + (rows if plan.scale != "none" else 0) + lists + edges + searched
    needed, limit = fixed + loose, memory_limit()
    scratch = 0 if in_process else lists + copied + edges
    if needed > limit:  # directions are then joined through files as well
        scratch = copied + lists + searched + listed * width * 80
    return Budget(
        min(needed, max(fixed, limit)),
        scratch,
        listed * width * _MOST,
        needed,
        " and ".join(whole),
        fixed,
    )


def _search_memory(
    plan: Plan, n: int, d: int, width: int, span: range | None, workers: int
) -> tuple[str, int, int]:
    """Return the search, what it must have in memory, and what may be in files."""
    name = registry.spec(plan.search).partition(":")[0]
    if isinstance(plan.search, Auto):
        name = choose(n, d, width, plan.kernel.nearness)[0]
    if name == "exact" and plan.kernel.nearness in MULTIPLIED:
        reservoirs = 0 if span is not None else n * (width + max(8, width // 4)) * 16
        return name, 0, n * d * 4 + reservoirs
    if isinstance(plan.search, Sharded):
        parts = plan.search.parts_of(n)
        tasks = 1 if span is not None else min(workers, parts)
        held = tasks * (_DESCENT + n // parts * (16 * d + 50 * width))
        return name, held, tasks * n * 12 * width_of(width, parts)
    if name == "precomputed":
        return name, 0, n * width * 24
    if name == "kdtree":
        return name, n * (8 * d + 24), 0
    if name == "pynndescent":
        return name, _DESCENT + n * d * 8 + n * width * 50, 0
    return name, 0, 0


def affordable_seconds(
    features: Features,
    x: Any,
    plan: Plan,
    workers: int | str,
    span: range | None = None,
) -> float:
    """Estimate how long one processor will work; refuse what cannot fit."""
    seconds = estimated_seconds(x, plan.k)
    if span is not None:
        seconds *= len(span) / len(x)
    check_budget(estimate(features, plan, workers, seconds, span))
    return seconds


def check_budget(budget: Budget) -> None:
    """Refuse a run for which memory or room for temporary files is missing."""
    # What this process has already taken is neither free nor still to be found.
    there = min(available_memory() + taken_memory(), memory_limit())
    # What there is changes from moment to moment; what may be in files gives way.
    if budget.memory > there and budget.least > there:
        whole = f" by {budget.whole}, as a whole" if budget.whole else ""
        raise ResourceError(
            f"about {in_words(budget.memory)} of memory are needed{whole}, and "
            f"{in_words(there)} are available; use fewer candidates (-k) or workers "
            "(-j), or a machine with more"
        )
    addresses = free_addresses()
    if 0 <= addresses < budget.mapped - taken_memory():
        raise ResourceError(
            f"about {in_words(budget.mapped)} of addresses are needed, and "
            f"{in_words(addresses)} are left; raise the limit of the address space "
            "(ulimit -v)"
        )
    folder = tempfile.gettempdir()
    advice = "for temporary files; set TMPDIR to a directory with room"
    _check_room(folder, budget.scratch, ResourceError, advice)


def check_output_room(output: str, n: int, k: int, copied: int = 0) -> None:
    """Refuse a disk that is too full even for a graph that keeps few candidates.

    `copied` is the size of a file that is copied to hold the graph.
    """
    if formats.is_stream(output):
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
