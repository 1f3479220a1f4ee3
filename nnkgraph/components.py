"""The components of a graph, without a copy of its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.bounded import new_array
from nnkgraph.compiled import compiled, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import IndexArray


@compiled
def _root(parent: Any, i: int) -> int:
    """Return the lowest node known to be in a node's component; shorten the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def _join(indptr: Any, indices: Any, parent: Any) -> int:
    """Give every node its component's number; return how many there are."""
    n = parent.shape[0]
    for i in range(n):
        parent[i] = i
    for i in range(n):
        for t in range(indptr[i], indptr[i + 1]):
            here, there = _root(parent, i), _root(parent, indices[t])
            # The lower one leads: numbers then go up with the first nodes.
            if here < there:
                parent[there] = here
            else:
                parent[here] = there
    count = 0
    for i in range(n):
        if parent[i] == i:
            parent[i] = count
            count += 1
        else:
            parent[i] = parent[parent[i]]  # a lower node, which has its number
    return count


def component_labels(adjacency: csr_array) -> tuple[int, IndexArray]:
    """Return how many components there are, and the number of every node's.

    Directions do not count.
    """
    label = new_array(adjacency.shape[0], np.int64)
    parts = frozen(adjacency.indptr), frozen(adjacency.indices)
    return int(_join(*parts, np.asarray(label))), label
