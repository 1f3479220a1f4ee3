"""From a pair's value to its similarity: the few forms that kernels have."""

from __future__ import annotations

from typing import Any

from nnkgraph.compiled import compiled
from nnkgraph.exponential import exponential

FORMS = ("affine", "exponential")
"""With the coefficients a and c, and a pair's value v: a v + c, and exp(a v)."""


@compiled
def similarity_row(form: int, coefficients: Any, values: Any) -> None:
    """Turn values into similarities, in place."""
    a, c = coefficients[0], coefficients[1]
    if form == 0:
        for i in range(values.shape[0]):
            values[i] = a * values[i] + c
    else:
        for i in range(values.shape[0]):
            values[i] = exponential(a * values[i])


@compiled
def _similarity_rows(form: int, coefficients: Any, values: Any) -> None:
    for i in range(values.shape[0]):
        similarity_row(form, coefficients[i], values[i])


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
