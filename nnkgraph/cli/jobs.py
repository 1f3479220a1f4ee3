"""The body of ``build``: inputs are read, built, written and summed up."""

from __future__ import annotations

import json
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from nnkgraph import formats, registry, report
from nnkgraph.budget import check_budget, check_output_room, estimate
from nnkgraph.build import build_graph
from nnkgraph.checkpoint import remove_checkpoint
from nnkgraph.cli import say
from nnkgraph.cli.files import read_features, split_format
from nnkgraph.cli.progress import Progress
from nnkgraph.cli.summary import say_result
from nnkgraph.errors import NnkGraphError, ParameterError, QualityError
from nnkgraph.memory import available_memory, in_words
from nnkgraph.prepare import DEFAULT_K, estimated_seconds, make_plan
from nnkgraph.resources import MemoryWatch, granted_cpus
from nnkgraph.search.precomputed import Precomputed

if TYPE_CHECKING:
    from nnkgraph.data import Features


@dataclass(frozen=True)
class _Files:
    """What one input is read from and where its results go."""

    features: str
    output: str
    report: str | None
    resume: str | None


@dataclass(frozen=True)
class _Gates:
    """What keeps a result from being made, or from passing."""

    dry_run: bool
    min_recall: float | None


def build_all(
    features: tuple[str, ...],
    *,
    output: str,
    report: str | None,
    resume: str | None,
    format: str | None,  # noqa: A002 - the option's name
    no_clobber: bool,
    dry_run: bool,
    min_recall: float | None,
    digits: int | None,
    delimiter: str | None,
    header: bool | None,
    id_column: str | None,
    **settings: Any,
) -> None:
    """Build every input; a bad one is reported and does not stop the others."""
    settings["digits"] = digits or 0
    # Mistakes in words are found before time is spent on reading.
    registry.create("methods", settings["method"])
    kernel = registry.create("kernels", settings["kernel"])
    search = registry.create("search", settings["search"])
    candidates = [search.path] if isinstance(search, Precomputed) else []
    read_format, write_format = split_format(format, features, output)
    reading = {
        "format": read_format,
        "delimiter": delimiter,
        "header": header,
        "id_column": id_column,
        "sparse": "similarities" if kernel.base == "gram" else "rows",
    }
    for files in _targets(features, output, report, resume):
        try:
            inputs = [files.features, *candidates]
            formats.check_output(
                files.output, format=write_format, no_clobber=no_clobber, inputs=inputs
            )
            if files.report:
                if files.report == files.output:
                    raise ParameterError(
                        f"{files.report}: the report and the graph need different names"
                    )
                formats.check_file(files.report, no_clobber=no_clobber, inputs=inputs)
            _check_resume(files)
            gates = _Gates(dry_run, min_recall)
            _build_one(files, reading, write_format, settings, gates)
        except NnkGraphError as error:
            if len(features) == 1:
                raise
            say.error(str(error))
            say.traceback()
            say.failures.add(error.exit_code)


def _targets(
    features: tuple[str, ...], output: str, report: str | None, resume: str | None
) -> list[_Files]:
    """Put each input's name into the names of its results."""
    if len(features) > 1:
        asked = {"--output": output, "--report": report, "--resume": resume}
        for option, value in asked.items():
            if value is not None and "{name}" not in value:
                raise ParameterError(
                    f"{option}: several inputs need {{name}} in the file name, as in "
                    "'graphs/{name}.npz'"
                )
    targets = []
    for spec in features:
        path, item = formats.split_item(spec)
        name = PurePath(path).name.removesuffix(".gz")
        name = PurePath(name).stem + (f"-{item.replace('/', '-')}" if item else "")
        names = (one and one.replace("{name}", name) for one in (report, resume))
        targets.append(_Files(spec, output.replace("{name}", name), *names))
    seen: dict[str, str] = {}
    for files in targets:
        if files.output in seen:
            raise ParameterError(
                f"{seen[files.output]} and {files.features} would both be written to "
                f"{files.output}"
            )
        seen[files.output] = files.features
    return targets


def _check_resume(files: _Files) -> None:
    """Refuse to write results into a directory that is removed in the end."""
    for name in (files.output, files.report):
        if files.resume and name and not formats.is_stream(name):
            parents = Path(name).resolve().parents
            if Path(files.resume).resolve() in parents:
                raise ParameterError(
                    f"{name}: is in the directory of --resume, which is removed once "
                    "the graph is written; name another"
                )


def _build_one(
    files: _Files,
    reading: dict[str, Any],
    write_format: str | None,
    settings: dict[str, Any],
    gates: _Gates,
) -> None:
    stages = Progress()
    start = time.perf_counter()
    with MemoryWatch() as memory:
        with stages("read"):
            matrix = read_features(files.features, **reading)
        formats.check_ids(files.output, matrix.ids, format=write_format)
        n, d = matrix.x.shape
        say.detail(f"{files.features}: {n} x {d} {matrix.dtype}")
        if gates.dry_run:
            _say_plan(files, matrix, settings)
            return
        check_output_room(files.output, n, min(settings["k"] or DEFAULT_K, n))
        graph = build_graph(matrix, stages=stages, resume=files.resume, **settings)
        with stages("write"):
            formats.write_graph(files.output, graph, format=write_format)
        if files.resume:
            remove_checkpoint(Path(files.resume))
    full = {
        **graph.report,
        "timings": _timings(stages, time.perf_counter() - start),
        "peak_memory_bytes": memory.peak,
        "versions": report.versions(),
        "command": shlex.join(["nnkgraph", *sys.argv[1:]]),
    }
    if files.report:
        _write_report(files.report, full)
    say_result(files.features, files.output, full)
    _check_quality(files, full, gates)


def _timings(stages: Progress, total: float) -> dict[str, float]:
    names = ("start", "read", "search", "solve", "symmetrize", "write")
    return {**{name: stages.seconds.get(name, 0.0) for name in names}, "total": total}


def _say_plan(files: _Files, matrix: Features, settings: dict[str, Any]) -> None:
    """Check what can be checked, and say what would be done."""
    others = {"workers", "seed", "connect", "grow", "max_k", "k_check", "digits"}
    others.add("patience")
    plan = make_plan(matrix, **{k: v for k, v in settings.items() if k not in others})
    if isinstance(plan.search, Precomputed):
        formats.read_candidates(plan.search.path)
    n, d = matrix.x.shape
    workers = settings["workers"]
    seconds = estimated_seconds(matrix.x, plan.k)
    needed = estimate(
        matrix, plan, settings["scale"], workers, settings["executor"], seconds
    )
    workers = f"up to {granted_cpus()}" if workers == "auto" else workers
    say.summary(
        f"{files.features}: {n} x {d}, readable and finite; would be built with "
        f"k {plan.k}, method {settings['method']}, kernel {settings['kernel']}, search "
        f"{settings['search']}, rule {plan.rule}, {workers} workers, into "
        f"{files.output}"
    )
    say.summary(
        f"{files.features}: about {in_words(needed.memory)} of memory, "
        f"{in_words(needed.scratch)} of temporary files and at most "
        f"{in_words(needed.output)} of output; {in_words(available_memory())} of "
        "memory are available"
    )
    check_budget(needed)
    check_output_room(files.output, n, plan.k)


def _write_report(path: str, full: dict[str, Any]) -> None:
    text = json.dumps(full, indent=2, allow_nan=False)
    if path == "-":
        say.data(text)
    else:
        formats.write_file(path, f"{text}\n".encode())


def _check_quality(files: _Files, full: dict[str, Any], gates: _Gates) -> None:
    """Fail, after all was written, where a node's solution is not proven."""
    recall = full["search"]["recall"]
    if gates.min_recall is not None and (recall is None or recall < gates.min_recall):
        raise QualityError(
            f"{files.output}: the recall of the search is {recall:.4f} (estimated), "
            f"below {gates.min_recall:g}; the graph was written; use --search exact or "
            "more n_trees"
        )
    if full["failure"]:
        raise QualityError(
            f"{files.output}: {full['failure']}; the graph was written and is marked"
        )
    proof = full["certificate"]
    if proof and proof["nodes_failed"]:
        nodes = ", ".join(map(str, proof["failed"]))
        raise QualityError(
            f"{files.output}: {proof['nodes_failed']} nodes miss the certificate of "
            f"{report.CERTIFICATE_LIMIT:g} (worst {proof['kkt_max']:.1e}): {nodes}; "
            "the graph was written and is marked; another --sigma may help"
        )
