"""Columns of tables: which name the rows, which are left out, which is the labels."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.data.labels import as_texts, is_missing
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._base import Note, TextOptions, ignore
from nnkgraph.runtime.files import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray


NUMBER = re.compile(
    # Digits can be cut into parts in one way only: otherwise long ones take for ever.
    r"\s*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)\s*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d]")


def is_word(field: str) -> bool:
    """Return whether a field can only be text."""
    known = NUMBER.fullmatch(field) or is_missing(field)
    return not known and bool(_LETTER.search(field))


def may_be_header(fields: Sequence[str], options: TextOptions) -> bool:
    """Return whether a first row may hold names: it is told, or has words."""
    return any(map(is_word, fields)) if options.header is None else options.header


OWN = "id"  # the column with names of rows in every table that nnkgraph writes
_NUMBERING = {"", OWN, "index", "row", "unnamed: 0"}
_KEY = re.compile(r".*([\s_.-][iI][dD]|[a-z0-9]I[dD])")


def is_key_name(name: str) -> bool:
    """Return whether a column called so seems to number or name the rows."""
    return name.strip().lower() in _NUMBERING or bool(_KEY.fullmatch(name.strip()))


def holds_findings(names: Sequence[str]) -> bool:
    """Return whether a table with these columns is what audit writes."""
    return {"finding", "score", "other"} <= {*names}


def about_rows(names: Sequence[str]) -> str:
    """Return what a table with these columns says of its rows; nothing if it may not.

    An edge is named by two nodes, so that no other column than the first is a key.
    """
    key, *others = [one.strip() for one in names] or [""]
    if not (is_key_name(key) and others and all(map(is_word, others))):
        return ""
    if any(map(is_key_name, others)):
        return ""
    if holds_findings(names):
        return "findings of audit"
    if others == ["cluster"]:
        return "clusters"
    labels = others[0].lower() in USUAL or len(others) == 1
    return "labels" if labels else ""  # features, which others say more about


def as_word(names: Sequence[str] | None, *columns: int) -> str:
    """Return columns as the value of a parameter, names where they have any."""
    known, words = names or (), []
    for at in columns:
        word = known[at] if at < len(known) else ""
        # A name would be split at its comma.
        plain = word and "," not in word and known.count(word) == 1
        words.append(word if plain else str(at))
    return repr(show(",".join(words)))


def item_of(name: str, item: str) -> str:
    """Return how a column or array of a file is named, ready for a shell."""
    return shlex.quote(f"{name}::{show(item)}")


def leave_out(names: Sequence[str] | None, columns: list[int], *, named: bool) -> str:
    """Return what can be done with columns that are no features.

    The first could name the rows, unless they are `named` by another already.
    """
    first, *others = columns
    if named:
        word = as_word(names, *columns)
        return f"leave {'such columns' if others else 'it'} out with `drop={word}`"
    by = f"name the rows by it with `id_column={as_word(names, first)}`"
    if others:
        return f"{by}, and leave others out with `drop={as_word(names, *others)}`"
    return f"{by}, or leave it out with `drop={as_word(names, first)}`"


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


def asked(names: Sequence[str], item: str, name: str) -> int:
    """Return the number of the column that an item names or numbers."""
    at = _place(names, len(names), item)
    if at is not None:
        return at
    near = get_close_matches(item, names, n=1)
    hint = f"; did you mean {show(near[0])!r}?" if near and near[0] != item else ""
    raise InputError(
        f"{name}: there is no single column {show(item)!r}; there are "
        f"{some(names)}{hint}"
    )


USUAL = ("y", "label", "labels", "target", "targets", "class", "classes", "category")
"""Names that labels go by, where nobody says which."""


_MOST_LETTERS, _MOST_BYTES = 200, 1 << 26

_MOST_CLASSES, _LOOKED_AT = 50, 100
"""Classes that a column of numbers may have to look like labels; columns looked at."""


def pick_matrix(found: Sequence[str], name: str, contents: str) -> str:
    """Return the only one of some matrices."""
    if len(found) == 1:
        return found[0]
    what = "are several matrices" if found else "is no matrix"
    hint = f"; name one as FILE::{show(found[0])}" if found else ""
    raise InputError(f"{name}: there {what} inside{hint}: {contents}")


def pick_column(
    found: Sequence[str],
    name: str,
    what: str,
    likely: Callable[[], str] | None = None,
    note: Note = ignore,
) -> str:
    """Return the labels among all that could be them; `likely` gives an example."""
    if holds_findings(found):
        raise InputError(
            f"{name}: holds findings of audit, not one value per row: use `audit` (of "
            "report and plot)"
        )
    if len(found) == 1:
        return found[0]
    usual = [one for one in found if one.rpartition("/")[2].lower() in USUAL]
    if len(usual) == 1:
        note(f"{name}: labels are in {show(usual[0])!r}")
        return usual[0]
    if not found:
        raise InputError(f"{name}: there is no {what} of labels inside")
    example = likely() if likely else found[0]
    raise InputError(
        f"{name}: which {what} holds the labels or values? Name it as "
        f"{item_of(name, example)}; there are {some(found)}"
    )


def likely_labels(found: Sequence[str], values: Callable[[str], list[str]]) -> str:
    """Return the column that looks most like classes: words, few of them."""
    best, found_best = (True, _MOST_CLASSES + 1), found[-1]
    for one in found[:_LOOKED_AT]:
        texts = values(one)
        kinds = {text.strip() for text in texts} - {""}
        rank = all(map(NUMBER.fullmatch, kinds)), len(kinds)
        if 1 < len(kinds) <= max(2, len(texts) // 2) and rank < best:
            best, found_best = rank, one
    return found_best


def as_values(found: NDArray[Any], ids: Sequence[str] | None, name: str) -> Features:
    """Return one number per row as a column of features; NaN where there is none."""
    if found.ndim != 1:
        raise InputError(
            f"{name}: values are one number per row, but the shape is {found.shape}"
        )
    if found.dtype.kind in "US":
        texts = [one.strip() for one in as_texts(found)]
        texts = ["nan" if is_missing(one) else one for one in texts]
        strange = next((one for one in texts if not NUMBER.fullmatch(one)), None)
        if strange is not None:
            what = f"{show(strange)!r} is no number; classes are `labels`"
            raise InputError(f"{name}: {what}")
        found = np.array([float(one) for one in texts])
    return Features.of(found[:, np.newaxis], ids=ids, name=name, gaps=True)


def as_array(texts: list[str], name: str) -> NDArray[np.str_]:
    """Return texts as an array, in which each takes as much room as the longest."""
    longest = max(map(len, texts), default=0)
    if longest > _MOST_LETTERS and 4 * longest * len(texts) > _MOST_BYTES:
        row = next(at for at, one in enumerate(texts) if len(one) == longest)
        raise InputError(
            f"{name}: row {row} (counted from 0) has a text of {longest:,} characters; "
            "labels are short"
        )
    return np.array(texts, np.str_)


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


def drop_words(options: TextOptions, names: Sequence[str] | None = None) -> list[str]:
    """Return the columns to drop one by one; a name may have commas in it."""
    words: list[str] = []
    for one in options.drop:
        whole = one in (names or ())
        words += [one] if whole else [part.strip() for part in one.split(",")]
    return words


def check_own(
    ids: Sequence[str], options: TextOptions, name: str, column: str = OWN
) -> None:
    """Refuse names of rows that repeat and that nobody said were names."""
    if options.id_column is None and len(set(ids)) < len(ids):
        twice = next(one for one, count in Counter(ids).items() if count > 1)
        where = f"the column {column!r}" if column else "the first column"
        raise InputError(
            f"{name}: {show(twice)!r} stands in {where} more than once, so it cannot "
            f"name the rows: leave it out with `drop={column or '0'!r}`, or name them "
            "by another with `id_column`"
        )


_FEWEST = 3  # fewer rows are counted by chance


def counts_rows(
    x: NDArray[Any], names: Sequence[str] | None, name: str, *, named: bool
) -> str:
    """Return what to do where the first column is a mere count of rows, or nothing.

    It could name the rows, unless they are `named` by another already.
    """
    if len(x) < _FEWEST or x.shape[1] < 2 or not 0 <= x[0, 0] <= 1:
        return ""
    if not np.array_equal(x[:, 0], np.arange(len(x)) + x[0, 0]):
        return ""
    which = f", {show(names[0])!r}," if names and names[0] else ""
    return (
        f"{name}: the first column{which} just counts the rows, from {int(x[0, 0])}, "
        f"and is taken for a feature: {leave_out(None, [0], named=named)}"
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table, and what was said about them."""

    names: Sequence[str] | None
    count: int
    options: TextOptions
    name: str  # that of the file
    row_names: bool = False
    """Whether the first column, which has no name, names the rows."""

    def roles(
        self,
        can_name: Callable[[int], bool],
        values: Callable[[int], Iterable[str]],
        asked: int | None = None,
    ) -> Roles:
        """Return the roles of columns: as told, or as their names say.

        A column called id that nobody spoke of names the rows where `can_name` says so,
        unless it is what was `asked` for; else one whose `values` are known ids.
        """
        dropped, options = self._dropped(), self.options
        ids = self._told(asked)
        if self.row_names and options.id_column is None and not {0} & {*dropped, asked}:
            options.note(f"{self.name}: the first column, unnamed, names the rows")
            ids = 0
        named = ids is not None
        if ids is None:
            taken = dropped | {asked}
            own = self._own(taken)
            # Where rows have names in other files, those of this one are names, too.
            told = options.id_column is not None
            certain = own is not None and (told or can_name(own))
            ids = own if certain else None
            if ids is None and self.count > 1:
                rest = (at for at in range(self.count) if at not in taken)
                ids = next((at for at in rest if _are_ids(values(at), options)), None)
            self._remark(ids, known=not certain)
        if ids in dropped:
            raise ParameterError(
                f"{self.name}: a column cannot name the rows and be dropped: leave out "
                "`id_column` or `drop`"
            )
        roles = Roles(ids, dropped)
        if roles.others and len(roles.others) >= self.count:
            what = (
                "the id column is the only one" if named else "every column is dropped"
            )
            raise InputError(f"{self.name}: {what}; there is nothing else")
        return roles

    def say_unused(self, used: int, values: Callable[[int], Iterable[str]]) -> None:
        """Say so where rows are taken in order although a column seems to name them."""
        if self.options.id_column is not None:
            return
        for at in range(len(self.names or ())):
            if at != used and _may_be_ids(list(values(at)), self.options):
                self.options.note(
                    f"{self.name}: rows are taken in order; `id_column="
                    f"{as_word(self.names, at)}` would match them by their ids"
                )
                return

    def _told(self, asked: int | None) -> int | None:
        """Return the column that the user says has the ids; None without one."""
        wanted, absent = self.options.id_column, self.options.absent
        if wanted is None:
            return None
        ids = _place(self.names, self.count, wanted)
        if absent is None and ids is None:
            raise self._unknown(wanted, "for the ids")
        if absent is not None and (ids is None or ids == asked or self.count == 1):
            absent()
            return None
        return ids

    def _dropped(self) -> frozenset[int]:
        found = set[int]()
        for word in drop_words(self.options, self.names):
            at = _place(self.names, self.count, word)
            if at is not None:
                found.add(at)
            elif not self.options.dropped_before:
                raise self._unknown(word, "to drop")
        return frozenset(found)

    def _unknown(self, wanted: str, what: str) -> InputError:
        """Return the error for a column that is not there, with one that may be."""
        names = list(self.names or ())
        listed = some(names) or "no names"
        near = get_close_matches(wanted, names, n=1)
        advice = "say its name or its number from 0"
        if self.count == 1 and ";" in listed:
            advice = "try `delimiter=';'`"
        elif near and near[0] != wanted:
            advice = f"did you mean {show(near[0])!r}?"
        return InputError(
            f"{self.name}: there is no single column {show(wanted)!r} {what} among "
            f"{self.count} column{'s' * (self.count != 1)} ({listed}); {advice}"
        )

    def _own(self, taken: frozenset[int | None]) -> int | None:
        """Return the only column called id, unless there is no other or it is taken."""
        names = self.names or ()
        called = [at for at, one in enumerate(names) if one.strip().lower() == OWN]
        fits = len(called) == 1 and called[0] not in taken and len(names) > 1
        return called[0] if fits else None

    def _remark(self, ids: int | None, *, known: bool) -> None:
        """Say where ids come from that nobody named, or that there are none."""
        wanted, note = self.options.id_column, self.options.note
        told = "" if wanted is None else f"there is no column {show(wanted)!r}; "
        if ids is not None:
            word = repr(show(self.names[ids])) if self.names else f"number {ids} from 0"
            why = ": all that it holds are ids of nodes" if known else ""
            note(f"{self.name}: {told}the column {word} names the rows{why}")
        elif told:
            note(f"{self.name}: {told}rows are taken in order")


def _may_be_ids(values: list[str], options: TextOptions) -> bool:
    """Return whether all are words, each only once; where ids are known, some."""
    seen = set(values)
    words = len(seen) == len(values) and not any(map(NUMBER.fullmatch, seen))
    return bool(seen) and words and (not options.known or bool(seen & options.known))


def _are_ids(values: Iterable[str], options: TextOptions) -> bool:
    """Return whether a column has known ids, each at most once, and no mere numbers."""
    seen = set[str]()
    for one in values:
        if one not in options.known or one in seen:
            return False
        seen.add(one)
    return not all(map(NUMBER.fullmatch, seen))


def _place(names: Sequence[str] | None, count: int, wanted: str) -> int | None:
    """Return the number of a column that was named or numbered."""
    if names is not None and names.count(wanted) == 1:
        return names.index(wanted)
    return int(wanted) if wanted.isdecimal() and int(wanted) < count else None
