"""Vector comparisons for the scan: thirty-two values against a limit at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

WIDTH = 32
"""Values that are compared at once: as many as there are bits in a mask."""


@intrinsic  # type: ignore[untyped-decorator]
def below(typingctx: Any, row: Any, start: Any, add: Any, limit: Any) -> Any:
    """Return a mask of ``row[j] + add < limit`` for 32 j from ``start`` on.

    What is added and the limit are either one number or an array that is read at j.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = signature.args[0].dtype == types.float32
        vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), WIDTH)
        lanes = ir.VectorType(ir.IntType(32), WIDTH)

        def read(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                address = builder.gep(array.data, [args[1]])
                loaded = builder.load(builder.bitcast(address, vector.as_pointer()))
                loaded.align = 4 if single else 8
                return loaded
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
            )
            return builder.shuffle_vector(one, one, ir.Constant(lanes, [0] * WIDTH))

        kinds = signature.args
        total = builder.fadd(read(kinds[0], args[0]), read(kinds[2], args[2]))
        smaller = builder.fcmp_ordered("<", total, read(kinds[3], args[3]))
        return builder.bitcast(smaller, ir.IntType(WIDTH))

    return types.uint32(row, types.intp, add, limit), codegen


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typingctx: Any, mask: Any) -> Any:
    """Return the place of the lowest bit that is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), ir.IntType(1)])
        count = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i32")
        place = builder.call(count, [args[0], ir.Constant(ir.IntType(1), 1)])
        return builder.zext(place, ir.IntType(64))

    return types.intp(types.uint32), codegen
