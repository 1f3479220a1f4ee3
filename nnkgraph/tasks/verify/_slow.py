"""The slow path of ``verify``: rows and candidates by plain numpy.

Nothing here calls what builds graphs: every number is derived again from its
definition, in float64, one node at a time.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseGram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.tasks.verify._recipe import Recipe

EPS = 2.0**-53
_VALUES = 1 << 25
"""Pair values that are held at once."""

_CHOICES = 32
"""Sets of candidates that are tried where rounding decides which are the k best."""


@dataclass(frozen=True)
class Shortlist:
    """The best candidates of a node, in order, and all that tie with the last one."""

    index: IndexArray
    value: FloatArray
    """Squared distance, L1 distance or minus the similarity: the lower the better."""
    tied: slice
    """Which of them cannot be told apart by more than rounding."""
    k: int

    def choices(self) -> list[IndexArray]:
        """Return the sets of k candidates that may be meant: one, but for ties."""
        first, last = self.tied.start, self.tied.stop
        if last <= self.k:
            return [self.index[: self.k]]
        ways = itertools.combinations(range(first, last), self.k - first)
        sure = tuple(range(first))
        return [
            self.index[np.array(sure + way, np.int64)]
            for way in itertools.islice(ways, _CHOICES + 1)
        ]

    @property
    def unclear(self) -> bool:
        """Whether there are more sets than can be tried."""
        return len(self.choices()) > _CHOICES


@dataclass(frozen=True)
class Space:
    """The distinct rows as a kernel sees them."""

    x: Any
    """(n, d) rows, or the (n, n) similarities of kernel precomputed, maybe sparse."""
    first: IndexArray
    """(N,) for every row of the input, the lowest row with the same values."""
    origin: IndexArray
    """(n,) the rows of the input that these are."""
    recipe: Recipe

    @classmethod
    def of(cls, x: Any, recipe: Recipe) -> Space:
        """Scale the rows and leave out copies, as the graph says it was done."""
        if isinstance(x, SparseGram):
            x = x.matrix()
        x = _scaled(x, recipe.scale)
        if recipe.kernel == "cosine":
            x = _scaled(x, "unit")
        first = _first_equal(x)
        every = np.arange(len(first))
        merge = recipe.duplicates == "merge"
        origin = np.flatnonzero(first == every) if merge else every
        if len(origin) < len(first):
            x = x[origin][:, origin] if recipe.kernel == "precomputed" else x[origin]
        return cls(x, first, origin, recipe)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.origin)

    @cached_property
    def rounding(self) -> float:
        """Relative error that a pair's value may have; 0 where there is none."""
        if self.recipe.kernel == "precomputed":
            return 0.0
        whole = self.recipe.plain and all(
            bool((b == np.rint(b)).all()) for _, b in self._chunks()
        )
        d = self.x.shape[1]
        if whole and 4.0 * d * max(1.0, float(np.abs(self.x).max())) ** 2 < 2.0**53:
            return 0.0  # integers: sums of squares and products are exact
        return float(2.0 * (d + 8) * EPS)

    def rows(self, index: Any) -> FloatArray:
        """Return some rows in float64."""
        found: FloatArray = np.asarray(self.x[index], np.float64)
        return found

    def _chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        size = max(1, _VALUES // (8 * max(1, self.x.shape[1])))
        for start in range(0, self.n, size):
            part = slice(start, start + size)
            yield part, np.asarray(self.x[part], np.float64)

    def pair_values(self, a: IndexArray, b: IndexArray) -> FloatArray:
        """Return the (a, b) values that candidates are ordered by, as defined."""
        near = self.recipe.nearness
        if near == "gram":
            part = self.x[a][:, b]
            return -np.asarray(part.toarray() if hasattr(part, "toarray") else part)
        p, q = self.rows(a), self.rows(b)
        if near == "similarity":
            return -np.asarray(self.recipe.plugin(p, q), np.float64)
        out = np.empty((len(a), len(b)))
        for i, row in enumerate(p):
            if near == "squared-distance":
                out[i] = np.square(q - row).sum(axis=1)
            elif near == "l1-distance":
                out[i] = np.abs(q - row).sum(axis=1)
            else:
                product = (q * row).sum(axis=1)
                shift = self.recipe.shift
                even = near == "absolute-product"
                out[i] = -np.abs(product + shift) if even else -product
        return out

    @cached_property
    def _center(self) -> FloatArray:
        total = sum((b.sum(axis=0) for _, b in self._chunks()), np.zeros(1))
        return np.asarray(total) / self.n

    @cached_property
    def _longest(self) -> float:
        moved = self._center if self.recipe.nearness == "squared-distance" else 0.0
        return max(float(np.square(b - moved).sum(1).max()) for _, b in self._chunks())

    def _rough(self, nodes: IndexArray) -> tuple[FloatArray, float]:
        """Return values of nodes with all rows, and how wrong they may be."""
        near, every = self.recipe.nearness, np.arange(self.n)
        if near not in {"squared-distance", "inner-product", "absolute-product"}:
            return self.pair_values(nodes, every), 0.0
        out = np.empty((len(nodes), self.n))
        error = 8.0 * (self.x.shape[1] + 8) * EPS * self._longest
        if near == "squared-distance":
            moved = self.rows(nodes) - self._center
            own = np.square(moved).sum(axis=1)[:, np.newaxis]
            for part, rows in self._chunks():
                there = rows - self._center
                out[:, part] = own + np.square(there).sum(axis=1) - 2 * moved @ there.T
            return out, error
        for part, rows in self._chunks():
            product = self.rows(nodes) @ rows.T
            even = near == "absolute-product"
            out[:, part] = -np.abs(product + self.recipe.shift) if even else -product
        return out, error + 8.0 * EPS * abs(self.recipe.shift)

    def shortlists(
        self, nodes: IndexArray, k: int, limit: float | None = None
    ) -> Iterator[Shortlist]:
        """Find the k best rows for each of some nodes, or all up to a limit."""
        block = max(1, min(512, _VALUES // self.n))
        for start in range(0, len(nodes), block):
            some = nodes[start : start + block]
            rough, error = self._rough(some)
            for node, line in zip(some, rough, strict=True):
                line[node] = np.inf
                if hasattr(self.x, "toarray"):
                    line[line == 0.0] = np.inf  # what is not stored is no candidate
                m = min(k, int(np.isfinite(line).sum()))
                bound = limit
                if bound is None:
                    bound = np.partition(line, m - 1)[m - 1] if m else -np.inf
                slack = 2 * error + 4 * self._tolerance(node, float(bound))
                near = np.flatnonzero(line <= bound + slack)
                yield self._ordered(int(node), near, m, limit)

    def _ordered(
        self, node: int, near: IndexArray, m: int, limit: float | None
    ) -> Shortlist:
        """Order rows by their values; ties that are exact go to the lower number."""
        value = self.pair_values(np.array([node]), near)[0]
        order = np.lexsort((near, value))
        near, value = near[order], value[order]
        bound = float(value[m - 1]) if limit is None and m else limit
        if bound is None:
            return Shortlist(near[:0], value[:0], slice(0, 0), 0)
        slack = self._tolerance(node, bound)
        low = int(np.searchsorted(value, bound - slack, "left"))
        high = int(np.searchsorted(value, bound + slack, "right"))
        if limit is not None:  # all within a radius: those at its very edge are tied
            return Shortlist(near[:high], value[:high], slice(low, high), high)
        copies = self.first[self.origin[near[low:high]]]
        if slack == 0.0 or (copies == copies[:1]).all():
            return Shortlist(near[:m], value[:m], slice(m, m), m)
        return Shortlist(near[:high], value[:high], slice(low, high), m)

    def _tolerance(self, node: int, value: float) -> float:
        """Return by how much values may differ from those of another summation."""
        if self.recipe.nearness in {"squared-distance", "l1-distance"}:
            return float(self.rounding * abs(value))
        if self.rounding == 0.0:
            return 0.0
        if self.recipe.nearness == "similarity":
            return 1e-12 * abs(value)
        own = float(np.square(self.rows(node)).sum())
        wide = np.sqrt(own * self._longest) + abs(self.recipe.shift)
        return float(self.rounding * wide)


def _scaled(x: Any, how: str) -> Any:
    if how == "none":
        return x
    wide = np.asarray(x, np.float64)
    if how == "unit":
        # a power of two first, which is exact: identical directions stay identical
        top = np.exp2(np.floor(np.log2(np.abs(wide).max(axis=1, keepdims=True))))
        wide = wide / top
        return wide / np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, np.newaxis]
    low, high = wide.min(axis=0), wide.max(axis=0)
    center, width = low, high - low
    if how == "standard":
        center = x.mean(axis=0, dtype=np.float64)
        width = x.std(axis=0, dtype=np.float64)
    flat = high == low
    return np.where(flat, 0.0, (wide - center) / np.where(flat, 1.0, width))


def _first_equal(x: Any) -> IndexArray:
    """Return, for every row, the lowest row with the same values."""
    known: dict[bytes, int] = {}
    first = np.empty(x.shape[0], np.int64)
    for i in range(x.shape[0]):
        row = x[[i]].toarray() if hasattr(x, "toarray") else x[i]
        values = np.asarray(row) + 0.0  # minus zero is zero
        first[i] = known.setdefault(values.tobytes(), i)
    return first
