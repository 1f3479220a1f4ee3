"""Which columns of a table name its rows, and which are left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._columnnames import OWN, as_word, unknown
from nnkgraph.formats._fields import NUMBER
from nnkgraph.formats._source import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nnkgraph.formats._format import TextOptions


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
    values: Callable[[int], Iterable[str]],
    asked: int | None = None,
) -> Roles:
    """Return the roles of columns: as told, or as their names say.

    A column called id that nobody spoke of names the rows where `can_name` says so,
    unless it is what was `asked` for. Without one, a column whose `values` are ids that
    are known already does so.
    """
    dropped = _dropped(names, count, options, name)
    ids = _told(names, count, options, name, asked)
    named = ids is not None
    if ids is None:
        own = _own(names, dropped | {asked})
        # Where rows have names in other files, those of this one are names, too.
        certain = own is not None and (options.id_column is not None or can_name(own))
        ids = own if certain else None
        if ids is None and count > 1:
            rest = (at for at in range(count) if at not in dropped | {asked})
            ids = next((at for at in rest if _are_ids(values(at), options)), None)
        _remark(ids, names, options, name, known=not certain)
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


def check_own(ids: Sequence[str], options: TextOptions, name: str) -> None:
    """Refuse names of rows that repeat and that nobody said were names."""
    if options.id_column is None and len(set(ids)) < len(ids):
        twice = next(one for one, count in Counter(ids).items() if count > 1)
        raise InputError(
            f"{name}: {show(twice)!r} stands in the column {OWN!r} more than once, so "
            f"it cannot name the rows: leave it out with --drop {OWN}, or name them by "
            "another with --id-column"
        )


def say_unused(
    names: list[str] | None,
    used: int,
    values: Callable[[int], Iterable[str]],
    options: TextOptions,
    name: str,
) -> None:
    """Say so where rows are taken in order although a column seems to name them."""
    if options.id_column is not None:
        return
    for at in range(len(names or ())):
        if at != used and _may_be_ids(list(values(at)), options):
            options.note(
                f"{name}: rows are taken in order; --id-column {as_word(names, at)} "
                "would match them by their ids"
            )
            return


def _may_be_ids(values: list[str], options: TextOptions) -> bool:
    """Return whether all are words, each only once; where ids are known, some of them.

    Ids that are all known have been taken already.
    """
    seen = set(values)
    words = len(seen) == len(values) and not any(map(NUMBER.fullmatch, seen))
    return bool(seen) and words and (not options.known or bool(seen & options.known))


def _place(names: Sequence[str] | None, count: int, wanted: str | None) -> int | None:
    """Return the number of a column that was named or numbered."""
    if wanted is None:
        return None
    if names is not None and names.count(wanted) == 1:
        return names.index(wanted)
    return int(wanted) if wanted.isdecimal() and int(wanted) < count else None


def _told(
    names: Sequence[str] | None,
    count: int,
    options: TextOptions,
    name: str,
    asked: int | None,
) -> int | None:
    """Return the column that the user says has the ids; None without one."""
    if options.id_column is None:
        return None
    ids = _place(names, count, options.id_column)
    if options.absent is None:
        if ids is None:
            raise unknown(options.id_column, "for the ids", names, count, name)
        return ids
    if ids is None or ids == asked or count == 1:
        options.absent()
        return None
    return ids


def _dropped(
    names: Sequence[str] | None, count: int, options: TextOptions, name: str
) -> frozenset[int]:
    found = set[int]()
    for word in drop_words(options, names):
        at = _place(names, count, word)
        if at is not None:
            found.add(at)
        elif not options.dropped_before:
            raise unknown(word, "to drop", names, count, name)
    return frozenset(found)


def _own(names: Sequence[str] | None, taken: frozenset[int | None]) -> int | None:
    """Return the only column called id, unless there is no other or it is taken."""
    called = [at for at, one in enumerate(names or ()) if one.strip().lower() == OWN]
    if len(called) != 1 or called[0] in taken or len(names or ()) < 2:
        return None
    return called[0]


def _are_ids(values: Iterable[str], options: TextOptions) -> bool:
    """Return whether a column has known ids, each at most once, and no mere numbers."""
    seen = set[str]()
    for one in values:
        if one not in options.known or one in seen:
            return False
        seen.add(one)
    return not all(map(NUMBER.fullmatch, seen))


def _remark(
    ids: int | None,
    names: Sequence[str] | None,
    options: TextOptions,
    name: str,
    *,
    known: bool,
) -> None:
    """Say where ids come from that nobody named, or that there are none."""
    wanted = options.id_column
    told = "" if wanted is None else f"there is no column {show(wanted)!r}; "
    if ids is not None:
        word = repr(show(names[ids])) if names else f"number {ids} from 0"
        why = ": all that it holds are ids of nodes" if known else ""
        options.note(f"{name}: {told}the column {word} names the rows{why}")
    elif told:
        options.note(f"{name}: {told}rows are taken in order")
