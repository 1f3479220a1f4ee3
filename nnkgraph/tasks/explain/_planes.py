"""Planes: where those of neighbors leave room, and the one that a picture shows."""

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


def projected(points: FloatArray) -> tuple[FloatArray, float]:
    """Return the plane in which points spread most, and its share of their variance."""
    centered = points - points.mean(axis=0)
    _, size, axes = np.linalg.svd(centered, full_matrices=False)
    at = np.zeros((len(points), 2))
    for i, axis in enumerate(axes[:2]):
        # The largest entry in size is positive: pictures do not flip.
        at[:, i] = centered @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    whole = float((size**2).sum())
    return at, float((size[:2] ** 2).sum()) / whole if whole > 0 else 1.0
