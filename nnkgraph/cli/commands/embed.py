"""nnkgraph embed: coordinates from a graph."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options, talk, types
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@options.graph_arg
@options.output(
    "Coordinates: .npy, .npz, .csv or .tsv; '-' is stdout, as .csv.", required=True
)
@click.option(
    "-p",
    "--dimensions",
    type=types.whole(1),
    default=2,
    show_default=True,
    help="Coordinates per node.",
)
@options.words(
    "--component",
    "largest each",
    "largest",
    "Embed the largest component only, or each on its own.",
)
@options.graph_format_opt
@options.no_clobber_opt
@options.json_opt
@options.talk_options
def command(
    graph: str,
    output: str,
    dimensions: int,
    component: str,
    format: str | None,  # noqa: A002 - the option's name
    no_clobber: bool,
    json: bool,
) -> None:
    """Embed the nodes of GRAPH by Laplacian eigenmaps.

    The coordinates are the eigenvectors f of L f = lambda D f with the smallest
    eigenvalues after zero, scaled to f^T D f = 1; the largest entry in size of each is
    positive. Nodes outside the largest component are left empty (NaN in .npy and
    .npz); with --component each, components too small for all coordinates get zeros.

    The file is .npy, .npz (with eigenvalues), or .csv or .tsv with ids.

    \b
    Examples:
      nnkgraph embed graph.npz -o coords.npy
      nnkgraph embed graph.npz -p 3 --component each -o coords.csv
      nnkgraph plot graph.npz --coords coords.npy -o graph.png
    """
    from nnkgraph import formats
    from nnkgraph.cli.files import read_graph
    from nnkgraph.cli.progress import Progress
    from nnkgraph.errors import ParameterError
    from nnkgraph.tasks.embed import embed
    from nnkgraph.tasks.tables import EMBEDDING_SUFFIXES, embedding_content

    if output == "-" and json:
        raise ParameterError("stdout takes -o - or --json, not both: name a file")
    endings = () if output == "-" else EMBEDDING_SUFFIXES
    formats.check_file(output, suffixes=endings, no_clobber=no_clobber, inputs=[graph])
    nodes = read_graph(graph, format=format)
    found = embed(
        nodes,
        dimensions=dimensions,
        component=component,
        name=graph,
        progress=Progress(),
    )
    formats.write_file(output, embedding_content(output, nodes, found))
    _say(output, found.facts)
    if json:
        talk.as_json(found.facts)


def _say(output: str, facts: dict[str, Any]) -> None:
    values = ", ".join(f"{one:.4g}" for one in facts["eigenvalues"][:5])
    more = ", ..." if len(facts["eigenvalues"]) > 5 else ""
    whose = " of the largest component" if facts["embedded_components"] > 1 else ""
    talk.summary(
        f"{output}: {facts['embedded_nodes']} nodes in {facts['dimensions']} "
        f"dimensions, eigenvalues{whose}: {values}{more}; residual "
        f"{facts['residual']:.1e}"
    )
    outside = facts["nodes"] - facts["embedded_nodes"]
    if outside:
        talk.warning(
            f"{output}: {outside} of {facts['nodes']} nodes are outside the largest "
            f"component and have no coordinates; --component each embeds all "
            f"{facts['components']} components, or build with --connect mst"
        )
    if facts["embedded_components"] > 1:
        talk.warning(
            f"{output}: {facts['embedded_components']} components have coordinates of "
            f"their own, not to be compared; {facts['padded_nodes']} nodes are in "
            "components too small for all of them, and have zeros"
        )
