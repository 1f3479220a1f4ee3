"""nnkgraph build: features to graph."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, outcome, talk, types
from nnkgraph.cli.files import Files, folder_of
from nnkgraph.errors import InputError, NnkGraphError, ParameterError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.build.shards import Shard
    from nnkgraph.data import Features

_MIN_DEGREE = 3
"""With --into: isolated cells are no use to anyone."""


_GRAPH_SAYS = (
    "preset k method kernel sigma search symmetrize min_weight min_degree weights "
    "connect grow max_k digits scale pca duplicates seed"
)
"""What --like answers."""


@dataclass(frozen=True)
class _Job:
    """One input, where its results go, and how they get there."""

    features: str
    output: str
    report: str | None
    resume: str | None
    files: Files
    write_format: str | None
    into: str | None
    key_added: str | None
    shard: Shard | None


def _build_one(
    job: _Job,
    settings: dict[str, Any],
    *,
    dry_run: bool,
    min_recall: float | None,
    memory: int | None,
) -> None:
    """Check the names, read, build, write, and say what became of it."""
    from nnkgraph.build.budget import check_output_room
    from nnkgraph.build.settings import DEFAULT_K
    from nnkgraph.tasks.columns import column_remarks

    place = _check_names(job)
    run = outcome.Measured()
    with run.within(memory):
        with run("read"):
            kernel = settings["kernel"]
            matrix = job.files.features(job.features, kernel=kernel)
        if place:
            place.check(matrix)
        elif not job.shard:
            formats.check_ids(job.output, matrix.ids, format=job.write_format)
        n, d = matrix.x.shape
        talk.detail(f"{job.features}: {n} x {d} {matrix.dtype}")
        remarks = column_remarks(matrix, kernel, settings["scale"])
        talk.summary(*(f"{job.features}: {remark}" for remark in remarks))
        k = min(settings["k"] or DEFAULT_K, n)
        if dry_run:
            k = _say_plan(job, matrix, settings)
        # A shard keeps all candidates, which takes more than a graph.
        rows = 10 * n // job.shard.count if job.shard else n
        more = place.identity[1] if place else _say_size(job, settings, n, k)
        check_output_room(job.output, rows, k, more)
        if dry_run:
            return
        known = _made(job, place, matrix, settings, run)
    full = outcome.write_report(job.report, known, run)
    said = {**full, "notes": run.unsaid(full["notes"])}
    outcome.say_result(job.features, job.output, said)
    outcome.check_quality(job.output, full, min_recall)


def _say_size(job: _Job, settings: dict[str, Any], n: int, k: int) -> int:
    """Say how many bytes updates need in the graph's file, and return them."""
    from nnkgraph.data import Updatable
    from nnkgraph.runtime.limits import in_words

    if not settings["updatable"]:
        return 0
    size = Updatable.size(n, k)
    talk.summary(f"{job.output}: about {in_words(size)} of it will be for updates")
    return size


def _asked(settings: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """Return what the library is told: all, or what a graph does not say already."""
    if settings["like"] is None:
        left_out += ("like",)
    else:
        left_out += tuple(_GRAPH_SAYS.split())
    return {name: one for name, one in settings.items() if name not in left_out}


def _like(
    path: str, settings: dict[str, Any], into: str | None, ctx: click.Context
) -> dict[str, Any]:
    """Return the settings with those of a graph."""
    from nnkgraph.cli.files import read_graph

    options.refuse_typed(ctx, _GRAPH_SAYS, "--like")
    if into is not None:
        raise ParameterError("--into and --like: a graph like another is a file")
    graph = read_graph(path)
    known, shown = graph.provenance, dict[str, Any]()
    shown |= {
        name: str(known.get(name, settings[name])) for name in ("method", "kernel")
    }
    search = str(known.get("search", ""))
    search = search if search in {"exact", "kdtree"} else "auto"
    k, scale = known.get("k"), known.get("scale", "none")
    shown |= {"k": k if type(k) is int else None, "scale": scale, "search": search}
    shown["pca"] = known.get("pca")
    return {**settings, **shown, "like": graph}


def _check_names(job: _Job) -> formats.Place | None:
    """Check before any reading that results can be written; return a file to add to."""
    place = None
    if job.into:
        kept = job.files.no_clobber
        place = formats.find_place(
            job.output, job.key_added, job.features, no_clobber=kept
        )
        talk.detail(f"{job.output}: {place.cells} cells")
    elif job.shard:
        check_shard_file(job.output, job.write_format, job.files)
    else:
        job.files.check_output(job.output, format=job.write_format)
    outcome.check_report(job.report, job.output, job.files)
    for name in (job.output, job.report):
        if job.resume and name and not formats.is_stream(name):
            parents = Path(os.path.realpath(name)).parents
            if Path(os.path.realpath(job.resume)) in parents:
                raise ParameterError(
                    f"{name}: is in the directory of --resume, which is removed once "
                    "the graph is written; name another"
                )
    return place


def check_updatable_file(output: str, format_: str | None) -> None:
    """Refuse a format that has no room for what updates need."""
    written = (format_ or "").rpartition(",")[2] or output.lower().rpartition(".")[2]
    if not written.endswith("npz"):
        raise ParameterError(
            f"{output}: what updates need is kept in .npz files only: leave out "
            "--updatable, or write .npz"
        )


def check_shard_file(output: str, format_: str | None, files: Files) -> None:
    """Check before any computing that a shard can be written."""
    if format_ not in {None, "npz"} or not output.lower().endswith(".npz"):
        raise ParameterError(
            f"{output}: a shard is an npz file, whatever it is merged to: give it a "
            "name such as part-1.npz, and merge the format"
        )
    files.check_file(output)


def _made(
    job: _Job,
    place: formats.Place | None,
    matrix: Features,
    settings: dict[str, Any],
    progress: outcome.Measured,
) -> dict[str, Any]:
    """Build and write a graph, or a shard of one; return what is known about it."""
    from nnkgraph.runtime.checkpoint import remove_checkpoint

    running: dict[str, Any] = {"resume": job.resume, "progress": progress}
    running["shared_dir"] = folder_of(job.output)
    if job.shard:
        from nnkgraph.build.shards import WHOLE, build_shard, write_part

        chosen = _asked(settings, *WHOLE)
        part, known = build_shard(matrix, job.shard, **chosen, **running)
        with progress("write"):
            write_part(job.output, part)
    else:
        graph = nnkgraph.build_graph(matrix, **_asked(settings), **running)
        known = graph.report.as_dict()
        with progress("write"):
            if place is None:
                formats.write_graph(job.output, graph, format=job.write_format)
            else:
                place.write(graph)
                *matrices, about = place.keys.paths
                if graph.distances is None:
                    matrices.pop()
                names = f"{', '.join(matrices)} and {about}"
                talk.summary(f"{job.output}: holds {names} now")
    if job.resume:
        remove_checkpoint(Path(job.resume))
    return known


def _target(
    features: tuple[str, ...],
    output: str | None,
    into: str | None,
    key_added: str | None,
    shard: Shard | None,
) -> str:
    """Return where graphs go; there is one way."""
    if into is None:
        if output is None:
            raise ParameterError(
                "Missing option '-o' / '--output' (or --into FILE.h5ad)"
            )
        if key_added is not None:
            raise ParameterError("--key-added is of use with --into only")
        return output
    if output is not None:
        raise ParameterError("--into and --output: a graph goes to one place; use one")
    if shard is not None:
        raise ParameterError("--into takes whole graphs: merge shards to a file")
    if len(features) > 1:
        raise ParameterError("--into takes one input at a time")
    return into


def _defaults_into(path: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that nobody has made, so that no cell stays alone."""
    if settings["symmetrize"] == "none":
        raise ParameterError("--into needs an undirected graph: use another rule")
    method = registry.create("methods", settings["method"])
    kernel = registry.create("kernels", settings["kernel"])
    made: dict[str, Any] = {}
    if settings["preset"] is not None:
        return made
    if settings["min_degree"] is None:
        made["min_degree"] = _MIN_DEGREE
    # A bandwidth may be in the kernel's own words, and methods may need a single one.
    if (
        settings["sigma"] is None
        and kernel == type(kernel)()
        and hasattr(kernel, "sigma")
    ):
        with suppress(ParameterError):
            method.check(replace(kernel, sigma="local"))
            made["sigma"] = "local"
    if made:
        words = " and ".join(f"`{name}={value!r}`" for name, value in made.items())
        talk.summary(f"{path}: {words} by default, so that no cell stays alone")
    return made


def _jobs(features: tuple[str, ...], common: _Job) -> list[_Job]:
    """Put each input's name into the names of its results."""
    asked = {key: getattr(common, key) for key in ("output", "report", "resume")}
    for option, value in asked.items():
        if len(features) > 1 and value is not None and "{name}" not in value:
            _check_there(features)
            raise ParameterError(
                f"--{option}: several inputs need {{name}} in the file name, as in "
                "'graphs/{name}.npz'"
            )
    jobs: dict[str, _Job] = {}
    for spec in features:
        path, item = formats.split_item(spec)
        name = PurePath(PurePath(path).name.removesuffix(".gz")).stem
        name += f"-{item.replace('/', '-')}" if item else ""
        names = {key: one and one.replace("{name}", name) for key, one in asked.items()}
        job = replace(common, features=spec, **names)
        if job.output in jobs:
            raise ParameterError(
                f"{jobs[job.output].features} and {spec} would both be written to "
                f"{job.output}"
            )
        jobs[job.output] = job
    return list(jobs.values())


def _check_there(features: tuple[str, ...]) -> None:
    """Refuse words that are no files: they may belong to the option before them."""
    for spec in features:
        path = formats.split_item(spec)[0]
        if path != "-" and not os.path.lexists(path):
            raise InputError(
                f"{spec}: no such file; several columns of an option have "
                "commas between them, and no blanks: --drop city,segment"
            )


def _say_plan(job: _Job, matrix: Features, settings: dict[str, Any]) -> int:
    """Check what can be checked, say what would be done, and return the k."""
    from nnkgraph.build.budget import check_budget, estimate
    from nnkgraph.build.run import estimated_seconds
    from nnkgraph.build.settings import Running, RunningOptions, settings_of
    from nnkgraph.runtime import registry
    from nnkgraph.runtime.arrays import memory_limit
    from nnkgraph.runtime.limits import granted_cpus, in_words

    shard, how = job.shard, RunningOptions.__annotations__
    chosen = _asked(settings, *how, "k_check", "updatable")
    plan = settings_of(matrix, chosen)
    running = Running(settings["workers"], settings["executor"])
    if shard is not None:
        from nnkgraph.build.shards import check_shards

        check_shards(plan)
    for path in plan.search.reads:
        formats.read_candidates(path)
    (n, d), seen = matrix.x.shape, plan.seen(matrix)
    chosen_search, why = plan.search.chosen(seen, plan.k, plan.kernel.nearness)
    search = registry.spec(chosen_search) + (f" ({why})" if why else "")
    seconds = estimated_seconds(seen, plan.k)
    span = None if shard is None else shard.rows(n)
    needed = estimate(matrix, plan, running, seconds, span)
    part = "" if shard is None else f" as shard {shard}"
    workers = settings["workers"]
    workers = f"up to {granted_cpus()}" if workers == "auto" else workers
    talk.summary(
        f"{job.features}: {n} x {d}, readable and finite; would be built with "
        f"{'' if plan.pca is None else f'pca {plan.pca}, '}k {plan.k}, method "
        f"{settings['method']}, kernel {settings['kernel']}, search {search}, rule "
        f"{plan.rule}, {workers} workers, into {job.output}{part}"
    )
    talk.summary(
        f"{job.features}: about {in_words(needed.memory)} of memory, "
        f"{in_words(needed.scratch)} of temporary files and at most "
        f"{in_words(needed.output)} of output; {in_words(memory_limit())} of memory "
        "may be used"
    )
    check_budget(needed)
    return plan.k


@options.command
@click.argument("features", nargs=-1, required=True, type=click.Path())
@options.output("Where the graph goes; '-' is stdout.")
@options.file(
    "--into",
    "Put the graph into an AnnData file instead, for scanpy.",
    metavar="FILE.h5ad",
)
@click.option(
    "--key-added",
    metavar="NAME",
    show_default="neighbors",
    help="Name of the graph in the AnnData file.",
)
@options.file(
    "--like",
    "Take all settings from a graph, with sigma and the scaling as numbers.",
    metavar="GRAPH",
)
@options.shared("preset k method kernel sigma search")
@options.shared("symmetrize min_weight min_degree")
@click.option(
    "--weights",
    type=click.Choice(["regression", "kernel", "one"]),
    show_default="as the preset says",
    help="What edges weigh: what the method gives, the similarity of two nodes, or 1.",
)
@options.words(
    "--connect",
    "none mst",
    "none",
    "Add the shortest bridges between components; they are marked in the graph.",
)
@click.option(
    "--grow",
    type=types.number(0, inside=True),
    metavar="TOL",
    help="More candidates for nodes, until none outside has a residual above TOL.",
)
@click.option(
    "--max-k",
    type=types.whole(1),
    show_default="8 k",
    help="The most candidates that nodes may grow to.",
)
@click.option(
    "--k-check",
    is_flag=True,
    help="Report what residual a point outside the candidates could have.",
)
@click.option(
    "--updatable",
    is_flag=True,
    help="Keep in the .npz file what 'nnkgraph update' needs.",
)
@options.shared("round")
@click.option(
    "--min-recall",
    type=types.number(0, 1),
    metavar="SHARE",
    help="Fail where the estimated recall of the search is below this.",
)
@options.shared("scale pca duplicates workers executor")
@options.shared("shard memory resume block_timeout seed")
@options.for_features
@options.shared("no_clobber")
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@options.shared("report")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    features: tuple[str, ...],
    output: str | None,
    into: str | None,
    key_added: str | None,
    report: str | None,
    resume: str | None,
    shard: Shard | None,
    files: Files,
    **given: Any,
) -> None:
    """Build a graph from FEATURES, a node per row.

    FEATURES is a file, FILE::DATASET, a pattern such as 'parts/*.npy' for files whose
    rows follow each other, or '-' for stdin.

    Input: .npy, .npz, .csv, .tsv, .txt, .mtx (also .gz), .h5, .h5ad, .parquet, .mat,
    or a folder of 10x Genomics.
    Output: .npz, .tsv, .csv, .edgelist (also .gz), .graphml, .gexf, .mtx, .parquet,
    .pyg.npz, .mat. Several inputs in one call need {name} in the output's name; a bad
    one does not stop the others.

    \b
    Examples:
      nnkgraph build points.npy -o graph.npz
      nnkgraph build table.csv --id-column name --drop city,note -o graph.graphml
      nnkgraph build data.h5::features -o graph.tsv.gz -j 8 --report report.json
      nnkgraph build a.npy b.npy -o 'graphs/{name}.npz'
      nnkgraph build march.npy --like february.npz --updatable -o march.npz
      nnkgraph build cells.h5ad::obsm/X_pca --into cells.h5ad
      nnkgraph build points.npy --search precomputed:path=knn.npz \\
        --shard 2/7 -o 2.npz
    """
    limits = {name: given.pop(name) for name in ("dry_run", "min_recall", "memory")}
    settings = {**given, "digits": given["digits"] or 0}
    target = _target(features, output, into, key_added, shard)
    if settings["like"] is not None:
        settings = _like(settings["like"], settings, into, ctx)
    if settings["updatable"]:
        check_updatable_file(target, files.format)
    if into is not None:
        settings |= _defaults_into(into, settings)
    # Mistakes in words are found before time is spent on reading.
    registry.create("methods", settings["method"])
    registry.create("kernels", settings["kernel"])
    search = registry.create("search", settings["search"])
    if shard is not None:
        from nnkgraph.build.shards import check_alone

        check_alone(**settings)
    files.inputs, write_format = list(features), None
    if into is None:
        write_format = files.split_format(target)
    elif "," in (files.format or ""):
        raise ParameterError("--format: --into has one format; name the input's")
    common = _Job(
        "", target, report, resume, files, write_format, into, key_added, shard
    )
    for job in _jobs(features, common):
        files.expect(job.features, others=search.reads)
        try:
            _build_one(job, dict(settings), **limits)
        except NnkGraphError as error:
            # A bad input is reported and does not stop the others.
            if len(features) == 1:
                raise
            code = talk.failed(str(error), error.exit_code)
            talk.state.exit_code = talk.state.exit_code or code
