"""nnkgraph query: neighborhoods of new points."""

from typing import Any

import click

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, outcome, progress, talk
from nnkgraph.cli.files import Files, read_graph

_GRAPH_SAYS = "preset k method kernel sigma scale pca seed"
"""What --graph answers."""


@options.command
@click.argument("data", type=click.Path())
@click.argument("queries", type=click.Path())
@options.output_opt
@options.file(
    "--graph",
    "A graph of DATA whose k, method, kernel, sigma, scaling and components are taken.",
    metavar="GRAPH",
)
@options.candidates(
    "Candidates per query.", default="30, or all rows where there are fewer"
)
@options.shared("preset method kernel sigma search scale pca")
@click.option(
    "--normalize", is_flag=True, help="Divide the weights of every query by their sum."
)
@click.option(
    "--exclude-identical",
    is_flag=True,
    help="Pass over a row of DATA that equals the query.",
)
@options.shared("workers executor seed")
@options.for_features
@options.ids_of("the queries", "--query-ids")
@options.shared("no_clobber")
@click.option("--json", is_flag=True, help="Print a JSON report.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: str,
    queries: str,
    output: str,
    graph: str | None,
    query_ids: str | None,
    files: Files,
    json: bool,
    **settings: Any,
) -> None:
    """Find the neighborhoods of QUERIES among the rows of DATA.

    Bandwidth and scaling come from DATA. The .npz file loads with
    scipy.sparse.load_npz as a matrix of queries x rows, and holds the error J of every
    query; .tsv and .csv hold a line per neighbor with its distance, the heaviest
    first. Identical rows of DATA count as one. Search exactly, in groups (--search
    partition), or take candidates from a file (--search precomputed:path=FILE).

    \b
    Examples:
      nnkgraph query train.npy test.npy -o neighbors.npz
      nnkgraph query train.npy test.npy -o neighbors.tsv -k 20 --normalize
      nnkgraph query train.npy test.npy --graph graph.npz -o neighbors.npz
      nnkgraph query points.npy points.npy -o own.npz --exclude-identical
    """
    files.expect(data, queries, others=[query_ids])
    if graph is not None:
        options.refuse_typed(ctx, _GRAPH_SAYS, "--graph")
        for name in _GRAPH_SAYS.split():
            del settings[name]
        settings["graph"] = read_graph(graph)
    write_format = files.split_format(output, "answers")
    files.check_output(output, format=write_format, kind="answers")
    known, asked = files.features(data), files.more_rows(queries, query_ids)
    answers = nnkgraph.query(known, asked, progress=progress.Progress(), **settings)
    formats.write_answers(output, answers, format=write_format)
    _say(output, answers.report)
    if json:
        talk.data(talk.json_text(answers.report))


def _say(output: str, report: dict[str, Any]) -> None:
    sigma = "" if report["sigma"] is None else f", sigma {report['sigma']:.6g}"
    talk.summary(
        f"{report['method']}, {report['kernel']}{sigma}, k {report['k']}, search "
        f"{report['search']}{outcome.recall_words(report)}"
    )
    talk.summary(
        f"{output}: {report['queries']} queries among {report['rows']} rows, "
        f"{report['neighbors_per_query']:.2f} neighbors each, without any: "
        f"{report['without_neighbors']}, equal to a row: {report['identical']}"
    )
    talk.summary(*outcome.proofs(report, "query"))
    talk.warning(*(f"{output}: {text}" for text in report["warnings"]))
