"""nnkgraph explain: why a node has the neighbors it has."""

from __future__ import annotations

from typing import Any

import click

from nnkgraph.cli import options, say
from nnkgraph.cli.command import Command


@click.command(cls=Command)
@options.features_arg
@click.option(
    "--node",
    required=True,
    metavar="I",
    help="Row number from 0, or an id where the features have ids.",
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
    help="Where the nodes are, for features that have not 2 or 3 columns.",
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
@options.table_options
@options.no_clobber_opt
@options.json_opt
@options.talk_options
def command(
    features: str,
    node: str,
    output: str | None,
    coords: str | None,
    format: str | None,  # noqa: A002 - the option's name
    delimiter: str | None,
    header: bool | None,
    id_column: str | None,
    drop: tuple[str, ...],
    no_clobber: bool,
    json: bool,
    **settings: Any,
) -> None:
    """Explain why each candidate of a node was kept or dropped.

    Candidates, bandwidth and weights are those of build with the same options, before
    the two directions of an edge are joined. K is the similarity with the node; the
    residual is K minus what the kept neighbors cover. A candidate is kept where that
    would be positive without it. A dropped one names the neighbor that covers most of
    it, and how much (term); "pairwise" says whether a single neighbor, and which, is
    enough to exclude it (kernel ratio interval); "alone" means that it would get no
    weight even as the only candidate. Methods: nnk, omp, mp, l1.

    With -o also a picture, of 2-D or 3-D features or over --coords. For the Gaussian
    kernel and 2-D features it has the plane of every neighbor.

    \b
    Examples:
      nnkgraph explain points.npy --node 17
      nnkgraph explain table.csv --id-column id --node a0 -k 15 -o a0.png
      nnkgraph explain points.npy --node 17 --kernel cosine --json
    """
    from nnkgraph import formats, registry
    from nnkgraph.cli.files import read_features
    from nnkgraph.cli.progress import Progress
    from nnkgraph.cli.tables import Tables
    from nnkgraph.tasks.explain import explain

    kernel = registry.create("kernels", settings["kernel"])
    if coords is not None and output is None:
        raise click.UsageError("--coords is for a picture: say where with -o")
    if output is not None:
        _check_picture(output, features, coords, no_clobber=no_clobber)
    tables = Tables(
        [features, coords],
        delimiter=delimiter,
        header=header,
        id_column=id_column,
        drop=drop,
    )
    matrix = read_features(
        features,
        format=format,
        sparse="similarities" if kernel.base == "gram" else "",
        **tables.features(features, format),
    )
    where = None
    if output is not None:
        from nnkgraph.tasks.explain.picture import check_places

        if coords is not None:
            own = tables.others(coords, beside=True)
            where = read_features(coords, format=None, **own)
        check_places(matrix, where, settings["kernel"])
    found = explain(matrix, node, stages=Progress(), **settings)
    if output is not None:
        from nnkgraph.tasks.explain.picture import draw_explanation
        from nnkgraph.tasks.plot import rendered

        picture = rendered(draw_explanation(found, matrix, where), output)
        formats.write_file(output, picture)
    for note in found.notes:
        say.summary(note)
    if output is not None:
        say.summary(f"{output}: node {found.name} drawn")
    if json:
        from json import dumps

        about = {**found.facts, "candidates": found.candidates}
        say.data(dumps(about, indent=2, allow_nan=False))
    else:
        say.data(f"{_table(found.candidates)}\n\n{_below(found.facts)}")
    _check_quality(found)


def _check_picture(
    output: str, features: str, coords: str | None, *, no_clobber: bool
) -> None:
    from nnkgraph import formats
    from nnkgraph.tasks.plot import SUFFIXES, new_figure

    inputs = [features, *([coords] if coords else [])]
    formats.check_file(output, suffixes=SUFFIXES, no_clobber=no_clobber, inputs=inputs)
    new_figure(1, 1)  # a missing package is said before the work, not after it


def _check_quality(found: Any) -> None:
    from nnkgraph.errors import QualityError
    from nnkgraph.report import CERTIFICATE_LIMIT

    proof = found.facts["certificate"]
    if proof is not None and not proof <= CERTIFICATE_LIMIT:
        raise QualityError(
            f"node {found.name} misses the certificate of {CERTIFICATE_LIMIT:g}: "
            f"{proof:.1e}; another --sigma may help"
        )


def _table(entries: list[dict[str, Any]]) -> str:
    """Return aligned columns, numbers to the right."""
    named = any(entry["id"] is not None for entry in entries)
    head = ["rank", "node", *(["id"] if named else []), "distance", "K", "weight"]
    cells = [[*head, "residual", "result", "redundant to", "term", "pairwise"]]
    cells += [_cells(entry, named=named) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    )


def _cells(entry: dict[str, Any], *, named: bool) -> list[str]:
    name = entry["redundant_to_id"] if named else entry["redundant_to"]
    values = [entry[key] for key in ("distance", "similarity", "weight")]
    return [
        str(entry["rank"]),
        str(entry["node"]),
        *([say.printable(entry["id"])] if named else []),
        *("-" if value is None else f"{value:.6g}" for value in values),
        f"{entry['residual']:.3g}",
        "kept" if entry["kept"] else "dropped",
        "-" if name is None else say.printable(str(name)),
        "-" if entry["term"] is None else f"{entry['term']:.4g}",
        _pairwise(entry, named=named),
    ]


def _pairwise(entry: dict[str, Any], *, named: bool) -> str:
    if entry["kept"]:
        return "-"
    if entry["unwanted"]:
        return "alone"
    by = entry["pairwise_by_ids" if named else "pairwise_by"]
    return f"yes, {say.printable(str(by[0]))}" if by else "no"


def _below(facts: dict[str, Any]) -> str:
    """Return what is known of the node as a whole, a line each."""
    dropped = facts["candidate_count"] - facts["kept"]
    name = str(facts["node"])
    lines: list[tuple[str, Any]] = [
        ("node", name if facts["id"] is None else f"{name} ({facts['id']})"),
        ("kept", f"{facts['kept']} of {facts['candidate_count']}"),
        (
            "dropped",
            f"{dropped}, a single neighbor suffices for {facts['dropped_pairwise']}",
        ),
        ("J", facts["error"]),
        ("K_qq", facts["own_similarity"]),
        ("sum of weights", facts["weight_sum"]),
        ("effective neighbors", facts["effective_neighbors"]),
        ("sigma", facts["sigma"]),
        ("certificate", facts["certificate"]),
    ]
    if facts["kept_against_pairwise"]:
        lines.insert(
            3, ("kept although", f"{facts['kept_against_pairwise']} excluded pairwise")
        )
    return "\n".join(f"{name:<19}  {_short(value)}" for name, value in lines)


def _short(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else say.printable(str(value))
