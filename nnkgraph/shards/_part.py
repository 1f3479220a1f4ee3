"""What a shard holds besides its solutions: its place, its run, and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import report
from nnkgraph.prepare import worker_warnings
from nnkgraph.resume import ABOUT
from nnkgraph.search import index_dtype
from nnkgraph.shards.file import Part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Candidates, Features, Neighborhoods
    from nnkgraph.find import Run
    from nnkgraph.shard import Shard

    Arrays = dict[str, NDArray[Any] | None]


def span_of(run: Run) -> range:
    """Return the rows that a run solves."""
    return range(len(run.rows.x)) if run.span is None else run.span


def part_of(
    kind: str,
    features: Features,
    run: Run,
    shard: Shard,
    candidates: Candidates,
    arrays: Arrays,
    settings: dict[str, Any],
    said: dict[str, Any],
) -> Part:
    """Return a shard: its rows of the input reach to where the next one's begin."""
    rows, span, total = run.rows, span_of(run), len(features.x)
    start, stop = span.start, span.stop
    if rows.origin is not None:
        ends = np.append(rows.origin, total)
        start, stop = int(ends[start]), int(ends[stop])
    lines = slice(start, stop)
    if rows.first is not None:
        arrays["first"] = rows.first[lines].astype(np.int64)
    if features.ids is not None and kind == "graph":
        arrays["ids"] = np.array(features.ids[lines], dtype=np.str_)
    kept = {name: one for name, one in arrays.items() if one is not None}
    kept["index"] = kept["index"].astype(index_dtype(len(rows.x)), copy=False)
    known = report.input_facts(features)
    common = {
        "facts": run.facts,
        "settings": settings,
        "search": {one: getattr(candidates, one) for one in ABOUT if one != "notes"},
        "shape": known["shape"],
        "sha256": known["sha256"],
        "distinct": len(rows.x),
        "arrays": sorted(kept),
    }
    said |= {"name": known["name"], "dtype": known["dtype"]}
    return Part(kind, shard, span, range(start, stop), common, said, kept)


def shard_report(
    features: Features,
    run: Run,
    part: Part,
    candidates: Candidates,
    found: Neighborhoods,
    workers: int | str,
) -> dict[str, Any]:
    """Return what is known about the rows of a shard."""
    nodes = np.arange(len(run.rows.x)) if run.rows.origin is None else run.rows.origin
    checkpoint = run.checkpoint
    return {
        "schema": 1,
        "shard": str(part.shard),
        "rows": [part.rows.start, part.rows.stop],
        **part.common["settings"],
        "certificate": report.certificate(
            found, nodes[part.rows.start : part.rows.stop]
        ),
        "failure": found.failure,
        "error": report.error_facts(found.errors),
        "search": report.search_facts(candidates),
        "workers": run.pool.workers,
        "input": report.input_facts(features),
        "warnings": [
            *part.said["warnings"],
            *(checkpoint.warnings if checkpoint else []),
            *worker_warnings(workers, run.pool.workers),
        ],
        "notes": [*candidates.notes, *(checkpoint.notes if checkpoint else [])],
    }
