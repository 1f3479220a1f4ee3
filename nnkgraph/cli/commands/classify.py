"""nnkgraph classify: classes by the neighbors of a point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, label_columns, say_order

if TYPE_CHECKING:
    from nnkgraph.tasks.classify import Classified

_COLUMNS = {
    "method": ("method", "{}"),
    "k": ("k", "{}"),
    "sigma": ("sigma", "{:.6g}"),
    "lc": ("lc", "{:g}"),
    "cv_error": ("cv error", "{:.2%}"),
    "error": ("test error", "{:.2%}"),
}
"""What is said of a method: the name, its head on a terminal, and how it is shown."""

_MISTAKES = 10
"""Kinds of mistakes that are printed where there are too many classes for a matrix."""


def confusion_table(title: str, classes: list[str], table: list[list[int]]) -> str:
    """Return the matrix of true and predicted classes, or the commonest mistakes."""
    named = list(zip(classes, table, strict=True))
    rows = [
        ["true \\ predicted", *classes],
        *([name, *map(str, row)] for name, row in named),
    ]
    matrix = talk.aligned(rows, left=1)
    if len(matrix.partition("\n")[0]) <= talk.WIDTH:
        return f"{title}\n{matrix}"
    mistakes = [
        (count, name, other)
        for name, row in named
        for other, count in zip(classes, row, strict=True)
        if name != other and count
    ]
    mistakes.sort(key=lambda one: -one[0])
    most = [[name, other, str(count)] for count, name, other in mistakes[:_MISTAKES]]
    said = f"{title}: {len(most)} of {len(mistakes)} kinds of mistakes, --json has all"
    return f"{said}\n{talk.aligned([['true', 'predicted', 'times'], *most], left=2)}"


@options.command
@click.argument("train", type=click.Path())
@options.file(
    "--labels", "Classes of the rows of TRAIN, whole numbers or text.", required=True
)
@options.file("--test", "Features of other rows to test on.", metavar="FILE")
@options.file("--test-labels", "Their classes.")
@options.file(
    "--split",
    "For the rows of TRAIN: 0 trains, 1 is tested; in .npz and .h5 files the "
    "item is 'split' unless named.",
)
@click.option(
    "--test-size",
    type=types.number(0, 1, inside=True),
    metavar="SHARE",
    help="Test on this share of TRAIN, drawn from every class alike.",
)
@options.methods("knn", "kstar", "nnk", help="What weighs the neighbors; repeatable.")
@options.candidates("Candidates per point.", types.NUMBERS, "30")
@click.option(
    "--sigma",
    type=types.SIGMAS,
    show_default="as the preset says",
    help="Bandwidths of the kernel, in the unit of the scaled features, or rules.",
)
@click.option(
    "--lc", type=types.POSITIVE, show_default="1", help="Values of L/C for kstar."
)
@click.option(
    "--cv",
    type=types.whole(2),
    metavar="FOLDS",
    show_default="5 where there is something to choose or no test part",
    help="Folds of the cross-validation.",
)
@options.shared("preset kernel scale pca search workers executor")
@options.seed("Draws the test part and the folds.")
@options.output(
    "Predictions of the test rows, or of all in cross-validation, with weights of the "
    "classes and J: .csv or .npz."
)
@options.for_features
@options.ids_of("the rows of --test", "--test-ids")
@options.shared("no_clobber json")
def command(
    train: str,
    labels: str,
    test: str | None,
    test_labels: str | None,
    split: str | None,
    output: str | None,
    test_ids: str | None,
    files: Files,
    json: bool,
    **settings: Any,
) -> None:
    """Classify points by the classes of their neighbors in TRAIN.

    The neighbors' weights are votes; the heaviest class wins, the first of equals.
    Where all weights vanish (a tiny sigma), the nearest row decides. Scaling and rules
    for sigma look at training rows only. Identical training rows count as one, whose
    label is the mean of theirs.

    Test on other files (--test), on marked rows (--split) or on a random part
    (--test-size). Of several values of k, sigma and lc, cross-validation within the
    training part chooses for every method: fewest mistakes, then the smallest k, then
    the smallest sigma or lc. Without a test part, its error is the result, and OUTPUT
    has what every row is taken for by the other folds. Rows of TRAIN without a label
    (empty, NaN, NA, or -1 among 0, 1, ...) are left out and counted.

    \b
    Examples:
      nnkgraph classify train.npy --labels y.npy \\
        --test test.npy --test-labels t.npy
      nnkgraph classify table.csv --labels y.csv -o every.csv
      nnkgraph classify data.npz::X --labels data.npz::y --split data.npz::split
      nnkgraph classify table.csv --labels y.csv --test-size 0.3 -o classes.csv
      nnkgraph classify data.npz::X --labels data.npz::y --scale standard --cv 5 \\
        -k 10:50:10 --sigma 0.1,0.5,1,5,10 --lc 0.1,0.5,1,5,10 --json
    """
    if split and not formats.split_item(split)[1]:
        # The marks are usually beside features and labels.
        many = split.lower().endswith((".npz", ".h5", ".hdf5", ".h5ad"))
        split = f"{split}::split" if many else split
    if test_ids and not test:
        raise click.UsageError("--test-ids names the rows of --test: give both")
    files.expect(train, labels, test, test_labels, split, others=[test_ids])
    if output is not None:
        files.check_file(output, (".csv", ".npz"))
    inside = label_columns(train, labels, split)
    files.table["drop"] += tuple(inside)
    x = files.features(train)
    if inside:
        talk.summary(f"{train}: left out, because labels are no features: {inside[0]}")
    points = files.more_rows(test, test_ids) if test else None
    y = files.labels(labels, x, known=x.ids, minus_one=True)
    truth = marks = None
    if test_labels:
        known = points and points.ids
        truth = files.labels(test_labels, points, known=known, minus_one=True)
    if split:
        marks = files.labels(split, x, known=x.ids)
    say_order(train, x.ids, y, marks, graph=False)
    stages = progress.Progress()
    found = nnkgraph.classify(
        x,
        y,
        points,
        truth,
        split=marks,
        predict=output is not None,
        progress=stages,
        **settings,
    )
    if output is not None:
        from nnkgraph.tasks.tables import as_csv, as_npz

        is_table = output.lower().endswith(".csv")
        formats.write_file(output, as_csv(found) if is_table else as_npz(found))
    about = found.about
    tests = "" if about["test_rows"] is None else f", {about['test_rows']} test rows"
    talk.summary(
        f"{train}: {about['rows']} training rows{tests}, {about['features']} features, "
        f"{len(found.classes)} classes, scale {about['scale']}"
        + (f", pca {about['pca']}" if "pca" in about else ""),
        *stages.unsaid(found.notes),
    )
    talk.warning(*found.warnings)
    if output is not None:
        predicted = about["test_rows"] or about["rows"]
        talk.summary(f"{output}: {predicted} rows predicted")
    facts = {**found.facts, "seconds": stages.seconds}
    talk.data(talk.json_text(facts) if json else _lines(found))


def _lines(found: Classified) -> str:
    """Return a table of the methods, and the confusion of the best one."""
    lines = found.lines
    if found.about["test_rows"] is None:  # the error is that of the cross-validation
        lines = [{**line, "error": None} for line in lines]
    text = talk.table(lines, _COLUMNS, left=1)
    table = found.best.get("confusion")
    if table is None:
        return text
    title = f"confusion of {found.best['method']}"
    return f"{text}\n\n{confusion_table(title, list(found.classes), table)}"
