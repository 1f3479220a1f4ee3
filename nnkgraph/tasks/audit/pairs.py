"""Near-duplicates: pairs of rows within a distance, all of them after exact search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data.pairs import cross_values
from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import row_slices
from nnkgraph.search import distance_of
from nnkgraph.search.exact import interval, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.build.run import Run
    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.data.duplicates import Rows

_POWER = 10
"""Of points spread evenly, in any dimension, one in 1,500 is nearer to another by
chance than the median nearest distance times its ratio to the upper quartile to this
power: the distance to the power of the dimension is exponential."""

_LARGEST = 0.5
"""The largest threshold by default, as a share of the median nearest distance."""

_MOST = 1_000_000
"""Pairs in a table at most: above, a threshold is no one's idea of a duplicate."""

_SAMPLE = 1000
"""Rows whose nearest is looked up to see what an approximate search has missed."""


@dataclass(frozen=True)
class Threshold:
    """How near near-duplicates are, and why."""

    distance: float
    why: str
    """In words: as given, or how it follows from the data."""

    angles: bool
    """Whether rows have unit length, so that distances are those of angles."""

    usual: float
    """The median distance to the nearest other row; 0 without any."""

    @property
    def cosine(self) -> float | None:
        """The same as a cosine, where rows are compared by angle."""
        return 1.0 - self.distance**2 / 2 if self.angles else None


def parse_threshold(
    given: float | str | None, *, angles: bool
) -> tuple[float | None, str]:
    """Return a distance, and how it was given; None where it was not."""
    if given is None:
        return None, ""
    text = str(given).strip()
    name, equals, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if equals and name.strip() == "cosine" and 0 < number < 1:
        if not angles:
            raise ParameterError(
                f"`duplicate='{text}'` is about angles, and rows are not compared by "
                "angle: add `scale='unit'`, or give a distance"
            )
        return float(np.sqrt(2.0 - 2.0 * number)), f"cosine {number:g}, as given"
    if equals or not 0 <= number < np.inf:
        raise ParameterError(
            f"duplicate must be a distance of at least 0, or cosine=NUMBER between 0 "
            f"and 1, not {text!r}"
        )
    return number, "as given"


def threshold_of(
    given: float | None, why: str, candidates: Candidates, *, angles: bool
) -> Threshold:
    """Return the threshold as given, or by the distances to the nearest rows.

    Those of ordinary rows are spread more widely the fewer dimensions there are; what
    is far below the median, measured by that spread, is not there by chance. Only the
    upper half tells the spread: up to half of the rows may have near-duplicates.
    """
    near = candidates.distance[:, 0] if candidates.distance.shape[1] else np.empty(0)
    near = near[np.isfinite(near)]
    if not len(near):
        return Threshold(given or 0.0, why or "there is one row", angles, 0.0)
    middle, upper = np.quantile(near, [0.5, 0.75])
    share = min(_LARGEST, (middle / upper) ** _POWER) if upper else 0.0
    if given is None:
        given = float(share * middle)
        why = f"{share:.3f} of {middle:.4g}, the median distance to the nearest row"
    return Threshold(given, why, angles, float(middle))


@dataclass(frozen=True, eq=False)
class Near:
    """All pairs of near-duplicates; rows are numbers of the input."""

    row: IndexArray
    """(m,) the row of each pair that could go, nearest pairs first."""

    other: IndexArray
    """(m,) its twin; the one that is kept where one of the two is."""

    distance: FloatArray

    group: IndexArray
    """(N,) the number of the group of every row, from 0, or -1."""

    keeper: IndexArray
    """(N,) the row to keep in place of each row: itself, if it is kept."""

    identical: int
    """How many of the pairs join identical rows: every copy and the first of them."""

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def spare(self) -> int:
        """How many rows could go."""
        return int((self.keeper != np.arange(len(self.keeper))).sum())


def near_duplicates(run: Run, candidates: Candidates, limit: Threshold) -> Near:
    """Return all pairs of rows up to the threshold.

    After an exact search all there are: rows whose last candidate is still within the
    threshold are searched again with more candidates. Of identical rows only the first
    meets other rows; the others are joined with it.

    Raises
    ------
    ResourceError
        Where so many pairs are within the threshold that it means nothing.
    """
    n = len(run.rows.x)
    bound = min(_MOST, n * max(candidates.index.shape[1], 1) // 2)
    lists = _within(candidates, np.arange(n), limit.distance)
    if candidates.exact:
        lists = _completed(run, candidates, lists, limit, bound)
    low, high = np.minimum(lists[0], lists[1]), np.maximum(lists[0], lists[1])
    _, once = np.unique(low * n + high, return_index=True)
    pairs = low[once], high[once], lists[2][once]
    if len(once) > bound or len(once) == n * (n - 1) // 2 > 3:
        raise _too_many(run, limit, len(once), bound)
    return _grouped(pairs, run.rows, n)


_Lists = tuple["IndexArray", "IndexArray", "FloatArray"]


def _within(found: Candidates, rows: IndexArray, limit: float) -> Any:
    """Return the pairs of some rows and those candidates that are near enough."""
    kept: list[Any] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for some in row_slices(len(rows), 16 * max(1, found.index.shape[1])):
        index, distance = found.index[some], found.distance[some]
        place, column = np.nonzero(distance <= limit)
        near = index[place, column].astype(np.int64)
        kept.append((rows[some][place], near, distance[place, column]))
    own, other, apart = (np.concatenate(part) for part in zip(*kept, strict=True))
    others = own != other
    return own[others], other[others], apart[others]


def _completed(
    run: Run, candidates: Candidates, lists: _Lists, limit: Threshold, bound: int
) -> Any:
    """Search rows whose lists end within the threshold again, until none does."""
    n, width = len(run.rows.x), candidates.index.shape[1]
    known, full = [lists], np.empty(0, np.int64)
    if width:
        full = np.flatnonzero(candidates.distance[:, -1] <= limit.distance)
    exact = registry.create("search", "exact")
    while len(full) and width < n - 1:
        least = sum(len(part[0]) for part in known) // 2
        if least > bound:
            raise _too_many(run, limit, least, bound)
        width = min(n - 1, 2 * width + 1)
        with run.progress("near-duplicates", len(full)) as on_rows:
            found = exact.query(run.wanted(width + 1, on_rows), run.rows.x[full])
        known = [_without(part, full, n) for part in known]
        known.append(_within(found, full, limit.distance))
        full = full[found.distance[:, -1] <= limit.distance]
    return tuple(np.concatenate(part) for part in zip(*known, strict=True))


def _without(lists: _Lists, rows: IndexArray, n: int) -> _Lists:
    """Leave out what is found again."""
    out = np.zeros(n, np.bool_)
    out[rows] = True
    rest = ~out[lists[0]]
    return lists[0][rest], lists[1][rest], lists[2][rest]


def _too_many(run: Run, limit: Threshold, pairs: int, bound: int) -> ResourceError:
    n = len(run.rows.x)
    every = "every two of them" if pairs == n * (n - 1) // 2 else f"{pairs:,} pairs"
    more = f", the limit is {bound:,}" if pairs > bound else ""
    return ResourceError(
        f"{run.features.name}: of {n:,} different rows {every} or more are within the "
        f"distance {limit.distance:.6g} of near-duplicates{more}: use a smaller "
        f"`duplicate`; the median distance to the nearest row is {limit.usual:.4g}"
    )


def _grouped(pairs: _Lists, rows: Rows, n: int) -> Near:
    """Return pairs of input rows with their groups, and which rows to keep."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    low, high, distance = pairs
    ones = np.ones(len(low), np.bool_)
    kept = _keepers(csr_array((ones, (low, high)), shape=(n, n)))
    first = np.arange(n) if rows.first is None else rows.first
    origin = np.arange(n) if rows.origin is None else rows.origin
    total = len(first)
    copies = np.flatnonzero(first != np.arange(total))
    keeper = origin[kept[np.searchsorted(origin, first)]]
    # The row to go comes first: the other may be the one that is kept.
    swap = (kept[high] == high) & (kept[low] != low)
    row, other = np.where(swap, low, high), np.where(swap, high, low)
    row = np.concatenate([copies, origin[row]])
    other = np.concatenate([first[copies], origin[other]])
    distance = np.concatenate([np.zeros(len(copies)), distance])
    edges = csr_array((np.ones(len(row)), (row, other)), shape=(total, total))
    group = np.full(total, -1)
    touched = np.unique(np.concatenate([row, other]))
    part = connected_components(edges, directed=False)[1][touched]
    # Numbered by their first rows.
    _, begins, place = np.unique(part, return_index=True, return_inverse=True)
    group[touched] = np.argsort(np.argsort(begins))[place]
    order = np.lexsort((other, row, distance))
    return Near(
        row[order], other[order], distance[order], group, keeper, identical=len(copies)
    )


def _keepers(above: Any) -> IndexArray:
    """Return the row that is kept in place of each: row by row, the first that is near.

    Of two rows that are kept, none is near the other, and every row is near the one
    that is kept in its place. Line i of the matrix has the rows above i near it.
    """
    keeper = np.arange(above.shape[0])
    free = np.ones(len(keeper), np.bool_)
    indptr, indices = above.indptr.tolist(), above.indices
    for i in np.flatnonzero(np.diff(above.indptr)).tolist():  # those with pairs only
        if free[i]:
            near = indices[indptr[i] : indptr[i + 1]]
            near = near[free[near]]
            keeper[near], free[near] = i, False
    return keeper


def missed_pairs(run: Run, candidates: Candidates) -> dict[str, Any]:
    """Estimate how many nearest pairs an approximate search has missed.

    Of a seeded sample the nearest row is looked up; a pair is found where one of its
    rows has the other among its candidates.
    """
    n = len(run.rows.x)
    draw = np.random.default_rng(run.settings.seed)
    rows = np.sort(draw.choice(n, min(n, _SAMPLE), replace=False))
    with run.progress("recall"):
        truth = nearest(run.wanted(1), rows)
    x, base = run.rows.x, run.settings.kernel.nearness
    apart = distance_of(cross_values(x, x[rows], truth, base), base)
    hit: NDArray[np.bool_] = candidates.distance[rows, 0] <= apart[:, 0]
    hit |= (candidates.index[truth[:, 0]] == rows[:, np.newaxis]).any(axis=1)
    found = interval(hit.astype(np.float64))
    low, high = found["recall_interval"]
    return {
        "sample": len(rows),
        "share": 1.0 - found["recall"],
        "interval": [1.0 - high, 1.0 - low],
    }
