"""A picture of one neighborhood: who was kept, who was dropped, and by which plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data.rows import dense_rows
from nnkgraph.errors import InputError
from nnkgraph.tasks.plot import new_figure

if TYPE_CHECKING:
    from nnkgraph.data import Features, FloatArray
    from nnkgraph.tasks.explain import Explanation


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

    Planes go through the neighbors, perpendicular to their lines to the node.
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


def check_places(features: Features, coordinates: Features | None, kernel: str) -> None:
    """Refuse what cannot be drawn, before any work is done."""
    where = features if coordinates is None else coordinates
    size = where.x.shape[1]
    if coordinates is None and kernel.partition(":")[0] in {"precomputed", "distance"}:
        raise InputError(
            f"{features.name}: a matrix of pairs does not say where nodes are: a "
            "picture needs `coords` with 2 or 3 columns"
        )
    if coordinates is not None and size not in {2, 3}:
        wrong = f"{size} columns; a picture needs 2 or 3 of them"
    elif len(where.x) != len(features.x):
        wrong = f"coordinates of {len(where.x)} nodes, but {features.name} has "
        wrong += f"{len(features.x)} rows"
    elif where.ids and features.ids and where.ids != features.ids:
        wrong = f"its ids are not those of {features.name}, or in another order"
    else:
        return
    raise InputError(f"{where.name}: {wrong}")


def is_projected(
    found: Explanation, features: Features, coordinates: Features | None
) -> bool:
    """Return whether a picture shows a plane that the features do not name."""
    columns = found.facts.get("pca", features.x.shape[1])
    return coordinates is None and columns not in {2, 3}


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
    x = found.scaling.applied(features.x, features.name)
    if x.shape[1] in {2, 3}:
        return dense_rows(x), 1.0
    at = np.full((len(x), 2), np.nan)
    at[shown], share = projected(dense_rows(x[np.array(shown)]))
    return at, share


# Told apart by color-blind readers too.
_KEPT, _NODE, _REGION, _DROPPED = "#0072b2", "#d55e00", "#56b4e9", "#7f7f7f"

_MOST_NAMES = 12  # up to so many candidates all are named; of more, only the kept ones
_LONGEST = 12  # of longer names only the end is written
# Turns by 50 degrees: names stand beside the lines that go on behind a neighbor.
_ASIDE = np.array([[0.64, -0.77], [0.77, 0.64]])


def draw_explanation(
    found: Explanation, features: Features, coordinates: Features | None = None
) -> Any:
    """Draw a node with its candidates, over coordinates or the features themselves.

    Over 2-D features, as they are scaled, the Gaussian kernel has planes: through every
    neighbor, perpendicular to its line to the node. What lies beyond one is redundant
    next to that neighbor. Of features with more columns the picture shows the plane in
    which the node and its candidates spread most.

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_places(features, coordinates, found.facts["kernel"])
    shown = [found.node, *(entry["node"] for entry in found.candidates)]
    flat = is_projected(found, features, coordinates)
    x, share = places(found, features, coordinates, shown)
    size = x.shape[1]
    figure = new_figure(6.4, 7.8 if size == 2 else 6.8)
    # Left to itself, a 3-D picture would put lines and far nodes before near ones.
    three = {"projection": "3d", "computed_zorder": False} if size == 3 else {}
    axes: Any = figure.add_subplot(**three)
    low, high = view(x[shown])
    _draw_others(axes, np.delete(x, shown, axis=0), low, high)
    if coordinates is None and not flat and has_planes(found, size):
        _draw_planes(axes, found, x, low, high)
    _draw_lines(axes, found, x)
    _draw_nodes(axes, found, x)
    _write_names(axes, found, x)
    _frame(axes, low, high)
    plane = f"\nthe plane with {share:.0%} of the spread of these points"
    axes.set_title(_title(found) + plane * flat, fontsize=11)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _frame(axes: Any, low: FloatArray, high: FloatArray) -> None:
    """Set limits and the numbers along them: as they are, without an offset."""
    for name, start, stop in zip("xyz", low, high, strict=False):
        getattr(axes, f"set_{name}lim")(start, stop)
        axes.locator_params(axis=name, nbins=5)
    axes.ticklabel_format(useOffset=False)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=8, color=_DROPPED, labelcolor=_DROPPED)


def has_planes(found: Explanation, size: int) -> bool:
    """Return whether neighbors exclude by planes that a picture can show."""
    kernel = found.facts["kernel"].partition(":")[0]
    method = found.facts["method"].partition(":")[0]
    # A penalty bends the planes of l1.
    return size == 2 and kernel == "gaussian" and method != "l1"


def _draw_others(
    axes: Any, others: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    others = others[((others >= low) & (others <= high)).all(axis=1)]
    if len(others):
        label = "not a candidate"
        axes.scatter(*others.T, s=4, color="#bbbbbb", label=label, zorder=1)


def _draw_planes(
    axes: Any, found: Explanation, x: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    kept = [entry["node"] for entry in found.candidates if entry["kept"]]
    inside = region(x[found.node], x[kept], low, high)
    axes.fill(
        *inside.T, color=_REGION, alpha=0.16, linewidth=0, zorder=0, label="polytope"
    )
    label = "plane of a neighbor: its pairwise limit"
    style = {"color": _REGION, "linewidth": 1.1, "linestyle": (0, (5, 3)), "zorder": 1}
    for at in x[kept]:
        across = (at - x[found.node])[::-1] * [1, -1]
        axes.axline(at, at + across, label=label, **style)
        label = "_once"


def _draw_lines(axes: Any, found: Explanation, x: FloatArray) -> None:
    """Join the node with its neighbors, and what was dropped with what excludes it."""
    largest = max((entry["weight"] for entry in found.candidates), default=0.0)
    kept: dict[str, Any] = {"color": _KEPT, "solid_capstyle": "round", "zorder": 3}
    dropped: dict[str, Any] = {"color": _DROPPED, "linewidth": 0.9, "zorder": 2}
    label = "to the neighbor that suffices"
    for entry in found.candidates:
        if entry["kept"]:
            ends = x[[found.node, entry["node"]]]
            axes.plot(*ends.T, linewidth=1 + 5 * entry["weight"] / largest, **kept)
        elif entry["pairwise_by"]:
            ends = x[[entry["pairwise_by"][0], entry["node"]]]
            axes.plot(*ends.T, ":", label=label, **dropped)
            label = "_once"


def _draw_nodes(axes: Any, found: Explanation, x: FloatArray) -> None:
    def dots(nodes: list[int], label: str, **style: Any) -> None:
        if nodes:
            axes.scatter(*x[nodes].T, label=label, zorder=4, **style)

    kept = [entry["node"] for entry in found.candidates if entry["kept"]]
    dropped = [entry for entry in found.candidates if not entry["kept"]]
    by_one = [entry["node"] for entry in dropped if entry["pairwise"]]
    by_several = [entry["node"] for entry in dropped if not entry["pairwise"]]
    white, own = "white", "kept (width of line: weight)"
    one, several = "dropped: one neighbor suffices", "dropped: several together"
    dots([found.node], "node", color=_NODE, marker="s", s=75)
    dots(kept, own, color=_KEPT, s=42, edgecolors=white, linewidths=0.8)
    dots(by_one, one, color=_DROPPED, s=26, alpha=0.7, linewidths=0)
    hollow = {"facecolors": white, "edgecolors": _DROPPED, "linewidths": 1.0}
    dots(by_several, several, marker="D", s=24, **hollow)


def _write_names(axes: Any, found: Explanation, x: FloatArray) -> None:
    """Name candidates, beside the line that leads away from the node."""
    from matplotlib.patheffects import withStroke

    few = len(found.candidates) <= _MOST_NAMES
    halo = [withStroke(linewidth=2.5, foreground="white")]
    style: dict[str, Any] = {"fontsize": 8, "path_effects": halo, "zorder": 5}
    style_2d = style | {"textcoords": "offset points", "ha": "center", "va": "center"}
    for entry in found.candidates:
        if not (few or entry["kept"]):
            continue
        text = str(entry["node"] if entry["id"] is None else entry["id"])
        text = text if len(text) <= _LONGEST else f"...{text[3 - _LONGEST :]}"
        color = _KEPT if entry["kept"] else _DROPPED
        at = x[entry["node"]]
        if len(at) == 3:
            axes.text(*at, f" {text}", color=color, **style)
            continue
        away = _ASIDE @ (at - x[found.node])
        away = 14 * away / (float(np.hypot(*away)) or 1.0)
        axes.annotate(text, at, xytext=away, color=color, **style_2d)


def _title(found: Explanation) -> str:
    known = found.facts
    sigma = "" if known["sigma"] is None else f", sigma {known['sigma']:.4g}"
    return (
        f"node {found.name}: {known['kept']} of {known['candidate_count']} kept, "
        f"J = {known['error']:.4g}\n{known['method']}, {known['kernel']}{sigma}, "
        f"k = {known['k']}"
    )
