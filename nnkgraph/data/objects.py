"""Objects of other packages: graphs that become theirs, and data frames."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, ParameterError, ResourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


class Convertible:
    """What a graph needs to become an object of another package.

    Every node is kept, with or without an edge; an undirected edge is given once. Edges
    have ``weight``, and ``distance`` where the kernel has any; nodes have ``error``,
    their J, where the method has one.
    """

    adjacency: csr_array
    ids: tuple[str, ...] | None
    directed: bool
    errors: NDArray[np.floating[Any]] | None
    distances: NDArray[np.floating[Any]] | None

    def to_scipy(self, what: str = "weight") -> csr_array:
        """Return a copy of the adjacency matrix.

        Parameters
        ----------
        what : {"weight", "distance"}
            With "distance" entries are how far the ends of the edges are apart, as
            methods with ``metric="precomputed"`` expect; those of identical rows are
            zeros that are stored.
        """
        if what not in {"weight", "distance"}:
            raise ParameterError(f"`what` is 'weight' or 'distance', not {what!r}")
        copy = self.adjacency.copy()
        if what == "distance":
            if self.distances is None:
                raise ParameterError("this graph has no distances: its kernel has none")
            copy.data = np.array(self.distances)
        return copy

    def to_networkx(self) -> Any:
        """Return a ``networkx.Graph``, or a ``DiGraph`` where edges have a direction.

        Nodes are known by their ids, or by their numbers where they have none.
        """
        networkx = _package("networkx")
        graph = networkx.DiGraph() if self.directed else networkx.Graph()
        n = self.adjacency.shape[0]
        names = range(n) if self.ids is None else self.ids
        if self.errors is None:
            graph.add_nodes_from(names)
        else:
            values = self.errors.tolist()
            graph.add_nodes_from(
                (name, {"error": value})
                for name, value in zip(names, values, strict=True)
            )
        source, target, values = self._edges()
        lists = (one.tolist() for one in values.values())
        graph.add_edges_from(
            (names[i], names[j], dict(zip(values, own, strict=True)))
            for i, j, *own in zip(source.tolist(), target.tolist(), *lists, strict=True)
        )
        return graph

    def to_igraph(self) -> Any:
        """Return an ``igraph.Graph``; ids are the vertex attribute ``name``."""
        igraph = _package("igraph")
        source, target, values = self._edges()
        graph = igraph.Graph(
            self.adjacency.shape[0],
            np.column_stack([source, target]).tolist(),
            directed=self.directed,
        )
        for name, own in values.items():
            graph.es[name] = own.tolist()
        if self.ids is not None:
            graph.vs["name"] = list(self.ids)
        if self.errors is not None:
            graph.vs["error"] = self.errors.tolist()
        return graph

    def to_pygsp(self) -> Any:
        """Return a ``pygsp.graphs.Graph``; errors are its signal ``error``.

        Nodes are known by their numbers there, so ids are left behind.
        """
        graph = _package("pygsp").graphs.Graph(self.to_scipy())
        if self.errors is not None:
            graph.set_signal(np.array(self.errors), "error")
        return graph

    def _edges(self) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]]]:
        """Return sources, targets and values; undirected from the lower node."""
        edges = self.adjacency.tocoo()
        kept = slice(None) if self.directed else edges.row < edges.col
        values = {"weight": edges.data[kept]}
        if self.distances is not None:
            values["distance"] = self.distances[kept]
        return edges.row[kept], edges.col[kept], values


def frame_values(
    frame: Any, name: str
) -> tuple[NDArray[Any], list[str] | None, tuple[str, ...]]:
    """Return the values, ids and column names of a data frame of pandas or polars.

    Raises
    ------
    InputError
        Where a column holds no numbers; the message names it.
    """
    columns = tuple(map(str, frame.columns))
    parts = [np.asarray(frame[column].to_numpy()) for column in frame.columns]
    odd = [
        column
        for column, values in zip(columns, parts, strict=True)
        if values.dtype.kind not in "biuf"
    ]
    if odd:
        raise InputError(
            f"{name}: columns without numbers: {', '.join(map(repr, odd[:5]))}"
            f"{', ...' * (len(odd) > 5)}; leave them out, or make numbers of them"
        )
    values = np.column_stack(parts) if parts else np.empty((len(frame), 0))
    index: Any = getattr(frame, "index", None)  # polars has none
    counted = index is None or (
        index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(frame)))
    )
    return values, None if counted else [str(one) for one in index], columns


def _package(name: str) -> Any:
    """Import a package that only some users have."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is there, but lacks something itself
            raise
        raise ResourceError(f"this needs {name}: pip install {name}") from error
