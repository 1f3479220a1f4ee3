"""nnkgraph merge: shards to candidates or to a graph."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options, talk
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@click.argument(
    "shards", nargs=-1, required=True, type=click.Path(), metavar="SHARD..."
)
@options.output_opt
@click.option("--format", metavar="NAME", help="Format of FILE, for '-'.")
@options.shared("memory")
@options.no_clobber_opt
@options.shared("report")
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
    from nnkgraph.build.report import search_facts
    from nnkgraph.build.shards import merge_candidates, merge_graph, read_parts
    from nnkgraph.cli import outcome
    from nnkgraph.cli.progress import Progress
    from nnkgraph.runtime.arrays import limited
    from nnkgraph.runtime.limits import MemoryWatch

    checked: dict[str, Any] = {"no_clobber": no_clobber, "inputs": shards}
    progress, start = Progress(), time.perf_counter()
    with MemoryWatch() as watch, limited(memory):
        parts = read_parts(shards)
        solved = parts[0].kind == "graph"
        kind: Any = "graph" if solved else "candidates"
        formats.check_output(output, format=format, kind=kind, **checked)
        outcome.check_report(report, output, **checked)
        if solved:
            graph = merge_graph(parts, progress)
            with progress("write"):
                formats.write_graph(output, graph, format=format)
            known = graph.report.as_dict()
        else:
            found, about = merge_candidates(parts, progress)
            with progress("write"):
                formats.write_candidates(output, found, provenance=about, format=format)
            search, notes = search_facts(found), list(found.notes)
            known = {**about, "nodes": len(found.index), "shards": len(parts)}
            known |= {"search": search, "notes": notes}
    total = time.perf_counter() - start
    full = outcome.write_report(report, known, progress, total, watch.peak)
    source = f"{len(shards)} shards"
    if solved:
        outcome.say_result(source, output, full)
        outcome.check_quality(output, full)
        return
    for note in notes:
        talk.summary(note)
    talk.summary(
        f"{output}: {full['k']} candidates for each of {full['nodes']} rows from "
        f"{source}, {search['backend']}"
    )
