"""Label propagation by harmonic functions: few labels become labels of all nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from nnkgraph.data.labels import folds_of
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks import laplacian as lap
from nnkgraph.tasks.laplacian import SMALL, block, pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.data.labels import Labels


SOLVERS = ("auto", "factor", "cg", "amg")

_ACCURACY = 1e-10  # bound on the relative error at which the work is done
_FLOOR = 1e-15  # a residual, relative to the degrees, that rounding keeps from falling
_WORST = 1e-6
_STEPS = 20_000
_TIE = 1e-12  # classes this close to the best, as a share, are equal: sums are rounded
_FEW = 500  # nodes whose steps are cheap
_COLUMNS = 16  # right sides solved at a time: they share every pass over the edges
_WEAK = (
    "label propagation finds no solution: the graph holds together by very weak edges; "
    "build it with a larger `min_weight`"
)


@dataclass(frozen=True)
class Solved:
    """The solution, and how good it is."""

    y: FloatArray  # (m, c), in units of the square root of the degree
    error: float  # bound on the error, relative to the largest value
    factored: int  # nodes that were solved by a factorization, the others by steps
    steps: int  # steps of conjugate gradients in all


def solve(s: csr_array, b: FloatArray, root: FloatArray, solver: str) -> Solved:
    """Solve (I - S) y = b, each connected piece in the way that suits it.

    S has the weights among nodes without a label over the roots of their degrees, which
    include edges to labels; b has one column per class.
    """
    if not len(b):
        return Solved(b, 0.0, 0, 0)
    direct, stepped = _divided(s, solver)
    y = np.empty_like(b)
    error, steps = 0.0, 0
    if len(direct):
        inner = block(s, direct, direct)
        y[direct], error = _factored(inner, b[direct], root[direct])
    for piece in stepped:
        inner, own = block(s, piece, piece), root[piece]
        near = lap.multigrid(inner, own) if _is_coarsened(piece, solver) else None
        for start in range(0, b.shape[1], _COLUMNS):
            some = slice(start, start + _COLUMNS)
            found, worst, count = _descended(inner, b[piece, some], own, near)
            y[piece, some] = found
            error, steps = max(error, worst), steps + count
    return Solved(y, error, len(direct), steps)


def _divided(s: csr_array, solver: str) -> tuple[IndexArray, list[IndexArray]]:
    """Return the nodes to solve for by one factorization, and pieces for steps."""
    everything = np.arange(s.shape[0])
    if solver == "factor" or (solver == "auto" and len(everything) <= SMALL):
        return everything, []
    parts = pieces(s)
    if solver in {"cg", "amg"}:
        return everything[:0], parts
    large = [part for part in parts if not lap.can_factor(block(s, part, part))]
    rest = np.ones(len(everything), bool)
    for part in large:
        rest[part] = False
    return np.flatnonzero(rest), large


def _is_coarsened(piece: IndexArray, solver: str) -> bool:
    """Return whether a piece is solved on coarser graphs, too: not worth it for few."""
    return solver == "amg" and len(piece) > _FEW


def _factored(
    s: csr_array, b: FloatArray, root: FloatArray
) -> tuple[FloatArray, float]:
    """Solve by a factorization, and once more for what rounding has left."""
    sides = np.column_stack([b, root])
    try:
        lu = lap.factor(s)
    except RuntimeError:  # some nodes hang on the labels by less than rounding
        return _eliminated(s, b, root)
    y = lu.solve(sides)
    y += lu.solve(residual(s, sides, y))
    error = error_bound(residual(s, sides, y), y, root)
    return (y[:, :-1], error) if np.isfinite(error) else _eliminated(s, b, root)


def _eliminated(
    s: csr_array, b: FloatArray, root: FloatArray
) -> tuple[FloatArray, float]:
    """Solve node by node, without a difference: no edge is too weak to be seen.

    Eliminating a node joins its neighbors by what flows through it. A pivot is the sum
    of what is left of its edges, those to labels included, in place of a difference of
    nearly equal numbers (Grassmann, Taksar and Heyman). Dense, so for few nodes only.
    """
    m = len(b)
    if m > SMALL:
        raise ResourceError(_WEAK)
    order = np.argsort(np.diff(s.indptr), kind="stable")
    scale = root[order]
    w = s[order][:, order].toarray() * np.outer(scale, scale)
    np.fill_diagonal(w, 0.0)
    c = b[order] * scale[:, np.newaxis]
    to_labels, pivot = c.sum(axis=1), np.zeros(m)
    for at in range(m):
        others = at + 1 + np.flatnonzero(w[at, at + 1 :])
        pivot[at] = to_labels[at] + w[at, others].sum()
        if pivot[at] > 0:
            share = w[others, at] / pivot[at]
            w[np.ix_(others, others)] += np.outer(share, w[at, others])
            c[others] += np.outer(share, c[at])
            to_labels[others] += share * to_labels[at]
    for at in range(m - 1, -1, -1):
        total = c[at] + w[at, at + 1 :] @ c[at + 1 :]
        c[at] = total / pivot[at] if pivot[at] > 0 else 0.0
    y = np.empty_like(b)
    y[order] = c * scale[:, np.newaxis]
    return y, m * float(np.finfo(float).eps)


def residual(s: csr_array, sides: FloatArray, y: FloatArray) -> Any:
    """Return what is left of the right sides of (I - S) y = sides."""
    return sides - (y - s @ y)


def error_bound(left: FloatArray, y: FloatArray, root: FloatArray) -> float:
    """Bound the error of all columns but the last by their residuals.

    The last column is the mean number of steps of a random walk to a label. The
    inverse of an M-matrix is not negative, so that a residual of at most e times the
    degrees makes an error of at most e times the longest walk.
    """
    share = np.abs(left / root[:, np.newaxis]).max(axis=0)
    own = float(share[-1])
    values = y / root[:, np.newaxis]
    walk = float(values[:, -1].max())
    largest = float(np.abs(values[:, :-1]).max(initial=0.0))
    if not np.isfinite(walk) or own >= 0.5:
        return float("inf")
    worst = float(share[:-1].max(initial=0.0))
    return worst * walk / (1 - own) / largest if largest else worst


def _descended(
    s: csr_array,
    b: FloatArray,
    root: FloatArray,
    inverse: Callable[[FloatArray], FloatArray] | None = None,
) -> tuple[FloatArray, float, int]:
    """Solve by conjugate gradients, all columns side by side.

    What is nearly the inverse saves most of the steps, which cost more each.
    """
    sides = np.column_stack([b, root])
    y = np.zeros_like(sides)
    left, room = sides.copy(), np.empty_like(sides)
    near = inverse(left) if inverse else left
    way = near.copy()
    square = np.einsum("ij,ij->j", left, near)
    step, often = 0, 2 if inverse else 10
    for step in range(1, _STEPS + 1):
        image = s @ way
        np.subtract(way, image, out=image)
        length = _ratio(square, np.einsum("ij,ij->j", way, image))
        y += np.multiply(length, way, out=room)
        left -= np.multiply(length, image, out=room)
        near = inverse(left) if inverse else left
        before, square = square, np.einsum("ij,ij->j", left, near)
        if step % often == 0 or not square.any():
            error = error_bound(left, y, root)
            if error <= _ACCURACY or _at_floor(left, y, root):
                break
        way *= _ratio(square, before)
        way += near
    error = error_bound(residual(s, sides, y), y, root)
    if error > _WORST and step == _STEPS:
        raise ResourceError(_WEAK)
    return y[:, :-1], error, step


def _at_floor(left: FloatArray, y: FloatArray, root: FloatArray) -> bool:
    """Return whether residuals are as small as rounding allows."""
    scale = np.abs(y / root[:, np.newaxis]).max(axis=0)
    share = np.abs(left / root[:, np.newaxis]).max(axis=0)
    return bool((share <= _FLOOR * scale).all())


def _ratio(a: FloatArray, b: FloatArray) -> Any:
    """Divide, and give 0 where a column is done."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


LAPLACIANS = ("combinatorial", "normalized")


@dataclass(frozen=True)
class Checked:
    """What propagation says of nodes with a label when their own is left out."""

    nodes: IndexArray  # (m,) which nodes have a label, in their order
    codes: IndexArray  # (m,) their classes
    confidence: FloatArray  # (m,) the share of its own class, NaN unreached
    suggested: IndexArray  # (m,) the heaviest class, of equals its own; -1 unreached
    facts: dict[str, Any]  # counts, and how it was done; plain JSON values


@dataclass(frozen=True)
class Propagated:
    """The label of every node, and how sure it is."""

    codes: NDArray[np.int64]  # (n,) class numbers, -1 where no label reaches a node
    confidence: FloatArray  # (n,) the winner's share: 1 where given, NaN unreached
    weights: FloatArray  # (n, classes) harmonic functions; NaN unreached
    given: NDArray[np.bool_]  # (n,) which labels were there before
    facts: dict[str, Any]  # counts, and how it was solved; plain JSON values
    checked: Checked | None = None  # the labels that were there, where that was asked

    @property
    def unreached(self) -> NDArray[np.bool_]:
        """Which nodes are in a component without any label."""
        return self.codes < 0


class Propagator:
    """An undirected graph that labels are propagated on, perhaps many times."""

    def __init__(self, graph: Graph, name: str = "graph") -> None:
        lap.check_undirected(graph, name)
        self.scaled, self.root = lap.scaled(graph.adjacency)
        _, self.component = connected_components(self.scaled, directed=False)

    def __call__(
        self,
        codes: IndexArray,
        classes: int,
        *,
        laplacian: str = "combinatorial",
        solver: str = "auto",
    ) -> Propagated:
        """Solve L_uu Y_u = -L_ul Y_l for the nodes u without a label.

        ``codes`` are class numbers, -1 where a node has no label.
        """
        lap.check_choice(laplacian, LAPLACIANS)
        lap.check_solver(solver, SOLVERS)
        codes = np.asarray(codes, np.int64)
        given = codes >= 0
        if not given.any():
            raise InputError("no node has a label: there is nothing to propagate")
        reached = np.isin(self.component, self.component[given])
        asked, labelled = np.flatnonzero(reached & ~given), np.flatnonzero(given)
        weights = np.full((len(codes), classes), np.nan)
        weights[labelled] = np.eye(classes)[codes[labelled]]
        root = self.root[asked]
        plain = laplacian == "combinatorial"
        values = weights[labelled]
        if plain:
            values = values * self.root[labelled, np.newaxis]
        solved = self.solved(asked, labelled, values, solver)
        found = solved.y / root[:, np.newaxis] if plain else solved.y
        weights[asked] = np.maximum(found, 0.0)
        apart = np.unique(self.component[~reached])
        facts = {
            "nodes": len(codes),
            "labelled": len(labelled),
            "predicted": len(asked),
            "unreached": int((~reached).sum()),
            "unreached_components": len(apart),
            "laplacian": laplacian,
            "factored_nodes": solved.factored,
            "cg_nodes": len(asked) - solved.factored,
            "cg_steps": solved.steps,
            "error_bound": solved.error if np.isfinite(solved.error) else None,
        }
        return _decided(weights, given, reached, facts)

    def solved(
        self, asked: IndexArray, labelled: IndexArray, values: FloatArray, solver: str
    ) -> Solved:
        """Solve for the nodes asked for, in units of the root of the degree."""
        s = block(self.scaled, asked, asked)
        towards: Any = block(self.scaled, asked, labelled)
        return solve(s, towards @ values, self.root[asked], solver)

    def check(
        self,
        codes: IndexArray,
        found: Propagated,
        *,
        laplacian: str = "combinatorial",
        solver: str = "auto",
        seed: int = 0,
        progress: Stages | None = None,
    ) -> Checked:
        """Leave out every label in turn, and say what its node would have.

        `found` is what propagation found with all of them. That is exact where it costs
        no more than a factorization or than folds; else a tenth of the labels of each
        class, drawn by the seed, is left out at a time.
        """
        how: dict[str, Any] = {"laplacian": laplacian, "solver": solver}
        progress = progress or Stages()
        returned = self._returned(found, solver, progress)
        if returned is None:
            weights = self._by_folds(codes, found, how, seed, progress)
        else:
            weights = self._without(codes, found, returned, how)
        return _checked(
            codes[found.given],
            np.flatnonzero(found.given),
            weights,
            {
                "how": "folds" if returned is None else "exact",
                "folds": _FOLDS if returned is None else None,
            },
        )

    def _returned(
        self, found: Propagated, solver: str, progress: Stages
    ) -> FloatArray | None:
        """Return how much of a label's flow comes back to its node; None if too much.

        For a label i with edges s_i to nodes u without one, that is
        s_i' (I - S_uu)^-1 s_i. Labels at different pieces of u share a right side.
        """
        labelled = np.flatnonzero(found.given)
        asked = np.flatnonzero(~found.given & ~found.unreached)
        total = np.zeros(len(labelled))
        towards = block(self.scaled, asked, labelled).tocoo()
        if not towards.nnz:
            return total
        s, (u, label) = block(self.scaled, asked, asked), towards.coords
        _, piece = connected_components(s, directed=False)
        pairs, of = np.unique(piece[u] * len(labelled) + label, return_inverse=True)
        at = pairs // len(labelled)
        column = (np.arange(len(at)) - np.searchsorted(at, at))[of]
        direct, stepped = _divided(s, solver)
        parts: list[tuple[IndexArray, Any]] = []
        if len(direct):
            inner = block(s, direct, direct)
            try:
                lu = lap.factor(inner)
            except RuntimeError:  # some nodes hang on the labels by less than rounding
                return None
            sides = 1 + int(column[np.isin(u, direct)].max(initial=-1))
            if sides * int(lu.nnz) > _MOST_WORK:
                return None
            parts.append((direct, lambda b: _refactored(inner, lu, b)))
        most = _FOLDS * found.weights.shape[1]
        for nodes in stepped:
            inner, root = block(s, nodes, nodes), self.root[asked[nodes]]
            most -= 1 + int(column[np.isin(u, nodes)].max(initial=-1))
            if most < 0:
                return None
            near = lap.multigrid(inner, root) if _is_coarsened(nodes, solver) else None
            parts.append((nodes, partial(_stepped, inner, root=root, near=near)))
        for nodes, solve_for in parts:
            place = np.full(len(asked), -1)
            place[nodes] = np.arange(len(nodes))
            there = place[u] >= 0
            row, to, weight, number = (
                one[there] for one in (place[u], label, towards.data, column)
            )
            count = int(number.max(initial=-1)) + 1
            with progress("check", count, "columns") as on_columns:
                for start in range(0, count, _COLUMNS):
                    some = (number >= start) & (number < start + _COLUMNS)
                    cell = row[some], number[some] - start
                    b = np.zeros((len(nodes), min(_COLUMNS, count - start)))
                    b[cell] = weight[some]
                    flow = weight[some] * solve_for(b)[cell]
                    total += np.bincount(to[some], flow, len(labelled))
                    on_columns(b.shape[1])
        return total

    def _without(
        self,
        codes: IndexArray,
        found: Propagated,
        returned: FloatArray,
        how: dict[str, Any],
    ) -> FloatArray:
        """Return the weights of the classes at every label, but for its own flow.

        Taking a label away adds a row to the equations; eliminating all others, what is
        left of it is (S y)_i less what came back from itself.
        """
        labelled = np.flatnonzero(found.given)
        plain = how["laplacian"] == "combinatorial"
        y = np.nan_to_num(found.weights)
        y = y * self.root[:, np.newaxis] if plain else y
        near: Any = block(self.scaled, labelled, np.arange(len(codes)))
        weights: FloatArray = near @ y
        rows, own = np.arange(len(labelled)), codes[labelled]
        weights[rows, own] -= returned * y[labelled, own]
        # What is left is nothing but rounding where nearly all came back.
        for i in np.flatnonzero((1.0 - returned < _LEFT) & (near.sum(axis=1) > 0)):
            alone = codes.copy()
            alone[labelled[i]] = -1
            weights[i] = self._weights_at(alone, y.shape[1], labelled[i : i + 1], how)
        weights = np.maximum(weights, 0.0)
        others = np.bincount(self.component[labelled])[self.component[labelled]] > 1
        weights[~others] = np.nan
        return weights

    def _by_folds(
        self,
        codes: IndexArray,
        found: Propagated,
        how: dict[str, Any],
        seed: int,
        progress: Stages,
    ) -> FloatArray:
        """Return the same where all labels of a fold are left out together."""
        labelled = np.flatnonzero(found.given)
        fold = folds_of(codes[labelled], _FOLDS, seed)
        weights = np.full((len(labelled), found.weights.shape[1]), np.nan)
        with progress("check", _FOLDS, "folds") as on_folds:
            for one in range(_FOLDS):
                out = labelled[fold == one]
                rest = codes.copy()
                rest[out] = -1
                if len(out) and (rest >= 0).any():
                    at = self._weights_at(rest, weights.shape[1], out, how)
                    weights[fold == one] = at
                on_folds(1)
        return weights

    def _weights_at(
        self, codes: IndexArray, classes: int, nodes: IndexArray, how: dict[str, Any]
    ) -> FloatArray:
        if not (codes >= 0).any():
            return np.full((len(nodes), classes), np.nan)
        weights: FloatArray = self(codes, classes, **how).weights[nodes]
        return weights


_FOLDS = 10
_MOST_WORK = 2e10  # products with entries of a factor: about a minute
_LEFT = 1e-9


def _refactored(s: csr_array, lu: Any, b: FloatArray) -> Any:
    """Solve with a factorization, and once more for what rounding has left."""
    y = lu.solve(b)
    return y + lu.solve(residual(s, b, y))


def _stepped(s: csr_array, b: FloatArray, root: FloatArray, near: Any) -> FloatArray:
    return _descended(s, b, root, near)[0]


def _checked(
    codes: IndexArray, nodes: IndexArray, weights: FloatArray, facts: dict[str, Any]
) -> Checked:
    """Compare the weights of the classes at every label with the class that it has."""
    reached = np.nan_to_num(weights).any(axis=1)
    own = weights[np.arange(len(codes)), codes]
    best = np.where(reached, weights.max(axis=1), 1.0)
    confidence = np.full(len(codes), np.nan)
    np.divide(own, weights.sum(axis=1), out=confidence, where=reached)
    first = np.nan_to_num(weights).argmax(axis=1)
    suggested = np.where(own >= best * (1.0 - _TIE), codes, first)
    suggested[~reached] = -1
    facts = {
        "labels": len(codes),
        "others": int((reached & (suggested != codes)).sum()),
        "unreached": int((~reached).sum()),
        **facts,
    }
    return Checked(nodes, codes, confidence, suggested, facts)


def propagate(
    graph: Graph,
    labels: Labels,
    *,
    laplacian: str = "combinatorial",
    solver: str = "auto",
    check: bool = False,
    seed: int = 0,
    name: str = "graph",
    progress: Stages | None = None,
) -> Propagated:
    """Give every node that labels reach the class with the largest weight.

    Labels are brought into the order of the nodes by their ids, where both have ids.
    A ``Propagator`` is for many labelings of one graph.

    Parameters
    ----------
    laplacian : str
        ``combinatorial`` for D - W, ``normalized`` for I - D^-1/2 W D^-1/2.
    solver : str
        ``factor``, ``cg`` (conjugate gradients), or ``auto``: by the graph. ``amg``
        (multigrid, the extra ``amg``) is faster than ``cg`` for large graphs of few
        dimensions.
    check : bool
        Also say, as ``checked``, what every node with a label would have without it.
        See ``Propagator.check``, which `seed` is for.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x, k=10)
    >>> labels = np.where(x[:, 0] > 0, "right", "left")
    >>> labels[10:] = ""  # only ten are known
    >>> found = nnkgraph.propagate(graph, nnkgraph.Labels.of(labels))
    >>> found.facts["labelled"], found.facts["predicted"]
    (10, 90)
    """
    progress = progress or Stages()
    labels = labels.for_rows(graph.n_nodes, graph.ids, name)
    if not labels.known.any():
        raise InputError(
            f"{labels.name}: all {len(labels.codes)} labels are missing: at least one "
            "is needed"
        )
    with progress("solve"):
        ready = Propagator(graph, name)
        how: Any = {"laplacian": laplacian, "solver": solver}
        found = ready(labels.codes, len(labels.classes), **how)
    if not check:
        return found
    own = ready.check(labels.codes, found, seed=seed, progress=progress, **how)
    return replace(found, checked=own)


def sample(codes: IndexArray, share: float, seed: int) -> NDArray[np.int64]:
    """Keep a share of the labels, drawn at random, and at least one of every class."""
    if not 0 < share < 1:
        raise ParameterError(f"the share of labels is {share}, not between 0 and 1")
    draw = np.random.default_rng(seed)
    kept = np.full(len(codes), -1)
    for one in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == one)
        count = max(1, round(share * len(members)))
        chosen = draw.choice(members, count, replace=False)
        kept[chosen] = one
    return kept


def errors(
    found: Propagated, truth: IndexArray, known: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """Count right, wrong and unreached among nodes that had no label.

    The truth is -1 for a class that no label has, which is never right.
    """
    checked = known & ~found.given
    count = int(checked.sum())
    if not count:
        return None
    right = int((checked & (found.codes == truth) & ~found.unreached).sum())
    unreached = int((checked & found.unreached).sum())
    wrong = count - right - unreached
    return {
        "checked": count,
        "right": right,
        "wrong": wrong,
        "unreached": unreached,
        "of_reached": wrong / (right + wrong) if right + wrong else None,
        "of_all": (wrong + unreached) / count,
    }


def _decided(
    weights: FloatArray,
    given: NDArray[np.bool_],
    reached: NDArray[np.bool_],
    facts: dict[str, Any],
) -> Propagated:
    """Find the winners; of equal ones the first."""
    codes = np.full(len(weights), -1)
    confidence = np.full(len(weights), np.nan)
    some = weights[reached]
    if not np.isfinite(some).all():
        raise InputError("the graph's weights are too far apart to be solved with")
    codes[reached] = some.argmax(axis=1)
    total = some.sum(axis=1)
    confidence[reached] = some.max(axis=1) / np.where(total > 0, total, 1.0)
    return Propagated(codes, confidence, weights, given, facts)
