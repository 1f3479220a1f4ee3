"""Vector instructions on rows of the workspace.

A compiler does not know that two rows do not overlap, nor that they have no remainder,
and guards every loop against both; problems are so small that the guards would cost
more than the work. So these few loops are written in the compiler's own language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types

from nnkgraph.qp import _workspace as ws

if TYPE_CHECKING:
    from collections.abc import Callable

_DOUBLE = ir.DoubleType()
_INT = ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, ws.WIDTH)
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
            ir.Constant(ir.VectorType(number.type, ws.WIDTH), ir.Undefined),
            number,
            ir.Constant(_SHORT, 0),
        )
        mask = ir.Constant(ir.VectorType(_SHORT, ws.WIDTH), [0] * ws.WIDTH)
        return self.builder.shuffle_vector(single, single, mask)

    def constant(self, number: float) -> Any:
        """Return a vector of one constant."""
        return ir.Constant(_VECTOR, [number] * ws.WIDTH)

    def columns(self, start: Any) -> Any:
        """Return the vector of column numbers from a start."""
        steps = ir.Constant(ir.VectorType(_INT, ws.WIDTH), list(range(ws.WIDTH)))
        return self.builder.add(self.spread(start), steps)

    def vectors(self, stop: Any) -> Any:
        """Loop over the columns up to a stop, a vector at a time."""
        step = self.number(ws.WIDTH)
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
