"""nnkgraph cluster: communities of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, read_graph, say_order

if TYPE_CHECKING:
    from nnkgraph.tasks.cluster import Clustered, Partition

_RESOLUTIONS = {
    "resolution": ("resolution", "{:g}"),
    "clusters": ("clusters", "{}"),
    "modularity": ("modularity", "{:.4f}"),
    "largest": ("largest", "{}"),
    "smallest": ("smallest", "{}"),
    "ami": ("AMI", "{:.4f}"),
    "ari": ("ARI", "{:.4f}"),
}
_CLUSTERS = {
    "cluster": ("cluster", "{}"),
    "nodes": ("nodes", "{}"),
    "medoid": ("medoid", "{}"),
    "class": ("commonest class", "{}"),
    "share": ("share", "{:.1%}"),
}
"""What is said: the name, its head on a terminal, and how it is shown."""

_LONGEST = 30
"""Letters of a name that the table on the terminal has room for."""


@options.command
@options.graph_arg
@options.output(
    "Clusters of all nodes: .csv, .tsv or .parquet; '-' is stdout, as .csv.",
    required=True,
)
@click.option(
    "--resolution",
    type=types.POSITIVE,
    default="1",
    help="A larger one gives more and smaller clusters; several are compared.",
)
@options.seed("Clusters of another seed differ a little.")
@options.file("--labels", "Classes of the nodes, to compare with.")
@options.unlabeled
@click.option(
    "--top",
    type=types.whole(0),
    default=10,
    help="Clusters that are listed, the largest first.",
)
@options.for_labels
@options.shared("no_clobber json")
def command(
    graph: str,
    output: str,
    labels: str | None,
    unlabeled: str | None,
    top: int,
    files: Files,
    json: bool,
    **settings: Any,
) -> None:
    """Find clusters of GRAPH: communities by Leiden.

    The file has id and cluster, whole numbers from 0, the largest first; nodes without
    an edge have -1. Of several resolutions it has a column each, such as cluster_0.5.
    Plot and report take it as --clusters, convert as --labels. A medoid is the node
    with the most weight inside. The same graph has the same clusters every time.

    AMI and ARI say how clusters and --labels agree: 1 is the same, 0 is chance. Needs
    graspologic-native: pip install 'nnkgraph[cluster]'.

    \b
    Examples:
      nnkgraph cluster graph.npz -o clusters.csv
      nnkgraph cluster g.npz --resolution 0.5,1,2 --labels y.csv -o clusters.csv
      nnkgraph plot graph.npz --clusters clusters.csv -o clusters.png
      nnkgraph convert graph.npz graph.graphml --labels clusters.csv::cluster_0.5
    """
    from nnkgraph.tasks.tables import CLUSTER_SUFFIXES, cluster_content

    files.expect(labels, others=[graph])
    files.check_table(output, CLUSTER_SUFFIXES, json=json)
    nodes, classes = read_graph(graph, files.format), None
    if labels is not None:
        meaning: Any = {"missing": unlabeled, "minus_one": True, "known": nodes.ids}
        classes = files.labels(labels, **meaning)
        say_order(graph, nodes.ids, classes)
    stages = progress.Progress()
    found = nnkgraph.cluster(nodes, classes, name=graph, progress=stages, **settings)
    files.write(output, cluster_content(output, nodes, found))
    listed = [_listed(nodes, one, classes) for one in found.partitions]
    _say(graph, output, labels, found)
    if json:
        lines = [
            {**one.facts, "by_cluster": rows}
            for one, rows in zip(found.partitions, listed, strict=True)
        ]
        facts = {**found.facts, "resolutions": lines, "seconds": stages.seconds}
        talk.data(talk.json_text(facts))
    elif output != "-":
        talk.listing(_text(found, listed[0], top))


def _listed(
    graph: nnkgraph.Graph, one: Partition, labels: nnkgraph.Labels | None
) -> list[dict[str, Any]]:
    """Return a line for every cluster."""
    names = range(graph.n_nodes) if graph.ids is None else graph.ids
    lines: list[dict[str, Any]] = [
        {"cluster": at, "nodes": size, "medoid": names[medoid]}
        for at, (size, medoid) in enumerate(
            zip(one.sizes.tolist(), one.medoids.tolist(), strict=True)
        )
    ]
    if one.agreement is not None and labels is not None:
        told = zip(one.agreement.commonest, one.agreement.purity, strict=True)
        for line, (code, share) in zip(lines, told, strict=True):
            known = code >= 0
            line["class"] = labels.classes[code] if known else None
            line["share"] = float(share) if known else None
    return lines


def _text(found: Clustered, clusters: list[dict[str, Any]], top: int) -> str:
    """Return a table of the resolutions and, of a single one, its largest clusters."""
    lines = [one.facts for one in found.partitions]
    text = talk.table(lines, _columns(_RESOLUTIONS, lines), left=0)
    if len(lines) > 1 or not top:
        return text
    texts = {"medoid", "class"}
    short = [
        {name: _short(one) if name in texts else one for name, one in line.items()}
        for line in clusters[:top]
    ]
    more = f"\n... {len(clusters) - top} more" * (len(clusters) > top)
    return f"{text}\n\n{talk.table(short, _columns(_CLUSTERS, short), left=0)}{more}"


def _columns(
    every: dict[str, tuple[str, str]], lines: list[dict[str, Any]]
) -> dict[str, tuple[str, str]]:
    return {name: shape for name, shape in every.items() if name in lines[0]}


def _short(name: str | int | None) -> str | None:
    if name is None:
        return None
    text = talk.printable(str(name))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _say(graph: str, output: str, labels: str | None, found: Clustered) -> None:
    facts = found.facts
    nodes, isolated = facts["nodes"], facts["isolated"]
    talk.summary(
        f"{graph}: {nodes} nodes, {facts['edges']} edges, isolated: {isolated}",
        f"{output}: {', '.join(str(len(one.sizes)) for one in found.partitions)} "
        f"clusters, seed {facts['seed']}",
    )
    if isolated:
        talk.warning(
            f"{graph}: {isolated} of {nodes} nodes have no edge and are in no cluster "
            "(-1); build with --min-degree 3 to join them"
        )
    if labels is None:
        return
    missing = nodes - facts["labelled"]
    if missing:
        talk.summary(f"{labels}: {missing} of {nodes} nodes have no label: left out")
    if facts["classes"] == 1:
        talk.warning(f"{labels}: there is only one class: AMI and ARI say nothing")
