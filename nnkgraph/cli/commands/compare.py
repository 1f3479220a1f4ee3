"""nnkgraph compare: methods side by side."""

from typing import Any

import nnkgraph
from nnkgraph import formats
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files

_COLUMNS = {
    "method": ("method", "{}"),
    "rule": ("rule", "{}"),
    "k": ("k", "{}"),
    "edges": ("edges", "{}"),
    "edges_per_node": ("per node", "{:.3f}"),
    "components": ("components", "{}"),
    "isolated": ("isolated", "{}"),
    "mean_error": ("mean J", "{:.6f}"),
    "seconds": ("seconds", "{:.3f}"),
}
"""What is said of a graph: the name, its head on a terminal, and how it is shown."""


@options.command
@options.features_arg
@options.output(
    "A .csv table or a .png, .svg, .pdf picture of edges per node; repeatable.",
    multiple=True,
)
@options.candidates("Candidates per node.", types.NUMBERS, "10:50:10")
@options.methods(
    *("knn", "nnk", "omp", "mp"),
    help="What to compare; repeatable. knn stands for its union and its mutual form.",
)
@options.shared("preset kernel sigma search scale pca workers executor seed")
@options.for_features
@options.shared("no_clobber json")
def command(
    features: str, output: tuple[str, ...], files: Files, json: bool, **settings: Any
) -> None:
    """Compare methods and values of k on the same candidates.

    Candidates are searched once; a rule for sigma is applied once, to k = 30 (or the
    largest k below that). Prints a table; with -o also a .csv file and the curve of
    edges per node over k.

    \b
    Examples:
      nnkgraph compare points.npy
      nnkgraph compare points.npy -k 10:50:5 -o sparsity.png -o sparsity.csv
      nnkgraph compare points.npy --method nnk --method l1:eta=0.1 --json
    """
    files.expect(features)
    for name in output:
        files.check_file(name, (".csv", ".png", ".svg", ".pdf"))
    if not all(map(_is_table, output)):
        from nnkgraph.tasks.plot import new_figure

        new_figure(1, 1)  # what pictures need is missing before the work, not after it
    matrix = files.features(features, kernel=settings["kernel"])
    shown = progress.Progress()
    found = nnkgraph.compare(matrix, progress=shown, **settings)
    for name in output:
        _write(name, matrix.name, found.lines)
    talk.summary(*shown.unsaid(found.notes))
    if found.sigma is not None:
        talk.summary(f"{features}: sigma {found.sigma:.6g}, search {found.search}")
    for line in found.lines:
        if line["failure"]:
            talk.warning(f"{line['method']}, k {line['k']}: {line['failure']}")
    for name in output:
        what = "in a table" if _is_table(name) else "drawn as edges per node over k"
        talk.summary(f"{name}: {len(found.lines)} graphs {what}")
    about = {"sigma": found.sigma, "search": found.search, "lines": found.lines}
    text = talk.table(found.lines, _COLUMNS, left=2)
    talk.data(talk.json_text(about) if json else text)


def _is_table(name: str) -> bool:
    return name.lower().endswith(".csv")


def _write(name: str, title: str, lines: list[dict[str, Any]]) -> None:
    if _is_table(name):
        import csv
        import io

        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows([line[column] for column in _COLUMNS] for line in lines)
        formats.write_file(name, text.getvalue().encode())
        return
    from nnkgraph.tasks.compare import draw_curves
    from nnkgraph.tasks.plot import rendered

    formats.write_file(name, rendered(draw_curves(lines, title), name))
