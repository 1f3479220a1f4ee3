"""nnkgraph search: candidates only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, outcome, progress, talk
from nnkgraph.cli.commands.build import check_shard_file
from nnkgraph.cli.files import Files, folder_of

if TYPE_CHECKING:
    from nnkgraph.build.shards import Shard

_STORED = ("kernel", "scale", "duplicates", "seed")
"""Settings that the candidates depend on, beside k and the search."""


@options.command
@options.features_arg
@options.output_opt
@options.shared("k kernel search scale duplicates workers")
@options.shared("executor shard memory resume block_timeout seed")
@options.for_features
@options.shared("no_clobber")
def command(
    features: str,
    output: str,
    shard: Shard | None,
    memory: int | None,
    resume: str | None,
    files: Files,
    **settings: Any,
) -> None:
    """Find the k nearest rows of every row of FEATURES.

    The .npz or .h5 file KNN holds 'neighbors' and 'distances', the names that ANN
    benchmarks use; build takes it with --search precomputed:path=FILE. The kernel
    says what near means: distance, angle or inner product. Identical rows are merged
    as in build; --duplicates keep gives plain nearest neighbors.

    \b
    Examples:
      nnkgraph search points.npy -o knn.npz -k 50
      nnkgraph build points.npy -o graph.npz --search precomputed:path=knn.npz
      nnkgraph search points.npy -o 2.npz --shard 2/7
    """
    from nnkgraph.build import report, shards
    from nnkgraph.runtime.arrays import limited
    from nnkgraph.runtime.checkpoint import remove_checkpoint

    files.expect(features)
    write_format = files.split_format(output, "candidates")
    if shard is None:
        files.check_output(output, format=write_format, kind="candidates")
    else:
        check_shard_file(output, write_format, files)
    click.get_current_context().with_resource(limited(memory))
    matrix = files.features(features, kernel=settings["kernel"], sparse="rows")
    running: dict[str, Any] = {"resume": resume, "progress": progress.Progress()}
    running["shared_dir"] = folder_of(output)
    if shard is None:
        found = nnkgraph.find_candidates(matrix, **settings, **running)
        n, k = (int(size) for size in found.index.shape)
        used = {name: settings[name] for name in _STORED}
        about = report.provenance(matrix, {**used, "k": k, "search": found.backend})
        formats.write_candidates(output, found, provenance=about, format=write_format)
        notes = found.notes
        known = {**report.search_facts(found), "recall": found.recall}
        done = _said(n, k, known)
    else:
        part = shards.search_shard(matrix, shard, **settings, **running)
        shards.write_part(output, part)
        notes = part.notes
        known = part.candidates.about
        done = _said(len(part.rows), part.width, known)
        done = f"shard {shard}, {done}"
    if resume:
        remove_checkpoint(Path(resume))
    talk.warning(*matrix.warnings)
    talk.summary(*notes, f"{output}: {done}")


def _said(n: int, width: int, search: dict[str, Any]) -> str:
    """Return how many candidates were found, and how."""
    guessed = search["recall"] is not None
    known = f", recall {outcome.recall_said(search)}" if guessed else ""
    return f"{width} candidates for each of {n} rows, {search['backend']}{known}"
