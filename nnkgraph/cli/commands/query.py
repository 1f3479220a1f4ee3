"""nnkgraph query: neighborhoods of new points."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options, talk, types
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@click.argument("data", type=click.Path())
@click.argument("queries", type=click.Path())
@options.output_opt
@click.option(
    "-k",
    "--k",
    type=types.whole(1),
    default=None,
    show_default="30, or all rows where there are fewer",
    help="Candidates per query.",
)
@options.shared("method kernel sigma search scale")
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
@options.no_clobber_opt
@click.option("--json", is_flag=True, help="Print a JSON report.")
@options.talk_options
def command(
    data: str,
    queries: str,
    output: str,
    format: str | None,  # noqa: A002 - the option's name
    table: dict[str, Any],
    no_clobber: bool,
    json: bool,
    **settings: Any,
) -> None:
    """Find the neighborhoods of QUERIES among the rows of DATA.

    Bandwidth and scaling come from DATA. The .npz file loads with
    scipy.sparse.load_npz as a matrix of queries x rows, and holds the error J of every
    query; .tsv and .csv hold a line per neighbor. Identical rows of DATA count as one.
    Search exactly, or take candidates from a file: --search precomputed:path=FILE.

    \b
    Examples:
      nnkgraph query train.npy test.npy -o neighbors.npz
      nnkgraph query train.npy test.npy -o neighbors.tsv -k 20 --normalize
      nnkgraph query points.npy points.npy -o own.npz --exclude-identical
    """
    from nnkgraph import formats
    from nnkgraph.build.query import query
    from nnkgraph.cli.files import Tables, read_features, split_format
    from nnkgraph.cli.progress import Progress
    from nnkgraph.errors import ParameterError

    if data == queries == "-":
        raise ParameterError("standard input can be read once only: name a file")
    inputs = [data, queries]
    read_format, write_format = split_format(format, inputs, output, kind="answers")
    formats.check_output(
        output,
        format=write_format,
        kind="answers",
        no_clobber=no_clobber,
        inputs=inputs,
    )
    tables = Tables(inputs, **table)
    known = read_features(
        data, format=read_format, **tables.features(data, read_format)
    )
    asked = read_features(
        queries, format=read_format, **tables.others(queries, read_format)
    )
    answers = query(known, asked, progress=Progress(), **settings)
    formats.write_answers(output, answers, format=write_format)
    _say(output, answers.report)
    if json:
        talk.as_json(answers.report)


def _say(output: str, report: dict[str, Any]) -> None:
    sigma = "" if report["sigma"] is None else f", sigma {report['sigma']:.6g}"
    talk.summary(
        f"{report['method']}, {report['kernel']}{sigma}, k {report['k']}, search "
        f"{report['search']}"
    )
    talk.summary(
        f"{output}: {report['queries']} queries among {report['rows']} rows, "
        f"{report['neighbors_per_query']:.2f} neighbors each, without any: "
        f"{report['without_neighbors']}, equal to a row: {report['identical']}"
    )
    proof, error = report["certificate"], report["error"]
    if proof:
        talk.summary(
            f"certificate: {proof['kkt_max']:.1e} at the worst query, failed: "
            f"{proof['nodes_failed']}"
        )
    if error:
        talk.summary(f"mean error J {error['mean']:.4g}")
