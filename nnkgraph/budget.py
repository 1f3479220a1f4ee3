"""What a run will take, estimated before it begins."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import formats, registry
from nnkgraph.data import SparseGram, SparseRows
from nnkgraph.errors import OutputError, ResourceError
from nnkgraph.executors import pool_size
from nnkgraph.memory import available_memory, in_words, taken_memory
from nnkgraph.prepare import estimated_seconds
from nnkgraph.search.auto import Auto, choose
from nnkgraph.search.exact import MULTIPLIED

if TYPE_CHECKING:
    from nnkgraph.data import Features
    from nnkgraph.prepare import Plan

# Fitted to the peaks that runs report: within a third for jobs from 2000 rows on.
_PROCESS, _WORKER, _DESCENT = 130 << 20, 60 << 20, 150 << 20
_MOST, _LEAST = 40, 2
"""Bytes of a candidate in the output: where all are kept as text, or few."""


@dataclass(frozen=True)
class Budget:
    """Bytes, estimated."""

    memory: int
    """Largest memory of all processes together."""

    scratch: int
    """Temporary files of the workers."""

    output: int
    """The graph as a file, at most."""


def estimate(
    features: Features,
    plan: Plan,
    scale: str,
    workers: int | str,
    executor: str,
    seconds: float,
) -> Budget:
    """Estimate what a run needs; the candidates are what counts for many rows."""
    x, n, k = features.x, len(features.x), plan.k
    width = min(plan.method.width(k), max(n - 1, 1))
    sparse = isinstance(x, SparseGram | SparseRows)
    d = 0 if sparse else int(x.shape[1])
    rows = 12 * x.data.size if isinstance(x, SparseGram) else x.nbytes
    count, in_process = pool_size(executor, workers, seconds=seconds)
    memory = _PROCESS + (0 if in_process else _WORKER * count) + rows
    if scale != "none" or not isinstance(x, np.memmap):
        memory += rows
    lists = n * width * (4 + 8 + 8)
    memory += lists + 16 * n * width
    # Sparse rows are searched by their columns, of which there is a copy.
    memory += 2 * rows if sparse else _search_memory(plan, n, d, width)
    if not plan.method.local:
        memory += 8 * lists
    copied = 0 if isinstance(x, np.memmap) and scale == "none" else rows
    scratch = 0 if in_process else lists + copied + n * width * 16
    return Budget(memory, scratch, n * width * _MOST)


def _search_memory(plan: Plan, n: int, d: int, width: int) -> int:
    name = registry.spec(plan.search).partition(":")[0]
    if isinstance(plan.search, Auto):
        name = choose(n, d, width, plan.kernel.nearness)[0]
    if name == "exact" and plan.kernel.nearness not in MULTIPLIED:
        return 0
    if name == "exact":
        return n * d * 4 + n * 2 * (width + max(8, width // 4)) * 8
    if name == "pynndescent":
        return _DESCENT + n * d * 8 + n * width * 50
    return 0


def affordable_seconds(
    features: Features,
    x: Any,
    plan: Plan,
    scale: str,
    workers: int | str,
    executor: str,
) -> float:
    """Estimate how long one processor will work; refuse what cannot fit."""
    seconds = estimated_seconds(x, plan.k)
    check_budget(estimate(features, plan, scale, workers, executor, seconds))
    return seconds


def check_budget(budget: Budget) -> None:
    """Refuse a run for which memory or room for temporary files is missing."""
    # What this process has already taken is neither free nor still to be found.
    there = available_memory() + taken_memory()
    if budget.memory > there:
        raise ResourceError(
            f"about {in_words(budget.memory)} of memory are needed, and "
            f"{in_words(there)} are available; use fewer candidates (-k) or workers "
            "(-j), or a machine with more"
        )
    folder = tempfile.gettempdir()
    advice = "for the workers; set TMPDIR to a directory with room"
    _check_room(folder, budget.scratch, ResourceError, advice)


def check_output_room(output: str, n: int, k: int) -> None:
    """Refuse a disk that is too full even for a graph that keeps few candidates."""
    if formats.is_stream(output):
        return
    folder = os.path.dirname(os.path.realpath(output))  # noqa: PTH120
    advice = "for the graph; write it elsewhere"
    _check_room(folder, n * k * _LEAST, OutputError, advice)


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
