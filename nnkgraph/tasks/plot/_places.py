"""What belongs to each node: coordinates and values in the order of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.tasks.layout import lay_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Graph
    from nnkgraph.stages import Stages
    from nnkgraph.tasks.plot._figure import Graphs

_SHOWN = 5


def places(
    coordinates: Features, columns: tuple[int, ...] | None
) -> NDArray[np.float64]:
    """Return two or three columns; a node that lacks one of them lacks all.

    Raises
    ------
    InputError
        Where there are more columns and nobody chose, or no node has a place.
    """
    x, name = coordinates.x, coordinates.name
    if columns is None:
        if x.shape[1] not in {2, 3}:
            advice = ": choose with --axes, as in --axes 0,1" if x.shape[1] > 3 else ""
            raise InputError(
                f"{name}: {x.shape[1]} columns; a picture needs 2 or 3 of them{advice}"
            )
        columns = tuple(range(x.shape[1]))
    if len(columns) not in {2, 3} or max(columns) >= x.shape[1] or min(columns) < 0:
        raise ParameterError(
            f"{name}: --axes {','.join(map(str, columns))} has to name 2 or 3 of the "
            f"columns 0 to {x.shape[1] - 1}"
        )
    at = np.array(x[:, list(columns)], np.float64)
    at[np.isnan(at).any(axis=1)] = np.nan
    if np.isnan(at).all():
        raise InputError(f"{name}: no node has coordinates; all rows have a NaN")
    return at


def for_nodes(
    values: NDArray[np.float64], source: Features, graph: Graph, name: str
) -> NDArray[np.float64]:
    """Return rows in the order of a graph's nodes, NaN where a node has none.

    Where both sides have names, names decide; otherwise the order does, and the
    numbers must agree.
    """
    if source.ids is None or graph.ids is None:
        if len(values) != graph.nodes:
            raise InputError(
                f"{source.name}: {len(values)} rows, but {name} has {graph.nodes} nodes"
            )
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
    ordered = np.full((graph.nodes, *values.shape[1:]), np.nan)
    ordered[[place[one] for one in source.ids]] = values
    return ordered


def laid_out(graphs: Graphs, *, stages: Stages | None = None) -> Features:
    """Return coordinates for all graphs, from the edges of the first one."""
    name, graph = graphs[0]
    places = lay_out(graph, stages=stages)
    return Features(places, graph.ids, f"the layout of {name}")


def count_unplaced(
    graphs: Graphs, coordinates: Features, columns: tuple[int, ...] | None
) -> int:
    """Return how many nodes of a graph have no coordinates and are not drawn."""
    at = places(coordinates, columns)
    where = [for_nodes(at, coordinates, graph, name) for name, graph in graphs]
    return max(int(np.isnan(one[:, 0]).sum()) for one in where)


def errors_of(graph: Graph, name: str) -> NDArray[np.float64]:
    """Return J of every node, or say why there is none."""
    if graph.errors is None:
        raise InputError(
            f"{name}: the file holds no error J per node; build it with a "
            "method that has one, such as nnk"
        )
    return np.asarray(graph.errors, np.float64)
