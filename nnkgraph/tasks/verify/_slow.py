"""The slow path of ``verify``: the weights of one node, by textbook methods.

``scipy.optimize.nnls`` solves, numpy proves; where the proof is not good enough, a
plain dense active set solves again.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

from nnkgraph.data import SparseGram, SparseRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.data.scaling import Scaling
    from nnkgraph.tasks.verify.recipe import Recipe


EPS = 2.0**-53
_VALUES = 1 << 25  # pair values that are held at once
_PAIRS = 1 << 14  # pairs of sparse rows whose difference is
_THEIRS = 1e-10  # relative difference of values that others may take for equal
_CHOICES = 32  # sets of candidates to try where rounding decides on the k best


@dataclass(frozen=True)
class Shortlist:
    """The best candidates of a node, in order, and all that tie with the last one."""

    index: IndexArray
    value: FloatArray  # (squared) distance or minus the similarity: lower is better
    tied: slice  # which of them cannot be told apart by more than rounding
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

    x: Any  # (n, d) rows, or (n, n) similarities, maybe sparse
    first: IndexArray  # (N,) for every row of the input, the lowest equal row
    origin: IndexArray  # (n,) the rows of the input that these are
    recipe: Recipe

    @classmethod
    def of(cls, x: Any, recipe: Recipe) -> Space:
        """Scale the rows and leave out copies, as the graph says it was done.

        Coordinates along components are those of the build, digit by digit: identical
        ones are copies. `components_check` looks at them.
        """
        if recipe.pca is not None and recipe.scaling is not None:
            x = recipe.scaling.applied(x, "the features")
        else:
            if isinstance(x, SparseGram | SparseRows):
                x = x.matrix()
            x = scaled(x, recipe.scale, recipe.scaling)
        if recipe.kernel == "correlation":
            x = x - np.asarray(x, np.float64).mean(axis=1, keepdims=True)
        if recipe.kernel in {"correlation", "cosine"}:
            x = scaled(x, "unit")
        if recipe.kernel == "distance":
            x = _known_distances(x)
        first = (_first_at_zero if recipe.kernel == "distance" else _first_equal)(x)
        every = np.arange(len(first))
        merge = recipe.duplicates == "merge"
        origin = np.flatnonzero(first == every) if merge else every
        if len(origin) < len(first):
            x = x[origin][:, origin] if recipe.matrix else x[origin]
        return cls(x, first, origin, recipe)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.origin)

    @cached_property
    def rounding(self) -> float:
        """Relative error that a pair's value may have; 0 where there is none."""
        if self.recipe.matrix:
            return 0.0
        chunks = [self.x.data] if self.sparse else (b for _, b in self._chunks())
        whole = self.recipe.plain and all(bool((b == np.rint(b)).all()) for b in chunks)
        d = self.x.shape[1]
        if whole and 4.0 * d * max(1.0, float(abs(self.x).max())) ** 2 < 2.0**53:
            return 0.0  # integers: sums of squares and products are exact
        return float(2.0 * (d + 8) * EPS)

    @property
    def grain(self) -> float:
        """Difference that distances may have by rounding, of rows or of given sides."""
        if self.recipe.kernel == "distance":
            parts = [slice(at, at + 512) for at in range(0, self.n, 512)]
            return max(
                float(abs(self.x[rows] - self.x[:, rows].T).max()) for rows in parts
            )
        angles = self.recipe.kernel in {"correlation", "cosine"}
        if not angles and self.recipe.scale == "none":
            return 0.0
        return float(64 * EPS * self.x.shape[1] * abs(self.x).max())

    @property
    def sparse(self) -> bool:
        """Whether only what is not zero is stored."""
        return hasattr(self.x, "toarray")

    def rows(self, index: Any) -> Any:
        """Return some rows in float64."""
        some = self.x[index]
        return np.asarray(some.toarray() if self.sparse else some, np.float64)

    def both(self, a: IndexArray, b: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return two sets of rows; of sparse ones the columns that any row stores."""
        if not self.sparse:
            return self.rows(a), self.rows(b)
        p, q = self.x[a], self.x[b]
        used = np.unique(np.concatenate([p.indices, q.indices]))
        return p[:, used].toarray(), q[:, used].toarray()

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
        if near == "distance-matrix":
            part = self.x[a][:, b]
            whole = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
            if hasattr(part, "toarray"):  # _known_distances marks zeros
                whole = np.where(whole == 0.0, np.inf, np.maximum(whole, 0.0))
            whole = np.maximum(np.asarray(whole, np.float64), 0.0) ** 2
            return np.where(np.equal.outer(a, b), 0.0, whole)
        p, q = self.both(a, b)
        if near == "jaccard-distance":
            return _jaccard(p, q)
        if near == "similarity":
            return -np.asarray(self.recipe.plugin(p, q), np.float64)
        if near == "squared-distance":
            lines = [np.square(q - row).sum(axis=1) for row in p]
        elif near == "l1-distance":
            lines = [np.abs(q - row).sum(axis=1) for row in p]
        else:
            lines = [-(q * row).sum(axis=1) for row in p]
        out = np.array(lines).reshape(len(a), len(b))
        return -np.abs(out - self.recipe.shift) if near == "absolute-product" else out

    @cached_property
    def _center(self) -> FloatArray:
        total = sum((b.sum(axis=0) for _, b in self._chunks()), np.zeros(1))
        return np.asarray(total) / self.n

    @cached_property
    def _squares(self) -> FloatArray:
        """Every sparse row's product with itself."""
        squares: FloatArray = self.x.multiply(self.x).sum(axis=1)
        return squares

    @cached_property
    def _columns(self) -> Any:
        return self.x.T.tocsr()

    @cached_property
    def _longest(self) -> float:
        if self.sparse:
            return float(self._squares.max())
        moved = self._center if self.recipe.nearness == "squared-distance" else 0.0
        return max(float(np.square(b - moved).sum(1).max()) for _, b in self._chunks())

    def _rough(self, nodes: IndexArray) -> tuple[FloatArray, float]:
        """Return values of nodes with all rows, and how wrong they may be."""
        near, shift = self.recipe.nearness, self.recipe.shift
        out = np.empty((len(nodes), self.n))
        if near == "jaccard-distance":
            size = max(1, _VALUES // (8 * self.x.shape[1]))
            for at in range(0, self.n, size):
                some = np.arange(at, min(at + size, self.n))
                out[:, some] = _jaccard(*self.both(nodes, some))
            return out, 0.0
        if near not in {"squared-distance", "inner-product", "absolute-product"}:
            return self.pair_values(nodes, np.arange(self.n)), 0.0
        squared, even = near == "squared-distance", near == "absolute-product"
        error = (self.x.shape[1] + 8) * self._longest + abs(shift)
        if self.sparse:
            out = -(self.x[nodes] @ self._columns).toarray()
            if squared:
                out = self._squares[nodes, np.newaxis] + self._squares + 2 * out
            return out, 8.0 * EPS * error
        origin = self._center if squared else 0.0
        moved = self.rows(nodes) - origin
        own = np.square(moved).sum(axis=1)[:, np.newaxis]
        for part, rows in self._chunks():
            there = rows - origin
            product = moved @ there.T
            if squared:
                out[:, part] = own + np.square(there).sum(axis=1) - 2 * product
            else:
                out[:, part] = -np.abs(product + shift) if even else -product
        return out, 8.0 * EPS * error

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
                if self.sparse and self.recipe.nearness == "gram":
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
        if self.recipe.foreign:  # others have rules of their own for what is tied
            return Shortlist(near[:high], value[:high], slice(low, high), m)
        if slack == 0.0 or (copies == copies[:1]).all():
            return Shortlist(near[:m], value[:m], slice(m, m), m)
        return Shortlist(near[:high], value[:high], slice(low, high), m)

    def _tolerance(self, node: int, value: float) -> float:
        """Return by how much values may differ from those of another summation."""
        own = self._rounded(node, value)
        share = max(_THEIRS, self.recipe.rounding) if self.recipe.foreign else 0.0
        return max(own, share * abs(value))

    def _rounded(self, node: int, value: float) -> float:
        if self.recipe.nearness in {"squared-distance", "l1-distance"}:
            return float(self.rounding * abs(value))
        if self.recipe.nearness == "jaccard-distance":
            return self.rounding
        if self.rounding == 0.0:
            return 0.0
        if self.recipe.nearness == "similarity":
            return 1e-12 * abs(value)
        own = float(np.square(self.rows(node)).sum())
        wide = np.sqrt(own * self._longest) + abs(self.recipe.shift)
        return float(self.rounding * wide)


def scaled(x: Any, how: str, known: Scaling | None = None) -> Any:
    """Return scaled rows; the numbers of a scaling may be known."""
    if how == "none":
        return x
    if how == "unit" and hasattr(x, "toarray"):
        power = np.exp2(np.floor(np.log2(abs(x).max(axis=1).toarray().ravel())))
        wide = x.multiply(1.0 / power[:, np.newaxis]).tocsr()
        length = np.sqrt(wide.multiply(wide).sum(axis=1))
        return wide.multiply(1.0 / length[:, np.newaxis]).tocsr()
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
    if known is not None:  # those of the rows that there were first
        center, width = known.low, known.width
        flat = width == 0
    return np.where(flat, 0.0, (wide - center) / np.where(flat, 1.0, width))


def _first_equal(x: Any) -> IndexArray:
    """Return, for every row, the lowest row with the same values."""
    known: dict[bytes, int] = {}
    first = np.empty(x.shape[0], np.int64)
    sparse = hasattr(x, "toarray")
    if sparse:
        x = x.copy()
        x.eliminate_zeros()
        ends = x.indptr.tolist()
    for i in range(x.shape[0]):
        if sparse:
            part = slice(ends[i], ends[i + 1])
            key = x.indices[part].tobytes() + x.data[part].tobytes()
        else:
            key = (np.asarray(x[i]) + 0.0).tobytes()  # minus zero is zero
        # 32 bytes of a hash that nobody has found a collision of: a million rows may
        # be wide.
        name = blake2b(key, digest_size=32).digest()
        first[i] = known.setdefault(name, i)
    return first


def _first_at_zero(x: Any) -> IndexArray:
    """Return, for every row, the lowest row that is no distance away, or its own."""
    first = np.arange(x.shape[0])
    for i in range(len(first)):
        if hasattr(x, "toarray"):
            row = x[[i]].tocoo()
            near = row.coords[1][row.data <= 0]
        else:
            near = np.flatnonzero(np.asarray(x[i]) <= 0)
        first[i] = first[min(i, int(near.min(initial=i)))]
    return first


def _known_distances(x: Any) -> Any:
    """Return a sparse matrix with what either side stores, and -1 for stored zeros."""
    if not hasattr(x, "toarray"):
        return x
    one = x.copy()
    one.data = np.where(one.data <= 0, -1.0, one.data)
    other = one.T.tocsr()
    return (one + (other - other.multiply(one != 0))).tocsr()


def _jaccard(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the Jaccard distances of rows from others; none between zeros."""
    if all(bool(((one == 0) | (one == 1)).all()) for one in (p, q)):  # sets: counts
        least = p @ q.T
        most = np.add.outer(p.sum(axis=1), q.sum(axis=1)) - least
    else:
        least = np.array([np.minimum(row, q).sum(axis=1) for row in p])
        most = np.array([np.maximum(row, q).sum(axis=1) for row in p])
    least, most = (one.reshape(len(p), len(q)) for one in (least, most))
    distance: FloatArray = (most - least) / np.where(most > 0, most, 1.0)
    return distance


FAR = 1e-250  # where all similarities of a node are below this, they are scaled up


def distances(space: Space, node: int, index: IndexArray) -> FloatArray:
    """Return the distances of a node's candidates."""
    value: FloatArray = space.pair_values(np.array([node]), index)[0]
    return np.sqrt(value) if space.recipe.squared else value


def lengths(space: Space, a: IndexArray, b: IndexArray) -> FloatArray | None:
    """Return how far apart pairs of rows are; None where there are no distances."""
    near, out = space.recipe.nearness, np.empty(len(a))
    if near in {"distance-matrix", "jaccard-distance"}:
        pairs = zip(a, b, strict=True)
        return np.array([distances(space, i, np.array([j]))[0] for i, j in pairs])
    if near not in {"squared-distance", "l1-distance"}:
        return None
    size = max(1, _VALUES // (8 * space.x.shape[1]))
    if space.sparse:
        size = _PAIRS
    for start in range(0, len(a), size):
        part = slice(start, start + size)
        if space.sparse:
            lost = space.x[a[part]] - space.x[b[part]]
            out[part] = np.sqrt(lost.multiply(lost).sum(axis=1))
            continue
        apart = space.rows(a[part]) - space.rows(b[part])
        city = near == "l1-distance"
        out[part] = np.abs(apart).sum(1) if city else np.sqrt(np.square(apart).sum(1))
    return out


def own_similarity(space: Space, node: int, sigma: float | None) -> float:
    """Return K_qq."""
    return 2.0 if space.recipe.kernel == "lle" else similarity(space, node, node, sigma)


def local(
    space: Space, node: int, index: IndexArray, sigma: float | None
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return K_SS with its ridge, K_Sq, K_qq, and the factor that K_Sq lacks."""
    recipe, own, scale = space.recipe, own_similarity(space, node, sigma), 1.0
    if recipe.kernel == "lle":
        gram, cross = _directions(space, node, index)
    else:
        gram = _similar(space, index, index, sigma)[0]
        if recipe.matrix:  # its sides may differ by rounding: the nearer ones' columns
            gram = np.tril(gram) + np.tril(gram, -1).T
        cross, scale = _similar(space, np.array([node]), index, sigma)
        cross = cross[0]
    ridge = 1e-8 if recipe.kernel in {"linear", "polynomial", "lle"} else 0.0
    ridge = getattr(recipe.plugin, "ridge", ridge)
    at = np.diagonal(gram)
    gram = gram + np.diag(np.where(at > 0, ridge * at.max(initial=0.0), 0.0))
    if recipe.kernel == "distance":
        gram = gram + np.eye(len(index)) * _lifting(gram, cross * scale, own)
    return gram, cross, own, scale


def _lifting(gram: FloatArray, cross: FloatArray, own: float) -> float:
    """Return the ridge of similarities that no points in a space need to have.

    That is 0 where they are positive definite, up to 1e-12, and else the smallest power
    of two from 2**-26 on of which half makes them so, those of the node included.
    """
    m = len(cross)
    border = np.empty((m + 1, m + 1))
    border[:m, :m], border[m, :m], border[:m, m], border[m, m] = gram, cross, cross, own
    atoms, ridge, more = np.arange(m), 0.0, 1e-12
    while True:
        tried = border.copy()
        tried[atoms, atoms] += more
        try:
            np.linalg.cholesky(tried)
        except np.linalg.LinAlgError:
            ridge = max(2.0**-26, 2.0 * ridge)
            more = ridge / 2
        else:
            return ridge


def _similar(
    space: Space, a: IndexArray, b: IndexArray, sigma: float | None
) -> tuple[FloatArray, float]:
    """Return similarities by formula; one node's that all vanish are scaled up."""
    recipe = space.recipe
    if recipe.kernel in {"gaussian", "distance", "laplacian"}:
        width = sigma or 1.0
        rate = 1.0 / width if recipe.kernel == "laplacian" else 0.5 / width**2
        value = rate * space.pair_values(a, b)
        least = value.min(initial=np.inf) if len(a) == 1 else 0.0
        if not (np.isfinite(least) and np.exp(-least) < FAR):
            least = 0.0
        return np.exp(least - value), float(np.exp(-least))
    if recipe.kernel in {"precomputed", "function"}:
        return -space.pair_values(a, b), 1.0
    if recipe.kernel == "jaccard":
        return 1.0 - space.pair_values(a, b), 1.0
    p, q = space.both(a, b)
    product = np.array([(q * row).sum(axis=1) for row in p]).reshape(len(a), len(b))
    if recipe.kernel in {"correlation", "cosine"}:
        return 0.5 + 0.5 * product, 1.0
    if recipe.kernel == "polynomial":
        base = recipe.plugin.gamma * product + recipe.plugin.c
        return base**recipe.plugin.degree, 1.0
    return product, 1.0


def _directions(
    space: Space, node: int, index: IndexArray
) -> tuple[FloatArray, FloatArray]:
    moved = space.rows(index) - space.rows(node)
    length = np.sqrt(np.square(moved).sum(axis=1))
    unit = moved / np.where(length > 0, length, 1.0)[:, np.newaxis]
    gram = 0.5 + 0.5 * unit @ unit.T
    np.fill_diagonal(gram, 1.0)
    there = length > 0  # a candidate at the node itself has no direction
    return gram * np.outer(there, there), np.ones(len(index))


def similarity(space: Space, one: int, two: int, sigma: float | None) -> float:
    """Return the similarity of two rows."""
    if space.recipe.kernel == "lle":
        return 1.0
    value, scale = _similar(space, np.array([one]), np.array([two]), sigma)
    return float(value[0, 0] * scale)


PROOF = 1e-10  # optimality residual up to which a solution is taken as it is
_LEAVES = 16


@dataclass(frozen=True)
class Solution:
    """The weights of a node's candidates."""

    index: IndexArray
    weights: FloatArray
    slack: FloatArray  # what rounding of similarities may change in each
    error: float
    own: float
    residual: float  # violation of the optimality conditions, relative


def solutions(
    space: Space, node: int, index: IndexArray, sigma: float | None
) -> list[Solution]:
    """Weigh candidates; several answers only where a pursuit meets a tie."""
    recipe, m = space.recipe, len(index)
    copies = space.first[space.origin[index]]
    kept = np.ones(m, bool)
    if recipe.duplicates == "keep" and recipe.has_error:
        kept[:] = False
        kept[np.unique(copies, return_index=True)[1]] = True
        twin = (copies == space.first[space.origin[node]]) & kept
        if twin.any():
            own = own_similarity(space, node, sigma)
            return [Solution(index, twin * 1.0, np.zeros(m), 0.0, own, 0.0)]
    if recipe.bare:
        size: FloatArray = np.ones(m)
        if recipe.weights == "distance":
            size = distances(space, node, index)
        return [Solution(index, size, 1e-13 * size, 0.0, 1.0, 0.0)]
    gram, cross, own, scale = local(space, node, index[kept], sigma)
    if recipe.method in {"knn", "eps"}:
        plain = np.maximum(cross * scale, 0.0)
        return [Solution(index, plain, 1e-13 * plain, 0.0, own, 0.0)]
    if recipe.method == "kstar":
        weights = _kstar(recipe.weigher.lc * distances(space, node, index))
        return [Solution(index, weights, np.full(m, 1e-12), 0.0, own, 0.0)]
    if recipe.method == "lle":
        return [_lle(space, node, index)]
    wanted = cross
    if recipe.method == "l1":
        # where all similarities vanish, no penalty lets any of them in
        far = scale < 1.0 and recipe.weigher.eta > 0
        wanted = np.full(m, -1.0) if far else cross - recipe.weigher.eta
    found = []
    ways = [nonnegative(gram, wanted)] if recipe.method != "mp" else []
    for theta, residual in ways or _pursuits(gram, cross):
        slack = slack_of(gram, wanted, theta)
        gain = cross @ theta - 0.5 * theta @ gram @ theta
        weights, loose = np.zeros(m), np.zeros(m)
        weights[kept], loose[kept] = theta * scale, slack * scale
        error = max(0.0, float(0.5 * own - scale**2 * gain))
        found.append(Solution(index, weights, loose, error, own, residual))
    return found


def nonnegative(gram: FloatArray, cross: FloatArray) -> tuple[FloatArray, float]:
    """Minimize theta' K theta / 2 - b' theta over theta >= 0; return its violation."""
    there = np.flatnonzero(np.diagonal(gram) > 0)
    theta = np.zeros(len(cross))
    if not len(there) or cross[there].max() <= 0:
        return theta, 0.0
    unit = 1.0 / np.sqrt(np.diagonal(gram)[there])
    scaled = gram[np.ix_(there, there)] * np.outer(unit, unit)
    b = cross[there] * unit
    b = b / np.abs(b).max()
    best = _by_nnls(scaled, b)
    if best is None or violation(scaled, b, best) > PROOF:
        again = _active_set(scaled, b)
        if best is None or violation(scaled, b, again) < violation(scaled, b, best):
            best = again
    theta[there] = best * unit * np.abs(cross[there] * unit).max()
    return theta, violation(scaled, b, best)


def violation(gram: FloatArray, b: FloatArray, theta: FloatArray) -> float:
    """Return the largest residual that the optimum does not have."""
    residual = b - gram @ theta
    return float(np.where(theta > 0, np.abs(residual), residual).max(initial=0.0))


def _by_nnls(gram: FloatArray, b: FloatArray) -> FloatArray | None:
    try:
        lower = np.linalg.cholesky(gram)
        rough = nnls(lower.T, np.linalg.solve(lower, b))[0]
        chosen = np.flatnonzero(rough > 0)
        exact = np.linalg.solve(gram[np.ix_(chosen, chosen)], b[chosen])
    except (np.linalg.LinAlgError, RuntimeError):
        return None
    theta = np.zeros(len(b))
    theta[chosen] = np.maximum(exact, 0.0)
    return theta


def _active_set(gram: FloatArray, b: FloatArray) -> FloatArray:
    """Solve by Lawson and Hanson's rule, with a fresh dense solve at every step."""
    theta, chosen = np.zeros(len(b)), np.zeros(len(b), bool)
    barred = np.zeros(len(b), bool)
    for _ in range(20 * len(b)):
        residual = np.where(chosen | barred, -np.inf, b - gram @ theta)
        j = int(residual.argmax())
        if residual[j] <= 1e-14:
            break
        chosen[j] = True
        while chosen.any():
            at = np.flatnonzero(chosen)
            goal = np.zeros(len(b))
            goal[at] = np.linalg.lstsq(gram[np.ix_(at, at)], b[at], rcond=1e-15)[0]
            bad = at[goal[at] <= 0]
            if not len(bad):
                theta = goal
                break
            step = (theta[bad] / (theta[bad] - goal[bad])).min()
            theta = theta + step * (goal - theta)
            leaving = bad[np.argmin(theta[bad])]
            barred[leaving] = leaving == j  # it adds nothing: do not come back to it
            theta[leaving], chosen[leaving] = 0.0, False
        else:
            theta[:] = 0.0
        barred[:] = barred & (np.arange(len(b)) == j)
    return theta


def slack_of(gram: FloatArray, cross: FloatArray, theta: FloatArray) -> FloatArray:
    """Bound what similarities that are wrong in their last digits do to weights.

    It is 0 for atoms that are clearly not wanted; others may enter by rounding.
    """
    chosen = np.flatnonzero(theta > 0)
    slack = np.zeros(len(theta))
    if not len(chosen):
        return slack
    block = gram[np.ix_(chosen, chosen)]
    wrong = 4e-15 * (np.abs(block) @ theta[chosen] + np.abs(cross[chosen]))
    slack[chosen] = np.abs(np.linalg.pinv(block)) @ wrong
    near = cross - gram @ theta > -1e-13 * np.abs(cross).max()
    slack[(theta <= 0) & near] = slack.max()
    return slack


def _pursuits(gram: FloatArray, cross: FloatArray) -> list[tuple[FloatArray, float]]:
    """Pursue as Algorithm 2 says; where atoms tie up to rounding, each in turn."""
    there = np.diagonal(gram) > 0
    size = np.where(there, np.diagonal(gram), 1.0)
    unit = np.where(there, 1.0 / np.sqrt(size), 0.0)
    scale = float(np.abs(cross * unit).max(initial=0.0))
    done: list[tuple[FloatArray, float]] = []
    open_ = [(np.zeros(len(cross)), cross.copy(), 0)]
    while open_ and len(done) < _LEAVES:
        theta, residual, steps = open_.pop()
        score = np.where(there, residual * unit, -np.inf)
        best = float(score.max(initial=-np.inf))
        if steps == len(cross) or best <= 1e-15 * scale:
            done.append((theta, 0.0))
            continue
        ways = np.flatnonzero(score >= best - 1e-13 * scale)
        ways = ways[np.lexsort((ways, -score[ways]))]
        for j in ways[:4][::-1]:
            move = residual[j] / size[j]
            then = theta.copy()
            then[j] += move
            open_.append((then, residual - move * gram[:, j], steps + 1))
    return done


def _kstar(beta: FloatArray) -> FloatArray:
    order = np.sort(beta) - beta.min(initial=0.0 if not len(beta) else np.inf)
    level = 1.0
    for k in range(1, len(order) + 1):
        if level <= order[k - 1]:
            break
        total, squares = order[:k].sum(), np.square(order[:k]).sum()
        level = (total + np.sqrt(max(0.0, k + total**2 - k * squares))) / k
    weights: FloatArray = np.maximum(level - (beta - beta.min(initial=np.inf)), 0.0)
    return weights / (float(weights.sum()) or 1.0)


def _lle(space: Space, node: int, index: IndexArray) -> Solution:
    moved = space.rows(index) - space.rows(node)
    gram = moved @ moved.T
    trace, m = float(np.trace(gram)), len(index)
    if trace <= 0:
        return Solution(index, np.full(m, 1.0 / max(1, m)), np.zeros(m), 0.0, 1.0, 0.0)
    gram = gram / trace + space.recipe.weigher.ridge * np.eye(m)
    theta, residual = nonnegative(gram, np.ones(m))
    slack = slack_of(gram, np.ones(m), theta)
    return Solution(index, theta / theta.sum(), slack / theta.sum(), 0.0, 1.0, residual)
