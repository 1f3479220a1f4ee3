"""nnkgraph embed: coordinates from a graph."""

from typing import Any

import click

import nnkgraph
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, read_graph


@options.command
@options.graph_arg
@options.output(
    "Coordinates: .npy, .npz, .csv or .tsv; '-' is stdout, as .csv.", required=True
)
@click.option(
    "-p", "--dimensions", type=types.whole(1), default=2, help="Coordinates per node."
)
@options.words(
    "--component",
    "largest each",
    "largest",
    "Embed the largest component only, or each on its own.",
)
@options.solver
@options.for_graph
@options.shared("no_clobber json")
def command(graph: str, output: str, files: Files, json: bool, **settings: Any) -> None:
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
    from nnkgraph.tasks.tables import EMBEDDING_SUFFIXES, embedding_content

    files.expect(others=[graph])
    files.check_table(output, EMBEDDING_SUFFIXES, json=json)
    nodes = read_graph(graph, files.format)
    found = nnkgraph.embed(nodes, name=graph, progress=progress.Progress(), **settings)
    files.write(output, embedding_content(output, nodes, found))
    _say(output, found.facts)
    if json:
        talk.data(talk.json_text(found.facts))


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
