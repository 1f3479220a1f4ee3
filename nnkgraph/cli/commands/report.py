"""nnkgraph report: one page about a graph."""

from typing import Any

from nnkgraph.cli import options, progress, talk
from nnkgraph.cli.files import Files, read_graph, say_order
from nnkgraph.errors import ParameterError, QualityError
from nnkgraph.runtime.limits import in_words


@options.command
@options.graph_arg
@options.output(
    "Where the page goes; '-' is stdout.", required=True, metavar="FILE.html"
)
@options.file(
    "--features", "What GRAPH was built from: 100 nodes are derived again and compared."
)
@options.file("--labels", "Classes that color the nodes.")
@options.drawn
@options.file(
    "--coords",
    "Where the nodes are, in two columns.",
    show_default="laid out by its edges",
)
@options.for_features
@options.shared("no_clobber")
def command(
    graph: str,
    output: str,
    features: str | None,
    labels: str | None,
    clusters: str | None,
    audit: str | None,
    coords: str | None,
    sample: int,
    seed: int,
    files: Files,
) -> None:
    """Write one .html page about GRAPH, to open in any browser.

    The graph itself comes first, to zoom into and point at, colored by --clusters or
    --labels, with the findings of --audit as layers; then certificate, distributions,
    components, parameters. Of large graphs a sample is drawn that keeps clusters. The
    page loads nothing from the network.

    \b
    Examples:
      nnkgraph report graph.npz -o graph.html
      nnkgraph report graph.npz --features points.npy --labels y.csv -o graph.html
      nnkgraph report g.npz --clusters clusters.csv --audit audit.csv -o g.html
      nnkgraph report graph.npz --coords umap.npy -o graph.html
    """
    from nnkgraph.tasks.page import page_facts, written

    if files.ids and features is None:
        raise ParameterError("--ids names the rows of --features: give both")
    files.expect(features, labels, clusters, coords, others=[graph, audit])
    files.check_file(output, (".html", ".htm"), stdout=True)
    nodes, found = read_graph(graph), dict[str, Any]()
    kernel = str(nodes.provenance.get("kernel", "")).partition(":")[0]
    gram = kernel in {"precomputed", "distance"}
    if features is not None:
        found["features"] = files.features(features, kernel="precomputed" * gram)
    if labels is not None:
        of = found.get("features")
        found["labels"] = files.named_labels(
            labels, of, known=nodes.ids, minus_one=True
        )
    if clusters is not None:
        found["clusters"] = files.clusters(clusters, nodes.ids)
    if audit is not None:
        found["findings"] = files.findings(audit, nodes)
    if coords is not None:
        found["coordinates"] = files.coordinates(coords, nodes.ids)
    say_order(graph, nodes.ids, *map(found.get, ("labels", "clusters", "coordinates")))
    found |= {"most": sample, "seed": seed, "progress": progress.Progress()}
    facts = page_facts(nodes, name=graph, **found)
    content = written(graph, facts).encode("utf-8")
    files.write(output, content)
    drawn, every = facts["graph"]["n"], nodes.n_nodes
    some = f"{drawn} of {every} nodes drawn, a sample (--sample {sample})"
    some = some if drawn < every else f"{every} nodes drawn"
    talk.summary(f"{output}: {in_words(len(content))}, {some}")
    # What the page says of a graph that its features do not give is said here, too.
    for _, status, text in facts["checks"] or ():
        if status == "not checked":
            talk.warning(f"{graph}: not checked: {text}")
        if status == "FAILED":
            raise QualityError(f"{graph}: {facts['proof']['text']}")
