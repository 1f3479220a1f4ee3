"""Joining the two directions of every pair of nodes, in compiled loops.

Every pair is looked at once, from the side of its lower node where both are candidates
of each other: no list of pairs is made, and nothing is sorted.
"""

from __future__ import annotations

from typing import Any

from nnkgraph.compiled import compiled

TIE = 1e-12
"""Errors closer than this share of K_qq are equal: both directions count."""

# The rules by their place in RULES.
_ERROR, _ERROR_UNION, _MAX, _MEAN, _MIN, _MUTUAL = range(6)


@compiled
def _weight(  # noqa: PLR0911 - one line per rule
    rule: int, there: float, back: float, mutual: bool, lead: float, tie: float
) -> float:
    """Return the weight of a pair under a rule; zero means no edge.

    ``lead`` is how much smaller the error of the first node is.
    """
    larger = max(there, back)
    if rule == _MAX:
        return larger
    if rule == _MEAN:
        return (there + back) / 2.0
    if rule == _MIN:
        return min(there, back)
    if rule == _MUTUAL:
        return (there + back) / 2.0 if there > 0.0 and back > 0.0 else 0.0
    if not mutual:
        return larger if rule == _ERROR_UNION else 0.0
    if abs(lead) <= tie:
        return larger
    return there if lead > 0.0 else back


@compiled
def _place(index: Any, i: int, j: int) -> int:
    """Return where node j is among the candidates of node i, or -1."""
    for t in range(index.shape[1]):
        if index[i, t] == j:
            return t
    return -1


@compiled
def join_pairs(
    index: Any,
    weights: Any,
    errors: Any,
    rule: int,
    min_weight: float,
    heavy: Any,
    own: Any,
    first: Any,
    place: Any,
    fill: bool,
    columns: Any,
    values: Any,
) -> int:
    """Count every node's edges in ``place``, or fill them in from there on.

    Returns how many pairs with a positive weight got no edge.
    """
    n, m = index.shape
    dropped = 0
    for i in range(n):
        for t in range(m):
            j = index[i, t]
            if j < 0:
                continue
            at = _place(index, j, i)
            if at >= 0 and j < i:
                continue  # it was looked at from the other side
            there, back = weights[i, t], weights[j, at] if at >= 0 else 0.0
            larger = max(there, back)
            tie = TIE * max(own[i], own[j])
            weight = _weight(rule, there, back, at >= 0, errors[j] - errors[i], tie)
            if at < 0 and rule == _ERROR and first[i] == first[j]:
                weight = larger  # copies explain each other
            protected = heavy[i, t] or (at >= 0 and heavy[j, at])
            if protected and (weight == 0.0 or weight < min_weight):
                weight = larger
            if weight > 0.0 and (weight >= min_weight or protected):
                if fill:
                    columns[place[i]], values[place[i]] = j, weight
                    columns[place[j]], values[place[j]] = i, weight
                place[i] += 1
                place[j] += 1
            elif larger > 0.0:
                dropped += 1
    return dropped
