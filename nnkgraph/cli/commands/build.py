"""nnkgraph build: features to graph."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from nnkgraph.cli import options, talk, types
from nnkgraph.cli.command import Command
from nnkgraph.errors import InputError, NnkGraphError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.build.shards import Shard
    from nnkgraph.data import Features
    from nnkgraph.formats import Place
    from nnkgraph.methods import Method
    from nnkgraph.runtime.progress import Stages

_MIN_DEGREE = 3
"""With --into: isolated cells are no use to anyone."""


@dataclass(frozen=True)
class _Job:
    """One input, and where its results go."""

    features: str
    output: str
    report: str | None
    resume: str | None


@dataclass(frozen=True)
class _Ways:
    """What all inputs of a call have in common, beside the settings of the graph."""

    reading: dict[str, Any]
    write_format: str | None
    no_clobber: bool
    dry_run: bool
    min_recall: float | None
    memory: int | None
    shard: Shard | None
    into: bool
    key_added: str | None
    candidates: list[str]
    """Files beside the features that are read."""


def build_all(
    features: tuple[str, ...],
    *,
    output: str | None,
    into: str | None,
    key_added: str | None,
    report: str | None,
    resume: str | None,
    format: str | None,  # noqa: A002 - the option's name
    table: dict[str, Any],
    **given: Any,
) -> None:
    """Build every input; a bad one is reported and does not stop the others."""
    from nnkgraph.cli.files import split_format
    from nnkgraph.runtime import registry

    common = ("no_clobber", "dry_run", "min_recall", "memory", "shard")
    ways = {name: given.pop(name) for name in common}
    settings = {**given, "digits": given["digits"] or 0}
    target = _target(features, output, into, key_added, ways["shard"])
    if into is not None:
        settings |= _defaults_into(into, settings)
    settings["min_degree"] = settings["min_degree"] or 0
    # Mistakes in words are found before time is spent on reading.
    registry.create("methods", settings["method"])
    registry.create("kernels", settings["kernel"])
    search = registry.create("search", settings["search"])
    if ways["shard"] is not None:
        from nnkgraph.build.shards import check_alone

        check_alone(**settings)
    read_format, write_format = split_format(format, features, target)
    if into is not None:
        read_format, comma, _ = (format or "").partition(",")
        if comma:
            raise ParameterError("--format: --into has one format; name the input's")
    shared = _Ways(
        reading={"format": read_format or None, "sparse": "rows", **table},
        write_format=write_format,
        into=into is not None,
        key_added=key_added,
        candidates=list(search.reads),
        **ways,
    )
    for job in _jobs(features, target, report, resume):
        try:
            _build_one(job, shared, dict(settings))
        except NnkGraphError as error:
            if len(features) == 1:
                raise
            talk.error(str(error))
            talk.traceback()
            talk.failures.add(error.exit_code)


def _build_one(job: _Job, ways: _Ways, settings: dict[str, Any]) -> None:
    """Check the names, read, build, write, and say what became of it."""
    from nnkgraph import formats
    from nnkgraph.build.budget import check_output_room
    from nnkgraph.build.settings import DEFAULT_K
    from nnkgraph.cli.files import read_features
    from nnkgraph.cli.outcome import check_quality, say_result, write_report
    from nnkgraph.cli.progress import Progress
    from nnkgraph.runtime.arrays import limited
    from nnkgraph.runtime.limits import MemoryWatch
    from nnkgraph.tasks.columns import column_remarks

    place = _check_names(job, ways)
    progress, start = Progress(), time.perf_counter()
    with MemoryWatch() as watch, limited(ways.memory):
        with progress("read"):
            kernel = settings["kernel"]
            matrix = read_features(job.features, kernel=kernel, **ways.reading)
        if place:
            place.check(matrix)
        elif not ways.shard:
            formats.check_ids(job.output, matrix.ids, format=ways.write_format)
        n, d = matrix.x.shape
        talk.detail(f"{job.features}: {n} x {d} {matrix.dtype}")
        for remark in column_remarks(matrix, kernel, settings["scale"]):
            talk.summary(f"{job.features}: {remark}")
        k = min(settings["k"] or DEFAULT_K, n)
        if ways.dry_run:
            k = _say_plan(job, ways.shard, matrix, settings)
        # A shard keeps all candidates, which takes more than a graph.
        rows = 10 * n // ways.shard.count if ways.shard else n
        check_output_room(job.output, rows, k, place.identity[1] if place else 0)
        if ways.dry_run:
            return
        known = _made(job, ways, place, matrix, settings, progress)
    total = time.perf_counter() - start
    full = write_report(job.report, known, progress, total, watch.peak)
    say_result(job.features, job.output, full)
    check_quality(job.output, full, ways.min_recall)


def _check_names(job: _Job, ways: _Ways) -> Place | None:
    """Check before any reading that results can be written; return a file to add to."""
    from nnkgraph import formats
    from nnkgraph.cli.outcome import check_report

    inputs, place = [job.features, *ways.candidates], None
    clobber: dict[str, Any] = {"no_clobber": ways.no_clobber, "inputs": inputs}
    if ways.into:
        from nnkgraph.formats import find_place

        kept = ways.no_clobber
        place = find_place(job.output, ways.key_added, job.features, no_clobber=kept)
        talk.detail(f"{job.output}: {place.cells} cells")
    elif ways.shard:
        check_shard_file(job.output, ways.write_format, **clobber)
    else:
        formats.check_output(job.output, format=ways.write_format, **clobber)
    check_report(job.report, job.output, **clobber)
    for name in (job.output, job.report):
        if job.resume and name and not formats.is_stream(name):
            parents = Path(name).resolve().parents
            if Path(job.resume).resolve() in parents:
                raise ParameterError(
                    f"{name}: is in the directory of --resume, which is removed once "
                    "the graph is written; name another"
                )
    return place


def check_shard_file(
    output: str, format_: str | None, *, no_clobber: bool, inputs: Sequence[str]
) -> None:
    """Check before any computing that a shard can be written."""
    from nnkgraph import formats

    if format_ not in {None, "npz"} or not output.lower().endswith(".npz"):
        raise ParameterError(
            f"{output}: a shard is an npz file, whatever it is merged to: give it a "
            "name such as part-1.npz, and merge the format"
        )
    formats.check_file(output, no_clobber=no_clobber, inputs=inputs)


def _made(
    job: _Job,
    ways: _Ways,
    place: Place | None,
    matrix: Features,
    settings: dict[str, Any],
    progress: Stages,
) -> dict[str, Any]:
    """Build and write a graph, or a shard of one; return what is known about it."""
    from nnkgraph import formats
    from nnkgraph.build.graph import build_graph, edge_distances
    from nnkgraph.build.settings import kernel_of
    from nnkgraph.cli.files import folder_of
    from nnkgraph.runtime.checkpoint import remove_checkpoint

    running: dict[str, Any] = {
        "shared_dir": folder_of(job.output),
        "resume": job.resume,
        "progress": progress,
    }
    if ways.shard:
        from nnkgraph.build.shards import WHOLE, build_shard, write_part

        chosen = {key: one for key, one in settings.items() if key not in WHOLE}
        part, known = build_shard(matrix, ways.shard, **chosen, **running)
        with progress("write"):
            write_part(job.output, part)
    else:
        graph = build_graph(matrix, **settings, **running)
        known = graph.report.as_dict()
        with progress("write"):
            if place is None:
                formats.write_graph(job.output, graph, format=ways.write_format)
            else:
                kernel = kernel_of(settings["kernel"], settings["sigma"])
                scale = settings["scale"]
                place.write(
                    graph, *edge_distances(matrix, graph.adjacency, kernel, scale)
                )
                *matrices, about = place.keys.paths
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
    from nnkgraph.build.graph import check_distances
    from nnkgraph.runtime import registry

    if settings["symmetrize"] == "none":
        raise ParameterError("--into needs an undirected graph: use another rule")
    method = registry.create("methods", settings["method"])
    kernel = registry.create("kernels", settings["kernel"])
    check_distances(kernel)
    made: dict[str, Any] = {}
    if settings["min_degree"] is None:
        made["min_degree"] = _MIN_DEGREE
    # A bandwidth may be in the kernel's own words, and methods may need a single one.
    bare = kernel == type(kernel)() and hasattr(kernel, "sigma")
    if settings["sigma"] is None and bare and _takes_local(method, kernel):
        made["sigma"] = "local"
    if made:
        words = " and ".join(f"`{name}={value!r}`" for name, value in made.items())
        talk.summary(f"{path}: {words} by default, so that no cell stays alone")
    return made


def _takes_local(method: Method, kernel: Any) -> bool:
    try:
        method.check(replace(kernel, sigma="local"))
    except ParameterError:
        return False
    return True


def _jobs(
    features: tuple[str, ...], output: str, report: str | None, resume: str | None
) -> list[_Job]:
    """Put each input's name into the names of its results."""
    from nnkgraph import formats

    if len(features) > 1:
        asked = {"--output": output, "--report": report, "--resume": resume}
        for option, value in asked.items():
            if value is not None and "{name}" not in value:
                _check_there(features)
                raise ParameterError(
                    f"{option}: several inputs need {{name}} in the file name, as in "
                    "'graphs/{name}.npz'"
                )
    jobs: dict[str, _Job] = {}
    for spec in features:
        path, item = formats.split_item(spec)
        name = PurePath(PurePath(path).name.removesuffix(".gz")).stem
        name += f"-{item.replace('/', '-')}" if item else ""
        names = (one and one.replace("{name}", name) for one in (report, resume))
        job = _Job(spec, output.replace("{name}", name), *names)
        if job.output in jobs:
            raise ParameterError(
                f"{jobs[job.output].features} and {spec} would both be written to "
                f"{job.output}"
            )
        jobs[job.output] = job
    return list(jobs.values())


def _check_there(features: tuple[str, ...]) -> None:
    """Refuse words that are no files: they may belong to the option before them."""
    from nnkgraph import formats

    for spec in features:
        path = formats.split_item(spec)[0]
        if path != "-" and not os.path.lexists(path):
            raise InputError(
                f"{spec}: no such file; several columns of an option have "
                "commas between them, and no blanks: --drop city,segment"
            )


def _say_plan(
    job: _Job, shard: Shard | None, matrix: Features, settings: dict[str, Any]
) -> int:
    """Check what can be checked, say what would be done, and return the k."""
    from nnkgraph import formats
    from nnkgraph.build.budget import check_budget, estimate
    from nnkgraph.build.run import estimated_seconds
    from nnkgraph.build.settings import Running, RunningOptions, Settings
    from nnkgraph.build.shards import check_shards
    from nnkgraph.runtime.arrays import memory_limit
    from nnkgraph.runtime.limits import granted_cpus, in_words

    how = RunningOptions.__annotations__
    chosen = {key: one for key, one in settings.items() if key not in {*how, "k_check"}}
    plan = Settings.of(matrix, **chosen)
    running = Running(settings["workers"], settings["executor"])
    if shard is not None:
        check_shards(plan)
    for path in plan.search.reads:
        formats.read_candidates(path)
    n, d = matrix.x.shape
    workers = settings["workers"]
    seconds = estimated_seconds(matrix.x, plan.k)
    span = None if shard is None else shard.rows(n)
    needed = estimate(matrix, plan, running, seconds, span)
    part = "" if shard is None else f" as shard {shard}"
    workers = f"up to {granted_cpus()}" if workers == "auto" else workers
    talk.summary(
        f"{job.features}: {n} x {d}, readable and finite; would be built with "
        f"k {plan.k}, method {settings['method']}, kernel {settings['kernel']}, search "
        f"{settings['search']}, rule {plan.rule}, {workers} workers, into "
        f"{job.output}{part}"
    )
    talk.summary(
        f"{job.features}: about {in_words(needed.memory)} of memory, "
        f"{in_words(needed.scratch)} of temporary files and at most "
        f"{in_words(needed.output)} of output; {in_words(memory_limit())} of memory "
        "may be used"
    )
    check_budget(needed)
    return plan.k


@click.command(cls=Command)
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
@options.shared("k method kernel sigma search")
@click.option(
    "--symmetrize",
    type=click.Choice(["error", "error-union", "max", "mean", "min", "mutual", "none"]),
    default=None,
    show_default="the method's own",
    help="Rule that joins the two directions of an edge.",
)
@click.option(
    "--min-weight",
    type=types.number(0, 1e300),
    default=1e-8,
    show_default=True,
    help="Lighter edges are dropped.",
)
@click.option(
    "--min-degree",
    type=types.whole(0),
    default=None,
    show_default="0, or 3 with --into",
    metavar="M",
    help="Every node's own M heaviest edges stay, whatever rule and --min-weight say.",
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
    "--round",
    "digits",
    type=types.whole(1, 15),
    default=None,
    metavar="DIGITS",
    help="Significant digits of weights and errors.",
)
@click.option(
    "--min-recall",
    type=types.number(0, 1),
    default=None,
    metavar="SHARE",
    help="Fail where the estimated recall of the search is below this.",
)
@options.shared("scale duplicates workers executor")
@options.shared("shard memory resume block_timeout seed")
@options.for_features
@options.no_clobber_opt
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@options.shared("report")
@options.talk_options
def command(features: tuple[str, ...], **settings: Any) -> None:
    """Build a graph from FEATURES, a node per row.

    FEATURES is a file, FILE::DATASET, or '-' for stdin.

    Input: .npy, .npz, .csv, .tsv, .txt (also .gz), .h5, .h5ad, .parquet, .mat.
    Output: .npz, .tsv, .csv, .edgelist (also .gz), .graphml, .gexf, .mtx, .parquet,
    .pyg.npz, .mat. Several inputs in one call need {name} in the output's name; a bad
    one does not stop the others.

    \b
    Examples:
      nnkgraph build points.npy -o graph.npz
      nnkgraph build table.csv --id-column name --drop city,note -o graph.graphml
      nnkgraph build data.h5::features -o graph.tsv.gz -j 8 --report report.json
      nnkgraph build a.npy b.npy -o 'graphs/{name}.npz'
      nnkgraph build cells.h5ad::obsm/X_pca --into cells.h5ad
      nnkgraph build points.npy --search precomputed:path=knn.npz \\
        --shard 2/7 -o 2.npz
    """
    build_all(features, **settings)
