"""From a pair's value to its similarity: the few forms that kernels have.

The exponential function is one of our own, vectorized and the same on every machine:
libraries differ in their last digits from one version and processor to the next.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from nnkgraph.runtime.jit import cgutils, compiled, inlined, intrinsic, ir, types

_LOWEST = -708.0
"""Below this the result would be less than 3e-308: it is zero."""

# Adding and taking away this number rounds to an integer, which it leaves in its
# lowest bits.
_ROUNDER = 1.5 * 2.0**52
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10

_GROUP = 8
"""Values that are worked on at once."""


def _write(builder: Any, y: Any) -> Any:
    """Write instructions for exp(y) of a number or a vector of numbers."""

    def number(value: float) -> Any:
        return _constant(y.type, value)

    def add(a: Any, b: Any) -> Any:
        return builder.fadd(a, b)

    def times(a: Any, b: Any) -> Any:
        return builder.fmul(a, b)

    whole = _integers(y.type)
    tiny = builder.fcmp_ordered("<", y, number(_LOWEST))
    y = builder.select(tiny, number(_LOWEST), y)
    shifted = add(times(y, number(_PER_LOG2)), number(_ROUNDER))
    power = builder.fsub(shifted, number(_ROUNDER))
    r = builder.fsub(y, times(power, number(_LOG2_HIGH)))
    r = builder.fsub(r, times(power, number(_LOG2_LOW)))
    # Taylor's series up to the 13th power, in an order that keeps a processor busy.
    c = [number(1 / math.factorial(i)) for i in range(14)]
    r2 = times(r, r)
    r4 = times(r2, r2)

    def pair(i: int) -> Any:
        return add(c[i], times(c[i + 1], r))

    low = add(pair(0), times(pair(2), r2))
    middle = add(pair(4), times(pair(6), r2))
    high = add(add(pair(8), times(pair(10), r2)), times(pair(12), r4))
    series = add(add(low, times(middle, r4)), times(high, times(r4, r4)))
    exponent = builder.sub(
        builder.bitcast(shifted, whole),
        _constant(whole, struct.unpack("<q", struct.pack("<d", _ROUNDER))[0] - 1023),
    )
    factor = builder.bitcast(builder.shl(exponent, _constant(whole, 52)), y.type)
    return builder.select(tiny, number(0.0), times(series, factor))


def _constant(kind: Any, value: float) -> Any:
    vector = isinstance(kind, ir.VectorType)
    return ir.Constant(kind, [value] * kind.count if vector else value)


def _integers(kind: Any) -> Any:
    whole = ir.IntType(64)
    vector = isinstance(kind, ir.VectorType)
    return ir.VectorType(whole, kind.count) if vector else whole


@intrinsic  # type: ignore[untyped-decorator]
def exponential(typingctx: Any, y: Any) -> Any:
    """Return exp(y) for y <= 0, and exactly 1 for 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _write(builder, args[0])

    return types.float64(types.float64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _groups(typingctx: Any, values: Any, row: Any, stop: Any, factor: Any) -> Any:
    """Replace values v of a row by exp(factor v), in groups up to a multiple."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        length = cgutils.unpack_tuple(builder, array.shape)[1]
        size, vector = length.type, ir.VectorType(ir.DoubleType(), _GROUP)
        start = builder.gep(array.data, [builder.mul(args[1], length)])
        lane = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[3], lane)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), _GROUP), [0] * _GROUP)
        factors = builder.shuffle_vector(one, one, mask)
        zero, step = ir.Constant(size, 0), ir.Constant(size, _GROUP)
        loop = cgutils.for_range_slice(builder, zero, args[2], step, intp=size)
        with loop as (at, _):
            place = builder.bitcast(builder.gep(start, [at]), vector.as_pointer())
            loaded = builder.load(place)
            loaded.align = 8
            result = _write(builder, builder.fmul(loaded, factors))
            builder.store(result, place).align = 8
        return context.get_dummy_value()

    return types.void(values, types.intp, types.intp, types.float64), codegen


@inlined
def exponentials(values: Any, row: int, stop: int, factor: float) -> None:
    """Replace the values v of a row up to a column by exp(factor v).

    The factor is not above zero. Where the row is long enough, values beyond the
    column are replaced as well, up to the next whole group.
    """
    whole = (stop + _GROUP - 1) // _GROUP * _GROUP
    if whole > values.shape[1]:
        whole -= _GROUP
    _groups(values, row, whole, factor)
    for i in range(whole, stop):
        values[row, i] = exponential(factor * values[row, i])


FORMS = ("affine", "exponential", "power")
"""With the coefficients a and c, and a pair's value v: a v + c, exp(a v), v ** a."""


@inlined
def similarity_row(
    form: int, coefficients: Any, i: int, values: Any, row: int, stop: int
) -> None:
    """Turn the values of a row up to a column into similarities, in place.

    Row i of the coefficients is used. Values a little beyond the column may change.
    """
    a, c = coefficients[i, 0], coefficients[i, 1]
    if form == 0:
        for t in range(stop):
            values[row, t] = a * values[row, t] + c
    elif form == 1:
        exponentials(values, row, stop, a)
    else:  # by multiplication: pow may differ from one library to the next
        for t in range(stop):
            value, power = values[row, t], 1.0
            for _ in range(int(a)):
                power *= value
            values[row, t] = power


@compiled
def _similarity_rows(form: int, coefficients: Any, values: Any) -> None:
    for i in range(values.shape[0]):
        similarity_row(form, coefficients, i, values, i, values.shape[1])


def similarities(form: str, coefficients: Any, values: Any) -> Any:
    """Turn the values of a block of nodes into similarities.

    Parameters
    ----------
    form : str
        A name of ``FORMS``.
    coefficients : (b, 2) array
        One pair of coefficients for every node.
    values : (b, p) array of float64
        Overwritten with the similarities, and returned.
    """
    _similarity_rows(FORMS.index(form), coefficients, values)
    return values
