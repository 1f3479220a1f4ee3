"""Empty figures, what stands above them, and their bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ResourceError

if TYPE_CHECKING:
    from nnkgraph.data import Graph

    Graphs = list[tuple[str, Graph]]
    """Graphs and the names of their files, one panel each."""

SUFFIXES = (".png", ".svg", ".pdf")
WIDTH = 5.2
"""Of one panel, in inches: two fill a page of text."""

INK, QUIET = "#0072b2", "#767676"
"""For what matters, and for what goes beside it."""

_DPI = {"png": 120}
"""Of a png; what is rasterized inside of a vector graphic is finer."""


BAR = 1.0
"""Room for a color bar, in inches."""


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, its size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ResourceError(
            "pictures need matplotlib: pip install 'nnkgraph[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def new_panels(width: float, height: float, title: str | None) -> Any:
    """Return an empty figure whose panels keep their shape, with room for a title."""
    figure = new_figure(width, height + 0.4 * (title is not None))
    figure.set_layout_engine("compressed", h_pad=0.08, w_pad=0.08)
    if title is not None:
        figure.suptitle(title.replace("$", r"\$"), fontsize=13)
    return figure


def rendered(figure: Any, name: str) -> bytes:
    """Return a figure as the bytes of a file; equal figures give equal bytes."""
    import matplotlib as mpl

    ending = name.lower().rpartition(".")[2]
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "nnkgraph"}):
        figure.savefig(
            buffer,
            format=ending,
            dpi=_DPI.get(ending, 200),
            metadata=dates.get(ending),
        )
    return buffer.getvalue()


def titles(graphs: Graphs) -> list[str]:
    """Return what stands above each panel: how the graph was made, and its size."""
    made = [_made(name, graph) for name, graph in graphs]
    if len(set(made)) < len(made):
        made = [name.replace("\\", "/").rpartition("/")[2] for name, _ in graphs]
    return [
        f"{_plain(one)}: {graph.edges} edges, {graph.edges / graph.nodes:.1f} per node"
        for one, (_, graph) in zip(made, graphs, strict=True)
    ]


def _made(name: str, graph: Graph) -> str:
    known = graph.provenance
    if "method" not in known or "k" not in known:
        return name
    return f"{known['method']}, k = {known['k']}"


def _plain(text: str) -> str:
    """Return text that is drawn as it is: no formulas, the end of a long path."""
    short = text if len(text) <= 40 else "..." + text[-37:]
    return "".join(c if c.isprintable() else "?" for c in short).replace("$", r"\$")
