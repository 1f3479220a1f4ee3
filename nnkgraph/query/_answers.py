"""From solved problems to answers: a matrix, errors, and what is said about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import report

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import Features, FloatArray, IndexArray, Neighborhoods
    from nnkgraph.duplicates import Rows


def with_twins(
    found: Neighborhoods, index: IndexArray, twin: IndexArray, *, has_error: bool
) -> Neighborhoods:
    """Let a row that equals its query explain it: weight 1, error 0."""
    if not has_error:
        return found
    same = (index == twin[:, np.newaxis]) & (index >= 0)
    copied = same.any(axis=1)
    weights = np.array(found.weights)
    weights[copied] = same[copied]
    values = [
        None if one is None else np.where(copied, 0.0, one)
        for one in (found.errors, found.certificate)
    ]
    return replace(found, weights=weights, errors=values[0], certificate=values[1])


def matrices(
    weights: FloatArray,
    distance: FloatArray,
    index: IndexArray,
    rows: Rows,
    n: int,
    *,
    normalize: bool,
) -> tuple[csr_array, csr_array]:
    """Put weights and distances of neighbors at the rows of the data as given."""
    from scipy.sparse import coo_array

    row, column = np.nonzero(weights > 0)
    target = as_given(index[row, column], rows)
    value = weights[row, column]
    if normalize:
        value = value / weights.sum(axis=1)[row]
    shape = len(weights), n
    joined = [
        coo_array((one, (row, target)), shape).tocsr()
        for one in (value, distance[row, column])
    ]
    for one in joined:
        one.sort_indices()
    return joined[0], joined[1]


def as_given(index: IndexArray, rows: Rows) -> IndexArray:
    """Return numbers among the distinct rows as numbers of the data; -1 stays."""
    if rows.origin is None:
        return index
    return np.where(index >= 0, rows.origin[np.maximum(index, 0)], -1)


def facts(
    data: Features,
    queries: Features,
    found: Neighborhoods,
    settings: dict[str, Any],
    more: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    provenance = {
        **report.provenance(data, settings),
        "queries_shape": list(queries.x.shape),
        "queries_sha256": queries.sha256,
    }
    count = (found.weights > 0).sum(axis=1)
    about = {
        "schema": 1,
        "queries": len(queries.x),
        "rows": len(data.x),
        "neighbors_per_query": float(count.mean()),
        "without_neighbors": int((count == 0).sum()),
        "certificate": report.certificate(found, None),
        "error": report.error_facts(found.errors),
        **settings,
        **more,
    }
    return provenance, about
