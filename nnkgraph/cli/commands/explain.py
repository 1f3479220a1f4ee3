"""nnkgraph explain: why a node has the neighbors it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nnkgraph.cli import options, say, table_options
from nnkgraph.cli.command import Command

if TYPE_CHECKING:
    from nnkgraph.cli.tables import Tables
    from nnkgraph.data import Features, Graph


@click.command(cls=Command)
@options.features_arg
@click.option(
    "--node",
    required=True,
    metavar="I",
    help="Row number from 0, or an id where the features have ids.",
)
@click.option(
    "--graph",
    type=click.Path(),
    metavar="GRAPH",
    help="Explain this graph of FEATURES: its parameters are taken from it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FIG",
    help="Also draw it: .png, .svg or .pdf.",
)
@click.option(
    "--coords",
    type=click.Path(),
    metavar="FILE",
    show_default="features with 2 or 3 columns, or a plane",
    help="Where the nodes are.",
)
@options.k_opt
@options.method_opt
@options.kernel_opt
@options.sigma_opt
@options.search_opt
@options.scale_opt
@options.workers_opt
@options.executor_opt
@options.seed_opt
@table_options.for_features
@options.no_clobber_opt
@options.json_opt
@options.talk_options
def command(
    features: str,
    node: str,
    graph: str | None,
    output: str | None,
    coords: str | None,
    format: str | None,  # noqa: A002 - the option's name
    table: dict[str, Any],
    no_clobber: bool,
    json: bool,
    **settings: Any,
) -> None:
    """Explain why each candidate of a node was kept or dropped.

    Candidates, bandwidth and weights are those of build with the same options, or of
    --graph, before the two directions of an edge are joined. K is the similarity with
    the node; the residual is K minus what the kept neighbors cover. A candidate is kept
    where that would be positive without it. A dropped one hides behind the neighbor
    that covers most of it, by as much as "term" says; "pairwise" says whether this one,
    or another, is enough to exclude it (kernel ratio interval), or several are needed;
    "alone" means that it would get no weight even as the only candidate. Methods: nnk,
    omp, mp, l1. --json has all digits.

    With -o also a picture, of 2-D or 3-D features or over --coords; of more columns it
    shows the plane in which the candidates spread most. For the Gaussian kernel and 2-D
    features it has the plane of every neighbor.

    \b
    Examples:
      nnkgraph explain points.npy --node 17
      nnkgraph explain points.npy --graph graph.npz --node 17
      nnkgraph explain table.csv --id-column id --node a0 -k 15 -o a0.png
      nnkgraph explain points.npy --node 17 --kernel cosine --json
    """
    from nnkgraph.cli.explained import below, table_of
    from nnkgraph.cli.files import read_graph
    from nnkgraph.cli.progress import Progress
    from nnkgraph.cli.tables import Tables
    from nnkgraph.tasks.explain import explain, explain_built

    if coords is not None and output is None:
        raise click.UsageError("--coords is for a picture: say where with -o")
    files = [one for one in (features, graph, coords) if one is not None]
    if output is not None:
        _check_picture(output, files, no_clobber=no_clobber)
    kernel, built = settings["kernel"], None
    if graph is not None:
        built = read_graph(graph)
        _check_given(graph, built)
        kernel = built.provenance["kernel"]
    tables = Tables([features, coords], **table)
    matrix, where = _read(features, format, coords, tables, kernel)
    if output is not None:
        from nnkgraph.tasks.explain.picture import check_places

        check_places(matrix, where, kernel)
    if built is None:
        found = explain(matrix, node, stages=Progress(), **settings)
    else:
        found = explain_built(matrix, built, node, name=graph or "", stages=Progress())
    for note in found.notes:
        say.summary(note)
    if output is not None:
        _draw(output, found, matrix, where)
    if json:
        from json import dumps

        about = {**found.facts, "candidates": found.candidates}
        say.data(dumps(about, indent=2, allow_nan=False))
    else:
        say.data(f"{table_of(found.candidates)}\n\n{below(found.facts)}")
    _check_quality(found)


def _read(
    features: str,
    format: str | None,  # noqa: A002 - the option's name
    coords: str | None,
    tables: Tables,
    kernel: str,
) -> tuple[Features, Features | None]:
    """Read features, and coordinates where there are any."""
    from nnkgraph import registry
    from nnkgraph.cli.files import read_features

    gram = registry.create("kernels", kernel).base == "gram"
    sparse: Any = "similarities" if gram else ""
    told = tables.features(features, format)
    matrix = read_features(features, format=format, sparse=sparse, **told)
    if coords is None:
        return matrix, None
    told = tables.others(coords, beside=True)
    return matrix, read_features(coords, format=None, **told, known=matrix.ids)


def _draw(output: str, found: Any, matrix: Features, where: Features | None) -> None:
    """Write the picture, and say what it shows."""
    from nnkgraph import formats
    from nnkgraph.tasks.explain.picture import draw_explanation, is_projected
    from nnkgraph.tasks.plot import rendered

    picture = rendered(draw_explanation(found, matrix, where), output)
    formats.write_file(output, picture)
    shown = ""
    if is_projected(matrix, where):
        columns = matrix.x.shape[1]
        shown = (
            f", in the plane where its candidates spread most (of {columns} columns)"
        )
    say.summary(f"{output}: node {found.name} drawn{shown}")


def _check_picture(output: str, inputs: list[str], *, no_clobber: bool) -> None:
    from nnkgraph import formats
    from nnkgraph.tasks.plot import SUFFIXES, new_figure

    formats.check_file(output, suffixes=SUFFIXES, no_clobber=no_clobber, inputs=inputs)
    new_figure(1, 1)  # a missing package is said before the work, not after it


def _check_given(name: str, graph: Graph) -> None:
    """Refuse options that say something else than the graph."""
    from nnkgraph.errors import ParameterError
    from nnkgraph.tasks.explain import contradictions

    ctx = click.get_current_context()
    given = {
        one: ctx.params[one]
        for one in ("k", "method", "kernel", "sigma", "search", "scale", "seed")
        if ctx.get_parameter_source(one) is not ParameterSource.DEFAULT
    }
    for option, ours, theirs in contradictions(given, graph, name):
        raise ParameterError(
            f"--{option} {ours} contradicts {name}, which was built with {option} "
            f"{theirs}: leave one out"
        )


def _check_quality(found: Any) -> None:
    from nnkgraph.errors import QualityError
    from nnkgraph.report import CERTIFICATE_LIMIT

    proof = found.facts["certificate"]
    if proof is not None and not proof <= CERTIFICATE_LIMIT:
        raise QualityError(
            f"node {found.name} misses the certificate of {CERTIFICATE_LIMIT:g}: "
            f"{proof:.1e}; another --sigma may help"
        )
