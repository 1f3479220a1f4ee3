"""nnkgraph convert: from one graph format to another."""

import click

from nnkgraph import formats
from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.files import Files, read_graph, say_order


@options.command
@options.graph_arg
@click.argument("output", type=click.Path())
@click.option("--from", "from_", metavar="NAME", help="Format of GRAPH, for '-'.")
@click.option("--to", metavar="NAME", help="Format of OUTPUT, for '-'.")
@options.file(
    "--labels",
    "Classes of the nodes, for .gexf and .graphml: a node attribute 'class'.",
)
@options.for_labels_only
@options.shared("no_clobber")
def command(
    graph: str,
    output: str,
    from_: str | None,
    to: str | None,
    labels: str | None,
    files: Files,
) -> None:
    """Convert GRAPH to OUTPUT; the formats follow from the names.

    Isolated nodes, ids, errors and provenance travel along, in a file OUTPUT.nnk.npz
    beside formats that cannot hold them. With --labels, Gephi and other programs can
    color the nodes by their 'class'; classes are not read again from GRAPH.

    \b
    Examples:
      nnkgraph convert graph.npz graph.graphml
      nnkgraph convert graph.npz - --to tsv | head
      nnkgraph convert graph.npz graph.gexf --labels table.csv::kind
    """
    files.expect(labels, others=[graph])
    files.check_output(output, format=to)
    if labels is not None:
        formats.check_classes(output, format=to)
    elif any(value is not None for value in files.table.values()):
        raise click.UsageError(
            "--delimiter, --decimal, --header and --id-column are for --labels"
        )
    read, classes = read_graph(graph, from_), None
    if labels is not None:
        classes = files.labels(labels, known=read.ids, minus_one=True)
        say_order(graph, read.ids, classes)
    formats.write_graph(output, read, format=to, labels=classes)
    talk.summary(f"{output}: {read.n_nodes} nodes, {read.n_edges} edges")
    outcome.say_sidecar(output)
