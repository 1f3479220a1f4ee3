"""From a pair's value to its similarity: the few forms that kernels have.

The exponential function is one of our own, the same on every machine: libraries differ
in their last digits from one version and processor to the next.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from nnkgraph.runtime.jit import compiled, inner

_LOWEST = -708.0
"""Below this the result would be less than 3e-308: it is zero."""

# Adding and taking away this number rounds to an integer, which it leaves in its
# lowest bits.
_ROUNDER = 1.5 * 2.0**52
_PER_LOG2 = 1.4426950408889634
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10

# Taylor's series up to the 13th power.
_C = tuple(1 / math.factorial(i) for i in range(14))
_EXPONENT = struct.unpack("<q", struct.pack("<d", _ROUNDER))[0] - 1023


@inner
def exponential(y: float) -> float:
    """Return exp(y) for y <= 0, and exactly 1 for 0."""
    tiny = y < _LOWEST
    y = _LOWEST if tiny else y
    shifted = y * _PER_LOG2 + _ROUNDER
    power = shifted - _ROUNDER
    r = (y - power * _LOG2_HIGH) - power * _LOG2_LOW
    # In an order that keeps a processor busy.
    r2 = r * r
    r4 = r2 * r2
    low = (_C[0] + _C[1] * r) + (_C[2] + _C[3] * r) * r2
    middle = (_C[4] + _C[5] * r) + (_C[6] + _C[7] * r) * r2
    high = ((_C[8] + _C[9] * r) + (_C[10] + _C[11] * r) * r2) + (
        _C[12] + _C[13] * r
    ) * r4
    series = (low + middle * r4) + high * (r4 * r4)
    bits = (np.float64(shifted).view(np.int64) - _EXPONENT) << np.int64(52)
    return 0.0 if tiny else series * np.int64(bits).view(np.float64)


SMALLEST = 1e-250
"""Where all similarities of a node are below this, they are scaled up for use."""

FORMS = ("affine", "exponential", "power")
"""With the coefficients a and c, and a pair's value v: a v + c, exp(a v), v ** a."""


@inner
def similarity_row(
    form: int, coefficients: Any, i: int, values: Any, row: int, stop: int
) -> None:
    """Turn the values of a row up to a column into similarities, in place.

    Row i of the coefficients is used.
    """
    a, c = coefficients[i, 0], coefficients[i, 1]
    if form == 0:
        for t in range(stop):
            values[row, t] = a * values[row, t] + c
    elif form == 1:
        for t in range(stop):
            values[row, t] = exponential(a * values[row, t])
    else:  # by multiplication: pow may differ from one library to the next
        for t in range(stop):
            value, power, left = values[row, t], 1.0, a
            while left > 0.5:
                power *= value
                left -= 1.0
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
