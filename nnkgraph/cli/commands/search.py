"""nnkgraph search: candidates only."""

from __future__ import annotations

import click

from nnkgraph.cli import options, say


@click.command()
@options.features_arg
@options.output_opt
@options.k_opt
@options.kernel_opt
@options.search_opt
@options.scale_opt
@options.duplicates_opt
@options.workers_opt
@options.executor_opt
@options.resume_opt
@options.block_timeout_opt
@options.seed_opt
@options.table_options
@options.no_clobber_opt
@options.talk_options
def command(
    features: str,
    output: str,
    k: int | None,
    kernel: str,
    search: str,
    scale: str,
    duplicates: str,
    workers: int | str,
    executor: str,
    resume: str | None,
    patience: float,
    seed: int,
    format: str | None,  # noqa: A002 - the option's name
    delimiter: str | None,
    header: bool | None,
    id_column: str | None,
    no_clobber: bool,
) -> None:
    """Find the k nearest rows of every row of FEATURES and write them as KNN.

    The .npz or .h5 file holds 'neighbors' and 'distances', the names that ANN
    benchmarks use; build takes it with --search precomputed:path=FILE. The kernel
    says what near means: distance, angle or inner product. Identical rows are merged
    as in build; --duplicates keep gives plain nearest neighbors.

    \b
    Examples:
      nnkgraph search points.npy -o knn.npz -k 50
      nnkgraph build points.npy -o graph.npz -k 30 --search precomputed:path=knn.npz
    """
    from pathlib import Path

    from nnkgraph import formats, registry, report
    from nnkgraph.checkpoint import remove_checkpoint
    from nnkgraph.cli.files import read_features, split_format
    from nnkgraph.cli.progress import Progress
    from nnkgraph.find import find_candidates

    read_format, write_format = split_format(
        format, [features], output, kind="candidates"
    )
    formats.check_output(
        output,
        format=write_format,
        no_clobber=no_clobber,
        inputs=[features],
        kind="candidates",
    )
    gram = registry.create("kernels", kernel).base == "gram"
    matrix = read_features(
        features,
        format=read_format,
        delimiter=delimiter,
        header=header,
        id_column=id_column,
        sparse="similarities" if gram else "rows",
    )
    found = find_candidates(
        matrix,
        k=k,
        kernel=kernel,
        search=search,
        scale=scale,
        duplicates=duplicates,
        seed=seed,
        workers=workers,
        executor=executor,
        resume=resume,
        patience=patience,
        stages=Progress(),
    )
    settings = {
        "k": int(found.index.shape[1]),
        "kernel": kernel,
        "scale": scale,
        "duplicates": duplicates,
        "search": found.backend,
        "seed": seed,
    }
    formats.write_candidates(
        output,
        found,
        provenance=report.provenance(matrix, settings),
        format=write_format,
    )
    if resume:
        remove_checkpoint(Path(resume))
    for warning in matrix.warnings:
        say.warning(warning)
    for note in found.notes:
        say.summary(note)
    n, width = found.index.shape
    recall = "" if found.recall is None else f", recall {found.recall:.4f} (estimated)"
    say.summary(
        f"{output}: {width} candidates for each of {n} rows, {found.backend}{recall}"
    )
