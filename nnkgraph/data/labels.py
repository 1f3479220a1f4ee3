"""Labels of rows or nodes: one class each, or none."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data.checks import check_ids
from nnkgraph.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data.missing import Dropped

_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "?", "missing"}
"""Texts that stand for no value, in small letters."""

_SHOWN = 5
_FLOAT = re.compile(r"(-?[0-9]{1,300})(\.0*)?")
"""Whole numbers, also as they are written where some are missing: 1.0."""
_NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_MOST_DIGITS = 4000
"""Longer numbers are ordered as text: Python refuses to make integers of them."""


@dataclass(frozen=True)
class Labels:
    """The class of every row; make one with :meth:`of`."""

    codes: NDArray[np.int64]
    """(n,) which of the classes, -1 where a row has none."""

    classes: tuple[str, ...]
    """Their names in order: numbers by value, else by text."""

    ids: tuple[str, ...] | None = None
    """Names of the rows, where the file has them."""

    name: str = "labels"
    """Where they came from, for messages."""

    minus_one: bool = False
    """Whether -1 was taken for no label."""

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        /,
        *,
        ids: Sequence[str] | None = None,
        name: str = "labels",
        missing: str | None = None,
        minus_one: bool = False,
    ) -> Labels:
        """Return labels from an array of whole numbers, truth values or text.

        NaN, empty text, ``NA`` and the like are no label.

        Parameters
        ----------
        missing : str, optional
            One more value that stands for no label.
        minus_one : bool
            Whether -1 stands for no label, unless there is one other value only (-1
            and 1 are two classes), or one that is no whole number or negative.
        """
        array = np.asarray(values)
        if array.ndim != 1:
            raise InputError(
                f"{name}: labels are one value per row, but the shape is {array.shape}"
            )
        texts, kinds = _as_text(array, name)
        empty = set() if missing is None else {_plain(missing.strip(), kinds)}
        taken = minus_one and _means_nothing(kinds - empty)
        empty |= {"-1"} if taken else set()
        named = set(filter(_is_class, kinds - empty))
        _refuse_decimals(named, texts, name)
        classes = sorted(named, key=_order(named))
        number = {one: at for at, one in enumerate(classes)}
        codes = np.array([number.get(one, -1) for one in texts], np.int64)
        row_ids = None if ids is None else check_ids(ids, array, name)
        return cls(codes, tuple(classes), row_ids, name, taken)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        return self.codes >= 0

    def counts(self) -> NDArray[np.int64]:
        """Return how many rows each class has."""
        return np.bincount(self.codes[self.known], minlength=len(self.classes))

    def names(self) -> list[str]:
        """Return the class of every row, empty where it has none."""
        every = (*self.classes, "")
        return [every[code] for code in self.codes.tolist()]

    def for_rows(
        self, n: int, ids: tuple[str, ...] | None, of: str, what: str = "nodes"
    ) -> Labels:
        """Return the labels in the order of the rows they are for.

        Where both sides have names, names decide and rows that are not named have no
        label; otherwise the order does, and the numbers must agree. `of` is the name of
        the other side, and `what` it has.
        """
        if self.ids is None or ids is None:
            if len(self.codes) != n:
                one_more = len(self.codes) == n + 1
                hint = "; say `header=True` where the first line of a table holds names"
                raise InputError(
                    f"{self.name}: {len(self.codes)} labels, but {of} has {n} {what}"
                    + hint * one_more
                )
            return self
        place = {one: at for at, one in enumerate(ids)}
        strange = [one for one in self.ids if one not in place]
        if strange:
            some = ", ".join(map(repr, strange[:_SHOWN]))
            verb = "id is" if len(strange) == 1 else "ids are"
            raise InputError(
                f"{self.name}: {len(strange)} {verb} not in {of}: {some}"
                + ", ..." * (len(strange) > _SHOWN)
            )
        codes = np.full(n, -1)
        codes[[place[one] for one in self.ids]] = self.codes
        return replace(self, codes=codes, ids=ids)

    def without(self, dropped: Dropped) -> Labels:
        """Return the labels of the rows that are left of those there were."""
        kept = dropped.others(len(self.codes), self.ids)
        ids = None if self.ids is None else tuple(self.ids[i] for i in kept.tolist())
        return replace(self, codes=self.codes[kept], ids=ids)

    def in_terms_of(self, classes: tuple[str, ...]) -> NDArray[np.int64]:
        """Return the codes by other classes' numbers, -1 also for unknown classes."""
        number = {one: at for at, one in enumerate(classes)}
        table = np.array([*(number.get(one, -1) for one in self.classes), -1])
        return table[self.codes]


def folds_of(
    codes: NDArray[np.integer[Any]], count: int, seed: int
) -> NDArray[np.int64]:
    """Deal rows to folds at random, every class as evenly as can be."""
    fold = np.empty(len(codes), np.int64)
    fold[shuffled_by_class(codes, seed, 1)] = np.arange(len(codes)) % count
    return fold


def shuffled_by_class(
    codes: NDArray[np.integer[Any]], seed: int, purpose: int
) -> NDArray[np.int64]:
    """Return the rows class by class, in random order within each."""
    order = np.random.default_rng((seed, purpose)).permutation(len(codes))
    return order[np.argsort(codes[order], kind="stable")]


def is_missing(text: str) -> bool:
    """Return whether a field of a table stands for a value that is not there."""
    return text.strip().lower() in _MISSING


def _is_class(text: str) -> bool:
    return text == "-" or not is_missing(text)  # + and - are usual names of classes


def _as_text(array: NDArray[Any], name: str) -> tuple[list[str], set[str]]:
    """Return the labels as text, and which texts there are."""
    kind = array.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            values = array.astype(np.float64, copy=False)
            whole = np.isfinite(values) & (values == np.trunc(values))
        odd = values[~(whole | np.isnan(values))]
        if odd.size:
            raise _no_classes(str(odd[0]), name)
        texts = ["" if np.isnan(one) else str(int(one)) for one in values.tolist()]
    elif kind in "biu":
        texts = [str(int(one)) for one in array.tolist()]
    elif kind in "SUT":
        texts = [one.strip() for one in as_texts(array)]
        named = set(filter(_is_class, texts))
        if all(_FLOAT.fullmatch(one) for one in named):
            texts = [_FLOAT.sub(r"\1", one) for one in texts]
    else:
        raise InputError(
            f"{name}: labels have dtype {array.dtype}; whole numbers or text are needed"
        )
    return texts, set(texts)


def _refuse_decimals(named: set[str], texts: list[str], name: str) -> None:
    """Refuse text that is numbers throughout, some of them not whole."""
    if not named or not all(map(_NUMBER.fullmatch, named)):
        return
    odd = {one for one in named if not float(one).is_integer()}
    first = next((one for one in texts if one in odd), None)
    if first is not None:
        raise _no_classes(first, name)


def _no_classes(example: str, name: str) -> InputError:
    return InputError(
        f"{name}: labels are whole numbers or text, not measurements such as "
        f"{example}; plot draws those as `values`"
    )


def as_texts(array: NDArray[Any]) -> list[str]:
    """Return an array of text, or of bytes that stand for text, as a list."""
    return [
        one.decode("utf-8", "replace") if isinstance(one, bytes) else one
        for one in array.tolist()
    ]


def _plain(text: str, kinds: set[str]) -> str:
    """Return a value as the labels have it: 9.0 among whole numbers is 9."""
    whole = _FLOAT.sub(r"\1", text)
    return whole if text not in kinds and whole in kinds else text


def _is_whole(text: str) -> bool:
    return len(text) <= _MOST_DIGITS and text.removeprefix("-").isdecimal()


def _means_nothing(kinds: set[str]) -> bool:
    """Return whether -1 is no class but the absence of one, as in scikit-learn."""
    others = set(filter(_is_class, kinds)) - {"-1"}
    whole = all(one.isdecimal() for one in others)
    return "-1" in kinds and whole and len(others) != 1


def _order(named: set[str]) -> Any:
    if all(map(_is_whole, named)):
        return lambda one: (int(one), one)
    return str
