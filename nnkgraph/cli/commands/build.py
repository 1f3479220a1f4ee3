"""nnkgraph build: features to graph."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options


@click.command()
@click.argument("features", nargs=-1, required=True, type=click.Path())
@options.output_opt
@options.k_opt
@options.method_opt
@options.kernel_opt
@options.sigma_opt
@options.search_opt
@click.option(
    "--symmetrize",
    type=click.Choice(["error", "error-union", "max", "mean", "min", "mutual", "none"]),
    default=None,
    show_default="the method's own",
    help="Rule that joins the two directions of an edge.",
)
@click.option(
    "--min-weight",
    type=click.FloatRange(min=0, max=1e300),
    default=1e-8,
    show_default=True,
    help="Lighter edges are dropped.",
)
@click.option(
    "--min-degree",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="M",
    help="Every node's own M heaviest edges stay, whatever the rule says.",
)
@options.scale_opt
@options.duplicates_opt
@options.workers_opt
@options.executor_opt
@options.seed_opt
@options.table_options
@options.no_clobber_opt
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@click.option(
    "--report",
    type=click.Path(),
    metavar="FILE",
    help="Write a JSON report; '-' is stdout.",
)
@options.talk_options
def command(features: tuple[str, ...], **settings: Any) -> None:
    """Build a graph from FEATURES: a file, FILE::DATASET, or '-' for stdin.

    Input: .npy, .npz, .csv, .tsv, .txt (also .gz), .h5. Output: .npz, .tsv, .csv,
    .edgelist (also .gz), .graphml, .mtx. Several inputs in one call need {name} in
    the output's name; a bad one does not stop the others.

    \b
    Examples:
      nnkgraph build points.npy -o graph.npz
      nnkgraph build table.csv --id-column id -o graph.graphml -k 20
      nnkgraph build data.h5::features -o graph.tsv.gz -j 8 --report report.json
      nnkgraph build a.npy b.npy -o 'graphs/{name}.npz'
    """
    from nnkgraph.cli.jobs import build_all

    build_all(features, **settings)
