"""nnkgraph plot: a picture of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, read_graph, say_order
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.data import Graph

_MANY = {"degrees": "degree", "errors": "error"}
"""What --what calls these values, which --values takes as well."""

_OF_NODES = ("labels", "clusters", "audit", "values")


@options.command
@options.graph_arg
@options.file(
    "--coords",
    "Where the nodes are: features with 2 or 3 columns. Rows with NaN are left out.",
    show_default="laid out by its edges",
)
@options.output_opt
@click.option(
    "--what",
    type=types.Word(["graph", "degrees", "weights", "support", "errors", "adjacency"]),
    default="graph",
    help="The graph itself, how degrees, weights, kept candidates or errors "
    "are distributed, or the matrix.",
)
@options.file(
    "--beside", "A second graph, drawn beside it on the same scales.", metavar="GRAPH2"
)
@options.file("--labels", "Classes that color the nodes, or order the matrix.")
@options.drawn
@options.file(
    "--values", "Numbers that color the nodes.", metavar="FILE[::ITEM]|degree|error"
)
@click.option(
    "--edges",
    type=click.Choice(["alpha", "width", "both", "none"]),
    show_default="alpha",
    help="How weight shows: light edges are faint, thin, both, or like the others.",
)
@click.option(
    "--axes",
    type=types.listed("I,J[,K]", int, {2, 3}),
    help="Columns of --coords to draw, counted from 0.",
)
@click.option(
    "--view",
    type=types.listed("ELEVATION,AZIMUTH", float, {2}),
    show_default="30,-60",
    help="Where a 3-D picture is seen from, in degrees.",
)
@click.option(
    "--title",
    # Bytes that are no text cannot be drawn.
    type=types.Parsed(
        "TEXT", lambda word: word.encode("utf-8", "backslashreplace").decode()
    ),
    help="What stands above the picture.",
)
@options.for_features
@options.shared("no_clobber")
def command(
    graph: str,
    output: str,
    what: str,
    beside: str | None,
    title: str | None,
    files: Files,
    **given: Any,
) -> None:
    """Draw GRAPH as .png, .svg or .pdf, or what --what names.

    Without --coords nodes are laid out by their edges: as far apart as along the edges
    where a plane has room for that, else by forces that show groups; components lie
    beside each other. Two graphs share places,
    limits, colors and the scale of weights. Of large graphs a sample is drawn that
    keeps clusters. Of more than 20,000 edges an .svg or .pdf
    holds a picture instead of every line. A matrix of more than 400 nodes shows blocks
    of nodes. Needs matplotlib: pip install 'nnkgraph[plot]'.

    \b
    Examples:
      nnkgraph plot graph.npz -o graph.png
      nnkgraph plot graph.npz --coords points.npy -o graph.png
      nnkgraph plot knn.npz --beside nnk.npz --coords points.npy -o both.png
      nnkgraph plot graph.npz --coords points.h5::x --labels points.h5::y -o y.pdf
      nnkgraph plot graph.npz --clusters clusters.csv --audit audit.csv -o map.png
      nnkgraph plot graph.npz --what degrees -o degrees.svg
      nnkgraph plot graph.npz --what adjacency --labels y.csv -o matrix.png
    """
    from nnkgraph.tasks import plot

    given["values"] = _MANY.get(given["values"], given["values"])
    _check_options(what, given)
    if files.ids and given["coords"] is None:
        raise ParameterError("--ids names the rows of --coords: give both")
    named = [graph, beside] if beside else [graph]
    of_file = None if given["values"] in _MANY.values() else given["values"]
    tables = [given[name] for name in ("coords", "labels", "clusters")]
    files.expect(*tables, of_file, others=[*named, given["audit"]])
    _refuse_page(graph, output)
    files.check_file(output, plot.SUFFIXES)
    plot.new_figure(1, 1)  # a missing package is said before the work, not after it
    graphs = [(name, read_graph(name)) for name in named]
    read = _read(given, files, graphs[0][1])
    if what == "graph" and given["coords"] is None:
        read["coordinates"] = plot.laid_out(graphs, progress=progress.Progress())
    rows = [read[name] for name in ("coordinates", "labels", "clusters", "values")]
    for name, one in graphs:
        say_order(name, one.ids, *(row for row in rows if not isinstance(row, str)))
    if what == "graph":
        figure = plot.draw(graphs, **read, title=title)
    elif what == "adjacency":
        figure = plot.draw_adjacency(graphs, labels=read["labels"], title=title)
    else:
        figure = plot.draw_histograms(graphs, what, title=title)
    files.write(output, plot.rendered(figure, output))
    left_out = 0
    if what == "graph":
        left_out = plot.count_unplaced(graphs, read["coordinates"], read["axes"])
    if left_out:
        talk.warning(
            f"{read['coordinates'].name}: {left_out} "
            f"{'node has' if left_out == 1 else 'nodes have'} no coordinates and "
            f"{'is' if left_out == 1 else 'are'} left out"
        )
    if what == "graph" and given["coords"] is None:
        talk.summary(f"{graph}: laid out by the edges between nodes; or give --coords")
    nodes = graphs[0][1].n_nodes
    some = f"{nodes - left_out} of {nodes}" if left_out and not beside else f"{nodes}"
    if what == "graph" and nodes - left_out > given["sample"]:
        some = f"{given['sample']} (a sample, --sample) of {nodes}"
    talk.summary(f"{output}: {what} of {some} nodes drawn")


def _refuse_page(graph: str, output: str) -> None:
    if output.lower().endswith((".html", ".htm")):
        raise ParameterError(
            f"{output}: pictures are .png, .svg or .pdf; a page is what "
            f"`nnkgraph report {graph} -o {output}` writes"
        )


def _check_options(what: str, given: dict[str, Any]) -> None:
    """Refuse what would have no effect."""
    for name in (*_OF_NODES, "coords", "edges", "axes", "view"):
        kinds = ("graph", "adjacency") if name == "labels" else ("graph",)
        if given[name] is not None and what not in kinds:
            raise ParameterError(
                f"--{name} has no effect on --what {what}; leave it out, or ask for "
                f"--what {' or '.join(kinds)}"
            )
    for name in ("axes", "view"):
        if given[name] is not None and given["coords"] is None:
            raise ParameterError(f"--{name} is of use with --coords FILE only")
    if sum(given[name] is not None for name in ("labels", "clusters", "values")) > 1:
        raise ParameterError(
            "nodes have one color each: --labels, --clusters or --values, not both"
        )


def _read(given: dict[str, Any], files: Files, graph: Graph) -> dict[str, Any]:
    """Read what belongs to the nodes, and put it beside the other options."""
    coords, ids = given["coords"], graph.ids
    labels, clusters, audit, values = (given[name] for name in _OF_NODES)
    found: dict[str, Any] = {"coordinates": None, "labels": None, "values": values}
    found |= {"clusters": None, "findings": None}
    if coords is not None:
        found["coordinates"] = files.coordinates(
            coords, ids, format=files.format, ids=files.ids
        )
    if labels is not None:
        found["labels"] = files.named_labels(labels, known=ids, minus_one=True)
    if clusters is not None:
        found["clusters"] = files.clusters(clusters, ids)
    if audit is not None:
        found["findings"] = files.findings(audit, graph)
    if values is not None and values not in _MANY.values():
        found["values"] = files.values(values, ids)
    found |= {name: given[name] for name in ("axes", "view", "seed")}
    return {**found, "most": given["sample"], "edges": given["edges"] or "alpha"}
