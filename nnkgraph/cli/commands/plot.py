"""nnkgraph plot: a picture of a graph."""

from __future__ import annotations

import click

from nnkgraph.cli import options, say


@click.command()
@options.graph_arg
@click.option(
    "--coords",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Where the nodes are: features with 2 or 3 columns.",
)
@options.output_opt
@click.option(
    "--beside",
    type=click.Path(),
    metavar="GRAPH2",
    help="A second graph, drawn beside it.",
)
@options.table_options
@options.no_clobber_opt
@options.talk_options
def command(
    graph: str,
    coords: str,
    output: str,
    beside: str | None,
    format: str | None,  # noqa: A002 - the option's name
    delimiter: str | None,
    header: bool | None,
    id_column: str | None,
    no_clobber: bool,
) -> None:
    """Draw GRAPH over coordinates, as .png, .svg or .pdf.

    Heavy edges are strong, light ones faint. Needs matplotlib:
    pip install 'nnkgraph[plot]'.

    \b
    Examples:
      nnkgraph plot graph.npz --coords points.npy -o graph.png
      nnkgraph plot knn.npz --beside nnk.npz --coords points.npy -o both.png
    """
    from nnkgraph import formats
    from nnkgraph.cli.files import read_features, read_graph
    from nnkgraph.tasks.plot import SUFFIXES, draw, rendered

    named = [graph, beside] if beside else [graph]
    formats.check_file(
        output, suffixes=SUFFIXES, no_clobber=no_clobber, inputs=[*named, coords]
    )
    where = read_features(
        coords,
        format=format,
        delimiter=delimiter,
        header=header,
        id_column=id_column,
    )
    figure = draw([(name, read_graph(name)) for name in named], where.x)
    formats.write_file(output, rendered(figure, output))
    say.summary(f"{output}: {len(where.x)} nodes drawn")
