"""What the vector instructions compute, in plain Python.

Intrinsics are written in the compiler's own language and cannot be called without it.
These functions stand in for them where it is switched off (``uncompiled.py``), and
``test_plain.py`` holds the instructions against them. Names are the intrinsics'.
"""

import math

import numpy as np

from nnkgraph.data import similarity as exp
from nnkgraph.data.sums import LANES
from nnkgraph.methods.qp import _factor as ws
from nnkgraph.search._reservoir import WIDTH


def borrowed(array):
    return array


_SERIES = [1 / math.factorial(i) for i in range(14)]


def exponential(y):
    if y < exp._LOWEST:
        return 0.0
    power = (y * exp._PER_LOG2 + exp._ROUNDER) - exp._ROUNDER
    r = y - power * exp._LOG2_HIGH
    r = r - power * exp._LOG2_LOW
    r2, r4 = r * r, r * r * (r * r)
    pairs = [_SERIES[i] + _SERIES[i + 1] * r for i in range(0, 14, 2)]
    low, middle = pairs[0] + pairs[1] * r2, pairs[2] + pairs[3] * r2
    high = (pairs[4] + pairs[5] * r2) + pairs[6] * r4
    return ((low + middle * r4) + high * (r4 * r4)) * 2.0**power


def _groups(values, row, stop, factor):
    for i in range(stop):
        values[row, i] = exponential(factor * values[row, i])


def _row_sum(terms):
    """Add terms in lanes, the lanes pairwise, then what is left over."""
    whole = len(terms) // LANES * LANES
    lanes = np.zeros(LANES)
    for start in range(0, whole, LANES):
        lanes = lanes + terms[start : start + LANES]
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    total = lanes[0]
    for term in terms[whole:]:
        total = total + term
    return total


def _rows(a, i, b, j):
    return a[i].astype(np.float64), b[j].astype(np.float64)


def squared_distance(a, i, b, j):
    x, y = _rows(a, i, b, j)
    return _row_sum((x - y) * (x - y))


def inner_product(a, i, b, j):
    x, y = _rows(a, i, b, j)
    return _row_sum(x * y)


def l1_distance(a, i, b, j):
    x, y = _rows(a, i, b, j)
    return _row_sum(abs(x - y))


def below(row, start, add, limit):
    def read(value):
        if isinstance(value, np.ndarray):
            return value[start : start + WIDTH]
        return row.dtype.type(value)

    smaller = read(row) + read(add) < read(limit)
    return sum(1 << at for at in np.flatnonzero(smaller).tolist())


def lowest_bit(mask):
    return (int(mask) & -int(mask)).bit_length() - 1


def most_wanted(w, tolerance):
    score = np.nan_to_num(w[ws.R] * w[ws.GATE], nan=-np.inf)
    return int(score.argmax()) if score.max() > tolerance else -1


def largest_residual(w):
    return np.nan_to_num(w[ws.R] * w[ws.UNIT], nan=-np.inf).max()


def exact_residual(w, n, p):
    r = w[ws.B].copy()
    for i in range(p):
        r -= w[ws.THETA, i] * w[ws.K + n[ws.CHOSEN, i]]
    w[ws.R] = r


def narrow_values(w, row, d, base):
    value = np.zeros(w.shape[1])
    for t in range(d):
        point, own = w[ws.POINT, t], w[ws.FEATURES + t]
        value += point * own if base == 1 else (point - own) * (point - own)
    w[row] = value


def extend(w, L, p, j, inverse, z):
    value = w[ws.K + j].copy()
    for i in range(L, L + p):
        value -= w[i, j] * w[i]
    value *= inverse
    w[L + p] = value
    w[ws.R] -= value * z
    w[ws.REST] -= value * value
    w[ws.GATE, j] *= 0.0


def stretch(w, L, p, j, inverse, z):
    V = L + w.shape[1]
    for start, stop in _vectors(p + 1):
        value = (np.arange(start, stop) == p).astype(np.float64)
        for i in range(start, p):
            value -= w[L + i, j] * w[V + i, start:stop]
        value *= inverse
        w[V + p, start:stop] = value
        w[ws.TARGET, start:stop] += value * z
    return _lowest(w[ws.TARGET, : p + 1])


def combine(w, row, p, V):
    for start, stop in _vectors(p):
        value = np.zeros(ws.WIDTH)
        for i in range(start, p):
            value += w[row, i] * w[V + i, start:stop]
        w[ws.TARGET, start:stop] = value
    return _lowest(w[ws.TARGET, :p])


def rotate(w, row, stop, cosine, sine):
    whole = slice(0, -(-stop // ws.WIDTH) * ws.WIDTH)
    a, b = w[row, whole].copy(), w[row + 1, whole].copy()
    w[row, whole] = cosine * a + sine * b
    w[row + 1, whole] = cosine * b - sine * a


def release(w, row, z):
    w[ws.R] += w[row] * z
    w[ws.REST] += w[row] * w[row]


def copy_row(w, source, row, stop):
    for start, end in _vectors(stop):
        w[row, start:end] = w[source, start:end]


def _vectors(stop):
    """The vectors that hold the columns up to a stop."""
    return [(at, at + ws.WIDTH) for at in range(0, stop, ws.WIDTH)]


def _lowest(values):
    return np.nan_to_num(values, nan=np.inf).min(initial=np.inf)
