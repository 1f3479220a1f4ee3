"""One value per row: which array or column of a file holds the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError
from nnkgraph.formats._choose import reader
from nnkgraph.formats._columnnames import item_of, some
from nnkgraph.formats._fields import MISSING, NUMBER
from nnkgraph.formats._source import show
from nnkgraph.labels import as_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from nnkgraph.formats._format import TextOptions
USUAL = ("y", "label", "labels", "target", "targets", "class", "classes", "category")
"""Names that labels go by, where nobody says which."""


_MOST_LETTERS, _MOST_BYTES = 200, 1 << 26

_MOST_CLASSES, _LOOKED_AT = 50, 100
"""Classes that a column of numbers may have to look like labels; columns looked at."""


def read_column(
    spec: str, wanted: str | None, options: TextOptions
) -> tuple[NDArray[Any], Sequence[str] | None, str]:
    """Return one value per row, the ids of the rows or None, and the file's name."""
    plugin, source = reader("read_column", spec, wanted)
    # What is said about tables is meant for the other files of a command.
    used = replace(options, beside=True)
    if plugin.binary:
        named = options.id_column if plugin.has_columns else None
        used = replace(used, id_column=named, header=None, delimiter=None)
    return *plugin.read_column(source, used), source.name


def pick_column(
    found: Sequence[str], name: str, what: str, likely: Callable[[], str] | None = None
) -> str:
    """Return the name of the labels among those of all that could be them.

    `likely` is asked for an example where nothing says which they are.
    """
    if len(found) == 1:
        return found[0]
    usual = [one for one in found if one.rpartition("/")[2].lower() in USUAL]
    if len(usual) == 1:
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
        texts = ["nan" if one.lower() in MISSING else one for one in texts]
        strange = next((one for one in texts if not NUMBER.fullmatch(one)), None)
        if strange is not None:
            raise InputError(
                f"{name}: {show(strange)!r} is no number; classes are named with "
                "--labels"
            )
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
