"""The exponential function, vectorized and the same on every machine.

Library versions differ in their last digits from one version and processor to the
next, and cost several times as much where they are called value by value. This one is
a sequence of plain additions and multiplications, which a compiler turns into vector
instructions without changing a bit. It is within two units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from nnkgraph.compiled import inlined

_LOWEST = -708.0
"""Below this the result would be less than 3e-308: it is zero."""

# Adding and taking away this number rounds to an integer, which it leaves in its
# lowest bits.
_ROUNDER = 1.5 * 2.0**52
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1 / math.factorial(i) for i in range(2, 14)
)


@intrinsic  # type: ignore[untyped-decorator]
def _as_bits(typingctx: Any, value: Any) -> Any:  # noqa: ARG001
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _as_float(typingctx: Any, value: Any) -> Any:  # noqa: ARG001
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@inlined
def exponential(y: Any) -> Any:
    """Return exp(y) for y <= 0, and exactly 1 for 0."""
    tiny = y < _LOWEST
    y = max(y, _LOWEST)
    shifted = y * _PER_LOG2 + _ROUNDER
    power = shifted - _ROUNDER
    r = (y - power * _LOG2_HIGH) - power * _LOG2_LOW
    # Taylor's series up to the 13th power, in an order that keeps a processor busy.
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + (_C2 + _C3 * r) * r2
    middle = (_C4 + _C5 * r) + (_C6 + _C7 * r) * r2
    high = (_C8 + _C9 * r) + (_C10 + _C11 * r) * r2 + (_C12 + _C13 * r) * r4
    series = (low + middle * r4) + high * (r4 * r4)
    exponent = _as_bits(shifted) - _as_bits(_ROUNDER) + 1023
    return 0.0 if tiny else series * _as_float(exponent << 52)
