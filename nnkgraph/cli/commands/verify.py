"""nnkgraph verify: whether a graph is what it says it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nnkgraph.cli import options, talk, types
from nnkgraph.cli.command import Command

if TYPE_CHECKING:
    from nnkgraph.tasks.verify import Verification


@click.command(cls=Command)
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
@options.json_opt
@options.talk_options
def command(
    features: str,
    graph: str,
    sample: int | None,
    seed: int,
    format: str | None,  # noqa: A002 - the option's name
    table: dict[str, Any],
    json: bool,
) -> None:
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
    from nnkgraph.cli.files import read_features, read_graph, split_format
    from nnkgraph.cli.progress import Progress
    from nnkgraph.errors import QualityError
    from nnkgraph.tasks.verify import verify

    of_features, of_graph = split_format(format, [features], graph)
    known = read_graph(graph, format=of_graph)
    kernel = str(known.provenance.get("kernel", ""))
    gram = kernel.partition(":")[0] == "precomputed"  # others may be gone by now
    sparse: Any = "similarities" if gram else ""
    matrix = read_features(features, format=of_features, sparse=sparse, **table)
    found = verify(
        matrix, known, sample=sample, seed=seed, name=graph, progress=Progress()
    )
    if json:
        talk.as_json(_described(found))
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
