"""What a checkpoint of a run must know, and what it keeps of its search."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__, formats, registry, report
from nnkgraph.blockwise import converted, row_slices
from nnkgraph.checkpoint import open_checkpoint
from nnkgraph.data import Candidates
from nnkgraph.search import index_dtype
from nnkgraph.search.precomputed import Precomputed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnkgraph.checkpoint import Block, Checkpoint
    from nnkgraph.data import Features
    from nnkgraph.prepare import Plan
    from nnkgraph.shard import Shard

_WHOLE = "candidates"
ABOUT: dict[str, Any] = {
    "backend": str,
    "exact": bool,
    "threads": int,
    "recall": float | int | None,
    "notes": list,
}
"""What is known about candidates besides their arrays."""


@contextlib.contextmanager
def resumed(
    folder: str | Path | None, facts: dict[str, Any], shard: Shard | None = None
) -> Iterator[Checkpoint | None]:
    """Open the checkpoint of a run or of one of its shards, where one is wanted."""
    if folder is None:
        yield None
        return
    if shard is not None:
        facts = facts | {"shard": str(shard)}
    with open_checkpoint(Path(folder), facts) as checkpoint:
        yield checkpoint


def facts_of(features: Features, plan: Plan, seed: int) -> dict[str, Any]:
    """Return all that determines candidates and solutions.

    How directions are joined, what is written and by how many workers plays no part:
    such options may change from one run to the next.
    """
    return {
        "schema": 1,
        "nnkgraph": __version__,
        **{f"version of {name}": v for name, v in report.versions().items()},
        "sha256 of the features": features.sha256,
        "shape": list(features.x.shape),
        "k": plan.k,
        "method": registry.spec(plan.method),
        "kernel": registry.spec(plan.kernel),
        "source of the kernel": getattr(plan.kernel, "source", ""),
        "search": _search_fact(plan),
        "scale": plan.scale,
        "duplicates": plan.duplicates,
        "seed": seed,
    }


def _search_fact(plan: Plan) -> str:
    """Return how candidates are found; a file counts by its content."""
    if not isinstance(plan.search, Precomputed) or not plan.search.path:
        return registry.spec(plan.search)
    index, _ = formats.read_candidates(plan.search.path)
    digest = hashlib.sha256()
    for rows in row_slices(len(index), 16 * index.shape[1]):
        digest.update(np.ascontiguousarray(index[rows], dtype="<i8").data)
    return f"precomputed, sha256 {digest.hexdigest()}"


def _candidates(block: Block, n: int) -> Candidates | None:
    """Return the candidates of a block, or None where they are damaged.

    Compiled code takes row numbers without looking, so they are looked at here.
    """
    index: Any
    distance: Any
    index, distance = block.arrays
    try:
        about: Any = json.loads(block.about)
    except (ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or about.keys() != set(ABOUT):
        return None
    if not all(isinstance(about[name], kind) for name, kind in ABOUT.items()):
        return None
    if index.size and not (index.min() >= -1 and index.max() < n):
        return None
    about["notes"] = tuple(map(str, about["notes"]))
    return replace(Candidates(index, distance), **about)


def found_once(
    checkpoint: Checkpoint | None,
    n: int,
    k: int,
    search: Callable[[], Candidates],
    span: range | None = None,
) -> Candidates:
    """Return candidates from a checkpoint, or search them and keep them there."""
    if checkpoint is None:
        return search()
    rows = range(n) if span is None else span
    place = rows.start, rows.stop
    like: list[Any] = [np.empty((0, k), index_dtype(n)), np.empty((0, k))]
    block = checkpoint.load(_WHOLE, *place, like)
    kept = None if block is None else _candidates(block, n)
    if kept is not None:
        return kept
    if block is not None:
        checkpoint.warnings.append(
            f"{checkpoint.folder}: the candidates kept there are none; they were "
            "searched again"
        )
    # Solutions belong to their candidates, and a search may not repeat itself.
    checkpoint.drop("solve")
    found = search()
    about = {name: getattr(found, name) for name in ABOUT}
    if found.index.shape == (len(rows), k):
        arrays = [converted(found.index, like[0].dtype), found.distance]
        checkpoint.save(_WHOLE, *place, arrays, json.dumps(about))
        checkpoint.drop("search")
    return found
