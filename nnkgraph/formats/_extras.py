"""What a graph carries besides its edges: checked when read, prepared for writing."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nnkgraph.data import Graph
from nnkgraph.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import IndexArray
    from nnkgraph.formats._format import Extras


def checked(
    adjacency: csr_array,
    extras: Extras,
    directed: bool,
    provenance: dict[str, Any],
    name: str,
) -> Graph:
    """Return the graph, once everything in it fits together."""
    n = adjacency.shape[0]
    ids, errors, candidates = extras.ids, extras.errors, extras.candidates
    if ids is not None:
        if len(ids) != n:
            raise InputError(f"{name}: {len(ids)} ids for {n} nodes")
        if len(set(ids)) != n:
            raise InputError(f"{name}: two nodes have the same id")
    if errors is not None:
        if errors.shape != (n,) or errors.dtype.kind not in "iuf":
            raise InputError(f"{name}: 'errors' is not one number per node")
        with np.errstate(over="ignore", invalid="ignore"):
            errors = errors.astype(np.float64, copy=False)
        if not np.isfinite(errors).all():
            raise InputError(f"{name}: 'errors' has values that are no finite number")
    if candidates is not None:
        good = candidates.ndim == 2 and candidates.dtype.kind in "iu"
        if not good or len(candidates) != n:
            raise InputError(f"{name}: 'candidates' is not one row of numbers per node")
        if candidates.size and not (candidates.min() >= -1 and candidates.max() < n):
            raise InputError(f"{name}: 'candidates' names nodes that do not exist")
        candidates = candidates.astype(np.int32, copy=False)
    bridges = _checked_bridges(extras, n, name)
    return Graph(adjacency, ids, directed, errors, candidates, bridges, provenance)


def _checked_bridges(extras: Extras, n: int, name: str) -> IndexArray | None:
    bridges = extras.bridges
    if bridges is None:
        return None
    if bridges.ndim != 2 or bridges.shape[1] != 2 or bridges.dtype.kind not in "iu":
        raise InputError(f"{name}: 'bridges' is not two nodes per edge")
    if bridges.size and not (bridges.min() >= 0 and bridges.max() < n):
        raise InputError(f"{name}: 'bridges' names nodes that do not exist")
    return bridges.astype(np.int64, copy=False)


def provenance_text(provenance: dict[str, Any]) -> str:
    """Return provenance as one line of ASCII, equal for equal values."""
    return json.dumps(provenance, sort_keys=True, allow_nan=False)


def parse_provenance(text: str, name: str) -> dict[str, Any]:
    """Return provenance as it was written."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: the provenance is damaged: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{name}: the provenance is damaged: not an object")
    return value


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number that JSON knows")
