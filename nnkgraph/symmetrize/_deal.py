"""Dealing out edges to buckets, in compiled loops."""

from __future__ import annotations

from typing import Any

from nnkgraph.compiled import compiled


@compiled
def count_lower(index: Any, first: int, counts: Any) -> None:
    """Count the edges of some rows at the lower of their nodes."""
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            if index[i, t] >= 0:
                counts[min(first + i, index[i, t])] += 1


@compiled
def deal_directed(
    index: Any,
    weights: Any,
    marks: Any,
    first: int,
    bucket: Any,
    place: Any,
    source: Any,
    target: Any,
    weight: Any,
    heavy: Any,
) -> None:
    """Put every edge at the end of the bucket of its lower node."""
    for i in range(index.shape[0]):
        for t in range(index.shape[1]):
            j = index[i, t]
            if j >= 0:
                b = bucket[min(first + i, j)]
                at = place[b]
                source[at], target[at] = first + i, j
                weight[at], heavy[at] = weights[i, t], marks[i, t]
                place[b] = at + 1


@compiled
def deal_pairs(
    pair: Any, value: Any, bucket: Any, place: Any, back: Any, weight: Any
) -> None:
    """Put every pair at the end of the bucket of its higher node."""
    for t in range(pair.shape[0]):
        b = bucket[pair[t, 1]]
        at = place[b]
        back[at, 0], back[at, 1] = pair[t, 0], pair[t, 1]
        weight[at] = value[t]
        place[b] = at + 1


@compiled
def append_rows(
    pair: Any, value: Any, end: int, first: int, place: Any, data: Any, indices: Any
) -> None:
    """Append to the rows of one end of some pairs the node at their other end."""
    for t in range(pair.shape[0]):
        row = pair[t, end] - first
        at = place[row]
        data[at], indices[at] = value[t], pair[t, 1 - end]
        place[row] = at + 1
