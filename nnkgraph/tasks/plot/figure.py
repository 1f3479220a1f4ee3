"""Figures, and what belongs to each node: coordinates and values in its order."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features, Graph
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.tasks.layout import lay_out

if TYPE_CHECKING:
    from nnkgraph.data import FloatArray
    from nnkgraph.runtime.progress import Stages

Graphs = list[tuple[str, Graph]]  # graphs and the names of their files, one panel each
SUFFIXES = (".png", ".svg", ".pdf")
WIDTH = 5.2  # of one panel, in inches: two fill a page of text
INK, QUIET = "#0072b2", "#767676"  # for what matters, and for what goes beside it
BAR = 1.0  # room for a color bar, in inches


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, its size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ResourceError(
            "pictures need matplotlib: pip install 'nnkgraph[plot]'"
        ) from error
    except ValueError as error:
        raise ParameterError(
            f"matplotlib cannot start: {error}; look at MPLBACKEND, MATPLOTLIBRC and "
            "matplotlibrc"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def new_panels(width: float, height: float, title: str | None) -> Any:
    """Return an empty figure whose panels keep their shape, with room for a title."""
    figure = new_figure(width, height + 0.4 * (title is not None))
    figure.set_layout_engine("compressed", h_pad=0.08, w_pad=0.08)
    if title is not None:
        figure.suptitle(title.replace("$", r"\$"), fontsize=13)
    return figure


def color_bar(figure: Any, mappable: Any, panels: list[Any], name: str) -> Any:
    """Put a color bar beside panels."""
    bar = figure.colorbar(mappable, ax=panels, shrink=0.8, pad=0.02)
    bar.set_label(name, fontsize=10)
    bar.ax.tick_params(labelsize=9, color=QUIET)
    bar.outline.set_visible(False)
    return bar


def rendered(figure: Any, name: str) -> bytes:
    """Return a figure as the bytes of a file; equal figures give equal bytes."""
    import matplotlib as mpl

    ending = name.lower().rpartition(".")[2]
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
    dpi = (
        120 if ending == "png" else 200
    )  # what vector graphics hold as pixels is finer
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "nnkgraph"}):
        figure.savefig(buffer, format=ending, dpi=dpi, metadata=date)
    return buffer.getvalue()


def titles(graphs: Graphs) -> list[str]:
    """Return what stands above each panel: how the graph was made, and its size."""
    made = []
    for name, graph in graphs:
        known = graph.provenance
        told = "method" in known and "k" in known
        made.append(f"{known['method']}, k = {known['k']}" if told else name)
    if len(set(made)) < len(made):
        made = [name.replace("\\", "/").rpartition("/")[2] for name, _ in graphs]
    return [
        f"{_plain(one)}: {graph.n_edges} edges, "
        f"{graph.n_edges / graph.n_nodes:.1f} per node"
        for one, (_, graph) in zip(made, graphs, strict=True)
    ]


def _plain(text: str) -> str:
    """Return text that is drawn as it is: no formulas, the end of a long path."""
    short = text if len(text) <= 40 else "..." + text[-37:]
    return "".join(c if c.isprintable() else "?" for c in short).replace("$", r"\$")


_SHOWN = 5


def places(coordinates: Features, columns: tuple[int, ...] | None) -> FloatArray:
    """Return two or three columns; a node that lacks one of them lacks all."""
    x, name = coordinates.x, coordinates.name
    if columns is None:
        if x.shape[1] not in {2, 3}:
            advice = ": choose some, as `axes=(0, 1)`" if x.shape[1] > 3 else ""
            raise InputError(
                f"{name}: {x.shape[1]} columns; a picture needs 2 or 3 of them{advice}"
            )
        columns = tuple(range(x.shape[1]))
    if len(columns) not in {2, 3} or max(columns) >= x.shape[1] or min(columns) < 0:
        raise ParameterError(
            f"{name}: `axes={columns}` has to name 2 or 3 of the columns "
            f"0 to {x.shape[1] - 1}"
        )
    at = np.array(x[:, list(columns)], np.float64)
    at[np.isnan(at).any(axis=1)] = np.nan
    if np.isnan(at).all():
        raise InputError(f"{name}: no node has coordinates; all rows have a NaN")
    return at


def for_nodes(
    values: FloatArray, source: Features, graph: Graph, name: str
) -> FloatArray:
    """Return rows in the order of a graph's nodes, NaN where a node has none.

    Where both sides have names, names decide; otherwise the order does, and the
    numbers must agree.
    """
    if source.ids is None or graph.ids is None:
        if len(values) != graph.n_nodes:
            nodes = f"{name} has {graph.n_nodes} nodes"
            raise InputError(f"{source.name}: {len(values)} rows, but {nodes}")
        return values
    if source.ids == graph.ids:
        return values
    place = {one: at for at, one in enumerate(graph.ids)}
    strange = [one for one in source.ids if one not in place]
    if strange:
        some = ", ".join(map(repr, strange[:_SHOWN]))
        verb = "id is" if len(strange) == 1 else "ids are"
        raise InputError(
            f"{source.name}: {len(strange)} {verb} not in {name}: {some}"
            + ", ..." * (len(strange) > _SHOWN)
        )
    ordered = np.full((graph.n_nodes, *values.shape[1:]), np.nan)
    ordered[[place[one] for one in source.ids]] = values
    return ordered


def laid_out(graphs: Graphs, *, progress: Stages | None = None) -> Features:
    """Return coordinates for all graphs, from the edges of the first one."""
    name, graph = graphs[0]
    places = lay_out(graph, progress=progress)
    return Features(places, graph.ids, f"the layout of {name}")


def count_unplaced(
    graphs: Graphs, coordinates: Features, columns: tuple[int, ...] | None
) -> int:
    """Return how many nodes of a graph have no coordinates and are not drawn."""
    at = places(coordinates, columns)
    where = [for_nodes(at, coordinates, graph, name) for name, graph in graphs]
    return max(int(np.isnan(one[:, 0]).sum()) for one in where)


def errors_of(graph: Graph, name: str) -> FloatArray:
    """Return J of every node, or say why there is none."""
    if graph.errors is None:
        raise InputError(
            f"{name}: the file holds no error J per node; build it with a "
            "method that has one, such as nnk"
        )
    return np.asarray(graph.errors, np.float64)
