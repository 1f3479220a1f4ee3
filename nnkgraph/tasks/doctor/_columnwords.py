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
        told = f"{_key(key, columns, named=figures['ids'])}, and look again"
        yield Finding("data", told, advice=True)
    if columns["zero_rows"]:
        yield Finding(
            "data",
            f"{_rows(columns['zero_rows'])} all zeros: --kernel cosine and --scale "
            "unit refuse them",
        )
    if columns["constant"]:
        yield Finding("data", _constant(columns))
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
        one = len(narrow) == 1
        yield Finding(
            "data",
            f"{share(len(narrow), columns['columns'])} columns "
            f"{'is' if one else 'are'} less than a tenth as wide as the widest and "
            f"hardly {'counts' if one else 'count'} ({_names(narrow, columns)}): try "
            "--scale standard, unless the scales are meant",
            advice=True,
        )


def remarks(columns: dict[str, Any], *, named: bool) -> Iterator[str]:
    """Say what to know about columns that nobody scaled, before the doctor is asked."""
    more = "'nnkgraph doctor' says more"
    for key in columns["keys"][:1]:
        yield f"{_key(key, columns, named=named)}; {more}"
    if columns["principal"] or not columns["scale_apart"]:
        return
    narrow = len(columns["narrow"])
    yield (
        f"column {_name(columns['largest'], columns)} holds "
        f"{100 * columns['largest_share']:.1f} % of the variance and {narrow} of "
        f"{columns['columns']} hardly {'counts' if narrow == 1 else 'count'}; --scale "
        f"standard lets all count, {more}"
    )


def _constant(columns: dict[str, Any]) -> str:
    """Say how many columns are constant, and which where they have names."""
    count = columns["constant"]
    said = f"{share(count, columns['columns'])} columns {'is' if count == 1 else 'are'}"
    which = columns["constant_columns"] if columns["names"] else []
    return f"{said} constant" + (f": {_names(which, columns)}" if which else "")


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"


def _names(which: list[int], columns: dict[str, Any]) -> str:
    """Return what some columns are called, the first of them."""
    some = ", ".join(_name(at, columns) for at in which[:_SHOWN])
    return some + ", ..." * (len(which) > _SHOWN)


def _key(key: dict[str, Any], columns: dict[str, Any], *, named: bool) -> str:
    """Say that a column is no feature, and how to do without it."""
    names, at = columns["names"], key["column"]
    what = f"column {_name(at, columns)} {key['why']}: it looks like a key, no feature"
    # The number of a column in the file may be another than among the features.
    if names is None or names.count(names[at]) != 1 or "," in names[at]:
        return f"{what}; leave it out"
    return f"{what}; {leave_out(names, [at], named=named)}"


def _name(at: int, columns: dict[str, Any]) -> str:
    """Return what a column is called; its number from 0 where it has no name."""
    names = columns["names"]
    return repr(names[at]) if names and names[at] else f"number {at} from 0"
