"""What the vector instructions of the exact search compute, in plain Python.

Intrinsics are written in the compiler's own language and cannot be called without it.
These stand in for them where it is switched off (``uncompiled.py``).
"""

import numpy as np

from nnkgraph.search._reservoir import WIDTH


def below(row, start, add, limit):
    def read(value):
        if isinstance(value, np.ndarray):
            return value[start : start + WIDTH]
        return row.dtype.type(value)

    smaller = read(row) + read(add) < read(limit)
    return sum(1 << at for at in np.flatnonzero(smaller).tolist())


def lowest_bit(mask):
    return (int(mask) & -int(mask)).bit_length() - 1
