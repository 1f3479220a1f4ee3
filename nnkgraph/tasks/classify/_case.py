"""Who trains and who is tested: parts of the rows, and the classes they have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.labels import Labels
from nnkgraph.query import check_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data import IndexArray


@dataclass(frozen=True)
class Case:
    """Rows to learn from, rows to be tested on, and their classes."""

    train: Features
    codes: IndexArray
    """(n,) the class of every training row."""

    classes: tuple[str, ...]
    """Classes of the training rows, then those that only test rows have."""

    learned: int
    """How many of the classes training rows have."""

    test: Features | None = None
    truth: IndexArray | None = None
    """(q,) the class of every test row, -1 where it is not known."""

    rows: IndexArray | None = None
    """(q,) row numbers of the test rows in their file."""


def make_case(
    train: Features,
    labels: Labels | ArrayLike,
    test: Features | None,
    test_labels: Labels | ArrayLike | None,
    split: Labels | ArrayLike | None,
    test_size: float | None,
    seed: int,
) -> Case:
    """Divide the rows as asked and check what is known about them."""
    given = sum(one is not None for one in (test, split, test_size))
    if given > 1:
        raise ParameterError("test, split and test_size exclude each other: give one")
    if test is None and test_labels is not None:
        raise ParameterError("there are labels of a test part, but no test part")
    n = len(train.x)
    known = _as_labels(labels, "labels").for_rows(n, train.ids, train.name, "rows")
    asked: Labels | None = None
    rows: IndexArray | None = None
    if split is not None or test_size is not None:
        out = (
            _told(split, train) if split is not None else drawn(known, test_size, seed)
        )
        rows = np.flatnonzero(out)
        if not 0 < len(rows) < n:
            raise InputError(
                f"{train.name}: {len(rows)} of {n} rows are to be tested: both parts "
                "need some"
            )
        asked = replace(known, codes=known.codes[rows], ids=None)
        test, train = _taken(train, rows), _taken(train, np.flatnonzero(~out))
        known = replace(known, codes=known.codes[~out], ids=None)
    elif test is not None:
        check_columns(train, test)
        rows = np.arange(len(test.x))
        if test_labels is not None:
            asked = _as_labels(test_labels, "test labels")
            asked = asked.for_rows(len(test.x), test.ids, test.name, "rows")
    return _coded(train, known, test, asked, rows)


def _coded(
    train: Features,
    known: Labels,
    test: Features | None,
    asked: Labels | None,
    rows: IndexArray | None,
) -> Case:
    """Give numbers to the classes that occur."""
    missing = int((~known.known).sum())
    if missing:
        first = int(known.known.argmin())
        which = f"row {first}" if train.ids is None else repr(train.ids[first])
        raise InputError(
            f"{known.name}: {missing} of {len(known.codes)} training rows have no "
            f"label, the first of them {which}: label them or leave them out"
        )
    present, codes = np.unique(known.codes, return_inverse=True)
    classes = tuple(known.classes[one] for one in present)
    if len(classes) < 2:
        raise InputError(
            f"{known.name}: all training rows are of class {classes[0]!r}: there is "
            "nothing to tell apart"
        )
    truth, strange = None, ()
    if asked is not None:
        there = set(asked.codes[asked.known].tolist())
        names = (asked.classes[one] for one in sorted(there))
        strange = tuple(one for one in names if one not in set(classes))
        truth = asked.in_terms_of(classes + strange)
    return Case(train, codes, classes + strange, len(classes), test, truth, rows)


def folds_of(codes: IndexArray, count: int, seed: int) -> IndexArray:
    """Deal rows to folds at random, every class as evenly as can be."""
    fold = np.empty(len(codes), np.int64)
    fold[_dealt(codes, seed, 1)] = np.arange(len(codes)) % count
    return fold


def drawn(labels: Labels, share: float | None, seed: int) -> NDArray[np.bool_]:
    """Draw a share of the rows at random, of every class as evenly as can be."""
    if share is None or not 0 < share < 1:
        raise ParameterError(f"test_size must lie between 0 and 1, not {share}")
    n = len(labels.codes)
    # The whole numbers that a growing count passes are evenly spread.
    steps = np.floor(np.arange(n + 1) * share + 1e-9)
    out = np.empty(n, np.bool_)
    out[_dealt(labels.codes, seed, 0)] = np.diff(steps) > 0
    return out


def _dealt(codes: IndexArray, seed: int, purpose: int) -> IndexArray:
    """Return the rows class by class, in random order within each."""
    order = np.random.default_rng((seed, purpose)).permutation(len(codes))
    return order[np.argsort(codes[order], kind="stable")]


def _told(split: Labels | ArrayLike, train: Features) -> NDArray[np.bool_]:
    """Return the rows that are marked 1, where 0 is for training."""
    marks = _as_labels(split, "split")
    marks = marks.for_rows(len(train.x), train.ids, train.name, "rows")
    wrong = set(marks.classes) - {"0", "1"}
    if wrong or not marks.known.all():
        what = repr(min(wrong)) if wrong else "nothing"
        raise InputError(
            f"{marks.name}: a split is 0 (training) or 1 (test) for every row, but "
            f"there is {what}"
        )
    return np.asarray(marks.in_terms_of(("0", "1")) == 1)


def _as_labels(values: Labels | ArrayLike | Any, name: str) -> Labels:
    return values if isinstance(values, Labels) else Labels.of(values, name=name)


def _taken(features: Features, rows: IndexArray) -> Features:
    ids = None if features.ids is None else tuple(features.ids[i] for i in rows)
    return Features(features.x[rows], ids, features.name, features.dtype)
