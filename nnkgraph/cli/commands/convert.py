"""nnkgraph convert: from one graph format to another."""

from __future__ import annotations

import click

from nnkgraph.cli import options, say
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@options.graph_arg
@click.argument("output", type=click.Path())
@click.option("--from", "from_", metavar="NAME", help="Format of GRAPH, for '-'.")
@click.option("--to", metavar="NAME", help="Format of OUTPUT, for '-'.")
@options.no_clobber_opt
@options.talk_options
def command(
    graph: str, output: str, from_: str | None, to: str | None, no_clobber: bool
) -> None:
    """Convert GRAPH to OUTPUT; the formats follow from the names.

    Nothing is lost: isolated nodes, ids, errors and provenance travel along, in a
    file OUTPUT.nnk.npz beside formats that cannot hold them.

    \b
    Examples:
      nnkgraph convert graph.npz graph.graphml
      nnkgraph convert graph.npz - --to tsv | head
    """
    from nnkgraph import formats
    from nnkgraph.cli.files import read_graph

    formats.check_output(output, format=to, no_clobber=no_clobber, inputs=[graph])
    read = read_graph(graph, format=from_)
    formats.write_graph(output, read, format=to)
    say.summary(f"{output}: {read.nodes} nodes, {read.edges} edges")
