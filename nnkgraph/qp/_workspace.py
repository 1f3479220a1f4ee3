"""The memory that one problem is solved in: rows of numbers, sixty-four bytes apart.

Everything is a row of one array, as wide as the problem and rounded up to whole
vectors; what is beyond the problem's own width is zero. So vector instructions never
need a remainder, and compiled functions are handed two arrays and not twenty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
