"""nnkgraph audit: what is odd in a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import nnkgraph
from nnkgraph.cli import options, progress, talk, types
from nnkgraph.cli.files import Files, label_columns, say_order
from nnkgraph.errors import ParameterError, QualityError

if TYPE_CHECKING:
    from nnkgraph.tasks.audit import Audit

_COLUMNS = ("id", "score", "other", "label", "suggested", "detail")


@options.command
@options.features_arg
@options.output("The findings: .csv, .tsv, .parquet or .html; '-' is stdout, as .csv.")
@options.file(
    "--labels", "A class per row, missing for some: empty, NaN, NA, or -1 among 0, 1."
)
@options.unlabeled
@click.option(
    "--duplicate",
    metavar="DISTANCE|cosine=NUMBER",
    show_default="by the data, and said",
    help="Rows up to this distance are near-duplicates; 0 takes identical ones only. A "
    "cosine needs --scale unit or --kernel cosine.",
)
@click.option(
    "--top",
    type=types.whole(0),
    default=5,
    help="Findings of a kind that are printed.",
)
@click.option(
    "--max-findings",
    type=types.whole(0),
    help="End with exit code 6 where there are more; all is written.",
)
@options.shared("k preset kernel sigma search scale pca workers executor memory seed")
@options.for_features
@options.shared("no_clobber json")
def command(
    features: str,
    output: str | None,
    labels: str | None,
    unlabeled: str | None,
    top: int,
    max_findings: int | None,
    memory: int | None,
    files: Files,
    json: bool,
    **settings: Any,
) -> None:
    """Look for near-duplicates, outliers and wrong labels.

    Near-duplicates are all pairs of rows up to a distance, identical rows at 0; of each
    group the rows to keep are named. An outlier's score says how many times as far from
    its neighbors it is as usual. A label is suspicious where the neighbors of a row,
    without the row itself, have more votes for another; they are named.

    The table has the columns id, finding (near-duplicate, outlier or label), score,
    other, label, suggested and detail, most suspicious first within a finding. Findings
    are no failure: the exit code is 0, or 6 with --max-findings.

    \b
    Examples:
      nnkgraph audit points.npy -o audit.csv
      nnkgraph audit table.csv --labels table.csv::kind -o audit.html
      nnkgraph audit emb.npy --scale unit --duplicate cosine=0.95 -o audit.parquet
      nnkgraph audit data.h5::x --labels data.h5::y --json --max-findings 100
    """
    from nnkgraph.tasks.audit.table import SUFFIXES, content

    if unlabeled is not None and labels is None:
        raise ParameterError("--unlabeled is about labels: give --labels")
    files.expect(features, labels)
    if output is not None:
        files.check_table(output, SUFFIXES, json=json)
    x, y = _read(files, features, labels, unlabeled)
    shown = progress.Progress()
    found = nnkgraph.audit(x, y, memory=memory, progress=shown, **settings)
    failure = ""
    if max_findings is not None and found.count > max_findings:
        failure = f"{found.count:,} findings, more than {max_findings:,}"
    if output is not None:
        files.write(output, content(output, found, failure))
    talk.summary(*shown.unsaid(found.notes))
    _say(features, output, found)
    if json:
        talk.data(talk.json_text(_figures(found, failure)))
    elif output != "-" and top and found.columns["id"]:
        say = talk.data if output is None else talk.listing
        say("\n\n".join(_tables(found, top)))
    if failure:
        raise QualityError(
            f"{features}: {failure}" + (f"; {output} was written" if output else "")
        )


def _read(
    files: Files, features: str, labels: str | None, unlabeled: str | None
) -> tuple[nnkgraph.Features, nnkgraph.Labels | None]:
    """Read the features without the column of the labels, and the labels."""
    inside = label_columns(features, labels)
    files.table["drop"] += tuple(inside)
    x = files.features(features)
    if inside:
        what = f"left out, because labels are no features: {inside[0]}"
        talk.summary(f"{features}: {what}")
    if labels is None:
        return x, None
    y = files.labels(labels, x, known=x.ids, missing=unlabeled, minus_one=True)
    say_order(features, x.ids, y, graph=False)
    return x, y


def _say(features: str, output: str | None, found: Audit) -> None:
    from nnkgraph.tasks.audit.table import sentences

    talk.summary(*(f"{kind}: {text}" for kind, text in sentences(found.facts).items()))
    if output is not None:
        count = len(found.columns["id"])
        talk.summary(f"{output}: {count:,} {'line' if count == 1 else 'lines'}")
    talk.warning(*(f"{features}: {text}" for text in found.facts["warnings"]))


def _figures(found: Audit, failure: str) -> dict[str, Any]:
    """Return all figures, with the table line by line."""
    names = list(found.columns)
    lines = zip(*found.columns.values(), strict=True)
    rows = [dict(zip(names, line, strict=True)) for line in lines]
    return {**found.facts, "failure": failure or None, "table": rows}


def _tables(found: Audit, top: int) -> list[str]:
    """Return the first findings of every kind."""
    parts, kinds = [], found.columns["finding"]
    for kind in dict.fromkeys(kinds):
        rows = [at for at, one in enumerate(kinds) if one == kind]
        cells = [
            [_cell(found.columns[one][at]) for one in _COLUMNS] for at in rows[:top]
        ]
        head = [kind, *_COLUMNS[1:]]
        used = [at for at in range(len(head)) if any(line[at] for line in cells)]
        lines = [[line[at] for at in used] for line in [head, *cells]]
        parts.append(talk.aligned(lines, left=len(used)))
    return parts


def _cell(value: Any) -> str:
    from nnkgraph.tasks.audit.table import shown

    return talk.printable(shown(value))
