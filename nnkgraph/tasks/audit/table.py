"""The findings as a table: a line for each, most suspicious first within a kind."""

from __future__ import annotations

import base64
import hashlib
import html
import io
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.tasks.tables import text_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.build.run import Run
    from nnkgraph.data import Candidates
    from nnkgraph.data.labels import Labels
    from nnkgraph.tasks.audit import Audit
    from nnkgraph.tasks.audit.outliers import Outliers
    from nnkgraph.tasks.audit.pairs import Near, Threshold
    from nnkgraph.tasks.audit.votes import Votes

COLUMNS = ("id", "finding", "score", "other", "label", "suggested", "detail")
KINDS = ("near-duplicate", "outlier", "label")
SUFFIXES = (".csv", ".tsv", ".parquet", ".html")

_SHOWN = 1000
"""Findings of a kind that a page lists."""

_Line = tuple[Any, ...]


def columns_of(
    run: Run,
    candidates: Candidates,
    limit: Threshold,
    near: Near,
    odd: Outliers,
    known: Labels | None,
    voted: Votes | None,
) -> dict[str, list[Any]]:
    """Return the findings, column by column; rows are named as the input names them."""
    ids = run.features.ids
    n = len(run.features.x)
    name: Any = range(n) if ids is None else ids
    label = [""] * n if known is None else known.names()
    origin = np.arange(n) if run.rows.origin is None else run.rows.origin
    lines = [
        *_near_lines(near, limit, name, label),
        *_outlier_lines(candidates, odd, origin, name, label),
        *(() if known is None or voted is None else _label_lines(voted, known, name)),
    ]
    parts = zip(*lines, strict=True) if lines else ((),) * len(COLUMNS)
    return {one: list(part) for one, part in zip(COLUMNS, parts, strict=True)}


def _near_lines(
    near: Near, limit: Threshold, name: Any, label: list[str]
) -> Iterator[_Line]:
    """Yield the pairs: the row that could go, its twin, and what to keep."""
    size = np.bincount(near.group[near.group >= 0]).tolist()
    score = near.distance if limit.cosine is None else 1.0 - near.distance**2 / 2
    pairs = near.row, near.other, near.distance, near.group[near.row], score
    keeper = near.keeper
    for row, other, apart, group, value in zip(
        *(one.tolist() for one in pairs), strict=True
    ):
        what = "identical" if apart == 0 else f"distance {apart:.4g}"
        detail = f"{what}; group {group + 1}, {size[group]} rows; keep "
        detail += str(name[int(keeper[row])])
        if label[row] != label[other]:
            detail += f"; the other's label is {label[other] or 'missing'}"
        yield name[row], KINDS[0], value, name[other], label[row], "drop", detail


def _outlier_lines(
    candidates: Candidates, odd: Outliers, origin: Any, name: Any, label: list[str]
) -> Iterator[_Line]:
    """Yield the outliers, with the row that is nearest to each."""
    rows = odd.found()
    k = candidates.index.shape[1]
    nearest = candidates.index[rows, 0] if k else rows
    for at, other in zip(rows.tolist(), nearest.tolist(), strict=True):
        detail = f"{odd.far[at]:.3g} times as far from its {k} neighbors as usual; "
        detail += f"LOF {odd.lof[at]:.3g}"
        row, score = int(origin[at]), float(odd.score[at])
        yield (
            name[row],
            KINDS[1],
            score,
            name[int(origin[other])],
            label[row],
            "",
            detail,
        )


def _label_lines(voted: Votes, known: Labels, name: Any) -> Iterator[_Line]:
    """Yield suspicious labels, then what rows without a label could have."""
    score, names = voted.score, known.names()
    for row in [*voted.suspicious.tolist(), *voted.unlabeled.tolist()]:
        own, other = float(voted.own[row]), float(voted.other[row])
        has = "no label" if np.isnan(own) else f"own share {own:.3f}"
        heard = voted.witnesses[row]
        seen = ", ".join(f"{name[at]} {share:.3f}" for at, share in heard)
        margin = "" if np.isnan(own) else f"; margin {own - other:.3f}"
        detail = f"{has}; suggested {other:.3f}{margin}; witnesses {seen}"
        suggested, witness = known.classes[voted.suggested[row]], name[heard[0][0]]
        yield name[row], KINDS[2], score[row], witness, names[row], suggested, detail


def sentences(facts: dict[str, Any]) -> dict[str, str]:
    """Return what was found and what may have been missed, in words, by kind."""
    said = {KINDS[0]: _near_sentence(facts)}
    odd, labels = facts["outliers"], facts["labels"]
    said[KINDS[1]] = _several(odd["rows"], "outlier")
    if odd["limit"] is not None:
        said[KINDS[1]] += (
            f" with a score above {odd['limit']:.3g}: 1 is usual, 2 is twice as far "
            "from the neighbors as rows are"
        )
    if labels:
        told = (
            f"{labels['suspicious']:,} of {labels['labeled']:,} labels have fewer "
            f"votes than another of {labels['classes']} classes"
        )
        if labels["missing"]:
            told += (
                f"; {_several(labels['missing'], 'label')} missing, "
                f"{_several(labels['suggested_for_missing'], 'suggestion')}"
            )
        if labels["without_votes"]:
            told += f"; {_several(labels['without_votes'], 'row')} without a vote"
        said[KINDS[2]] = told
    return {kind: f"{text}." for kind, text in said.items()}


def _near_sentence(facts: dict[str, Any]) -> str:
    near, missed = facts["near_duplicates"], facts["near_duplicates"]["missed"]
    text = f"{_several(near['pairs'], 'pair')} up to a distance of "
    text += f"{near['threshold']:.4g}"
    if near["cosine"] is not None:
        text += f", a cosine of {near['cosine']:.4f}"
    text += f" ({near['threshold_is']})"
    if near["pairs"]:
        text += (
            f", {near['identical']:,} of them identical; in "
            f"{_several(near['groups'], 'group')}, "
            f"{_several(near['rows_to_drop'], 'row')} could go"
        )
    if missed is None:
        return f"{text}. No pair was missed: the search was exact"
    low, high = missed["interval"]
    return (
        f"{text}. The search was approximate: of {missed['sample']:,} rows "
        f"{missed['share']:.2%} miss their nearest (of all {low:.2%} to {high:.2%}), "
        f"and where more than {facts['k']} rows are near one, some may be missed"
    )


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}" + "s" * (count != 1)


def content(path: str, found: Audit, failure: str = "") -> bytes:
    """Return the table as a file of the kind that its name ends in.

    A page also says what was looked for, and why it fails where it does.
    """
    ending = path.lower()
    if ending.endswith(".parquet"):
        return _parquet(found, failure)
    if ending.endswith(".html"):
        return _page(found, failure).encode()
    columns = dict(found.columns)
    columns["score"] = [repr(float(one)) for one in columns["score"]]
    return text_table(path, COLUMNS, list(columns.values()))


def _parquet(found: Audit, failure: str) -> bytes:
    from nnkgraph.formats.parquet import arrow

    pa = arrow()
    numbered = found.facts["ids"] is False
    kinds = {"id": pa.int64(), "other": pa.int64()} if numbered else {}
    kinds["score"] = pa.float64()
    fields = [(one, kinds.get(one, pa.string())) for one in COLUMNS]
    about = {"nnkgraph.audit.failure": failure} if failure else None
    schema = pa.schema(fields, metadata=about)
    buffer = io.BytesIO()
    table = pa.table(found.columns, schema=schema)
    pa.parquet.write_table(table, buffer, compression="snappy")
    return buffer.getvalue()


def _page(found: Audit, failure: str) -> str:
    """Return a page that needs nothing else: what was found, in words and tables."""
    facts, columns = found.facts, found.columns
    title = html.escape(PurePath(facts["name"]).name)
    told = [one for one in COLUMNS if one != "finding"]  # which the heading says
    lead = f"{facts['rows']:,} rows, {found.count:,} findings"
    body = [f"<h1>{title}</h1>", f"<p>{lead}</p>"]
    if failure:
        body.append(f'<p class="bad">{html.escape(failure)}</p>')
    for kind, said in sentences(facts).items():
        rows = [at for at, one in enumerate(columns["finding"]) if one == kind]
        body += [f"<h2>{kind}</h2>", f"<p>{html.escape(said)}</p>"]
        if len(rows) > _SHOWN:
            body.append(f"<p>The first {_SHOWN:,} of {len(rows):,} lines:</p>")
        if rows:
            body += ["<div><table>", _line(told, "th")]
            for at in rows[:_SHOWN]:
                body.append(_line([shown(columns[one][at]) for one in told], "td"))
            body.append("</table></div>")
    parts = {"title": title, "style": _STYLE, "body": "\n".join(body)}
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return _PAGE.format(**parts, digest=digest)


def _line(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(one)}</{tag}>' for one in cells)}</tr>"


def shown(value: Any) -> str:
    """Return a field for people; only what is 0 is shown as 0."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 0.01 else f"{value:.4f}"


_STYLE = """
:root { color-scheme: light dark; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  font: 1rem/1.5 system-ui, sans-serif; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
td:nth-child(2) { font-variant-numeric: tabular-nums; }
.bad { font-weight: 600; color: light-dark(#a8380f, #ff9a70); }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'sha256-{digest}'; img-src data:">
<title>Audit of {title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
