"""nnkgraph verify: whether a graph is what it says it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, read_graph
from nnkgraph.errors import QualityError

if TYPE_CHECKING:
    from nnkgraph.tasks.verify import Verification


@options.command
@options.features_arg
@options.graph_arg
@click.option(
    "--sample",
    type=types.whole(1),
    metavar="N",
    show_default="all nodes",
    help="Look at so many nodes, drawn at random.",
)
@options.seed("For the draw of the sample.")
@options.for_features
@options.shared("json")
def command(features: str, graph: str, files: Files, json: bool, **draw: Any) -> None:
    """Derive GRAPH again by a slow independent path and compare.

    The parameters are those that the graph carries. Distances, similarities and every
    node's problem are computed anew in float64, by numpy and scipy.optimize.nnls,
    without the search and the solver that build graphs. A line per check; exit code 6
    where one fails.

    \b
    Examples:
      nnkgraph verify points.npy graph.npz
      nnkgraph verify points.npy graph.tsv --sample 1000
      nnkgraph verify points.npy graph.npz --json
    """
    files.expect(features)
    known = read_graph(graph, files.split_format(graph))
    kernel = str(known.provenance.get("kernel", ""))
    given = kernel.partition(":")[0]  # others may be gone by now
    known_to_us = given in {"precomputed", "distance"}
    matrix = files.features(features, kernel=given if known_to_us else "")
    found = nnkgraph.verify(
        matrix, known, name=graph, progress=progress.Progress(), **draw
    )
    if json:
        talk.data(talk.json_text(_described(found)))
    else:
        for check in found.checks:
            start = f"{check.status:<12} {check.name:<11} "
            talk.data(talk.hanging(start, talk.as_options(check.text)))
    talk.summary(f"{graph}: looked at {found.looked} of {found.nodes} nodes")
    if found.failed:
        names = ", ".join(check.name for check in found.failed)
        # Other features explain all other failures; else the last check says most.
        cause = found.failed[0 if found.failed[0].name == "features" else -1]
        raise QualityError(
            f"{graph}: verification failed: {names}; {cause.name}: {cause.text}"
        )


def _described(found: Verification) -> dict[str, Any]:
    return {
        "ok": not found.failed,
        "nodes": found.nodes,
        "looked_at": found.looked,
        "checks": [
            {
                "name": check.name,
                "status": check.status,
                "text": talk.as_options(check.text),
                **check.figures,
            }
            for check in found.checks
        ],
    }
