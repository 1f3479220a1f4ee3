"""nnkgraph merge: shards to candidates or to a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nnkgraph.cli import options, talk
from nnkgraph.cli.command import Command

if TYPE_CHECKING:
    from nnkgraph.build.shards import Part
    from nnkgraph.cli.progress import Progress


@click.command(cls=Command)
@click.argument(
    "shards", nargs=-1, required=True, type=click.Path(), metavar="SHARD..."
)
@options.output_opt
@click.option("--format", metavar="NAME", help="Format of FILE, for '-'.")
@options.memory_opt
@options.no_clobber_opt
@options.report_opt
@options.talk_options
def command(
    shards: tuple[str, ...],
    output: str,
    format: str | None,  # noqa: A002 - the option's name
    memory: int | None,
    no_clobber: bool,
    report: str | None,
) -> None:
    """Put the shards of one run together, in any order.

    Shards of 'nnkgraph search --shard' become KNN, those of 'nnkgraph build --shard'
    become GRAPH: the same bytes as those of a run without --shard. A shard that is
    missing, damaged, there twice or of another run is refused.

    \b
    Examples:
      nnkgraph merge knn-*.npz -o knn.h5
      nnkgraph merge part-*.npz -o graph.graphml --report report.json
    """
    import time

    from nnkgraph import formats
    from nnkgraph.build.shards import read_parts
    from nnkgraph.cli.outcome import check_report, write_report
    from nnkgraph.cli.progress import Progress
    from nnkgraph.runtime.arrays import limited
    from nnkgraph.runtime.limits import MemoryWatch

    stages, start = Progress(), time.perf_counter()
    with MemoryWatch() as watch, limited(memory):
        found = read_parts(shards)
        solved = found[0].kind == "graph"
        formats.check_output(
            output,
            format=format,
            no_clobber=no_clobber,
            inputs=shards,
            kind="graph" if solved else "candidates",
        )
        check_report(report, output, no_clobber=no_clobber, inputs=shards)
        join = _join_graph if solved else _join_candidates
        known = join(found, output, format, stages)
    total = time.perf_counter() - start
    full = write_report(report, known, stages, total, watch.peak)
    _say(f"{len(shards)} shards", output, full)


def _join_graph(
    found: list[Part],
    output: str,
    format_: str | None,
    stages: Progress,
) -> dict[str, Any]:
    from nnkgraph import formats
    from nnkgraph.build.shards import merge_graph

    graph = merge_graph(found, stages)
    with stages("write"):
        formats.write_graph(output, graph, format=format_)
    return graph.report


def _join_candidates(
    found: list[Part],
    output: str,
    format_: str | None,
    stages: Progress,
) -> dict[str, Any]:
    from nnkgraph import formats
    from nnkgraph.build.report import search_facts
    from nnkgraph.build.shards import merge_candidates

    candidates, provenance = merge_candidates(found, stages)
    with stages("write"):
        formats.write_candidates(
            output, candidates, provenance=provenance, format=format_
        )
    return {
        **provenance,
        "nodes": len(candidates.index),
        "shards": len(found),
        "search": search_facts(candidates),
        "notes": list(candidates.notes),
    }


def _say(shards: str, output: str, full: dict[str, Any]) -> None:
    """Say what became of the shards; a graph may miss its certificate."""
    from nnkgraph.cli.outcome import check_quality, say_result

    if "edges" in full:
        say_result(shards, output, full)
        check_quality(output, full)
        return
    for note in full["notes"]:
        talk.summary(note)
    talk.summary(
        f"{output}: {full['k']} candidates for each of {full['nodes']} rows from "
        f"{shards}, {full['search']['backend']}"
    )
