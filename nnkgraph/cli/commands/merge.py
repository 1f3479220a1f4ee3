"""nnkgraph merge: shards to candidates or to a graph."""

from typing import Any

import click

from nnkgraph import formats
from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.files import Files
from nnkgraph.errors import InputError


@options.command
@click.argument(
    "shards", nargs=-1, required=True, type=click.Path(), metavar="SHARD..."
)
@options.output_opt
@options.reading(options.format_of("FILE"))
@options.file(
    "--features",
    "The features of a search by partition, which goes on with them.",
    metavar="FEATURES",
)
@options.shared("workers memory")
@options.shared("no_clobber")
@options.shared("report")
def command(
    shards: tuple[str, ...],
    output: str,
    files: Files,
    features: str | None,
    workers: Any,
    memory: int | None,
    report: str | None,
) -> None:
    """Put the shards of one run together, in any order.

    Shards of 'nnkgraph search --shard' become KNN, those of 'nnkgraph build --shard'
    become GRAPH: the same bytes as those of a run without --shard. A shard that is
    missing, damaged, there twice or of another run is refused. Shards of --search
    partition hold what groups of rows found; with --features the search is finished.

    \b
    Examples:
      nnkgraph merge knn-*.npz -o knn.h5
      nnkgraph merge knn-*.npz --features points.npy -o knn.npz
      nnkgraph merge part-*.npz -o graph.graphml --report report.json
    """
    import nnkgraph
    from nnkgraph.build import shards as parts_of
    from nnkgraph.build.report import search_facts
    from nnkgraph.build.settings import Running

    files.expect(others=shards)
    run, to = outcome.Measured(), files.format
    with run.within(memory):
        parts = parts_of.read_parts(shards)
        solved = parts[0].kind == "graph"
        kind = "graph" if solved else "candidates"
        files.check_output(output, kind=kind, format=to)
        outcome.check_report(report, output, files)
        known: dict[str, Any]
        if solved:
            graph = parts_of.merge_graph(parts, run)
            with run("write"):
                formats.write_graph(output, graph, format=to)
            known = graph.report.as_dict()
        else:
            if parts[0].kind == "groups":
                if features is None:
                    raise InputError(
                        f"{parts[0].name}: is of a search by partition, which is "
                        "finished with the rows: give them with --features"
                    )
                with run("read"):
                    matrix = nnkgraph.read_features(features)
                running = Running(workers, progress=run)
                found, about = parts_of.merge_groups(parts, matrix, running)
            else:
                found, about = parts_of.merge_candidates(parts, run)
            with run("write"):
                formats.write_candidates(output, found, provenance=about, format=to)
            known = {**about, "nodes": len(found.index), "shards": len(parts)}
            known |= {"search": search_facts(found), "notes": list(found.notes)}
            known["warnings"] = list(found.warnings)
    full = outcome.write_report(report, known, run)
    source = f"{len(shards)} shards"
    if solved:
        outcome.say_result(source, output, full)
        outcome.check_quality(output, full)
        return
    talk.summary(
        *run.unsaid(full["notes"]),
        f"{output}: {full['k']} candidates for each of {full['nodes']} rows from "
        f"{source}, {full['search']['backend']}{outcome.recall_words(full['search'])}",
    )
    talk.warning(*(f"{output}: {one}" for one in full["warnings"]))
