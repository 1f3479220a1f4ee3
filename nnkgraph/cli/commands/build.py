"""nnkgraph build: features to graph."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nnkgraph import formats
from nnkgraph.build import report
from nnkgraph.build.budget import check_budget, check_output_room, estimate
from nnkgraph.build.graph import build_graph, check_distances, edge_distances
from nnkgraph.build.run import estimated_seconds
from nnkgraph.build.settings import (
    DEFAULT_K,
    Running,
    RunningOptions,
    Settings,
    kernel_of,
)
from nnkgraph.build.shards import (
    WHOLE,
    build_shard,
    check_alone,
    check_shards,
    write_part,
)
from nnkgraph.cli import options, talk, types
from nnkgraph.cli.command import Command
from nnkgraph.cli.files import (
    check_resume,
    check_shard_file,
    folder_of,
    names_of,
    read_features,
    split_format,
)
from nnkgraph.cli.progress import Progress
from nnkgraph.errors import NnkGraphError, ParameterError, QualityError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import limited, memory_limit
from nnkgraph.runtime.checkpoint import remove_checkpoint
from nnkgraph.runtime.limits import MemoryWatch, granted_cpus, in_words
from nnkgraph.tasks.columns import column_remarks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.build.shards import Shard
    from nnkgraph.cli.files import Files
    from nnkgraph.data import Features, Graph
    from nnkgraph.formats import Place
    from nnkgraph.methods import Method


_MIN_DEGREE = 3
"""With --into: isolated cells are no use to anyone."""


@dataclass(frozen=True)
class GraphFile:
    """A file that holds nothing but the graph."""

    path: str
    format: str | None
    no_clobber: bool

    def check(self, inputs: Sequence[str]) -> None:
        """Check the name."""
        formats.check_output(
            self.path, format=self.format, no_clobber=self.no_clobber, inputs=inputs
        )

    def check_rows(self, features: Features) -> None:
        """Check the ids."""
        formats.check_ids(self.path, features.ids, format=self.format)

    def check_room(self, n: int, k: int) -> None:
        """Check the disk."""
        check_output_room(self.path, n, k)

    def write(self, graph: Graph, features: Features, settings: dict[str, Any]) -> None:
        """Write the graph."""
        del features, settings
        formats.write_graph(self.path, graph, format=self.format)


@dataclass(frozen=True)
class ShardFile:
    """A file that holds a part of the rows, for ``merge``."""

    path: str
    shard: Shard
    format: str | None
    no_clobber: bool

    def check(self, inputs: Sequence[str]) -> None:
        """Check the name."""
        check_shard_file(
            self.path, self.format, no_clobber=self.no_clobber, inputs=inputs
        )

    def check_rows(self, features: Features) -> None:
        """Take any rows: ids are checked when the graph is written."""

    def check_room(self, n: int, k: int) -> None:
        """Check the disk: all weights are kept, which takes more than a graph."""
        check_output_room(self.path, 6 * n // self.shard.count, k)


@dataclass(frozen=True)
class CellFile:
    """An AnnData file that takes the graph in; it may be what features come from."""

    path: str
    key: str | None
    features: str
    no_clobber: bool

    @cached_property
    def place(self) -> Place:
        """The file as it was before anything was computed."""
        return formats.find_place(
            self.path, self.key, self.features, no_clobber=self.no_clobber
        )

    def check(self, inputs: Sequence[str]) -> None:
        """Look at the file."""
        del inputs
        talk.detail(f"{self.path}: {self.place.cells} cells")

    def check_rows(self, features: Features) -> None:
        """Check that rows are the file's cells."""
        self.place.check(features)

    def check_room(self, n: int, k: int) -> None:
        """Check that there is room for a second copy."""
        check_output_room(self.path, n, k, self.place.identity[1])

    def write(self, graph: Graph, features: Features, settings: dict[str, Any]) -> None:
        """Put the graph in, and say where."""
        kernel = kernel_of(settings["kernel"], settings["sigma"])
        self.place.write(
            graph,
            *edge_distances(features, graph.adjacency, kernel, settings["scale"]),
        )
        *matrices, about = self.place.keys.paths
        talk.summary(f"{self.path}: holds {', '.join(matrices)} and {about} now")


Target = GraphFile | ShardFile | CellFile
"""One result's place: checked before anything is read, computed or written."""


@dataclass(frozen=True)
class Goal:
    """What the user said about the place of all graphs."""

    path: str
    into: bool
    key: str | None
    shard: Shard | None = None

    def split_format(
        self, given: str | None, features: tuple[str, ...]
    ) -> tuple[str | None, str | None]:
        """Return what --format says about the input and about the output."""
        if not self.into:
            return split_format(given, features, self.path)
        read, comma, _ = (given or "").partition(",")
        if comma:
            raise ParameterError("--format: --into has one format; name the input's")
        return read or None, None

    def target(
        self,
        features: str,
        path: str,
        format: str | None,  # noqa: A002 - the option's name
        no_clobber: bool,
    ) -> Target:
        """Return the place of one graph."""
        if self.into:
            return CellFile(path, self.key, features, no_clobber)
        if self.shard:
            return ShardFile(path, self.shard, format, no_clobber)
        return GraphFile(path, format, no_clobber)


def goal_of(
    features: tuple[str, ...],
    output: str | None,
    into: str | None,
    key: str | None,
    shard: Shard | None,
) -> Goal:
    """Return where graphs go; there is one way."""
    if output is not None and into is not None:
        raise ParameterError("--into and --output: a graph goes to one place; use one")
    if into is not None:
        if shard is not None:
            raise ParameterError("--into takes whole graphs: merge shards to a file")
        if len(features) > 1:
            raise ParameterError("--into takes one input at a time")
        return Goal(into, into=True, key=key)
    if output is None:
        raise ParameterError("Missing option '-o' / '--output' (or --into FILE.h5ad)")
    if key is not None:
        raise ParameterError("--key-added is of use with --into only")
    return Goal(output, into=False, key=None, shard=shard)


def defaults(goal: Goal, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that nobody has made, which differ for AnnData files."""
    if not goal.into:
        return {"min_degree": settings["min_degree"] or 0}
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
        words = " and ".join(
            f"--{name.replace('_', '-')} {value}" for name, value in made.items()
        )
        talk.summary(f"{goal.path}: {words} by default, so that no cell stays alone")
    return made


def _takes_local(method: Method, kernel: Any) -> bool:
    try:
        method.check(dataclasses.replace(kernel, sigma="local"))
    except ParameterError:
        return False
    return True


def say_result(features: str, output: str, full: dict[str, Any]) -> None:
    """Say what was built, from what, and how well."""
    copies = f", {full['duplicates']} copies of rows" if full["duplicates"] else ""
    _say_input(features, full, copies)
    talk.summary(
        f"{output}: {full['nodes']} nodes, {full['edges']} edges "
        f"({full['edges_per_node']:.2f} per node), components: {full['components']}, "
        f"isolated: {full['isolated']}; rule {full['rule']} dropped "
        f"{full['dropped']} pairs"
    )
    say_beside(output)
    _say_growth(full)
    _say_end(output, full)


def say_beside(output: str) -> None:
    """Name the second file of a graph, which nobody has asked for."""
    from nnkgraph import formats

    second = formats.file_beside(output)
    if second is not None:
        talk.summary(f"{second}: what {output} has no room for; keep it beside")


def say_shard(features: str, output: str, full: dict[str, Any]) -> None:
    """Say what part of a graph was built, and how well."""
    _say_input(features, full, "")
    start, stop = full["rows"]
    talk.summary(
        f"{output}: shard {full['shard']}, {stop - start} rows from {start} on"
    )
    _say_end(output, full)


def _say_input(features: str, full: dict[str, Any], copies: str) -> None:
    """Say what was built from."""
    for note in full["notes"]:
        talk.summary(note)
    known = full["search"]["recall"]
    recall = (
        f", recall {known:.4f} (estimated)" if known is not None and known < 1 else ""
    )
    sigma = "" if full["sigma"] is None else f", sigma {full['sigma']:.6g}"
    talk.summary(
        f"{features}: {full['method']}, {full['kernel']}{sigma}, k {full['k']}, "
        f"search {full['search']['backend']}{recall}{copies}"
    )


def _say_end(output: str, full: dict[str, Any]) -> None:
    """Say how well the nodes were solved, how long it took, and what to look at."""
    proof = full["certificate"]
    error = f"mean error J {full['error']['mean']:.4g}" if full["error"] else ""
    if proof:
        talk.summary(
            f"certificate: {proof['kkt_max']:.1e} at the worst node, failed: "
            f"{proof['nodes_failed']}" + (f"; {error}" if error else "")
        )
    elif error:
        talk.summary(error)
    if full.get("method_facts"):
        facts = (
            f"{name} {_shown(value)}" for name, value in full["method_facts"].items()
        )
        talk.summary(f"{full['method']}: {', '.join(facts)}")
    talk.summary(f"done in {full['timings']['total']:.2f} s")
    for name, seconds in full["timings"].items():
        talk.detail(f"  {name:<10} {seconds:8.3f} s")
    for warning in full["warnings"]:
        talk.warning(f"{output}: {warning}")


def _say_growth(full: dict[str, Any]) -> None:
    """Say what bridges and more candidates did."""
    if full["bridges"]:
        talk.summary(f"connected: {full['bridges']} bridges between components")
    outside = full.get("outside")
    if outside:
        grown = full["candidates_grown"]
        more = f"{grown} nodes grew, up to k {outside['largest_k']}; " if grown else ""
        stuck = outside["nodes_bounded"]
        stuck = f"; {stuck} nodes reached the most candidates" if stuck else ""
        talk.summary(
            f"outside the candidates: {more}residuals of at most {outside['max']:.3g}, "
            f"above 0.01 at {outside['nodes_above_0.01']} of {full['nodes']} nodes"
            f"{stuck}"
        )


def _shown(value: Any) -> str:
    """Return a fact in a few characters."""
    if isinstance(value, list):
        return " to ".join(_shown(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def check_report(
    path: str | None, output: str, *, no_clobber: bool, inputs: Sequence[str]
) -> None:
    """Check before any computing that a report can be written."""
    if not path:
        return
    if path == output:
        raise ParameterError(f"{path}: the report and the graph need different names")
    formats.check_file(path, no_clobber=no_clobber, inputs=inputs)


def full_report(
    known: dict[str, Any], stages: Progress, total: float, peak: int
) -> dict[str, Any]:
    """Add what is known about the process."""
    names = ("start", "read", "search", "solve", "symmetrize", "write")
    timings = {name: stages.seconds.get(name, 0.0) for name in names}
    return {
        **known,
        "timings": {**timings, "total": total},
        "peak_memory_bytes": peak,
        "versions": report.versions(),
        "command": shlex.join(["nnkgraph", *sys.argv[1:]]),
    }


def write_report(path: str | None, full: dict[str, Any]) -> None:
    """Write a report, where one is wanted."""
    text = json.dumps(full, indent=2, allow_nan=False)
    if path == "-":
        talk.data(text)
    elif path:
        formats.write_file(path, f"{text}\n".encode())


def check_quality(
    output: str, full: dict[str, Any], min_recall: float | None, what: str = "graph"
) -> None:
    """Fail, after all was written, where a node's solution is not proven."""
    recall = full["search"]["recall"]
    if min_recall is not None and (recall is None or recall < min_recall):
        known = "unknown" if recall is None else f"{recall:.4f} (estimated)"
        raise QualityError(
            f"{output}: the recall of the search is {known}, "
            f"below {min_recall:g}; the {what} was written; use --search exact or "
            "more n_trees"
        )
    if full["failure"]:
        raise QualityError(
            f"{output}: {full['failure']}; the {what} was written and is marked"
        )
    proof = full["certificate"]
    if proof and proof["nodes_failed"]:
        nodes = ", ".join(map(str, proof["failed"]))
        raise QualityError(
            f"{output}: {proof['nodes_failed']} nodes miss the certificate of "
            f"{report.CERTIFICATE_LIMIT:g} (worst {proof['kkt_max']:.1e}): {nodes}; "
            f"the {what} was written and is marked; another --sigma may help"
        )


@dataclass(frozen=True)
class _Gates:
    """What keeps a result from being made, or from passing."""

    dry_run: bool
    min_recall: float | None


def build_all(
    features: tuple[str, ...],
    *,
    output: str | None,
    into: str | None,
    key_added: str | None,
    report: str | None,
    resume: str | None,
    format: str | None,  # noqa: A002 - the option's name
    no_clobber: bool,
    dry_run: bool,
    min_recall: float | None,
    digits: int | None,
    table: dict[str, Any],
    shard: Shard | None,
    **settings: Any,
) -> None:
    """Build every input; a bad one is reported and does not stop the others."""
    settings["digits"] = digits or 0
    goal = goal_of(features, output, into, key_added, shard)
    settings |= defaults(goal, settings)
    # Mistakes in words are found before time is spent on reading.
    registry.create("methods", settings["method"])
    kernel = registry.create("kernels", settings["kernel"])
    search = registry.create("search", settings["search"])
    candidates = list(search.reads)
    read_format, write_format = goal.split_format(format, features)
    if shard is not None:
        check_alone(**settings)
    reading = {
        "format": read_format,
        **table,
        "sparse": "similarities" if kernel.base == "gram" else "rows",
    }
    for files in names_of(features, goal.path, report, resume):
        try:
            inputs = [files.features, *candidates]
            target = goal.target(files.features, files.output, write_format, no_clobber)
            target.check(inputs)
            check_report(
                files.report, files.output, no_clobber=no_clobber, inputs=inputs
            )
            check_resume(files)
            gates = _Gates(dry_run, min_recall)
            _build_one(files, reading, target, dict(settings), gates)
        except NnkGraphError as error:
            if len(features) == 1:
                raise
            talk.error(str(error))
            talk.traceback()
            talk.failures.add(error.exit_code)


def _build_one(
    files: Files,
    reading: dict[str, Any],
    target: Target,
    settings: dict[str, Any],
    gates: _Gates,
) -> None:
    stages = Progress()
    start = time.perf_counter()
    limit = settings.pop("memory")
    with MemoryWatch() as memory, limited(limit):
        with stages("read"):
            matrix = read_features(files.features, **reading)
        target.check_rows(matrix)
        n, d = matrix.x.shape
        talk.detail(f"{files.features}: {n} x {d} {matrix.dtype}")
        for remark in column_remarks(matrix, settings["kernel"], settings["scale"]):
            talk.summary(f"{files.features}: {remark}")
        if gates.dry_run:
            _say_plan(files, matrix, settings, target)
            return
        target.check_room(n, min(settings["k"] or DEFAULT_K, n))
        settings["shared_dir"] = folder_of(files.output)
        if isinstance(target, ShardFile):
            known = _build_shard(files, matrix, target.shard, settings, stages)
        else:
            graph = build_graph(
                matrix, progress=stages, resume=files.resume, **settings
            )
            known = graph.report.as_dict()
            with stages("write"):
                target.write(graph, matrix, settings)
        if files.resume:
            remove_checkpoint(Path(files.resume))
    full = full_report(known, stages, time.perf_counter() - start, memory.peak)
    write_report(files.report, full)
    part = isinstance(target, ShardFile)
    if part:
        say_shard(files.features, files.output, full)
    else:
        say_result(files.features, files.output, full)
    what = "shard" if part else "graph"
    check_quality(files.output, full, gates.min_recall, what)


def _build_shard(
    files: Files,
    matrix: Features,
    shard: Shard,
    settings: dict[str, Any],
    stages: Progress,
) -> dict[str, Any]:
    """Solve and write a part of the rows; return its report."""
    chosen = {key: one for key, one in settings.items() if key not in WHOLE}
    part, known = build_shard(
        matrix, shard, progress=stages, resume=files.resume, **chosen
    )
    with stages("write"):
        write_part(files.output, part)
    return known


def _say_plan(
    files: Files,
    matrix: Features,
    settings: dict[str, Any],
    target: Target,
) -> None:
    """Check what can be checked, and say what would be done."""
    how = RunningOptions.__annotations__
    chosen = {key: one for key, one in settings.items() if key not in {*how, "k_check"}}
    running = Running(settings["workers"], settings["executor"])
    plan = Settings.of(matrix, **chosen)
    shard = target.shard if isinstance(target, ShardFile) else None
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
        f"{files.features}: {n} x {d}, readable and finite; would be built with "
        f"k {plan.k}, method {settings['method']}, kernel {settings['kernel']}, search "
        f"{settings['search']}, rule {plan.rule}, {workers} workers, into "
        f"{files.output}{part}"
    )
    talk.summary(
        f"{files.features}: about {in_words(needed.memory)} of memory, "
        f"{in_words(needed.scratch)} of temporary files and at most "
        f"{in_words(needed.output)} of output; {in_words(memory_limit())} of memory "
        "may be used"
    )
    check_budget(needed)
    target.check_room(n, plan.k)


@click.command(cls=Command)
@click.argument("features", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Where the graph goes; '-' is stdout.",
)
@click.option(
    "--into",
    type=click.Path(),
    metavar="FILE.h5ad",
    help="Put the graph into an AnnData file instead, for scanpy.",
)
@click.option(
    "--key-added",
    metavar="NAME",
    show_default="neighbors",
    help="Name of the graph in the AnnData file.",
)
@options.k_opt
@options.method_opt
@options.kernel_opt
@options.sigma_opt
@options.search_opt
@click.option(
    "--symmetrize",
    type=click.Choice(["error", "error-union", "max", "mean", "min", "mutual", "none"]),
    default=None,
    show_default="the method's own",
    help="Rule that joins the two directions of an edge.",
)
@click.option(
    "--min-weight",
    type=types.Number(0, 1e300),
    default=1e-8,
    show_default=True,
    help="Lighter edges are dropped.",
)
@click.option(
    "--min-degree",
    type=types.Whole(0),
    default=None,
    show_default="0, or 3 with --into",
    metavar="M",
    help="Every node's own M heaviest edges stay, whatever rule and --min-weight say.",
)
@click.option(
    "--connect",
    type=click.Choice(["none", "mst"]),
    default="none",
    show_default=True,
    help="Add the shortest bridges between components; they are marked in the graph.",
)
@click.option(
    "--grow",
    type=types.Number(0, inside=True),
    metavar="TOL",
    help="More candidates for nodes, until none outside has a residual above TOL.",
)
@click.option(
    "--max-k",
    type=types.Whole(1),
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
    type=types.Whole(1, 15),
    default=None,
    metavar="DIGITS",
    help="Significant digits of weights and errors.",
)
@click.option(
    "--min-recall",
    type=types.Number(0, 1),
    default=None,
    metavar="SHARE",
    help="Fail where the estimated recall of the search is below this.",
)
@options.scale_opt
@options.duplicates_opt
@options.workers_opt
@options.executor_opt
@options.shard_opt
@options.memory_opt
@options.resume_opt
@options.block_timeout_opt
@options.seed_opt
@options.for_features
@options.no_clobber_opt
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@options.report_opt
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
