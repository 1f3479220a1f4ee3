"""Which columns of a table name its rows, and which are left out."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnkgraph.formats._format import TextOptions

OWN = "id"
"""The column with names of rows in every table that nnkgraph writes."""

_NUMBERING = {"", OWN, "index", "row", "unnamed: 0"}
_KEY = re.compile(r".*([\s_.-][iI][dD]|[a-z0-9]I[dD])")


@dataclass(frozen=True, slots=True)
class Roles:
    """Columns that are no features, by their numbers from 0."""

    ids: int | None = None
    dropped: frozenset[int] = frozenset()

    @property
    def others(self) -> frozenset[int]:
        """All of them."""
        return self.dropped if self.ids is None else self.dropped | {self.ids}

    def features(self, count: int) -> list[int]:
        """Return the numbers of the columns that are left of so many."""
        return [at for at in range(count) if at not in self.others]


def find_roles(
    names: Sequence[str] | None,
    count: int,
    options: TextOptions,
    name: str,
    can_name: Callable[[int], bool],
    asked: int | None = None,
) -> Roles:
    """Return the roles of columns: as told, or as their names say.

    A column called id that nobody spoke of names the rows where `can_name` says so,
    unless it is what was `asked` for.
    """
    dropped = _dropped(names, count, options, name)
    ids = _place(names, count, options.id_column)
    if options.absent is not None and (count == 1 or ids == asked):
        ids = None  # The only column, or the one that is wanted, is no name.
    if ids is None and options.id_column is not None:
        if options.absent is None:
            what = "for the ids"
            raise _unknown(options.id_column, what, names, count, name)
        options.absent()
    named = ids is not None
    if not named:
        own = _own(names, dropped | {asked})
        told = (
            options.id_column is not None
        )  # Rows have names, so take those there are.
        ids = own if own is not None and (told or can_name(own)) else None
        _remark(ids, options, name)
    if ids in dropped:
        raise ParameterError(
            f"{name}: a column cannot name the rows and be dropped: leave out "
            "--id-column or --drop"
        )
    roles = Roles(ids, dropped)
    if roles.others and len(roles.others) >= count:
        what = "the id column is the only one" if named else "every column is dropped"
        raise InputError(f"{name}: {what}; there is nothing else")
    return roles


def drop_words(options: TextOptions, names: Sequence[str] | None = None) -> list[str]:
    """Return the columns to drop one by one; a name may have commas in it."""
    words: list[str] = []
    for one in options.drop:
        whole = one in (names or ())
        words += [one] if whole else [part.strip() for part in one.split(",")]
    return words


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


def key_hint(names: Sequence[str], roles: Roles) -> str:
    """Return what to do with a feature that is called like a key, or nothing."""
    keys = [at for at in roles.features(len(names)) if is_key_name(names[at])]
    if not keys:
        return ""
    advice = leave_out(names, keys[:1], named=roles.ids is not None)
    return f"if {show(names[keys[0]])!r} is no feature, {advice}"


def check_own(ids: Sequence[str], options: TextOptions, name: str) -> None:
    """Refuse names of rows that repeat and that nobody said were names."""
    if options.id_column is None and len(set(ids)) < len(ids):
        twice = next(one for one, count in Counter(ids).items() if count > 1)
        raise InputError(
            f"{name}: {show(twice)!r} stands in the column {OWN!r} more than once, so "
            f"it cannot name the rows: leave it out with --drop {OWN}, or name them by "
            "another with --id-column"
        )


def some(names: Sequence[str]) -> str:
    """Return names for a message, the first ten."""
    return ", ".join(map(show, names[:10])) + ", ..." * (len(names) > 10)


def _place(names: Sequence[str] | None, count: int, wanted: str | None) -> int | None:
    """Return the number of a column that was named or numbered."""
    if wanted is None:
        return None
    if names is not None and names.count(wanted) == 1:
        return names.index(wanted)
    return int(wanted) if wanted.isdecimal() and int(wanted) < count else None


def _dropped(
    names: Sequence[str] | None, count: int, options: TextOptions, name: str
) -> frozenset[int]:
    found = set[int]()
    for word in drop_words(options, names):
        at = _place(names, count, word)
        if at is not None:
            found.add(at)
        elif not options.dropped_before:
            raise _unknown(word, "to drop", names, count, name)
    return frozenset(found)


def _own(names: Sequence[str] | None, taken: frozenset[int | None]) -> int | None:
    """Return the only column called id, unless there is no other or it is taken."""
    called = [at for at, one in enumerate(names or ()) if one.strip().lower() == OWN]
    if len(called) != 1 or called[0] in taken or len(names or ()) < 2:
        return None
    return called[0]


def _remark(ids: int | None, options: TextOptions, name: str) -> None:
    """Say where ids come from that nobody named, or that there are none."""
    wanted = options.id_column
    told = "" if wanted is None else f"there is no column {show(wanted)!r}; "
    if ids is not None:
        options.note(f"{name}: {told}the column {OWN!r} names the rows")
    elif told:
        options.note(f"{name}: {told}rows are taken in order")


def _unknown(
    wanted: str, what: str, names: Sequence[str] | None, count: int, name: str
) -> InputError:
    listed = some(names or ()) or "no names"
    near = get_close_matches(wanted, list(names or ()), n=1)
    advice = "say its name or its number from 0"
    if count == 1 and ";" in listed:
        advice = "try --delimiter ';'"
    elif near and near[0] != wanted:
        advice = f"did you mean {show(near[0])!r}?"
    return InputError(
        f"{name}: there is no single column {show(wanted)!r} {what} among {count} "
        f"columns ({listed}); {advice}"
    )
