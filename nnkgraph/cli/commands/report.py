"""nnkgraph report: one page about a graph."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options, talk
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@options.graph_arg
@options.output(
    "Where the page goes; '-' is stdout.", required=True, metavar="FILE.html"
)
@options.file(
    "--features", "What GRAPH was built from: 100 nodes are derived again and compared."
)
@options.file("--labels", "Classes that color the nodes.")
@options.file(
    "--coords",
    "Where the nodes are, in two columns.",
    show_default="laid out by its edges",
)
@options.for_features
@options.no_clobber_opt
@options.talk_options
def command(
    graph: str,
    output: str,
    features: str | None,
    labels: str | None,
    coords: str | None,
    format: str | None,  # noqa: A002 - the option's name
    table: dict[str, Any],
    no_clobber: bool,
) -> None:
    """Write one .html page about GRAPH, to open in any browser.

    It has parameters, certificate, distributions, components and, up to 20,000 nodes,
    the graph itself to zoom into and point at. It loads nothing from the network.

    \b
    Examples:
      nnkgraph report graph.npz -o graph.html
      nnkgraph report graph.npz --features points.npy --labels y.csv -o graph.html
      nnkgraph report graph.npz --coords umap.npy -o graph.html
    """
    from nnkgraph import formats
    from nnkgraph.cli.files import (
        Tables,
        read_features,
        read_graph,
        read_labels,
        say_order,
    )
    from nnkgraph.cli.progress import Progress
    from nnkgraph.runtime.limits import in_words
    from nnkgraph.tasks.page import MOST_NODES, page_facts, written

    given = [one for one in (graph, features, labels, coords) if one is not None]
    endings = () if output == "-" else (".html", ".htm")
    formats.check_file(output, suffixes=endings, no_clobber=no_clobber, inputs=given)
    tables = Tables([features, labels, coords], **table)
    nodes = read_graph(graph)
    gram = str(nodes.provenance.get("kernel", "")).startswith("precomputed")
    found: dict[str, Any] = {}
    if features is not None:
        said = {"format": format, **tables.features(features, format)}
        sparse: Any = "similarities" if gram else "rows"
        found["features"] = read_features(features, **said, sparse=sparse)
    if labels is not None:
        found["labels"] = read_labels(
            labels, **tables.labels(labels), known=nodes.ids, minus_one=True
        )
    if coords is not None:
        said = {"format": None, **tables.others(coords, for_nodes=True)}
        found["coordinates"] = read_features(coords, **said, known=nodes.ids, gaps=True)
    say_order(graph, nodes.ids, found.get("labels"), found.get("coordinates"))
    facts = page_facts(nodes, name=graph, **found, progress=Progress())
    content = written(graph, facts).encode("utf-8")
    formats.write_file(output, content)
    drawn = "drawn" if nodes.n_nodes <= MOST_NODES else "too many to be drawn"
    talk.summary(f"{output}: {in_words(len(content))}, {nodes.n_nodes} nodes {drawn}")
    _check(graph, facts)


def _check(graph: str, facts: dict[str, Any]) -> None:
    """Say also here what the page says of a graph that its features do not give."""
    from nnkgraph.errors import QualityError

    for _, status, text in facts["checks"] or ():
        if status == "not checked":
            talk.warning(f"{graph}: not checked: {text}")
        if status == "FAILED":
            raise QualityError(f"{graph}: {facts['proof']['text']}")
