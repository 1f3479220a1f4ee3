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
def _edge(
    rule: int,
    min_weight: float,
    there: float,
    back: float,
    mutual: bool,
    protected: bool,
    copies: bool,
    lead: float,
    tie: float,
) -> float:
    """Return the weight of a pair's edge; zero where there is none."""
    larger = max(there, back)
    weight = _weight(rule, there, back, mutual, lead, tie)
    if not mutual and rule == _ERROR and copies:
        weight = larger  # copies explain each other
    if protected and (weight == 0.0 or weight < min_weight):
        weight = larger
    return weight if weight >= min_weight or protected else 0.0


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
            weight = _edge(
                rule,
                min_weight,
                there,
                back,
                at >= 0,
                heavy[i, t] or (at >= 0 and heavy[j, at]),
                first[i] == first[j],
                errors[j] - errors[i],
                TIE * max(own[i], own[j]),
            )
            if weight > 0.0:
                if fill:
                    columns[place[i]], values[place[i]] = j, weight
                    columns[place[j]], values[place[j]] = i, weight
                place[i] += 1
                place[j] += 1
            elif max(there, back) > 0.0:
                dropped += 1
    return dropped


@compiled
def join_records(
    source: Any,
    target: Any,
    weights: Any,
    heavy: Any,
    errors: Any,
    rule: int,
    min_weight: float,
    own: Any,
    first: Any,
    lower: Any,
    higher: Any,
    pair: Any,
    values: Any,
) -> Any:
    """Join directed edges of which the two of a pair follow each other.

    That of the lower node comes first. Edges go to ``pair`` and ``values``, and are
    counted at both ends: in ``higher`` at the lower node, in ``lower`` at the other.

    Returns how many edges there are, and how many pairs with a positive weight got
    none.
    """
    count, dropped, t, stop = 0, 0, 0, source.shape[0]
    while t < stop:
        i, j, there, back, protected = source[t], target[t], weights[t], 0.0, heavy[t]
        t += 1
        mutual = t < stop and source[t] == j and target[t] == i
        if mutual:
            back, protected = weights[t], protected or heavy[t]
            t += 1
        weight = _edge(
            rule,
            min_weight,
            there,
            back,
            mutual,
            protected,
            first[i] == first[j],
            errors[j] - errors[i],
            TIE * max(own[i], own[j]),
        )
        if weight > 0.0:
            pair[count, 0], pair[count, 1] = min(i, j), max(i, j)
            values[count] = weight
            higher[min(i, j)] += 1
            lower[max(i, j)] += 1
            count += 1
        elif max(there, back) > 0.0:
            dropped += 1
    return count, dropped
