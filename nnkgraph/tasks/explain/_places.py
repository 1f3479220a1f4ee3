"""Where a node and its candidates are in a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.scaling import scaled
from nnkgraph.tasks.explain._planes import projected

if TYPE_CHECKING:
    from nnkgraph.data import Features, FloatArray
    from nnkgraph.tasks.explain._explained import Explanation


def check_places(features: Features, coordinates: Features | None, kernel: str) -> None:
    """Refuse what cannot be drawn, before any work is done."""
    where = features if coordinates is None else coordinates
    size = where.x.shape[1]
    if coordinates is None and kernel.partition(":")[0] == "precomputed":
        raise InputError(
            f"{features.name}: similarities say not where nodes are: a picture needs "
            "--coords FILE with 2 or 3 columns"
        )
    if coordinates is not None and size not in {2, 3}:
        raise InputError(
            f"{where.name}: {size} columns; a picture needs 2 or 3 of them"
        )
    if len(where.x) != len(features.x):
        raise InputError(
            f"{where.name}: coordinates of {len(where.x)} nodes, but {features.name} "
            f"has {len(features.x)} rows"
        )
    if where.ids and features.ids and where.ids != features.ids:
        raise InputError(
            f"{where.name}: its ids are not those of {features.name}, or in another "
            "order"
        )


def is_projected(features: Features, coordinates: Features | None) -> bool:
    """Return whether a picture shows a plane that the features do not name."""
    return coordinates is None and features.x.shape[1] not in {2, 3}


def places(
    found: Explanation,
    features: Features,
    coordinates: Features | None,
    shown: list[int],
) -> tuple[FloatArray, float]:
    """Return a place for every row, and how much of the spread a projection shows.

    Of a projection only the rows that are shown have one: others would seem near.
    """
    if coordinates is not None:
        return np.asarray(coordinates.x, np.float64), 1.0
    x = scaled(features.x, found.facts["scale"], features.name)
    if not is_projected(features, coordinates):
        return np.asarray(x, np.float64), 1.0
    at = np.full((len(x), 2), np.nan)
    at[shown], share = projected(np.asarray(x[shown], np.float64))
    return at, share
