"""How columns are called: in messages, behind options, and what that tells."""

from __future__ import annotations

import re
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN = "id"
"""The column with names of rows in every table that nnkgraph writes."""

_NUMBERING = {"", OWN, "index", "row", "unnamed: 0"}
_KEY = re.compile(r".*([\s_.-][iI][dD]|[a-z0-9]I[dD])")


def is_key_name(name: str) -> bool:
    """Return whether a column called so seems to number or name the rows."""
    return name.strip().lower() in _NUMBERING or bool(_KEY.fullmatch(name.strip()))


def as_word(names: Sequence[str] | None, *columns: int) -> str:
    """Return columns as they are written behind an option, names where they have any.

    A name that would be split at its comma is written as the column's number.
    """
    known = names or ()
    words = [known[at] if at < len(known) else "" for at in columns]
    plain = [
        one if one and "," not in one and known.count(one) == 1 else str(at)
        for at, one in zip(columns, words, strict=True)
    ]
    return shlex.quote(show(",".join(plain)))


def item_of(name: str, item: str) -> str:
    """Return how a column or array of a file is named, ready for a shell.

    `name` is that of the file, safe to print.
    """
    return shlex.quote(f"{name}::{show(item)}")


def leave_out(names: Sequence[str] | None, columns: list[int], *, named: bool) -> str:
    """Return what can be done with columns that are no features.

    Parameters
    ----------
    columns
        Their numbers; the first could name the rows.
    named
        Whether another column does so already.
    """
    first, *others = columns
    if named:
        word = as_word(names, *columns)
        return f"leave {'such columns' if others else 'it'} out with --drop {word}"
    by = f"name the rows by it with --id-column {as_word(names, first)}"
    if others:
        return f"{by}, and leave others out with --drop {as_word(names, *others)}"
    return f"{by}, or leave it out with --drop {as_word(names, first)}"


def key_hint(names: Sequence[str], features: list[int], *, named: bool) -> str:
    """Return what to do with a feature that is called like a key, or nothing."""
    keys = [at for at in features if is_key_name(names[at])]
    if not keys:
        return ""
    advice = leave_out(names, keys[:1], named=named)
    return f"if {show(names[keys[0]])!r} is no feature, {advice}"


def some(names: Sequence[str]) -> str:
    """Return names for a message, the first ten."""
    return ", ".join(map(show, names[:10])) + ", ..." * (len(names) > 10)


def unknown(
    wanted: str, what: str, names: Sequence[str] | None, count: int, name: str
) -> InputError:
    """Return the error for a column that is not there, with one that may be meant."""
    listed = some(names or ()) or "no names"
    near = get_close_matches(wanted, list(names or ()), n=1)
    advice = "say its name or its number from 0"
    if count == 1 and ";" in listed:
        advice = "try --delimiter ';'"
    elif near and near[0] != wanted:
        advice = f"did you mean {show(near[0])!r}?"
    return InputError(
        f"{name}: there is no single column {show(wanted)!r} {what} among {count} "
        f"column{'s' * (count != 1)} ({listed}); {advice}"
    )
