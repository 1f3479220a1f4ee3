"""nnkgraph explain: why a node has the neighbors it has."""

from __future__ import annotations

from typing import Any

import click

import nnkgraph
from nnkgraph.cli import options, outcome, progress, talk
from nnkgraph.cli.files import Files, read_graph
from nnkgraph.errors import ParameterError, QualityError

_ROUNDING = 1e-12
"""Residuals below this are what arithmetic leaves of zero."""


def table_of(entries: list[dict[str, Any]]) -> str:
    """Return aligned columns, numbers to the right.

    Ids stand for their nodes where the lines fit a terminal; else they come last.
    """
    ids = [talk.printable(entry["id"]) for entry in entries if entry["id"] is not None]
    lines = _lines(entries, named=bool(ids))
    if ids and max(map(len, lines)) > talk.WIDTH:
        lines = _lines(entries, named=False)
        last = ["id", *ids]
        lines = [f"{line}  {one}" for line, one in zip(lines, last, strict=True)]
    return "\n".join(line.rstrip() for line in lines)


def _lines(entries: list[dict[str, Any]], *, named: bool) -> list[str]:
    head = ["#", "node", "distance", "cosine", "K", "weight", "residual", "behind"]
    cells = [[*head, "term", "pairwise"]]
    cells += (_cells(entry, named=named) for entry in entries)
    if not any(entry["cosine"] is not None for entry in entries):
        cells = [[*line[:3], *line[4:]] for line in cells]
    return talk.aligned(cells, left=0).split("\n")


def _cells(entry: dict[str, Any], *, named: bool) -> list[str]:
    behind = entry["redundant_to_id" if named else "redundant_to"]
    by = entry["pairwise_by_ids" if named else "pairwise_by"]
    if entry["kept"] or entry["unwanted"]:
        pairwise = "-" if entry["kept"] else "alone"
    elif not by:
        pairwise = "no"
    else:
        pairwise = "yes" if by[0] == behind else f"by {_short(by[0])}"
    return [
        str(entry["rank"]),
        _short(entry["id" if named else "node"]),
        _short(entry["distance"], 3),
        _short(entry["cosine"], 3),
        _short(entry["similarity"], 3),
        _short(entry["weight"], 3) if entry["kept"] else "dropped",
        "0" if abs(entry["residual"]) < _ROUNDING else f"{entry['residual']:.2g}",
        _short(behind),
        _short(entry["term"], 3),
        pairwise,
    ]


def below(facts: dict[str, Any]) -> str:
    """Return what is known of the node as a whole, a line each."""
    dropped = facts["candidate_count"] - facts["kept"]
    pairwise, against = facts["dropped_pairwise"], facts["kept_against_pairwise"]
    name = str(facts["node"])
    lines: list[tuple[str, Any]] = [
        ("node", name if facts["id"] is None else f"{name} ({facts['id']})"),
        ("kept", f"{facts['kept']} of {facts['candidate_count']}"),
        ("dropped", f"{dropped}, a single neighbor suffices for {pairwise}"),
        ("J", facts["error"]),
        ("K_qq", facts["own_similarity"]),
        ("sum of weights", facts["weight_sum"]),
        ("effective neighbors", facts["effective_neighbors"]),
        ("sigma", facts["sigma"]),
        ("distance", outcome.metric_text(facts["metric"], facts["scale"])),
        ("certificate", facts["certificate"]),
    ]
    if against:
        lines.insert(3, ("kept although", f"{against} excluded pairwise"))
    if "edges" in facts:
        text = f"{facts['edges']}, rule {facts['rule']}"
        if facts["weights"] != "regression":
            text += f", weights {facts['weights']}"
        lines.append(("edges in the graph", text))
    return "\n".join(f"{name:<19}  {_short(value)}" for name, value in lines)


def _short(value: object, digits: int = 6) -> str:
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "-" if value is None else talk.printable(str(value))


@options.command
@options.features_arg
@click.option(
    "--node",
    required=True,
    metavar="I",
    help="Row number from 0, or an id where the features have ids.",
)
@options.file(
    "--graph",
    "Explain this graph of FEATURES: its parameters are taken from it.",
    metavar="GRAPH",
)
@options.output("Also draw it: .png, .svg or .pdf.", metavar="FIG")
@options.file(
    "--coords",
    "Where the nodes are.",
    metavar="FILE",
    show_default="features with 2 or 3 columns, or a plane",
)
@options.shared("preset k method kernel sigma search scale pca workers executor seed")
@options.for_features
@options.shared("no_clobber json")
def command(
    features: str,
    node: str,
    graph: str | None,
    output: str | None,
    coords: str | None,
    files: Files,
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
    from nnkgraph.build.report import CERTIFICATE_LIMIT
    from nnkgraph.tasks.explain import explain_built, picture
    from nnkgraph.tasks.plot import SUFFIXES, new_figure, rendered

    if coords is not None and output is None:
        raise click.UsageError("--coords is for a picture: say where with -o")
    files.expect(features, coords, others=[graph])
    if output is not None:
        files.check_file(output, SUFFIXES)
        new_figure(1, 1)  # a missing package is said before the work, not after it
    kernel, built = settings["kernel"], None
    if graph is not None:
        built = read_graph(graph)
        _check_given(graph, built)
        kernel = built.provenance["kernel"]
    matrix, where = files.features(features, kernel=kernel), None
    if coords is not None:
        where = files.coordinates(coords, matrix.ids, gaps=False)
    if output is not None:
        picture.check_places(matrix, where, kernel)
    told = progress.Progress()
    if built is None:
        found = nnkgraph.explain(matrix, node, progress=told, **settings)
    else:
        found = explain_built(matrix, built, node, name=graph or "", progress=told)
    talk.summary(*told.unsaid(found.notes))
    if output is not None:
        figure = picture.draw_explanation(found, matrix, where)
        files.write(output, rendered(figure, output))
        shown = ""
        if picture.is_projected(found, matrix, where):
            plane = "in the plane where its candidates spread most"
            shown = f", {plane} (of {matrix.x.shape[1]} columns)"
        talk.summary(f"{output}: node {found.name} drawn{shown}")
    about = {**found.facts, "candidates": found.candidates}
    text = f"{table_of(found.candidates)}\n\n{below(found.facts)}"
    talk.data(talk.json_text(about) if json else text)
    proof = found.facts["certificate"]
    if proof is not None and not proof <= CERTIFICATE_LIMIT:
        raise QualityError(
            f"node {found.name} misses the certificate of {CERTIFICATE_LIMIT:g}: "
            f"{proof:.1e}; another --sigma may help"
        )


def _check_given(name: str, graph: nnkgraph.Graph) -> None:
    """Refuse options that say something else than the graph."""
    from nnkgraph.tasks.verify.recipe import contradictions

    ctx = click.get_current_context()
    given = {
        one: ctx.params[one]
        for one in ("k", "method", "kernel", "sigma", "search", "scale", "pca", "seed")
        if ctx.get_parameter_source(one) is not click.core.ParameterSource.DEFAULT
    }
    for option, ours, theirs in contradictions(given, graph, name):
        raise ParameterError(
            f"--{option} {ours} contradicts {name}, which was built with {option} "
            f"{theirs}: leave one out"
        )
