"""What columns are like, in words: keys, constants and scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.formats._columnnames import leave_out
from nnkgraph.tasks.doctor._finding import Finding, share

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = 5


def column_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say what columns mean for the options; nothing where they are nodes."""
    columns, scale = figures["columns"], figures["scale"]
    if not columns:
        return
    d = columns["columns"]
    for key in columns["keys"]:
        yield Finding("data", _key(key, columns, named=figures["ids"]), advice=True)
    if columns["zero_rows"]:
        yield Finding(
            "data",
            f"{columns['zero_rows']} rows are all zeros: --kernel cosine and --scale "
            "unit refuse them",
        )
    if columns["constant"]:
        yield Finding("data", f"{share(columns['constant'], d)} columns are constant")
    if d < 2:
        return
    before = "" if scale == "none" else f"before --scale {scale} "
    yield Finding(
        "data",
        f"{before}the widest column, {_name(columns['largest'], columns)}, is "
        f"{columns['scale_ratio']:.3g} times as wide as the usual one and holds "
        f"{100 * columns['largest_share']:.1f} % of the variance; "
        f"{columns['columns_90']} of {d} hold 90 %",
    )
    if not before:
        yield from _scales(columns)


def _scales(columns: dict[str, Any]) -> Iterator[Finding]:
    if columns["principal"]:
        yield Finding(
            "data",
            "few columns hold most of the variance, but they are uncorrelated and in "
            "falling order, as principal components are: leave their scales alone",
        )
    elif columns["scale_apart"]:
        narrow = columns["narrow"]
        some = ", ".join(_name(at, columns) for at in narrow[:_SHOWN])
        some += ", ..." * (len(narrow) > _SHOWN)
        yield Finding(
            "data",
            f"{share(len(narrow), columns['columns'])} columns are less than a tenth "
            f"as wide as the widest and hardly count ({some}): try --scale standard, "
            "unless the scales are meant",
            advice=True,
        )


def _key(key: dict[str, Any], columns: dict[str, Any], *, named: bool) -> str:
    """Say that a column is no feature, and how to do without it."""
    names, at = columns["names"], key["column"]
    what = f"column {_name(at, columns)} {key['why']}: it looks like a key, no feature"
    # The number of a column in the file may be another than among the features.
    if names is None or names.count(names[at]) != 1 or "," in names[at]:
        return f"{what}; leave it out"
    return f"{what}; {leave_out(names, [at], named=named)}, and look again"


def _name(at: int, columns: dict[str, Any]) -> str:
    """Return what a column is called; its number from 0 where it has no name."""
    names = columns["names"]
    return repr(names[at]) if names and names[at] else f"number {at} from 0"
