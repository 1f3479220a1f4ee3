"""nnkgraph build: features to graph."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import numbers, options, table_options
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@click.argument("features", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Where the graph goes; '-' is stdout.",
)
@click.option(
    "--into",
    type=click.Path(),
    metavar="FILE.h5ad",
    help="Put the graph into an AnnData file instead, for scanpy.",
)
@click.option(
    "--key-added",
    metavar="NAME",
    show_default="neighbors",
    help="Name of the graph in the AnnData file.",
)
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
    type=numbers.Number(0, 1e300),
    default=1e-8,
    show_default=True,
    help="Lighter edges are dropped.",
)
@click.option(
    "--min-degree",
    type=numbers.Whole(0),
    default=None,
    show_default="0, or 3 with --into",
    metavar="M",
    help="Every node's own M heaviest edges stay, whatever rule and --min-weight say.",
)
@click.option(
    "--connect",
    type=click.Choice(["none", "mst"]),
    default="none",
    show_default=True,
    help="Add the shortest bridges between components; they are marked in the graph.",
)
@click.option(
    "--grow",
    type=numbers.Number(0, inside=True),
    metavar="TOL",
    help="More candidates for nodes, until none outside has a residual above TOL.",
)
@click.option(
    "--max-k",
    type=numbers.Whole(1),
    show_default="8 k",
    help="The most candidates that nodes may grow to.",
)
@click.option(
    "--k-check",
    is_flag=True,
    help="Report what residual a point outside the candidates could have.",
)
@click.option(
    "--round",
    "digits",
    type=numbers.Whole(1, 15),
    default=None,
    metavar="DIGITS",
    help="Significant digits of weights and errors.",
)
@click.option(
    "--min-recall",
    type=numbers.Number(0, 1),
    default=None,
    metavar="SHARE",
    help="Fail where the estimated recall of the search is below this.",
)
@options.scale_opt
@options.duplicates_opt
@options.workers_opt
@options.executor_opt
@options.shard_opt
@options.memory_opt
@options.resume_opt
@options.block_timeout_opt
@options.seed_opt
@table_options.for_features
@options.no_clobber_opt
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@options.report_opt
@options.talk_options
def command(features: tuple[str, ...], **settings: Any) -> None:
    """Build a graph from FEATURES, a node per row.

    FEATURES is a file, FILE::DATASET, or '-' for stdin.

    Input: .npy, .npz, .csv, .tsv, .txt (also .gz), .h5, .h5ad, .parquet, .mat.
    Output: .npz, .tsv, .csv, .edgelist (also .gz), .graphml, .gexf, .mtx, .parquet,
    .pyg.npz, .mat. Several inputs in one call need {name} in the output's name; a bad
    one does not stop the others.

    \b
    Examples:
      nnkgraph build points.npy -o graph.npz
      nnkgraph build table.csv --id-column name --drop city,note -o graph.graphml
      nnkgraph build data.h5::features -o graph.tsv.gz -j 8 --report report.json
      nnkgraph build a.npy b.npy -o 'graphs/{name}.npz'
      nnkgraph build cells.h5ad::obsm/X_pca --into cells.h5ad
      nnkgraph build points.npy --search precomputed:path=knn.npz \\
        --shard 2/7 -o 2.npz
    """
    from nnkgraph.cli.jobs import build_all

    build_all(features, **settings)
