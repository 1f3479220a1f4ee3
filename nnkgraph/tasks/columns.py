"""What columns are like: scales, keys and counts, and what ``build`` says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.pairs import MATRICES
from nnkgraph.formats import is_key_name, leave_out
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import row_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nnkgraph.data import Features, FloatArray


@dataclass(frozen=True)
class Finding:
    """One line, with bars below it where there is something to see."""

    section: str
    text: str
    advice: bool = False  # whether it asks for something to be done
    bars: list[tuple[str, int]] = field(default_factory=list)  # of a histogram


def bars_of(histogram: list[dict[str, int]]) -> list[tuple[str, int]]:
    """Return the label and the count of every bar."""
    bars = []
    for bar in histogram:
        low, high = bar["from"], bar["to"]
        bars.append((f"{low}" if low == high else f"{low}-{high}", bar["count"]))
    return bars


def share(part: int, total: int) -> str:
    """Return "3 of 400 (0.8 %)"."""
    return f"{part} of {total} ({100 * part / total:.1f} %)"


_ROWS = 10  # whole numbers of fewer rows are in order by chance


def key_facts(features: Features) -> list[dict[str, Any]]:
    """Return the columns that look like row numbers or keys, and why.

    Those are whole numbers that grow with every row, that are those of a range each
    once, or whose column is called like a key. Sparse columns are taken for features.
    """
    x = features.x
    if len(x) < _ROWS or isinstance(x, SparseRows):
        return []
    whole, grows, counts = _orders(x)
    names = features.columns or [None] * x.shape[1]
    found = []
    for at in np.flatnonzero(whole).tolist():
        name = names[at]
        called = bool(name) and is_key_name(str(name))
        why = "counts the rows" if counts[at] else "grows with every row"
        if not grows[at]:
            why = _why(x[:, at], called=called)
        if why:
            found.append({"column": at, "name": name, "why": why})
    return found


def _blocks(x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (x[rows] for rows in row_slices(len(x), 8 * x.shape[1], fixed=True))


def _orders(x: NDArray[Any]) -> tuple[NDArray[np.bool_], ...]:
    """Return which columns are whole numbers, grow, and grow by one, row by row."""
    whole, grows, counts = (np.ones(x.shape[1], np.bool_) for _ in range(3))
    last = np.empty((0, x.shape[1]))
    for block in _blocks(x):
        whole &= (block == np.trunc(block)).all(axis=0)
        if not whole.any():
            break
        steps = np.diff(np.concatenate([last, block]), axis=0)
        grows &= (steps > 0).all(axis=0)
        counts &= (steps == 1).all(axis=0)
        last = block[-1:]
    return whole, whole & grows, whole & counts


def _why(values: NDArray[Any], *, called: bool) -> str:
    """Say why whole numbers in any order look like a key, or nothing."""
    dense = float(values.max()) - float(values.min()) == len(values) - 1
    if not (called or dense):
        return ""
    if len(np.unique(values)) == len(values):
        return "is another whole number in every row"
    return "has the name of a key" if called else ""


_FEW = 10  # one column in so many may hold most of the variance
_APART = 10.0  # scales are apart where the widest is so many times the usual
# Up to so many columns are a table of all sorts of things: of those, no quarter may be
# so narrow; of more, such as pixels, many may be.
_TABLE, _PART = 50, 0.25

_UNCORRELATED = 1e-3  # correlations of principal components are below this
_LOOKED_AT = 50  # columns that are tested for being principal components


def describe_columns(features: Features, kernel: str) -> dict[str, Any]:
    """Describe the columns; empty where they are nodes and no features."""
    if registry.create("kernels", kernel).base in MATRICES:
        return {}
    names = features.columns
    facts = column_facts(features.x)
    return {
        "columns": int(features.x.shape[1]),
        "names": None if names is None else list(names),
        "keys": key_facts(features),
        **facts,
        "largest_name": None if names is None else names[facts["largest"]],
    }


def column_facts(x: Any) -> dict[str, Any]:
    """Describe the columns; ``scale_apart`` says that a few drown the others.

    ``columns_90`` hold 90 % of the variance, ``scale_ratio`` is that of the widest to
    the usual column, ``narrow`` are those beside the widest, narrowest first. Sparse
    columns, such as counts of words, are not said to be apart: only rows can be scaled.
    """
    if isinstance(x, SparseRows):
        mean, low, high, square = x.moments()
        zero = int((np.diff(x.indptr) == 0).sum())
    else:
        mean, low, high, square, zero = _moments(x)
    # The computed spread of a constant column may be a rounding error, not 0.
    variance = np.where(low == high, 0.0, square / len(x))
    return {
        "constant": int((low == high).sum()),
        "constant_columns": np.flatnonzero(low == high).tolist(),
        "zero_rows": zero,
        **_shares(x, mean, variance),
    }


def _moments(x: NDArray[Any]) -> tuple[Any, FloatArray, FloatArray, FloatArray, int]:
    """Return each column's mean, extremes and squares, and how many rows are zero."""
    n, d = x.shape
    mean = sum(block.sum(axis=0, dtype=np.float64) for block in _blocks(x)) / n
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    square, zero = np.zeros(d), 0
    for block in _blocks(x):
        low = np.minimum(low, block.min(axis=0))
        high = np.maximum(high, block.max(axis=0))
        square += np.square(block - mean).sum(axis=0)
        zero += int((~block.any(axis=1)).sum())
    return mean, low, high, square, zero


def _shares(x: Any, mean: Any, variance: FloatArray) -> dict[str, Any]:
    order = np.argsort(-variance, kind="stable")
    total = float(variance.sum())
    held = np.cumsum(variance[order]) / total if total > 0 else np.ones(len(order))
    some = int(np.searchsorted(held, 0.9 - 1e-12)) + 1
    spread = np.sqrt(np.sort(variance[variance > 0]))
    # The lower median: of two columns it is the narrow one.
    ratio = float(spread[-1] / spread[(len(spread) - 1) // 2]) if len(spread) else 1.0
    # Columns that vary, but next to nothing beside the widest.
    little = (variance > 0) & (variance * _APART**2 <= variance.max())
    narrow = order[::-1][little[order[::-1]]].tolist()
    few = max(1, len(variance) // _FEW)
    apart = len(spread) > 1 and some <= few and ratio >= _APART
    if len(variance) <= _TABLE:
        apart = len(narrow) >= _PART * len(spread) > 0
    apart = apart and not isinstance(x, SparseRows)
    return {
        "largest": int(order[0]),
        "largest_share": float(held[0]) if total > 0 else 0.0,
        "columns_90": min(some, len(order)),
        "scale_ratio": ratio,
        "narrow": narrow,
        "scale_apart": apart,
        "principal": apart and _principal(x, mean, variance, order),
    }


def _principal(
    x: NDArray[Any], mean: Any, variance: FloatArray, order: NDArray[Any]
) -> bool:
    """Whether columns look like principal components: their scales are wanted then.

    Those come in falling order and are uncorrelated.
    """
    first = order[: min(_LOOKED_AT, int((variance > 0).sum()))]
    if (np.diff(first) < 0).any():
        return False
    products = np.zeros((len(first), len(first)))
    for block in _blocks(x):
        part = (block[:, first] - mean[first]) / np.sqrt(variance[first])
        products += part.T @ part
    np.fill_diagonal(products, 0.0)
    return bool(np.abs(products).max(initial=0.0) < _UNCORRELATED * len(x))


# Embeddings have at least so many columns, a smaller share of zeros than the second,
# and lengths that differ by less than the third, or both signs often in most columns.
_WIDE, _ZEROS, _ONE_LENGTH, _MOST, _OFTEN = 50, 0.01, 1e-3, 0.9, 0.1
_CENTERED = 0.01  # means below this share of the spread: somebody centered the columns
_ENOUGH_ROWS = 5000  # so many tell


def embedding_facts(x: Any, columns: dict[str, Any]) -> dict[str, Any] | None:
    """Return the lengths of rows that look like embeddings; None for others.

    Those are dense and have many columns of which none drowns the others. Their lengths
    are the same, or their columns have both signs, though nobody centered them.
    """
    sparse = isinstance(x, SparseRows)
    if sparse or min(x.shape[1] - _WIDE, len(x) - _ROWS) < 0 or columns["scale_apart"]:
        return None
    some = np.asarray(x[:: -(-len(x) // _ENOUGH_ROWS)], np.float64)
    length, negative = np.linalg.norm(some, axis=1), (some < 0).mean(axis=0)
    both = ((negative > _OFTEN) & (negative < 1 - _OFTEN)).mean() >= _MOST
    centered = (np.abs(some.mean(axis=0)) < _CENTERED * some.std(axis=0)).all()
    one = bool(np.ptp(length) <= _ONE_LENGTH * length.min())
    if (some == 0).mean() > _ZEROS or not (one or (both and not centered)):
        return None
    low, high = np.percentile(length, [5, 95]).tolist()
    return {"one_length": one, "length_q05": low, "length_q95": high}


_SHOWN = 5


def column_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say what columns mean for the options; nothing where they are nodes."""
    columns, scale = figures["columns"], figures["scale"]
    if not columns:
        return
    say, d = partial(Finding, "data"), columns["columns"]
    for key in columns["keys"]:
        told = f"{_key(key, columns, named=figures['ids'])}, and look again"
        yield say(told, advice=True)
    if zero := columns["zero_rows"]:
        rows = "1 row is" if zero == 1 else f"{zero} rows are"
        yield say(f"{rows} all zeros: `kernel='cosine'` and `scale='unit'` refuse them")
    if columns["constant"]:
        yield say(_constant(columns))
    if d < 2:
        return
    some = columns["columns_90"]
    before = "" if scale == "none" else f"before `scale={scale!r}` "
    if figures["pca"] is not None:
        before = before or f"before `pca={figures['pca']}` "
    yield say(
        f"{before}the widest column, {_name(columns['largest'], columns)}, is "
        f"{columns['scale_ratio']:.3g} times as wide as the usual one and holds "
        f"{100 * columns['largest_share']:.1f} % of the variance; "
        f"{some} of {d} {'holds' if some == 1 else 'hold'} 90 %"
    )
    if before or not columns["scale_apart"]:
        return
    if columns["principal"]:
        yield say(
            "few columns hold most of the variance, but they are uncorrelated and in "
            "falling order, as principal components are: leave their scales alone"
        )
        return
    narrow = columns["narrow"]
    one = len(narrow) == 1
    yield say(
        f"{share(len(narrow), d)} columns {'is' if one else 'are'} less than a tenth "
        f"as wide as the widest and hardly {'counts' if one else 'count'} "
        f"({_names(narrow, columns)}): try `scale='standard'`, unless the scales are "
        "meant",
        advice=True,
    )


def remarks(columns: dict[str, Any], *, named: bool) -> Iterator[str]:
    """Say what to know about columns that nobody scaled, before the doctor is asked."""
    more = "doctor says more"
    for key in columns["keys"][:1]:
        yield f"{_key(key, columns, named=named)}; {more}"
    if columns["principal"] or not columns["scale_apart"]:
        return
    narrow = len(columns["narrow"])
    yield (
        f"column {_name(columns['largest'], columns)} holds "
        f"{100 * columns['largest_share']:.1f} % of the variance and {narrow} of "
        f"{columns['columns']} hardly {'counts' if narrow == 1 else 'count'}; "
        f"`scale='standard'` lets all count, {more}"
    )


def _constant(columns: dict[str, Any]) -> str:
    """Say how many columns are constant, and which where they have names."""
    count = columns["constant"]
    said = f"{share(count, columns['columns'])} columns {'is' if count == 1 else 'are'}"
    which = columns["constant_columns"] if columns["names"] else []
    return f"{said} constant" + (f": {_names(which, columns)}" if which else "")


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


_MOST_VALUES = 10**7  # more are not looked at in passing


def column_remarks(features: Features, kernel: str, scale: str) -> list[str]:
    """Return what to know of a key among the features, and of scales far apart.

    Only columns with names are a table of all sorts of things.
    """
    if features.columns is None or scale != "none" or features.x.size > _MOST_VALUES:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        columns = describe_columns(features, kernel)
    return list(remarks(columns, named=features.ids is not None)) if columns else []
