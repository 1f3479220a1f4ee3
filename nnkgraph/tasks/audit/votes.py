"""Suspicious labels: the vote of a row's neighbors without the row itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.runtime.arrays import row_slices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import Candidates, FloatArray, IndexArray, Neighborhoods
    from nnkgraph.data.duplicates import Rows
    from nnkgraph.data.labels import Labels

PRIOR, ALONE = 0.05, 0.25
"""Shares that the two labels have beforehand: the first orders rows whose own label
nobody votes for, the second, over the square of the effective number of voters, makes
little of a single voter, such as a near-duplicate (see ``python -m paper audit``)."""

WITNESSES = 3
"""Voters that are named."""


@dataclass(frozen=True, eq=False)
class Votes:
    """What the neighbors say about every row of the input."""

    own: FloatArray
    """(N,) the share of the votes for its label; NaN without a label."""

    other: FloatArray
    """(N,) the largest share of another label."""

    suggested: IndexArray
    """(N,) that label, by its code; -1 where nobody votes for another."""

    prior: FloatArray
    """(N,) what both labels have beforehand, more where few vote."""

    suspicious: IndexArray
    """Rows whose own label has fewer votes than another, most suspicious first."""

    unlabeled: IndexArray
    """Rows without a label that have votes, clearest first."""

    witnesses: dict[int, list[tuple[int, float]]]
    """For the rows above: the heaviest voters for the label, with their share."""

    @property
    def silent(self) -> int:
        """About how many rows nobody votes."""
        return int((np.nan_to_num(self.own) + self.other == 0).sum())

    @property
    def score(self) -> FloatArray:
        """How suspicious labels are, from 0 to 1: above a half another has more votes.

        It is the share of the other label among the votes for the two, once each has
        its prior; of a row without a label the share of the suggested one.
        """
        total = self.own + self.other + 2 * self.prior
        among = (self.other + self.prior) / total
        return np.where(np.isnan(self.own), self.other, among)


def check_labels(
    labels: Labels, n: int, ids: tuple[str, ...] | None, of: str
) -> Labels:
    """Return labels in the order of the rows, or refuse those that decide nothing."""
    known = labels.for_rows(n, ids, of, "rows")
    count = len(np.unique(known.codes[known.known]))
    if count == 0:
        raise InputError(
            f"{labels.name}: no row has a label: every value stands for a missing one"
        )
    if count == 1:
        only = labels.classes[known.codes[known.known][0]]
        raise InputError(
            f"{labels.name}: all labels are {only!r}: with one class there is nothing "
            "to doubt; leave `labels` out to look for the rest"
        )
    return known


def count_votes(
    labels: Labels, candidates: Candidates, solved: Neighborhoods, rows: Rows
) -> Votes:
    """Let all rows be judged by their neighbors, and by those whose neighbor they are.

    A vote weighs what the two rows weigh in each other's regressions together; all
    votes about a row add up to 1. Identical rows have the same neighbors, who see the
    mean of their labels; about a copy each of its other copies votes too, as heavily as
    all neighbors together.
    """
    total, classes = len(labels.codes), len(labels.classes)
    first = np.arange(total) if rows.first is None else rows.first
    origin = np.arange(total) if rows.origin is None else rows.origin
    held = _Held(np.searchsorted(origin, first), labels.codes, classes, len(origin))
    mutual = _mutual(candidates, solved)
    heard = (mutual @ held.shares()).tocsr()
    own, other = np.full(total, np.nan), np.zeros(total)
    suggested = np.full(total, -1)
    for some in row_slices(total, 40 * classes):
        own[some], other[some], suggested[some] = _counted(heard, held, some)
    prior = (PRIOR + ALONE / _voters(mutual) ** 2)[held.place]
    none = np.empty(0, np.int64)
    score = Votes(own, other, suggested, prior, none, none, {}).score
    suspicious = np.flatnonzero(other > own)  # false where own is NaN
    suspicious = suspicious[np.lexsort((suspicious, -score[suspicious]))]
    unlabeled = np.flatnonzero(np.isnan(own) & (suggested >= 0))
    unlabeled = unlabeled[np.lexsort((unlabeled, -score[unlabeled]))]
    listed = np.concatenate([suspicious, unlabeled])
    witnesses = _witnesses(mutual, heard.sum(axis=1), held, listed, suggested[listed])
    return Votes(own, other, suggested, prior, suspicious, unlabeled, witnesses)


class _Held:
    """Which labels the distinct rows hold: several where copies differ."""

    def __init__(
        self, place: IndexArray, codes: IndexArray, classes: int, n: int
    ) -> None:
        self.place, self.codes, self.classes, self.n = place, codes, classes, n
        known = np.flatnonzero(codes >= 0)
        key = place[known] * classes + codes[known]
        self.keys, at, self.count = np.unique(
            key, return_index=True, return_counts=True
        )
        self.row = known[at]  # the lowest input row with that label
        self.total = np.bincount(place[known], minlength=n)

    def counts(self) -> csr_array:
        """Return how many copies of each distinct row have which label."""
        from scipy.sparse import csr_array

        row, code = np.divmod(self.keys, self.classes)
        shape = self.n, self.classes
        return csr_array((self.count.astype(np.float64), (row, code)), shape=shape)

    def shares(self) -> csr_array:
        """Return the same as shares of each row."""
        found = self.counts()
        found.data /= np.repeat(np.maximum(self.total, 1), np.diff(found.indptr))
        return found

    def look_up(self, place: IndexArray, code: IndexArray) -> tuple[Any, Any]:
        """Return the share of a label among copies, and the first row that has it."""
        key = place * self.classes + code
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        there = self.keys[at] == key
        share = np.where(there, self.count[at] / np.maximum(self.total[place], 1), 0.0)
        return share, self.row[at]


def _mutual(candidates: Candidates, solved: Neighborhoods) -> csr_array:
    """Return the weights of both directions together."""
    from scipy.sparse import csr_array

    n, kept = len(candidates.index), solved.weights > 0
    begins = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    parts = solved.weights[kept], candidates.index[kept], begins
    directed = csr_array(parts, shape=(n, n))
    both: csr_array = (directed + directed.T).tocsr()
    both.sort_indices()
    return both


def _voters(mutual: csr_array) -> FloatArray:
    """Return how many voters of equal weight would tell as much; 1 at least."""
    total = mutual.sum(axis=1)
    squares = mutual.power(2).sum(axis=1)
    count = np.divide(total**2, squares, out=np.ones(len(total)), where=squares > 0)
    return np.maximum(count, 1.0)


def _counted(heard: csr_array, held: _Held, some: slice) -> tuple[Any, Any, Any]:
    """Return the shares of the own and the best other label, and which that is."""
    place, code = held.place[some], held.codes[some]
    known = code >= 0
    seen = heard[place].toarray()
    seen /= np.maximum(seen.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    several = np.flatnonzero(held.total[place] > known)  # others among its copies
    if len(several):
        seen[several] += held.counts()[place[several]].toarray()
        one = several[known[several]]
        seen[one, code[one]] -= 1.0
        seen[several] /= seen[several].sum(axis=1, keepdims=True)
    every = np.arange(len(place))
    own = np.where(known, seen[every, np.maximum(code, 0)], np.nan)
    seen[every[known], code[known]] = -1.0
    best = seen.argmax(axis=1)
    other = np.maximum(seen[every, best], 0.0)
    return own, other, np.where(other > 0, best, -1)


def _witnesses(
    mutual: csr_array,
    heard: FloatArray,
    held: _Held,
    listed: IndexArray,
    suggested: IndexArray,
) -> dict[int, list[tuple[int, float]]]:
    """Name the heaviest voters for what is suggested about some rows."""
    named: dict[int, list[tuple[int, float]]] = {}
    for some in row_slices(len(listed), 4096):
        rows, code = listed[some], suggested[some]
        place, every = held.place[rows], np.arange(len(rows))
        about, sum_ = mutual[place], np.maximum(heard[place], np.finfo(float).tiny)
        at = np.repeat(every, np.diff(about.indptr))
        # Its other copies vote as well.
        copies = held.total[place]
        voter = np.append(about.indices.astype(np.int64), place)
        weight = np.append(about.data / sum_[at], copies)
        at = np.append(at, every)
        share, row = held.look_up(voter, code[at])
        others = copies - (held.codes[rows] >= 0)
        weight *= share / ((heard[place] > 0) + others)[at]
        order = np.lexsort((row, -weight, at))
        order = order[weight[order] > 0]
        begins = np.searchsorted(at[order], every)
        order = order[np.arange(len(order)) - begins[at[order]] < WITNESSES]
        kept = rows[at[order]].tolist(), row[order].tolist(), weight[order].tolist()
        for one, witness, heavy in zip(*kept, strict=True):
            named.setdefault(one, []).append((witness, heavy))
    return named
