"""From directed weights to a graph: the rules that decide which side counts.

Every directed edge is written again at its target. A row of the graph is then its own
edges merged with those that arrive at it. Rows are joined in blocks, and arrays that
are large against the memory limit are mapped files.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import arrays
from nnkgraph.runtime.arrays import FloatArray, IndexArray, row_slices
from nnkgraph.search import index_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from nnkgraph.build.weights import Similar
    from nnkgraph.data import Candidates, Neighborhoods


RULES = {
    "error": "the smaller error wins; only mutual candidates (the paper's Algorithm 3)",
    "error-union": "the smaller error wins; a one-sided candidate keeps its weight",
    "max": "the larger of the two weights",
    "mean": "the mean of the two weights, a missing one is 0",
    "min": "the smaller of the two weights, a missing one is 0",
    "mutual": "the mean, where both weights are positive",
    "none": "directed: row i holds node i's neighborhood",
}

TIE = 1e-12
"""Errors closer than this share of K_qq are equal: both directions count."""

_BLOCK = 1 << 18
"""Directed edges in a block of rows at most: they fit into the processor's cache."""

_LEAST_BLOCK = 1 << 10

_EDGE_SHARE = 512
"""Bytes of the limit for each edge of a block, which takes 56 while it is joined."""


class Joined(NamedTuple):
    """What directed edges became."""

    adjacency: Any
    """CSR, symmetric to the bit where the rule is not ``none``."""

    dropped: int
    """Pairs with a positive weight in some direction that got no edge."""

    distances: FloatArray | None = None
    """How long its entries are, in their order, where that was asked for."""


def check_rule(rule: str, *, has_error: bool, method: str) -> None:
    """Refuse a rule that is unknown or asks for errors that the method lacks."""
    if rule not in RULES:
        raise ParameterError(f"unknown rule {rule!r}; choose from {', '.join(RULES)}")
    if rule.startswith("error") and not has_error:
        raise ParameterError(
            f"rule {rule!r} needs the error of every node, which method {method!r} "
            "does not have; use max, mean, min, mutual or none"
        )


def symmetrize(
    candidates: Candidates,
    found: Neighborhoods,
    *,
    rule: str,
    min_weight: float = 1e-8,
    min_degree: int = 0,
    own: FloatArray | None = None,
    first: IndexArray | None = None,
    similar: Similar | None = None,
    measured: bool = False,
) -> Joined:
    """Turn directed weights into an adjacency matrix (CSR), symmetric to the bit.

    Each node's own ``min_degree`` heaviest edges stay, whatever the rule says. ``own``
    has every node's similarity with itself, which scales what counts as a tie, and
    ``first`` the lowest row with the same values, where rows may be identical. Edges
    weigh what ``similar`` says of their ends, where it is given. ``measured`` asks for
    their lengths, which are the distances of the candidates.
    """
    index, weights, errors = candidates.index, found.weights, found.errors
    n, values = len(index), [weights]
    if measured or similar:
        values.append(candidates.distance)
    if rule == "none":
        return _directed(index, values, min_weight, similar)
    if errors is None and rule.startswith("error"):
        raise ParameterError(f"rule {rule!r} needs the errors of the nodes")
    known = _Known(
        rule,
        float(min_weight),
        np.zeros(n) if errors is None else errors,
        np.ones(n) if own is None else own,
        np.arange(n) if first is None else first,
        *_least_protected(index, weights, min_degree),
        similar,
    )
    start, positive = np.zeros(n + 1, np.int64), 0
    for rows in row_slices(n, 16 * index.shape[1]):
        np.add.at(start[1:], index[rows][index[rows] >= 0], 1)
        positive += int((weights[rows] > 0).sum())
    np.cumsum(start, out=start)
    # Every positive weight gives at most two entries, one in each direction.
    indices = arrays.new_array(2 * positive, index_dtype(max(n, 2 * positive)))
    kept = [arrays.new_array(2 * positive, np.float64) for _ in values]
    indptr, end, dropped = np.zeros(n + 1, np.int64), 0, 0
    for rows, arriving in _incoming(index, values, start):
        leaving = _leaving(index[rows], [one[rows] for one in values])
        i, j, found_values, lost = _joined(rows.start, leaving, arriving, known)
        np.add.at(indptr[1:], i, 1)
        place = slice(end, end + len(j))
        indices[place] = j
        for one, value in zip(kept, found_values, strict=True):
            one[place] = value
        end, dropped = place.stop, dropped + lost
    np.cumsum(indptr, out=indptr)
    data, *lengths = (one[:end] for one in kept)
    adjacency = _matrix(data, indices[:end], indptr.astype(indices.dtype))
    return Joined(adjacency, dropped, *lengths)


@dataclass(frozen=True)
class _Known:
    """What is known of all nodes."""

    rule: str
    min_weight: float
    errors: FloatArray
    own: FloatArray
    """The similarity of each node with itself."""
    first: IndexArray
    """The lowest node with the same values."""
    least: FloatArray
    last: IndexArray
    """The weight and the target of each node's last protected edge."""
    similar: Similar | None

    def protects(
        self, i: IndexArray, j: IndexArray, weight: FloatArray
    ) -> NDArray[np.bool_]:
        """Return whether edges from i to j are among the heaviest of i."""
        least = self.least[i]
        last = (weight == least) & (j <= self.last[i])
        protected: NDArray[np.bool_] = (weight > 0.0) & ((weight > least) | last)
        return protected

    def decide(
        self,
        i: IndexArray,
        j: IndexArray,
        leaves: FloatArray,
        arrives: FloatArray,
        mutual: NDArray[np.bool_],
    ) -> FloatArray:
        """Return the weights of edges between i and j; zero where there is none."""
        larger = np.maximum(leaves, arrives)
        if self.rule == "max":
            weight = larger
        elif self.rule in {"mean", "mutual"}:
            weight = (leaves + arrives) / 2.0
            if self.rule == "mutual":
                weight[(leaves <= 0.0) | (arrives <= 0.0)] = 0.0
        elif self.rule == "min":
            weight = np.minimum(leaves, arrives)
        else:
            lead = self.errors[j] - self.errors[i]
            tie = np.abs(lead) <= TIE * np.maximum(self.own[i], self.own[j])
            weight = np.where(tie, larger, np.where(lead > 0.0, leaves, arrives))
            if self.rule == "error":  # copies explain each other
                larger_stays = self.first[i] == self.first[j]
                weight = np.where(mutual, weight, np.where(larger_stays, larger, 0.0))
            else:
                weight = np.where(mutual, weight, larger)
        enough = (weight >= self.min_weight) & (weight > 0.0)
        if not np.isinf(self.least).all():
            stays = self.protects(i, j, leaves) | self.protects(j, i, arrives)
            weight = np.where(enough | ~stays, weight, larger)
            enough |= stays
        weight[~enough] = 0.0
        return weight


_Edges = tuple["IndexArray", "IndexArray", "Sequence[FloatArray]"]
"""Where the edges of each row of a block begin, their other ends in order, and their
weights, followed by their lengths where these are asked for."""


def _leaving(index: IndexArray, values: Sequence[FloatArray]) -> _Edges:
    """Return the edges from a block of rows to their candidates."""
    order = np.argsort(index, axis=1)
    index = np.take_along_axis(index, order, axis=1)
    there = index >= 0
    start = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    ordered = (np.take_along_axis(one, order, axis=1)[there] for one in values)
    return start, index[there], list(ordered)


def _joined(
    first: int, leaving: _Edges, arriving: _Edges, known: _Known
) -> tuple[IndexArray, IndexArray, list[FloatArray], int]:
    """Return the edges of a block of rows, and how many pairs got none.

    Pairs are those with a positive weight of which the lower node is in the block.
    """
    from scipy.sparse import csr_array

    # The sum of two sparse matrices has the entries of both. Each entry is its place
    # among the edges, counted from 1, so that a sum says which edges it comes from.
    shape, both = (len(leaving[0]) - 1, len(known.errors)), []
    for (start, other, _), shift in ((leaving, 0), (arriving, 32)):
        number: Any = np.arange(1, len(other) + 1, dtype=np.int64) << shift
        both.append(csr_array((number, other, start), shape))
        both[-1].has_canonical_format = True
    union = both[0] + both[1]
    place = union.data & 0xFFFFFFFF, union.data >> 32
    leaves = np.concatenate([[0.0], leaving[2][0]])[place[0]]
    arrives = np.concatenate([[0.0], arriving[2][0]])[place[1]]
    i = np.repeat(np.arange(first, first + shape[0]), np.diff(union.indptr))
    mutual = (place[0] > 0) & (place[1] > 0)
    some = (leaves > 0.0) | (arrives > 0.0)
    i, j = i[some], union.indices[some]
    weight = known.decide(i, j, leaves[some], arrives[some], mutual[some])
    edge = weight > 0.0
    lost, i, j, weight = int((~edge & (i < j)).sum()), i[edge], j[edge], weight[edge]
    if len(leaving[2]) == 1:
        return i, j, [weight], lost
    lengths = (  # one direction or both know how far apart the ends are
        np.concatenate([[np.inf], edges[2][1]])[at[some][edge]]
        for edges, at in zip((leaving, arriving), place, strict=True)
    )
    length: FloatArray = np.minimum(*lengths)
    if known.similar is not None:
        weight = known.similar(i, j, length)
    return i, j, [weight, length], lost


def _incoming(
    index: IndexArray, values: Sequence[FloatArray], start: IndexArray
) -> Iterator[tuple[slice, _Edges]]:
    """Yield blocks of rows, each with the edges that arrive at them, by source.

    The rows of a block have not too many edges, in both directions together. Those that
    arrive at node i are counted from ``start[i]`` on.
    """
    n, m = index.shape
    size = max(_LEAST_BLOCK, min(_BLOCK, arrays.memory_limit() // _EDGE_SHARE))
    both = start + m * np.arange(n + 1)
    inner = np.searchsorted(both, np.arange(size, both[-1], size))
    cuts = np.unique([0, *inner.tolist(), n])
    number = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    number = number.astype(np.min_scalar_type(len(cuts)))
    # First by block, which is appending in few places, and then within each block:
    # appending at every node of a large graph would be all over a mapped file.
    total, place = int(start[-1]), start[cuts[:-1]]
    source, target = (
        arrays.new_array(total, index.dtype),
        arrays.new_array(total, index.dtype),
    )
    kept = arrays.new_array((total, len(values)), np.float64)
    for rows in row_slices(n, 64 * m):
        some, there = index[rows], index[rows] >= 0
        ends, begins = some[there], there.nonzero()[0] + rows.start
        block = number[ends]
        order = np.argsort(block, kind="stable")
        count = np.bincount(block, minlength=len(place))
        at = np.repeat(place - (np.cumsum(count) - count), count) + np.arange(len(ends))
        source[at], target[at] = begins[order], ends[order]
        for column, one in enumerate(values):
            kept[at, column] = one[rows][there][order]
        place += count
    for rows in (slice(*cut) for cut in itertools.pairwise(cuts.tolist())):
        span = slice(start[rows.start], start[rows.stop])
        local = target[span] - rows.start
        local = local.astype(np.min_scalar_type(rows.stop - rows.start))
        order = np.argsort(local, kind="stable")
        begin = start[rows.start : rows.stop + 1] - span.start
        yield rows, (begin, source[span][order], list(kept[span][order].T))


def _matrix(data: FloatArray, indices: IndexArray, indptr: IndexArray) -> Any:
    """Return rows that have every column once as a matrix."""
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    parts: Any = (data, indices, indptr)
    matrix = csr_array(parts, (n, n))
    matrix.has_canonical_format = True
    return matrix


def _directed(
    index: IndexArray,
    values: Sequence[FloatArray],
    min_weight: float,
    similar: Similar | None,
) -> Joined:
    """Return all neighborhoods as rows, and how many positive weights they lack."""
    weights, (n, m) = values[0], index.shape
    start, positive = np.zeros(n + 1, np.int64), 0
    for rows in row_slices(n, 32 * m):
        kept = (weights[rows] >= min_weight) & (weights[rows] > 0)
        start[rows.start + 1 : rows.stop + 1] = kept.sum(axis=1)
        positive += int((weights[rows] > 0).sum())
    np.cumsum(start, out=start)
    edges = int(start[-1])
    indices = arrays.new_array(edges, index_dtype(max(n, edges)))
    found = [arrays.new_array(edges, np.float64) for _ in values]
    for rows in row_slices(n, 32 * m):
        kept = (weights[rows] >= min_weight) & (weights[rows] > 0)
        row, target = kept.nonzero()[0], index[rows][kept]
        own = [one[rows][kept] for one in values]
        if similar:
            own[0] = similar(row + rows.start, target, own[1])
        order = np.lexsort((target, row))
        place = slice(start[rows.start], start[rows.stop])
        indices[place] = target[order]
        for one, value in zip(found, own, strict=True):
            one[place] = value[order]
    data, *lengths = found
    adjacency = _matrix(data, indices, start.astype(indices.dtype))
    return Joined(adjacency, positive - edges, *lengths)


def _least_protected(
    index: IndexArray, weights: FloatArray, count: int
) -> tuple[FloatArray, IndexArray]:
    """Return the weight and the target of each row's last protected edge.

    Those are a row's heaviest positive weights; ties go to the lower node number.
    """
    n, m = index.shape
    least, last = arrays.new_array(n, np.float64), arrays.new_array(n, index.dtype)
    least[:], last[:] = np.inf, -1
    if min(count, m) > 0:
        for rows in row_slices(n, 40 * m):
            order = np.lexsort((index[rows], -weights[rows]), axis=1)
            at = np.arange(len(order)), order[:, min(count, m) - 1]
            least[rows], last[rows] = weights[rows][at], index[rows][at]
    return least, last
