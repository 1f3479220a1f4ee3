"""Whether the components that a graph stores are those of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.tasks.verify._slow import EPS, scaled
from nnkgraph.tasks.verify.recipe import Check

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray
    from nnkgraph.tasks.verify.recipe import Recipe

_VALUES = 1 << 22  # values of rows that are arrays at once
_APART = 1e-6  # share of the widest by which components may disagree


def components_check(x: Any, recipe: Recipe) -> Check:
    """Compare coordinates with products by numpy, and axes with what they should be.

    Axes are at right angles. Where these are the rows that they were learned from, and
    not the first rows of a graph that was updated, coordinates are uncorrelated, the
    widest first, and hold the share of the variance that is stored.
    """
    scaling: Any = recipe.scaling
    found: FloatArray = scaling.applied(x, "the features")
    seen = scaling.projection
    length = np.square(seen.axes).sum(axis=1)
    wanted = np.diag((length > 0.5).astype(np.float64))
    turned = float(np.abs(seen.axes @ seen.axes.T - wanted).max())
    off, total, center, longest = 0.0, 0.0, 0.0, 0.0
    size = max(1, _VALUES // x.shape[1])
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        rows = x[part].dense() if isinstance(x, SparseRows) else np.asarray(x[part])
        moved = scaled(rows, recipe.scale, recipe.scaling) - seen.center
        off = max(off, float(np.abs(moved @ seen.axes.T - found[part]).max()))
        total += float(np.square(moved).sum())
        center = center + moved.sum(axis=0) / len(x)
        longest = max(longest, float(np.abs(moved).sum(axis=1).max()))
    figures: dict[str, Any] = {"difference": off, "right_angles": turned}
    longest += float(np.abs(seen.center).sum())
    if scaling.low is not None:
        width = np.where(scaling.width > 0, scaling.width, np.inf)
        longest += float(np.abs(scaling.low / width).sum())
    good = off <= 64 * EPS * x.shape[1] * longest and turned <= _APART
    text = f"{recipe.pca} of {x.shape[1]} columns, largest difference {off:.1e}"
    squares = found.T @ found
    widest = float(squares.max(initial=0.0)) or 1.0
    drift = float(np.sqrt(np.square(center).sum() * len(x) / widest))
    if drift > _APART:
        text += "; learned from other rows"
        return Check.of("components", good, text, **figures)
    share = float(np.trace(squares)) / total if total > 0 else 1.0
    apart = float(np.abs(squares - np.diag(np.diag(squares))).max(initial=0.0)) / widest
    falling = bool((np.diff(np.diag(squares)) <= _APART * widest).all())
    figures |= {"share": share, "correlation": apart}
    good = good and falling and max(apart, abs(share - seen.share)) <= _APART
    text += f", {share:.2%} of the variance"
    return Check.of("components", good, text, **figures)
