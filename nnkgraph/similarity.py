"""From a pair's value to its similarity: the few forms that kernels have."""

from __future__ import annotations

from typing import Any

from nnkgraph.compiled import compiled, inlined
from nnkgraph.exponential import exponentials

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
