"""Vector instructions on the factor L and on V, the rows after K in the workspace.

``L`` and ``V`` are the numbers of their first rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.jit import cgutils, intrinsic, ir, types

if TYPE_CHECKING:
    from collections.abc import Callable


WIDTH = 8
"""Numbers that are worked on at once."""

# Rows with one number per atom.
B = 0  # the vector b
R = 1  # the residual b - K theta
REST = 2  # what is left of the diagonal when the chosen atoms have explained theirs
DIAGONAL = 3
UNIT = 4  # 1 / sqrt(diagonal), what residuals are compared in
GATE = 5  # the same, but zero for atoms that are chosen or blocked
# Rows with one number per chosen atom, in the order they were chosen.
Z = 6  # solution of L z = b
TARGET = 7  # the best theta of the chosen atoms, of any sign
THETA = 8  # theta itself, never negative
SPARE = 9
# Other rows.
PROOF = 10  # the problem's scale, its certificate, and whether all is finite
SCALE, CERTIFICATE, FINITE = 0, 1, 2
POINT = 11  # the features of a point, where there are few
FEATURES = 12  # one row per feature, where there are few
K = FEATURES + 16  # from here on the rows of K, as far as they are known

# Rows of the integers.
ATOMS = 0  # which row of the features an atom is
PLACE = 1  # and which candidate
CHOSEN = 2  # the chosen atoms
ORDER = 3  # all atoms, first those whose rows of K are known
SPOT = 4  # where an atom is in that order
COUNT = 5  # how many atoms are chosen, and other numbers:
BLOCKED = 1  # atoms that are not to be chosen before something changes
KNOWN = 2  # rows of K that are known
STEPS = 3  # atoms that were added so far
FINISHES = 4  # times that nothing seemed to be left to do
DELICATE = 5  # 1 where the factor is too ill-conditioned for its inverse V


def new_workspace(m: int) -> tuple[Any, Any]:
    """Return the memory for problems of up to m atoms.

    After K come the rows of L, one per chosen atom, each a column of the Cholesky
    factor over *all* atoms, and those of V, the columns of its inverse transposed.
    """
    width = max(2, -(-m // WIDTH)) * WIDTH  # POINT has up to fifteen features
    rows = K + 3 * width
    memory = np.zeros(rows * width + WIDTH)
    start = -memory.ctypes.data % (8 * WIDTH) // 8
    numbers = memory[start : start + rows * width].reshape(rows, width)
    return numbers, np.zeros((6, width), np.int64)


_DOUBLE = ir.DoubleType()
_INT = ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_SHORT = ir.IntType(32)


class Rows:
    """Writes instructions for the rows of a workspace."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        array = context.make_array(kind)(context, builder, value)
        self._data = array.data
        self.width = cgutils.unpack_tuple(builder, array.shape)[1]

    def number(self, value: int) -> Any:
        """Return an integer constant."""
        return ir.Constant(_INT, value)

    def _pointer(self, row: Any, column: Any) -> Any:
        row = self.number(row) if isinstance(row, int) else row
        start = self.builder.mul(row, self.width)
        return self.builder.gep(self._data, [self.builder.add(start, column)])

    def load(self, row: Any, column: Any) -> Any:
        """Load a vector of a row."""
        pointer = self.builder.bitcast(self._pointer(row, column), _VECTOR.as_pointer())
        loaded = self.builder.load(pointer)
        loaded.align = 8
        return loaded

    def store(self, vector: Any, row: Any, column: Any) -> None:
        """Store a vector into a row."""
        pointer = self.builder.bitcast(self._pointer(row, column), _VECTOR.as_pointer())
        self.builder.store(vector, pointer).align = 8

    def one(self, row: Any, column: Any) -> Any:
        """Load one number."""
        return self.builder.load(self._pointer(row, column))

    def spread(self, number: Any) -> Any:
        """Return a vector of one number."""
        single = self.builder.insert_element(
            ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined),
            number,
            ir.Constant(_SHORT, 0),
        )
        mask = ir.Constant(ir.VectorType(_SHORT, WIDTH), [0] * WIDTH)
        return self.builder.shuffle_vector(single, single, mask)

    def constant(self, number: float) -> Any:
        """Return a vector of one constant."""
        return ir.Constant(_VECTOR, [number] * WIDTH)

    def columns(self, start: Any) -> Any:
        """Return the vector of column numbers from a start."""
        steps = ir.Constant(ir.VectorType(_INT, WIDTH), list(range(WIDTH)))
        return self.builder.add(self.spread(start), steps)

    def vectors(self, stop: Any) -> Any:
        """Loop over the columns up to a stop, a vector at a time."""
        step = self.number(WIDTH)
        return cgutils.for_range_slice(
            self.builder, self.number(0), stop, step, intp=_INT
        )

    def subtract(self, start: Any, stop: Any, term: Any, value: Any) -> Any:
        """Return a vector minus ``term(i)`` for all i from start to stop."""
        place = cgutils.alloca_once_value(self.builder, value)
        with cgutils.for_range_slice(
            self.builder, start, stop, self.number(1), intp=_INT
        ) as (i, _):
            before = self.builder.load(place)
            self.builder.store(self.builder.fsub(before, term(i)), place)
        return self.builder.load(place)

    def keep_lowest(self, vector: Any, start: Any, last: Any, place: Any) -> None:
        """Lower a stored vector to another one, in columns up to the last."""
        builder, old = self.builder, self.builder.load(place)
        inside = builder.icmp_signed("<=", self.columns(start), self.spread(last))
        lower = builder.and_(inside, builder.fcmp_ordered("<", vector, old))
        builder.store(builder.select(lower, vector, old), place)

    def _halves(self, vector: Any) -> tuple[Any, Any]:
        width = vector.type.count // 2
        kind = ir.VectorType(_SHORT, width)
        low = ir.Constant(kind, list(range(width)))
        high = ir.Constant(kind, list(range(width, 2 * width)))
        return (
            self.builder.shuffle_vector(vector, vector, low),
            self.builder.shuffle_vector(vector, vector, high),
        )

    def lowest(self, vector: Any) -> Any:
        """Return the smallest number of a vector."""
        while vector.type.count > 1:
            a, b = self._halves(vector)
            smaller = self.builder.fcmp_ordered("<", b, a)
            vector = self.builder.select(smaller, b, a)
        return self.builder.extract_element(vector, ir.Constant(_SHORT, 0))

    def place_of_highest(self, vector: Any, places: Any) -> Any:
        """Return the place of the largest number; the lowest place of equal ones."""
        builder = self.builder
        while vector.type.count > 1:
            (a, b), (i, j) = self._halves(vector), self._halves(places)
            equal = builder.fcmp_ordered("==", b, a)
            before = builder.and_(equal, builder.icmp_signed("<", j, i))
            better = builder.or_(builder.fcmp_ordered(">", b, a), before)
            vector = builder.select(better, b, a)
            places = builder.select(better, j, i)
        return builder.extract_element(places, ir.Constant(_SHORT, 0))


def instructions(
    write: Callable[..., Any], w: Any, integers: int, floats: int, returns: Any
) -> Any:
    """Return what an intrinsic returns: its signature and what writes its code."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        result = write(Rows(context, builder, signature.args[0], args[0]), *args[1:])
        return context.get_dummy_value() if result is None else result

    kinds = [types.int64] * integers + [types.float64] * floats
    return returns(w, *kinds), codegen


_INFINITY = float("inf")


@intrinsic  # type: ignore[untyped-decorator]
def extend(
    typingctx: Any,
    w: Any,
    L: Any,
    p: Any,
    j: Any,
    inverse: Any,
    z: Any,
) -> Any:
    """Make row p of L from row j of K, and bring R, REST and GATE up to date.

    ``L[p] = inverse * (K[j] - sum of L[i, j] L[i])``, over the i below p.
    """

    def write(rows: Rows, L: Any, p: Any, j: Any, inverse: Any, z: Any) -> None:
        builder = rows.builder
        row = builder.add(rows.number(K), j)
        last = builder.add(L, p)
        with rows.vectors(rows.width) as (at, _):
            value = rows.subtract(
                L,
                last,
                lambda i: builder.fmul(rows.spread(rows.one(i, j)), rows.load(i, at)),
                rows.load(row, at),
            )
            value = builder.fmul(value, rows.spread(inverse))
            rows.store(value, last, at)
            explained = builder.fmul(value, rows.spread(z))
            rows.store(builder.fsub(rows.load(R, at), explained), R, at)
            rest = builder.fsub(rows.load(REST, at), builder.fmul(value, value))
            rows.store(rest, REST, at)
            own = builder.icmp_signed("==", rows.columns(at), rows.spread(j))
            # A product, because a choice becomes a masked store, which is slow.
            keep = builder.select(own, rows.constant(0.0), rows.constant(1.0))
            rows.store(builder.fmul(rows.load(GATE, at), keep), GATE, at)

    return instructions(write, w, 3, 2, types.void)


@intrinsic  # type: ignore[untyped-decorator]
def stretch(
    typingctx: Any,
    w: Any,
    L: Any,
    p: Any,
    j: Any,
    inverse: Any,
    z: Any,
) -> Any:
    """Make row p of V, add z times it to TARGET, and return the smallest of that.

    ``V[p] = inverse * (e_p - sum of L[i, j] V[i])``, over the i below p.
    """

    def write(rows: Rows, L: Any, p: Any, j: Any, inverse: Any, z: Any) -> Any:
        builder = rows.builder
        V = builder.add(L, rows.width)
        best = cgutils.alloca_once_value(builder, rows.constant(_INFINITY))
        with rows.vectors(builder.add(p, rows.number(1))) as (at, _):
            own = builder.icmp_signed("==", rows.columns(at), rows.spread(p))
            value = rows.subtract(
                at,  # rows of V above this have only zeros here
                p,
                lambda i: builder.fmul(
                    rows.spread(rows.one(builder.add(L, i), j)),
                    rows.load(builder.add(V, i), at),
                ),
                builder.select(own, rows.constant(1.0), rows.constant(0.0)),
            )
            value = builder.fmul(value, rows.spread(inverse))
            rows.store(value, builder.add(V, p), at)
            target = builder.fadd(
                rows.load(TARGET, at), builder.fmul(value, rows.spread(z))
            )
            rows.store(target, TARGET, at)
            rows.keep_lowest(target, at, p, best)
        return rows.lowest(builder.load(best))

    return instructions(write, w, 3, 2, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def combine(typingctx: Any, w: Any, row: Any, p: Any, V: Any) -> Any:
    """Set TARGET to the sum of ``w[row, i] V[i]`` below p; return its smallest."""

    def write(rows: Rows, row: Any, p: Any, V: Any) -> Any:
        builder = rows.builder
        best = cgutils.alloca_once_value(builder, rows.constant(_INFINITY))
        last = builder.sub(p, rows.number(1))
        with rows.vectors(p) as (at, _):
            value = rows.subtract(
                at,
                p,
                lambda i: builder.fmul(
                    rows.spread(builder.fneg(rows.one(row, i))),
                    rows.load(builder.add(V, i), at),
                ),
                rows.constant(0.0),
            )
            rows.store(value, TARGET, at)
            rows.keep_lowest(value, at, last, best)
        return rows.lowest(builder.load(best))

    return instructions(write, w, 3, 0, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def rotate(
    typingctx: Any,
    w: Any,
    row: Any,
    stop: Any,
    cosine: Any,
    sine: Any,
) -> Any:
    """Rotate a row and the next one, up to a column."""

    def write(rows: Rows, row: Any, stop: Any, cosine: Any, sine: Any) -> None:
        builder = rows.builder
        below = builder.add(row, rows.number(1))
        cosine, sine = rows.spread(cosine), rows.spread(sine)
        with rows.vectors(stop) as (at, _):
            a, b = rows.load(row, at), rows.load(below, at)
            first = builder.fadd(builder.fmul(cosine, a), builder.fmul(sine, b))
            second = builder.fsub(builder.fmul(cosine, b), builder.fmul(sine, a))
            rows.store(first, row, at)
            rows.store(second, below, at)

    return instructions(write, w, 2, 2, types.void)


@intrinsic  # type: ignore[untyped-decorator]
def release(typingctx: Any, w: Any, row: Any, z: Any) -> Any:
    """Give back to R and REST what a row of L has explained."""

    def write(rows: Rows, row: Any, z: Any) -> None:
        builder = rows.builder
        with rows.vectors(rows.width) as (at, _):
            value = rows.load(row, at)
            given = builder.fmul(value, rows.spread(z))
            rows.store(builder.fadd(rows.load(R, at), given), R, at)
            rest = builder.fadd(rows.load(REST, at), builder.fmul(value, value))
            rows.store(rest, REST, at)

    return instructions(write, w, 1, 1, types.void)


@intrinsic  # type: ignore[untyped-decorator]
def copy_row(typingctx: Any, w: Any, source: Any, row: Any, stop: Any) -> Any:
    """Copy a row up to a column."""

    def write(rows: Rows, source: Any, row: Any, stop: Any) -> None:
        with rows.vectors(stop) as (at, _):
            rows.store(rows.load(source, at), row, at)

    return instructions(write, w, 3, 0, types.void)
