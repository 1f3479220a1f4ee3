"""Rounding to significant decimal digits, so that machines agree on every bit."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.blockwise import row_slices
from nnkgraph.bounded import new_array
from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray, Graph

MOST_DIGITS = 15

# As they are read: pow may differ from one library to another.
_POWERS = np.array([float(f"1e{power}") for power in range(-308, 309)])


_SMALLEST = 1e-280
"""Below this a number is too near to where digits are lost to be rounded."""


def check_digits(digits: int) -> None:
    """Refuse more digits than numbers have."""
    if not 0 <= digits <= MOST_DIGITS:
        raise ParameterError(f"digits must be from 1 to {MOST_DIGITS}, not {digits}")


def rounded_graph(graph: Graph, digits: int) -> Graph:
    """Return the graph with rounded weights and errors."""
    if not digits:
        return graph
    adjacency = copy.copy(graph.adjacency)  # the columns stay as they are
    data = new_array(adjacency.nnz, np.float64)
    for some in row_slices(len(data), 128):
        data[some] = rounded(graph.adjacency.data[some], digits)
    adjacency.data = data
    errors = None if graph.errors is None else rounded(graph.errors, digits)
    return replace(graph, adjacency=adjacency, errors=errors)


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Return values with so many significant digits; 0 leaves them alone."""
    if digits == 0 or not len(values):
        return values
    size = np.abs(values)
    there = size > _SMALLEST
    place = np.floor(np.log10(size, where=there, out=np.zeros(len(size)))).astype(int)
    shift = np.clip(digits - 1 - place, -308, 308)
    up, down = _POWERS[308 + np.maximum(shift, 0)], _POWERS[308 + np.maximum(-shift, 0)]
    result: FloatArray = np.rint(values * up / down) / up * down
    return np.where(there, result, values)
