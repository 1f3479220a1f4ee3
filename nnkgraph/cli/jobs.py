"""The body of ``build``: inputs are read, built, written and summed up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph import formats, registry
from nnkgraph.bounded import limited, memory_limit
from nnkgraph.budget import check_budget, estimate
from nnkgraph.build import build_graph
from nnkgraph.checkpoint import remove_checkpoint
from nnkgraph.cli import say, targets
from nnkgraph.cli.files import folder_of, read_features
from nnkgraph.cli.names import check_resume, names_of
from nnkgraph.cli.outcome import (
    check_quality,
    check_report,
    full_report,
    write_report,
)
from nnkgraph.cli.progress import Progress
from nnkgraph.cli.summary import say_result, say_shard
from nnkgraph.errors import NnkGraphError
from nnkgraph.memory import in_words
from nnkgraph.prepare import DEFAULT_K, estimated_seconds, make_plan
from nnkgraph.resources import MemoryWatch, granted_cpus
from nnkgraph.search.precomputed import Precomputed
from nnkgraph.shards import WHOLE, check_alone, check_shards
from nnkgraph.shards.compute import build_shard
from nnkgraph.shards.file import write_part
from nnkgraph.tasks.doctor.remarks import column_remarks

if TYPE_CHECKING:
    from nnkgraph.cli.names import Files
    from nnkgraph.data import Features
    from nnkgraph.shard import Shard


@dataclass(frozen=True)
class _Gates:
    """What keeps a result from being made, or from passing."""

    dry_run: bool
    min_recall: float | None


def build_all(
    features: tuple[str, ...],
    *,
    output: str | None,
    into: str | None,
    key_added: str | None,
    report: str | None,
    resume: str | None,
    format: str | None,  # noqa: A002 - the option's name
    no_clobber: bool,
    dry_run: bool,
    min_recall: float | None,
    digits: int | None,
    table: dict[str, Any],
    shard: Shard | None,
    **settings: Any,
) -> None:
    """Build every input; a bad one is reported and does not stop the others."""
    settings["digits"] = digits or 0
    goal = targets.goal_of(features, output, into, key_added, shard)
    settings |= targets.defaults(goal, settings)
    # Mistakes in words are found before time is spent on reading.
    registry.create("methods", settings["method"])
    kernel = registry.create("kernels", settings["kernel"])
    search = registry.create("search", settings["search"])
    candidates = [search.path] if isinstance(search, Precomputed) else []
    read_format, write_format = goal.split_format(format, features)
    if shard is not None:
        check_alone(**settings)
    reading = {
        "format": read_format,
        **table,
        "sparse": "similarities" if kernel.base == "gram" else "rows",
    }
    for files in names_of(features, goal.path, report, resume):
        try:
            inputs = [files.features, *candidates]
            target = goal.target(files.features, files.output, write_format, no_clobber)
            target.check(inputs)
            check_report(
                files.report, files.output, no_clobber=no_clobber, inputs=inputs
            )
            check_resume(files)
            gates = _Gates(dry_run, min_recall)
            _build_one(files, reading, target, dict(settings), gates)
        except NnkGraphError as error:
            if len(features) == 1:
                raise
            say.error(str(error))
            say.traceback()
            say.failures.add(error.exit_code)


def _build_one(
    files: Files,
    reading: dict[str, Any],
    target: targets.Target,
    settings: dict[str, Any],
    gates: _Gates,
) -> None:
    stages = Progress()
    start = time.perf_counter()
    limit = settings.pop("memory")
    with MemoryWatch() as memory, limited(limit):
        with stages("read"):
            matrix = read_features(files.features, **reading)
        target.check_rows(matrix)
        n, d = matrix.x.shape
        say.detail(f"{files.features}: {n} x {d} {matrix.dtype}")
        for remark in column_remarks(matrix, settings["kernel"], settings["scale"]):
            say.summary(f"{files.features}: {remark}")
        if gates.dry_run:
            _say_plan(files, matrix, settings, target)
            return
        target.check_room(n, min(settings["k"] or DEFAULT_K, n))
        settings["beside"] = folder_of(files.output)
        if isinstance(target, targets.ShardFile):
            known = _build_shard(files, matrix, target.shard, settings, stages)
        else:
            graph = build_graph(matrix, stages=stages, resume=files.resume, **settings)
            known = graph.report
            with stages("write"):
                target.write(graph, matrix, settings)
        if files.resume:
            remove_checkpoint(Path(files.resume))
    full = full_report(known, stages, time.perf_counter() - start, memory.peak)
    write_report(files.report, full)
    part = isinstance(target, targets.ShardFile)
    if part:
        say_shard(files.features, files.output, full)
    else:
        say_result(files.features, files.output, full)
    what = "shard" if part else "graph"
    check_quality(files.output, full, gates.min_recall, what)


def _build_shard(
    files: Files,
    matrix: Features,
    shard: Shard,
    settings: dict[str, Any],
    stages: Progress,
) -> dict[str, Any]:
    """Solve and write a part of the rows; return its report."""
    chosen = {key: one for key, one in settings.items() if key not in WHOLE}
    part, known = build_shard(
        matrix, shard, stages=stages, resume=files.resume, **chosen
    )
    with stages("write"):
        write_part(files.output, part)
    return known


def _say_plan(
    files: Files,
    matrix: Features,
    settings: dict[str, Any],
    target: targets.Target,
) -> None:
    """Check what can be checked, and say what would be done."""
    others = {"workers", "seed", "digits", "patience", *WHOLE}
    plan = make_plan(matrix, **{k: v for k, v in settings.items() if k not in others})
    shard = target.shard if isinstance(target, targets.ShardFile) else None
    if shard is not None:
        check_shards(plan)
    if isinstance(plan.search, Precomputed):
        formats.read_candidates(plan.search.path)
    n, d = matrix.x.shape
    workers = settings["workers"]
    seconds = estimated_seconds(matrix.x, plan.k)
    span = None if shard is None else shard.rows(n)
    needed = estimate(matrix, plan, workers, seconds, span)
    part = "" if shard is None else f" as shard {shard}"
    workers = f"up to {granted_cpus()}" if workers == "auto" else workers
    say.summary(
        f"{files.features}: {n} x {d}, readable and finite; would be built with "
        f"k {plan.k}, method {settings['method']}, kernel {settings['kernel']}, search "
        f"{settings['search']}, rule {plan.rule}, {workers} workers, into "
        f"{files.output}{part}"
    )
    say.summary(
        f"{files.features}: about {in_words(needed.memory)} of memory, "
        f"{in_words(needed.scratch)} of temporary files and at most "
        f"{in_words(needed.output)} of output; {in_words(memory_limit())} of memory "
        "may be used"
    )
    check_budget(needed)
    target.check_room(n, plan.k)
