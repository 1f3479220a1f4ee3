"""Places by forces: neighbors attract each other, and all other nodes repel.

The graph is made smaller and smaller by joining neighbors. The smallest one is laid out
first; every larger one begins where its joined nodes were, and has less left to do.
The forces are those of LargeVis and UMAP: an edge pulls its ends together, and pushes
one away from a few nodes that are drawn at random, one edge after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from nnkgraph.runtime.jit import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import IndexArray

    Places = NDArray[np.float64]
    Level = tuple[csr_array, IndexArray]

_SMALLEST = 1500  # a graph of so many nodes is not made smaller
_MOVES = 10_000_000  # of edges, on a level: a few seconds
_EPOCHS = (400, 200)  # at most, of the smallest graph and of larger ones
_FEWEST = 12  # epochs that a level has whatever its size
_REPELLED = 4  # nodes that an edge pushes one end away from
_PUSH = 3.0  # how strong that is beside the pull: more of it, and groups dissolve
_HOME = 0.002  # the pull to the middle: what hangs on a few edges does not fly away
_SPREAD = 10.0  # how far places reach before forces move them


def levels_of(joined: csr_array) -> list[Level]:
    """Return ever smaller graphs, and for each node of one where it is in the next.

    An edge weighs as much as its ends have neighbors in common, for their number.
    """
    weight = common(joined.indptr, joined.indices)
    graph = csr_array((weight, joined.indices, joined.indptr), joined.shape)
    found: list[Level] = []
    while graph.shape[0] > _SMALLEST:
        group = merged(graph.indptr, graph.indices, graph.data)
        found.append((graph, group))
        edges, count = graph.tocoo(), int(group.max()) + 1
        ends = (group[edges.row], group[edges.col])
        graph = csr_array((edges.data, ends), (count, count))
        graph.setdiag(0)
        graph.eliminate_zeros()
    return [*found, (graph, np.arange(graph.shape[0]))]


def pulled_apart(levels: list[Level], at: Places) -> Places:
    """Move the places of the smallest graph, and then those of every larger one."""
    # What comes from a library of linear algebra differs in its last digits from
    # machine to machine, and forces would make more of it.
    at = np.round(at * (_SPREAD / np.abs(at).max()), 6)
    for depth in range(len(levels) - 1, -1, -1):
        graph, group = levels[depth]
        first = depth == len(levels) - 1
        if not first:
            at = at[group] * np.sqrt(len(group) / len(at))
            at += np.random.default_rng(depth).normal(0, 0.1, at.shape)
        epochs = int(np.clip(_MOVES // graph.nnz, _FEWEST, _EPOCHS[not first]))
        weight = graph.data / graph.data.mean()
        home = _HOME * graph.nnz / len(at)
        step = 1.0 if first else 0.5
        moved(graph.indptr, graph.indices, weight, at, epochs, step, home)
    return at


@compiled
def common(starts: Any, ends: Any) -> Any:
    """Return what share of their neighbors the ends of every edge have in common."""
    weight = np.empty(len(ends))
    for node in range(len(starts) - 1):
        for at in range(starts[node], starts[node + 1]):
            one, last = starts[node], starts[node + 1]
            two, end = starts[ends[at]], starts[ends[at] + 1]
            every = (last - one) + (end - two)
            same = 0
            while one < last and two < end:
                left, right = ends[one], ends[two]
                same += left == right
                one += left <= right
                two += right <= left
            weight[at] = (same + 1.0) / (every - same + 1.0)
    return weight


@compiled
def merged(starts: Any, ends: Any, weight: Any) -> Any:
    """Return a number for every node: nodes that share one become one node.

    Nodes with little weight choose first, among the neighbors that are free, the one
    that owes most of its weight to them. Where none is free, they go along with one.
    """
    n = len(starts) - 1
    total = np.zeros(n)
    for node in range(n):
        for at in range(starts[node], starts[node + 1]):
            total[node] += weight[at]
    group = np.full(n, -1)
    count = 0
    for node in np.argsort(total, kind="mergesort"):
        if group[node] >= 0:
            continue
        free = taken = -1
        most = also = 0.0
        for at in range(starts[node], starts[node + 1]):
            other = ends[at]
            share = weight[at] / total[other]
            if group[other] < 0 and share > most:
                free, most = other, share
            if group[other] >= 0 and share > also:
                taken, also = other, share
        if free >= 0:
            group[node] = group[free] = count
            count += 1
        else:
            group[node] = group[taken]
    return group


@compiled
def moved(
    starts: Any, ends: Any, weight: Any, at: Any, epochs: Any, first: Any, home: Any
) -> Any:
    """Move all places, in one order and with numbers of a generator of its own."""
    n = len(starts) - 1
    state = np.uint64(88172645463325252)
    for epoch in range(epochs):
        step = first * (1.0 - epoch / epochs)
        for node in range(n):
            x, y = at[node, 0] * (1.0 - home * step), at[node, 1] * (1.0 - home * step)
            for edge in range(starts[node], starts[node + 1]):
                other = ends[edge]
                dx, dy = at[other, 0] - x, at[other, 1] - y
                pull = step * 2.0 * weight[edge] / (1.0 + dx * dx + dy * dy)
                pull = min(pull, 0.5)  # where both ends meet
                x, y = x + pull * dx, y + pull * dy
                at[other, 0] -= pull * dx
                at[other, 1] -= pull * dy
                for _ in range(_REPELLED):
                    state ^= state << np.uint64(13)
                    state ^= state >> np.uint64(7)
                    state ^= state << np.uint64(17)
                    third = np.int64(
                        (state >> np.uint64(33)) * np.uint64(n) >> np.uint64(31)
                    )
                    dx, dy = x - at[third, 0], y - at[third, 1]
                    far = dx * dx + dy * dy
                    push = step * 2.0 * _PUSH / ((0.1 + far) * (1.0 + far))
                    x += min(max(push * dx, -4.0), 4.0)
                    y += min(max(push * dy, -4.0), 4.0)
            at[node, 0], at[node, 1] = x, y
