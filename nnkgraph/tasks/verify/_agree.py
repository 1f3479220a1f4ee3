"""Which weights an edge may have, from what is known about its two ends.

A node that was looked at says exactly what it gives to every other node; one that was
not may give anything. What follows for an edge is a set of ranges, and the stored
weight has to lie in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.tasks.verify.recipe import Recipe

    Bools = NDArray[np.bool_]
    Outcome = tuple[Any, Any, Any]
    Side = np.recarray[Any, Any]
    Fixed = Callable[[IndexArray, IndexArray, Bools], tuple[FloatArray, FloatArray]]

TIE = 1e-12  # errors closer than this share of K_qq are equal
EXISTENCE = 1e-9  # weights this close to the threshold may be kept or dropped


# What nodes give to other nodes: ranges of directed weights, whether the other node is
# a candidate for certain or may be one, and whether it is among the node's heaviest.
_FIELDS = {"low": float, "high": float, "slack": float, "sure": bool, "maybe": bool}
SIDE = np.dtype([*_FIELDS.items(), ("heavy", bool), ("maybe_heavy", bool)])


@dataclass(frozen=True)
class Given:
    """All directed weights that were derived, by the number n * node + other."""

    n: int
    key: IndexArray
    side: Side
    looked: Bools  # (n,) whether a node was looked at
    low_error: FloatArray
    high_error: FloatArray
    own: FloatArray  # (n,) K_qq
    group: IndexArray  # (n,) equal for identical rows
    listed: IndexArray | None = None  # sorted numbers of stored candidates

    def of(self, node: IndexArray, other: IndexArray) -> Side:
        """Return what nodes give to others."""
        wanted = node * self.n + other
        at, there = _places(self.key, wanted)
        side = np.recarray(len(wanted), SIDE)
        side[:] = np.zeros((), SIDE)
        side[there] = self.side[at[there]]
        blind = ~self.looked[node]
        side.maybe = there | blind
        side.maybe_heavy |= blind
        if self.listed is not None:
            known = _places(self.listed, wanted)[1]
            side.sure |= blind & known
            side.maybe = np.where(blind, known, there)
        side.high[blind & side.maybe] = np.inf
        return side


def _places(key: IndexArray, wanted: IndexArray) -> tuple[IndexArray, Bools]:
    if not len(key):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return at, key[at] == wanted


@dataclass(frozen=True)
class Verdict:
    """What became of the pairs that were looked at."""

    one: IndexArray
    two: IndexArray
    weight: FloatArray
    expected: FloatArray  # the weight that comes nearest to the stored one
    difference: FloatArray  # relative difference of the two, for edges
    decided: Bools  # whether the weight is determined by what was looked at
    loose: Bools  # edges that rounding alone can change by more than is allowed
    outside: Bools  # edges between nodes of which none is a candidate of the other
    extra: Bools
    missing: Bools
    wrong: Bools


def pairs_of(given: Given, adjacency: Any, rule: str) -> tuple[IndexArray, IndexArray]:
    """Return all pairs about which something is known, and all edges among them."""
    edges = adjacency.tocoo()
    row, column = edges.row.astype(np.int64), edges.col.astype(np.int64)
    seen = given.looked[row]
    if rule != "none":
        seen |= given.looked[column]
    key = np.concatenate([given.key, row[seen] * given.n + column[seen]])
    one, two = np.divmod(key, given.n)
    if rule != "none":
        one, two = np.minimum(one, two), np.maximum(one, two)
    key = np.unique(one * given.n + two)
    return key // given.n, key % given.n


def judge(
    given: Given,
    adjacency: Any,
    recipe: Recipe,
    fixed: Fixed | None = None,
    mutual: Fixed | None = None,
) -> Verdict:
    """Compare every stored weight with what it may be.

    Where ``fixed`` says between what two numbers the weights of edges are, what nodes
    give to each other decides only whether there is an edge. Where nodes give each
    other the same or nothing, ``mutual`` says between what two numbers that is.
    """
    relative = recipe.tolerance
    one, two = pairs_of(given, adjacency, recipe.rule)
    weight = np.asarray(adjacency[one, two]).ravel() if len(one) else np.zeros(0)
    a, b = given.of(one, two), given.of(two, one)
    if mutual is not None:
        for side in (a, b):
            blind = np.isinf(side.high)
            side.high[blind] = mutual(one[blind], two[blind], blind[blind])[1]
    slack = np.maximum(np.where(a.maybe, a.slack, 0), np.where(b.maybe, b.slack, 0))
    good, some = np.zeros(len(one), bool), np.zeros(len(one), bool)
    decided = np.ones(len(one), bool)
    expected, gap = np.full(len(one), np.nan), np.full(len(one), np.inf)
    between = None if fixed is None else fixed(one, two, weight > 0)
    ways = _with_heavy(_outcomes(given, recipe, one, two, a, b), recipe, a, b)
    for possible, *ends, least in ways:
        low, high = (np.broadcast_to(end, len(one)) for end in ends)
        heavy = np.where(high < np.inf, high, 0)
        heavy = heavy if between else np.maximum(weight, heavy)
        room = slack + relative * heavy
        drop = possible & (low - slack <= least + EXISTENCE)
        keep = possible & (high + slack > 0) & (high + room >= least - EXISTENCE)
        decided &= ~possible | (high < np.inf)
        if between:
            low, high = between
            room = relative * high
        fits = (weight >= low - room) & (weight <= high + room)
        fits &= (between is not None) | (weight >= least * (1 - 2 * relative))
        good |= np.where(weight > 0, keep & fits, drop)
        some |= keep
        nearest = np.clip(weight, low, high)
        closer = possible & (np.abs(nearest - weight) < gap)
        expected = np.where(closer, nearest, expected)
        gap = np.where(closer, np.abs(nearest - weight), gap)
    there = weight > 0
    extra, missing = ~good & there & ~some, ~good & ~there
    return Verdict(
        one,
        two,
        weight,
        expected,
        difference=np.where(there & decided, gap / np.where(there, weight, 1.0), 0.0),
        decided=decided,
        loose=there & (slack > relative * weight) & (between is None),
        outside=there & ~a.maybe & ~(b.maybe & (recipe.rule != "none")),
        extra=extra,
        missing=missing,
        wrong=~good & ~extra & ~missing,
    )


def _outcomes(
    given: Given, recipe: Recipe, one: IndexArray, two: IndexArray, a: Side, b: Side
) -> Iterator[Outcome]:
    """Yield what a rule may give: where it is possible, and the range of the weight."""
    rule, always = recipe.rule, np.ones(len(one), bool)
    if rule == "none":
        yield always, a.low, a.high
    elif rule == "max":
        yield always, *_larger(a, b)
    elif rule == "mean":
        yield always, (a.low + b.low) / 2, (a.high + b.high) / 2
    elif rule == "min":
        yield always, np.minimum(a.low, b.low), np.minimum(a.high, b.high)
    elif rule == "mutual":
        both = (a.low > 0) & (b.low > 0)
        can = (a.high > 0) & (b.high > 0)
        yield can, (a.low + b.low) / 2, (a.high + b.high) / 2
        yield ~both, 0.0, 0.0
    else:
        yield from _by_error(given, recipe, one, two, a, b)


def _larger(a: Side, b: Side) -> tuple[FloatArray, FloatArray]:
    return np.maximum(a.low, b.low), np.maximum(a.high, b.high)


def _by_error(
    given: Given, recipe: Recipe, one: IndexArray, two: IndexArray, a: Side, b: Side
) -> Iterator[Outcome]:
    larger = _larger(a, b)
    tie = TIE * np.maximum(given.own[one], given.own[two])
    least = given.low_error[two] - given.high_error[one]
    most = given.high_error[two] - given.low_error[one]
    both = a.maybe & b.maybe
    # Errors are known up to rounding: near the limit, it may be a tie or not.
    yield both & (least <= 10 * tie) & (most >= -10 * tie), *larger
    yield both & (most > tie / 10), a.low, a.high
    yield both & (least < -tie / 10), b.low, b.high
    single = ~(a.sure & b.sure)
    if recipe.rule == "error":
        same = given.group[one] == given.group[two]
        yield single & ~same, 0.0, 0.0
        yield single & same, *larger
    else:
        yield a.maybe & ~b.sure, a.low, a.high
        yield b.maybe & ~a.sure, b.low, b.high
        yield ~a.sure & ~b.sure, 0.0, 0.0


def _with_heavy(
    outcomes: Iterator[Outcome], recipe: Recipe, a: Side, b: Side
) -> Iterator[tuple[Any, Any, Any, float]]:
    """Protect every node's own heaviest edges from the rule and the threshold.

    Every outcome gets the weight below which its edge is dropped.
    """
    least = recipe.min_weight
    if recipe.min_degree == 0 or recipe.rule == "none":
        for outcome in outcomes:
            yield *outcome, least
        return
    larger = _larger(a, b)
    sure, maybe = a.heavy | b.heavy, a.maybe_heavy | b.maybe_heavy
    limit = least + EXISTENCE
    for possible, low, high in outcomes:
        yield possible & ~(sure & (high < least - EXISTENCE)), low, high, least
        yield possible & maybe & (low <= limit), *larger, 0.0
