"""nnkgraph search: candidates only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.commands.build import check_shard_file
from nnkgraph.cli.files import Files, folder_of
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.build.shards import Shard

_STORED = ("kernel", "scale", "duplicates", "seed")
"""Settings that the candidates depend on, beside k and the search."""


@options.command
@options.features_arg
@options.output_opt
@options.shared("k kernel search scale pca duplicates workers")
@click.option(
    "--self-first", is_flag=True, help="Begin row i with i itself, at distance 0."
)
@options.shared("executor shard memory resume block_timeout seed report")
@options.for_features
@options.shared("no_clobber")
def command(
    features: str,
    output: str,
    self_first: bool,
    shard: Shard | None,
    memory: int | None,
    resume: str | None,
    report: str | None,
    files: Files,
    **settings: Any,
) -> None:
    """Find the k nearest rows of every row of FEATURES.

    The .npz or .h5 file KNN holds 'neighbors' and 'distances', the names that ANN
    benchmarks use, and the ids; build takes it with --search precomputed:path=FILE.
    The kernel says what near means: distance, angle or inner product. Identical rows
    are merged as in build; --duplicates keep gives plain nearest neighbors.

    \b
    Examples:
      nnkgraph search points.npy -o knn.npz -k 50
      nnkgraph build points.npy -o graph.npz --search precomputed:path=knn.npz
      nnkgraph search points.npy -o umap.npz -k 15 --self-first --duplicates keep
      nnkgraph search points.npy -o 2.npz --shard 2/7
    """
    if self_first and shard is not None:
        raise ParameterError("--self-first and --shard: build drops the row itself")
    from nnkgraph.build import shards
    from nnkgraph.build.report import provenance, search_facts
    from nnkgraph.build.settings import kernel_of, metric_of
    from nnkgraph.runtime.checkpoint import remove_checkpoint

    files.expect(features)
    write_format = files.split_format(output, "candidates")
    if shard is None:
        files.check_output(output, format=write_format, kind="candidates")
    else:
        check_shard_file(output, write_format, files)
    outcome.check_report(report, output, files)
    run = outcome.Measured()
    with run.within(memory):
        with run("read"):
            kernel = settings["kernel"]
            matrix = files.features(features, kernel=kernel)
        running: dict[str, Any] = {"resume": resume, "progress": run}
        running["shared_dir"] = folder_of(output)
        if shard is None:
            found = nnkgraph.find_candidates(
                matrix, self_first=self_first, **settings, **running
            )
            known = {name: settings[name] for name in _STORED}
            known |= {
                "k": found.index.shape[1] - self_first,
                "search": found.backend,
                "metric": metric_of(
                    kernel_of(kernel), settings["scale"], settings["pca"]
                ),
            }
            more = {"pca": settings["pca"], "self_first": self_first}
            known |= {name: one for name, one in more.items() if one}
            about = provenance(matrix, known)
            with run("write"):
                formats.write_candidates(
                    output, found, provenance=about, format=write_format
                )
            known = {**about, "nodes": len(found.index), "search": search_facts(found)}
            told: dict[str, Any] = {"notes": found.notes, "warnings": found.warnings}
        else:
            part = shards.search_shard(matrix, shard, **settings, **running)
            with run("write"):
                shards.write_part(output, part)
            known = {"schema": 1, "shard": str(shard), "nodes": len(part.rows)}
            known |= {"k": part.width, "search": _searched(part.candidates.about)}
            told = {"notes": part.notes, "warnings": ()}
    if resume:
        remove_checkpoint(Path(resume))
    told = {name: list(texts) for name, texts in told.items()}
    full = outcome.write_report(report, {**known, **told}, run)
    search = full["search"]
    said = f"{full['k']} candidates for each of {full['nodes']} rows, "
    said += search["backend"] + outcome.recall_words(search)
    if shard is not None:
        said = f"shard {shard}, {said}"
    talk.summary(*run.unsaid(full["notes"]), f"{output}: {said}")
    talk.warning(*matrix.warnings, *(f"{output}: {one}" for one in full["warnings"]))


def _searched(about: dict[str, Any]) -> dict[str, Any]:
    """Return what reports say of a search, of what a shard knows about it."""
    known = ("backend", "recall", "recall_interval", "threads")
    exact = {"recall": 1.0} if about.get("exact") else {}
    return {name: about.get(name) for name in known} | exact
