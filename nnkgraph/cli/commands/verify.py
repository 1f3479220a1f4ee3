"""nnkgraph verify: whether a graph is what it says it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, read_graph
from nnkgraph.errors import ParameterError, QualityError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.tasks.verify import Verification

_GIVEN = (
    *("k", "method", "kernel", "sigma", "search", "symmetrize", "min_weight"),
    *("min_degree", "weights", "digits", "scale", "duplicates"),
)
"""What made a graph of another program."""


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
@options.shared("k method kernel sigma search symmetrize min_weight min_degree")
@click.option(
    "--weights",
    type=click.Choice(["regression", "kernel", "one", "distance", "any"]),
    help="What edges weigh: what the method gives, the similarity of two nodes, 1, "
    "their distance, or what is not to be compared.",
)
@options.shared("round scale duplicates")
@options.for_features
@options.shared("json")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    features: str,
    graph: str,
    files: Files,
    json: bool,
    sample: int | None,
    seed: int,
    **given: Any,
) -> None:
    """Derive GRAPH again by a slow independent path and compare.

    The parameters are those that the graph carries. Distances, similarities and every
    node's problem are computed anew in float64, by numpy and scipy.optimize.nnls,
    without the search and the solver that build graphs. A line per check; exit code 6
    where one fails.

    A graph of another program carries none: say how it was made, by the options of
    build. -k and --method are needed, and --sigma where weights depend on it. Identical
    rows are nodes like all others there, edges of all weights are expected, and a
    directed graph is --symmetrize none. --search precomputed:path=FILE has the
    candidates of an approximate search. Options that contradict what a graph carries
    are refused.

    \b
    Examples:
      nnkgraph verify points.npy graph.npz
      nnkgraph verify points.npy graph.tsv --sample 1000
      nnkgraph verify points.npy graph.npz --json
      nnkgraph verify points.npy theirs.npz -k 10 --method knn --sigma 0.5
      nnkgraph verify points.npy theirs.mtx -k 10 --method knn --weights one
    """
    from nnkgraph.tasks.verify.recipe import is_foreign

    files.expect(features)
    known = read_graph(graph, files.split_format(graph))
    carried = known.provenance
    if not is_foreign(known):  # what stands in a file of options is for other graphs
        typed = options.typed(ctx, _GIVEN)
        given = {name: one for name, one in given.items() if name in typed}
    lists = _lists(given.get("search"))
    kernel = str(carried.get("kernel") or given.get("kernel") or "")
    plugin = kernel.partition(":")[0]  # others may be gone by now
    known_to_us = plugin in {"precomputed", "distance"}
    matrix = files.features(features, kernel=plugin if known_to_us else "")
    if lists is not None:
        given["candidates"] = formats.read_candidates(lists)
    found = nnkgraph.verify(
        matrix,
        known,
        sample=sample,
        seed=seed,
        name=graph,
        progress=progress.Progress(),
        **given,
    )
    if found.parameters:
        words = ", ".join(
            f"{name.replace('_', '-')} {value}"
            for name, value in found.parameters.items()
            if value
        )
        talk.summary(f"{graph}: does not say how it was built; taken as {words}")
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


def _lists(search: str | None) -> str | None:
    """Return the file with the candidates, where a search names one."""
    if search is None:
        return None
    for path in registry.create("search", search).reads:
        if not path:
            raise ParameterError("--search precomputed needs its file, :path=FILE")
        return str(path)
    return None


def _described(found: Verification) -> dict[str, Any]:
    return {
        "ok": not found.failed,
        "nodes": found.nodes,
        "looked_at": found.looked,
        "parameters": found.parameters,
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


options.without_defaults(command, " ".join(_GIVEN), "what GRAPH says")
