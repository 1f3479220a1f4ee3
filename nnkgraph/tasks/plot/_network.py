"""Graphs over coordinates: edges as lines, nodes as dots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.tasks.audit.table import KINDS
from nnkgraph.tasks.plot import figure as figures
from nnkgraph.tasks.plot.figure import BAR, INK, WIDTH
from nnkgraph.tasks.sample import MOST, Marks, drawn

if TYPE_CHECKING:
    from nnkgraph.data import Features, FloatArray, Graph, IndexArray
    from nnkgraph.data.labels import Labels
    from nnkgraph.tasks.findings import Findings


_CROWD = 3500  # of more edges each is fainter, as in the report
RASTERIZED = 20_000  # of more edges, vector graphics hold pixels instead of lines
NO_WEIGHT = 1e-300  # stands for the largest weight where there are no edges


@dataclass(frozen=True)
class Lines:
    """How edges are drawn."""

    shows: str  # what weight shows as: ``alpha``, ``width``, ``both`` or ``none``
    heaviest: float  # the weight drawn strongest, in all panels
    width: float  # of the strongest line, in points
    color: str
    strength: float = 1.0  # of many edges each is faint, so that what is dense shows

    def style(self, weight: FloatArray) -> tuple[Any, Any]:
        """Return a color and a width for each weight."""
        from matplotlib.colors import to_rgba

        # By the root: of weights over several decades the light ones still show.
        share = np.sqrt(weight / self.heaviest)
        colors = np.tile(to_rgba(self.color), (len(weight), 1))
        if self.shows in {"alpha", "both"}:
            colors[:, 3] = 0.25 + 0.75 * share
        colors[:, 3] *= self.strength
        thick = np.full(len(weight), self.width)
        if self.shows in {"width", "both"}:
            thick = self.width * (0.25 + 2.0 * share)
        return colors, thick

    def key(self) -> list[Any]:
        """Return handles of the legend for a heavy and a light edge."""
        from matplotlib.lines import Line2D

        if self.shows == "none" or self.heaviest <= NO_WEIGHT:
            return []
        weights = np.array([1.0, 0.01]) * self.heaviest
        # Alone, a line as faint as those of many edges would not be seen.
        seen = replace(self, strength=max(self.strength, 0.6))
        styles = zip(weights, *seen.style(weights), strict=True)
        return [
            Line2D([], [], label=f"weight {w:.2g}", color=color, lw=max(0.8, wide))
            for w, color, wide in styles
        ]


def add_edges(panel: Any, graph: Graph, at: FloatArray, lines: Lines) -> None:
    """Add all edges as one collection of lines, heavy ones last and so on top."""
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    found = graph.adjacency.tocoo()
    there = ~np.isnan(at[:, 0])
    drawn = there[found.row] & there[found.col]
    if not graph.directed:
        drawn &= found.row < found.col
    order = np.flatnonzero(drawn)
    order = order[np.argsort(found.data[order], kind="stable")]
    ends = np.stack([found.row[order], found.col[order]], axis=1)
    colors, widths = lines.style(found.data[order])
    kind: Any = LineCollection if at.shape[1] == 2 else Line3DCollection
    style = {"zorder": 2, "rasterized": graph.n_edges > RASTERIZED}
    panel.add_collection(kind(at[ends], colors=colors, linewidths=widths, **style))


# Okabe and Ito; yellow is left out, which nobody sees on white.
_FEW = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
# Krzywinski's twelve.
_MANY = (
    *("#008df9", "#ff6e3a", "#009f81", "#a40122", "#ffb2fd", "#8400cd"),
    *("#00c2f9", "#ffc33b", "#00fccf", "#e20134", "#ff5aaf", "#9f0162"),
)
_MARKERS = ("o", "^")
_MOST = len(_MANY) * len(_MARKERS)  # of more classes the largest have a color
_NAMED = 10
_NONE, _OTHER = "#bdbdbd", "#8a8f98"
_NODE = "#d55e00"
_SCALE = "viridis"


@dataclass(frozen=True)
class Coloring:
    """How nodes are drawn, in every panel alike."""

    marks: tuple[Any, ...] = ()  # handles of the legend, where classes have one
    mappable: Any = None  # what a color bar shows, where there is one
    name: str = ""  # what stands beside the color bar
    plain: str = ""  # the color of all nodes, where they are drawn alike
    palette: tuple[str, ...] = ()  # a color for each class

    def paint(self, own: Any) -> tuple[FloatArray, IndexArray]:
        """Return a color for each class or value, and which marker has which node."""
        from matplotlib.colors import to_rgba_array

        shape = np.zeros(len(own), np.int64)
        if self.plain:
            return to_rgba_array([self.plain] * len(own)), shape
        if self.mappable is not None:
            colors = self.mappable.to_rgba(np.ma.masked_where(~np.isfinite(own), own))
            return np.asarray(colors), shape
        if len(self.palette) <= _MOST:
            shape = np.where(own < 0, 0, own // len(_MANY))
        return to_rgba_array([*self.palette, _NONE])[own], shape


def by_class(classes: tuple[str, ...], sizes: IndexArray, *, gaps: str) -> Coloring:
    """Return a color for each class, with a legend; gaps is what nodes without are.

    Beyond 12 classes colors come again, with another marker; beyond 24 the ten largest
    have a color, and all others share one.
    """
    from matplotlib.lines import Line2D

    names = [_short(one) for one in classes]
    count = len(names)
    colors = _FEW if count <= len(_FEW) else _MANY
    palette = tuple(colors[at % len(colors)] for at in range(count))
    shapes = [_MARKERS[at // len(_MANY) % len(_MARKERS)] for at in range(count)]
    styles = [*zip(names, palette, shapes, strict=True)]
    if count > _MOST:
        largest = np.argsort(-sizes, kind="stable")[:_NAMED].tolist()
        own = dict(zip(largest, _MANY, strict=False))
        palette = tuple(own.get(at, _OTHER) for at in range(count))
        rest = int(sizes.sum() - sizes[largest].sum())
        styles = [(f"{names[at]} ({sizes[at]:,})", own[at], "o") for at in largest]
        styles += [(f"{count - _NAMED} others ({rest:,})", _OTHER, "o")]
    if gaps:
        styles += [(gaps, _NONE, _MARKERS[0])]
    marks = tuple(
        Line2D([], [], label=name, color=color, marker=shape, ls="", markersize=6)
        for name, color, shape in styles
    )
    return Coloring(marks=marks, palette=palette)


def by_value(values: list[FloatArray], name: str) -> Coloring:
    """Return a scale that all values of all panels lie on."""
    known = np.concatenate([one[np.isfinite(one)] for one in values])
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    return Coloring(mappable=_scale(low, high), name=_short(name))


def legend_columns(marks: Any, width: float) -> int:
    """Return how many marks fit beside each other, in rows of equal length."""
    longest = max(len(one.get_label()) for one in marks)
    most = max(1, int(width / (0.42 + 0.085 * longest)))
    rows = -(-len(marks) // most)
    return -(-len(marks) // rows)


def add_key(figure: Any, panels: list[Any], coloring: Coloring, marks: Any) -> None:
    """Put the legend below all panels, and the color bar beside them."""
    if marks:
        figure.legend(
            handles=list(marks),
            loc="outside lower center",
            ncols=legend_columns(marks, figure.get_size_inches()[0]),
            frameon=False,
            fontsize=10,
            columnspacing=1.2,
            handlelength=1.0 if coloring.marks else 2.0,
            handletextpad=0.5,
        )
    if coloring.mappable is not None:
        figures.color_bar(figure, coloring.mappable, panels, coloring.name)


def _scale(low: float, high: float) -> Any:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colors = colormaps[_SCALE].with_extremes(bad=_NONE)
    return ScalarMappable(Normalize(float(low), float(high)), colors)


def _short(text: str) -> str:
    """Return a name that fits a legend; a leading underscore would hide it."""
    text = text if len(text) <= 24 else text[:22] + "..."
    return " " * text.startswith("_") + text.replace("$", r"\$")


_UNDER_COLORS = "#808080"  # edges between colored nodes, which no class looks like


def draw(
    graphs: figures.Graphs,
    coordinates: Features,
    *,
    labels: Labels | None = None,
    clusters: Labels | None = None,
    findings: Findings | None = None,
    values: Features | str | None = None,
    edges: str = "alpha",
    axes: tuple[int, ...] | None = None,
    view: tuple[float, float] | None = None,
    title: str | None = None,
    most: int = MOST,
    seed: int = 0,
) -> Any:
    """Draw graphs side by side over the same 2-D or 3-D coordinates.

    Panels share their limits, their colors and their scale of weights. Nodes without
    coordinates are left out, and so are their edges. Nodes are colored by ``labels``,
    ``clusters`` or ``values``: numbers, "degree" or "error"; ``findings`` of an audit
    of the first graph are marked. ``edges`` says how weight shows ("alpha", "width",
    "both" or "none"), ``axes`` which columns are drawn, ``view`` the elevation and
    azimuth of the eye in 3-D, in degrees. Of more than ``most`` nodes a sample is
    drawn.
    """
    at = figures.places(coordinates, axes)
    where = [figures.for_nodes(at, coordinates, g, name) for name, g in graphs]
    classes = labels if clusters is None else clusters
    _thin(where, graphs, Marks(classes, None, findings), most, seed)
    none = "no label" if clusters is None else "no cluster"
    coloring, own = _coloring(graphs, classes, none, values)
    most = max(map(_drawn_edges, graphs, where))
    lines = Lines(
        edges,
        max(float(graph.adjacency.data.max(initial=NO_WEIGHT)) for _, graph in graphs),
        float(np.clip(65 / np.sqrt(most + 1), 0.2, 1.1)),
        INK if coloring.plain else _UNDER_COLORS,
        float(np.clip((_CROWD / (most + 1)) ** 0.75, 0.12, 1.0)),
    )
    low, high = np.nanmin(at, axis=0), np.nanmax(at, axis=0)
    marks = coloring.marks or lines.key()
    # Where there is much to see, there is more room to see it.
    width = WIDTH if most <= RASTERIZED else 1.5 * WIDTH
    figure = _sized_figure(len(graphs), width, high - low, coloring, marks, title)
    panels = []
    for place, (_, graph) in enumerate(graphs):
        panel = _panel(figure, len(graphs), place, low, high, view)
        add_edges(panel, graph, where[place], lines)
        _add_nodes(panel, where[place], coloring, own[place], most > RASTERIZED)
        if findings is not None and not place:
            marks = (*marks, *_add_findings(panel, where[0], findings))
        panel.set_title(figures.titles(graphs)[place], fontsize=11)
        panels.append(panel)
    add_key(figure, panels, coloring, marks)
    return figure


def _thin(
    where: list[FloatArray], graphs: figures.Graphs, marks: Marks, most: int, seed: int
) -> None:
    """Take the places of nodes away that a sample leaves out, in all panels alike."""
    name, graph = graphs[0]
    if marks.labels is not None:
        known = marks.labels.for_rows(graph.n_nodes, graph.ids, name)
        marks = replace(marks, labels=known)
    kept = np.zeros(graph.n_nodes, bool)
    kept[drawn(graph, where[0], marks, most, seed)[0]] = True
    names = None if graph.ids is None else set(np.array(graph.ids)[kept])
    for at, (_, other) in zip(where, graphs, strict=True):
        if names is not None and other.ids is not None and other.ids != graph.ids:
            at[[one not in names for one in other.ids]] = np.nan
        else:
            at[~kept] = np.nan


def _drawn_edges(named: tuple[str, Graph], at: FloatArray) -> int:
    edges, there = named[1].adjacency.tocoo(), ~np.isnan(at[:, 0])
    both = int((there[edges.row] & there[edges.col]).sum())
    return both if named[1].directed else both // 2


def _coloring(
    graphs: figures.Graphs,
    labels: Labels | None,
    none: str,
    values: Features | str | None,
) -> tuple[Coloring, list[Any]]:
    """Return the colors of all panels, and what each node is colored by."""
    if labels is not None:
        codes = [labels.for_rows(g.n_nodes, g.ids, name).codes for name, g in graphs]
        gaps = none if any((one < 0).any() for one in codes) else ""
        return by_class(labels.classes, labels.counts(), gaps=gaps), codes
    if values is None:
        # Many dots, in a color of their own, would hide the edges.
        many = max(graph.n_edges for _, graph in graphs) > RASTERIZED
        plain = Coloring(plain=INK if many else _NODE)
        return plain, [np.zeros(graph.n_nodes) for _, graph in graphs]
    if values == "degree":
        own = [np.diff(graph.adjacency.indptr).astype(float) for _, graph in graphs]
        return by_value(own, "edges of a node"), own
    if values == "error":
        own = [figures.errors_of(graph, name) for name, graph in graphs]
        return by_value(own, "error J of a node"), own
    if isinstance(values, str):
        raise ParameterError(
            f"values {values!r} are neither 'degree' nor 'error' nor numbers"
        )
    column = np.asarray(values.x[:, 0], np.float64)
    own = [figures.for_nodes(column, values, graph, name) for name, graph in graphs]
    # The column says more than the file that it is in.
    file, _, item = values.name.rpartition("::")
    title = item if file else item.replace("\\", "/").rpartition("/")[2]
    return by_value(own, title), own


def _sized_figure(
    count: int, width: float, extent: Any, coloring: Coloring, marks: Any, title: Any
) -> Any:
    """Return a figure with room for panels, the legend below and the bar beside."""
    aspect = 0.95
    if len(extent) == 2:
        across, up = extent
        aspect = float(np.clip(up / across if across > 0 else 1.0, 0.4, 1.4))
    whole = width * count + BAR * (coloring.mappable is not None)
    rows = -(-len(marks) // legend_columns(marks, whole)) if marks else 0
    return figures.new_panels(whole, width * aspect + 0.45 + 0.22 * rows, title)


def _panel(figure: Any, count: int, place: int, low: Any, high: Any, view: Any) -> Any:
    """Return axes with room for all coordinates, equal in all directions."""
    # Left to itself, a 3-D picture would put lines before nodes.
    three = {"projection": "3d", "computed_zorder": False} if len(low) == 3 else {}
    panel: Any = figure.add_subplot(1, count, place + 1, **three)
    margin = 0.03 * float((high - low).max()) or 1.0
    for name, start, stop in zip("xyz", low - margin, high + margin, strict=False):
        getattr(panel, f"set_{name}lim")(start, stop)
        getattr(panel, f"set_{name}ticks")([])
    if len(low) == 3:
        panel.set_box_aspect(high - low + 2 * margin, zoom=1.05)
        if view is not None:
            panel.view_init(*view)
        for axis in (panel.xaxis, panel.yaxis, panel.zaxis):
            axis.set_pane_color("#f4f4f4")
            axis.line.set_color("#c0c0c0")
    else:
        panel.set_aspect("equal")
        panel.spines[:].set_color("#c0c0c0")
    return panel


def _add_nodes(
    panel: Any, at: Any, coloring: Coloring, own: Any, rasterized: bool
) -> None:
    """Add nodes as dots, in their own order: no class lies on top of the others."""
    colors, shapes = coloring.paint(own)
    there = ~np.isnan(at[:, 0])
    three = {"depthshade": bool(coloring.plain)} if at.shape[1] == 3 else {}
    size = float(np.clip(14000 / max(1, there.sum()), 0.4, 14))
    style: Any = {
        "s": size,
        "linewidths": 0,
        "zorder": 3,
        "rasterized": rasterized,
        **three,
    }
    for shape in np.unique(shapes[there]):
        drawn = there & (shapes == shape)
        panel.scatter(*at[drawn].T, c=colors[drawn], marker=_MARKERS[shape], **style)


_RINGS = ("o", "D", "s")  # of the kinds of findings
_RINGED = 100  # findings of a kind


def _add_findings(panel: Any, at: Any, findings: Findings) -> list[Any]:
    """Mark the first findings of every kind; return what the legend says of them."""
    marks = []
    style = {"facecolors": "none", "edgecolors": "#000000b0", "linewidths": 0.8}
    for kind, (name, shape) in enumerate(zip(KINDS, _RINGS, strict=True)):
        every = findings.at(kind)
        some = every[:_RINGED]
        nodes = findings.node[some]
        if name == KINDS[0]:  # a pair is two nodes
            nodes = np.append(nodes, findings.other[some])
        nodes = np.unique(nodes[nodes >= 0])
        if not len(nodes):
            continue
        few = f"{len(some)} of {len(every):,}" if len(every) > len(some) else len(every)
        text = f"{name} ({few})"
        style |= {"marker": shape, "s": 26, "zorder": 4, "label": text}
        marks.append(panel.scatter(*at[nodes].T, **style))
    return marks
