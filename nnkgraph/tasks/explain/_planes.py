"""Where the planes of neighbors leave room, within what a picture shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray


def view(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of a square, or cube, with all points and a margin."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    half = 0.58 * float(np.ptp(points, axis=0).max())
    half = half if half > 0 else 1.0
    return middle - half, middle + half


def region(
    node: FloatArray, neighbors: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the corners of what lies before all planes, within a view.

    Parameters
    ----------
    node : (2,) array
        Where the node is.
    neighbors : (m, 2) array
        The planes go through these, perpendicular to their lines to the node.
    low, high : (2,) arrays
        Corners of the view.

    Returns
    -------
    (corners, 2) array
        A convex polygon around the node.
    """
    corners = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    for neighbor in neighbors:
        normal = neighbor - node
        beyond = (corners - neighbor) @ normal
        kept = []
        for at in range(len(corners)):
            here, there = beyond[at - 1], beyond[at]
            if (here > 0) != (there > 0):
                step = here / (here - there)
                kept.append(corners[at - 1] + step * (corners[at] - corners[at - 1]))
            if there <= 0:
                kept.append(corners[at])
        corners = np.array(kept).reshape(-1, 2)
    return corners
