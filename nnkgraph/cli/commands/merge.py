"""nnkgraph merge: shards to candidates or to a graph."""

from typing import Any

import click

from nnkgraph import formats
from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.files import Files


@options.command
@click.argument(
    "shards", nargs=-1, required=True, type=click.Path(), metavar="SHARD..."
)
@options.output_opt
@options.reading(options.format_of("FILE"))
@options.shared("memory")
@options.shared("no_clobber")
@options.shared("report")
def command(
    shards: tuple[str, ...],
    output: str,
    files: Files,
    memory: int | None,
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
    from nnkgraph.build.report import search_facts
    from nnkgraph.build.shards import merge_candidates, merge_graph, read_parts

    files.expect(others=shards)
    run, to = outcome.Measured(), files.format
    with run.within(memory):
        parts = read_parts(shards)
        solved = parts[0].kind == "graph"
        kind = "graph" if solved else "candidates"
        files.check_output(output, kind=kind, format=to)
        outcome.check_report(report, output, files)
        known: dict[str, Any]
        if solved:
            graph = merge_graph(parts, run)
            with run("write"):
                formats.write_graph(output, graph, format=to)
            known = graph.report.as_dict()
        else:
            found, about = merge_candidates(parts, run)
            with run("write"):
                formats.write_candidates(output, found, provenance=about, format=to)
            known = {**about, "nodes": len(found.index), "shards": len(parts)}
            known |= {"search": search_facts(found), "notes": list(found.notes)}
    full = outcome.write_report(report, known, run)
    source = f"{len(shards)} shards"
    if solved:
        outcome.say_result(source, output, full)
        outcome.check_quality(output, full)
        return
    talk.summary(
        *full["notes"],
        f"{output}: {full['k']} candidates for each of {full['nodes']} rows from "
        f"{source}, {full['search']['backend']}",
    )
