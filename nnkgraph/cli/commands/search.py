"""nnkgraph search: candidates only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nnkgraph.cli import options, talk
from nnkgraph.cli.command import Command

if TYPE_CHECKING:
    from nnkgraph.build.shards import Shard

_STORED = ("kernel", "scale", "duplicates", "seed")
"""Settings that the candidates depend on, beside k and the search."""


@click.command(cls=Command)
@options.features_arg
@options.output_opt
@options.shared("k kernel search scale duplicates workers")
@options.shared("executor shard memory resume block_timeout seed")
@options.for_features
@options.no_clobber_opt
@options.talk_options
def command(
    features: str,
    output: str,
    shard: Shard | None,
    memory: int | None,
    resume: str | None,
    format: str | None,  # noqa: A002 - the option's name
    table: dict[str, Any],
    no_clobber: bool,
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
    from nnkgraph import formats
    from nnkgraph.build import report
    from nnkgraph.build.graph import find_candidates
    from nnkgraph.build.shards import search_shard, write_part
    from nnkgraph.cli.commands.build import check_shard_file
    from nnkgraph.cli.files import folder_of, read_features, split_format
    from nnkgraph.cli.progress import Progress
    from nnkgraph.runtime.arrays import limited
    from nnkgraph.runtime.checkpoint import remove_checkpoint

    read_format, write_format = split_format(
        format, [features], output, kind="candidates"
    )
    checked: dict[str, Any] = {"no_clobber": no_clobber, "inputs": [features]}
    if shard is None:
        formats.check_output(output, format=write_format, kind="candidates", **checked)
    else:
        check_shard_file(output, write_format, **checked)
    click.get_current_context().with_resource(limited(memory))
    kernel = settings["kernel"]
    reading = {"format": read_format, **table}
    matrix = read_features(features, kernel=kernel, sparse="rows", **reading)
    running: dict[str, Any] = {
        "resume": resume,
        "shared_dir": folder_of(output),
        "progress": Progress(),
    }
    if shard is None:
        found = find_candidates(matrix, **settings, **running)
        n, k = (int(size) for size in found.index.shape)
        used = {name: settings[name] for name in _STORED}
        about = report.provenance(matrix, {**used, "k": k, "search": found.backend})
        formats.write_candidates(output, found, provenance=about, format=write_format)
        notes = found.notes
        done = _said(n, k, found.backend, found.recall)
    else:
        part = search_shard(matrix, shard, **settings, **running)
        write_part(output, part)
        notes = part.notes
        known = part.candidates.about
        done = _said(len(part.rows), part.width, known["backend"], known["recall"])
        done = f"shard {shard}, {done}"
    if resume:
        remove_checkpoint(Path(resume))
    for warning in matrix.warnings:
        talk.warning(warning)
    for note in notes:
        talk.summary(note)
    talk.summary(f"{output}: {done}")


def _said(n: int, width: int, backend: str, recall: float | None) -> str:
    """Return how many candidates were found, and how."""
    known = "" if recall is None else f", recall {recall:.4f} (estimated)"
    return f"{width} candidates for each of {n} rows, {backend}{known}"
