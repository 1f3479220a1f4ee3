"""What the page draws: places, edges and colors of nodes, in few bytes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError
from nnkgraph.tasks.audit.table import KINDS
from nnkgraph.tasks.laplacian import pieces
from nnkgraph.tasks.layout import lay_out
from nnkgraph.tasks.plot import figure
from nnkgraph.tasks.sample import drawn, subgraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import Features, FloatArray, Graph, IndexArray
    from nnkgraph.data.labels import Labels
    from nnkgraph.runtime.progress import Stages
    from nnkgraph.tasks.findings import Findings
    from nnkgraph.tasks.sample import Marks

MOST_EDGES = 150_000  # of more, nodes keep their heaviest
MOST_FINDINGS = 1000  # of a kind, the most suspicious first
_LETTERS = 120  # of a name
_PLACES = 65_535  # steps of a coordinate, and of a logarithm


def drawn_facts(
    graph: Graph,
    name: str,
    marks: Marks,
    coordinates: Features | None,
    most: int,
    seed: int,
    progress: Stages | None,
) -> dict[str, Any]:
    """Return ``graph``, what is drawn, its ``caption`` and the ``findings``."""
    if coordinates is None:
        at: FloatArray = lay_out(graph, progress=progress)
        caption = (
            "Laid out by the graph alone: neighbors attract each other, and all "
            "others keep their distance."
        )
    else:
        at, caption = _given(graph, name, coordinates)
    nodes, what = drawn(graph, at, marks, most, seed)
    found = marks.findings
    if len(nodes) == most < graph.n_nodes:
        caption = (
            f"A sample of {len(nodes):,} of {graph.n_nodes:,} nodes, with the edges "
            f"between them: of each {what} its share, drawn at random (seed {seed}), "
            f"each with its heaviest neighbors. {caption}"
        )
    edges, cut = _edges(subgraph(graph, nodes))
    if cut:
        caption += (
            f" Of {cut:,} edges the {len(edges['weight']):,} are drawn that are the "
            "heaviest of their nodes."
        )
    kept = at[nodes]
    degree = np.diff(graph.adjacency.indptr)[nodes]
    facts = {
        "n": len(nodes),
        "x": _steps(kept[:, 0] + 0.5),
        "y": _steps(kept[:, 1] + 0.5),
        "source": _pack(edges["source"], "u4"),
        "target": _pack(edges["target"], "u4"),
        "weight": _logs(edges["weight"]),
        "distance": _logs(edges["distance"]) if "distance" in edges else None,
        "error": None if graph.errors is None else _pack(graph.errors[nodes], "f4"),
        "degree": _pack(degree, "u4"),
        "ids": None if graph.ids is None else [_short(graph.ids[i]) for i in nodes],
        "number": None if len(nodes) == graph.n_nodes else _pack(nodes, "u4"),
        "directed": graph.directed,
        "turns": coordinates is None,
        "colorings": _colorings(graph, marks, nodes),
    }
    return {
        "caption": caption,
        "graph": facts,
        "findings": None if found is None else _listed(graph, found, nodes),
    }


def _edges(graph: Graph) -> tuple[dict[str, Any], int]:
    """Return edges, heaviest first, and of how many where they are not all."""
    whole = graph.adjacency
    every = whole.tocoo()
    once = np.full(whole.nnz, True) if graph.directed else every.row < every.col
    # Of every node, its heaviest edge is the first, and so on.
    order = np.lexsort((every.col, -every.data, every.row))
    rank = np.empty(whole.nnz, np.int64)
    rank[order] = np.arange(whole.nnz) - whole.indptr[every.row[order]]
    if not graph.directed:  # an edge counts for the end that needs it more
        back = np.lexsort((every.row, every.col))
        rank = np.minimum(rank, rank[back])
    chosen = np.flatnonzero(once)
    total = len(chosen)
    weight = every.data[chosen]
    if total > MOST_EDGES:
        chosen = chosen[np.lexsort((-weight, rank[chosen]))[:MOST_EDGES]]
    chosen = chosen[np.argsort(-every.data[chosen], kind="stable")]
    found = {
        "source": every.row[chosen],
        "target": every.col[chosen],
        "weight": every.data[chosen],
    }
    if graph.distances is not None:
        found["distance"] = graph.distances[chosen]
    return found, total if total > MOST_EDGES else 0


def _pack(values: Any, kind: str) -> dict[str, Any]:
    """Return numbers as text that a browser makes a typed array of."""
    if kind == "u4" and (not len(values) or values.max() <= _PLACES):
        kind = "u2"
    raw = np.ascontiguousarray(values, f"<{kind}").tobytes()
    return {"kind": kind, "data": base64.b64encode(raw).decode()}


def _steps(values: FloatArray) -> dict[str, Any]:
    """Return numbers from 0 to 1 in two bytes; those that are not there are 65535."""
    steps = np.clip(np.round(values * (_PLACES - 1)), 0, _PLACES - 1)
    return _pack(np.where(np.isfinite(values), steps, _PLACES), "u2")


def _logs(values: FloatArray) -> dict[str, Any]:
    """Return numbers in two bytes, to about four digits: the logarithm of their size.

    Negative ones, which few graphs have, are stored as they are.
    """
    if not len(values) or values.min() < 0 or not values.max() > 0:
        return _pack(values, "f4")
    low, high = np.log(values[values > 0].min()), np.log(values.max())
    with np.errstate(divide="ignore"):
        share = (np.log(values) - low) / ((high - low) or 1.0)
    steps = np.where(values > 0, 1 + np.round(share * (_PLACES - 1)), 0)
    return {**_pack(steps, "u2"), "low": float(low), "high": float(high)}


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[:80]}…{name[-38:]}"


def _colorings(graph: Graph, marks: Marks, nodes: IndexArray) -> list[dict[str, Any]]:
    """Return what nodes can be colored by: the first is shown first."""
    found = []
    if marks.clusters is not None:
        names = _titles(graph, marks.clusters, marks)
        # What has edges and no cluster is not isolated: clusters are given for some.
        joined = np.diff(graph.adjacency.indptr)[~marks.clusters.known].any()
        none = "no cluster" if joined else "isolated"
        found.append(_coloring("cluster", marks.clusters, names, nodes, none))
    if marks.labels is not None:
        of = marks.labels
        found.append(_coloring("class", of, of.classes, nodes, "no label"))
    parts = sorted(pieces(graph.adjacency), key=len, reverse=True)
    if len(parts) > 1:
        code = np.empty(graph.n_nodes, np.int64)
        code[np.concatenate(parts)] = np.repeat(
            np.arange(len(parts)), [*map(len, parts)]
        )
        shown = np.minimum(code, 10)
        number = min(len(parts), 10)
        few = [f"component {at + 1}" for at in range(number)]
        counts = np.bincount(shown, minlength=11)
        codes = np.where(shown[nodes] < 10, shown[nodes], -1)
        found.append(
            {
                "name": "component",
                "codes": _pack(codes, "i4"),
                "classes": few,
                "counts": counts[:number].tolist(),
                "none": ["smaller components", int(counts[10])],
            }
        )
    return found


def _coloring(
    what: str, labels: Labels, names: Sequence[str], nodes: IndexArray, none: str
) -> dict[str, Any]:
    """Return classes, the largest first, with their sizes in the whole graph."""
    counts = labels.counts()
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    place = np.full(len(counts) + 1, -1)
    place[order] = np.arange(len(order))
    return {
        "name": what,
        "codes": _pack(place[labels.codes[nodes]], "i4"),
        "classes": [_short(names[at]) for at in order],
        "counts": counts[order].tolist(),
        "none": [none, int((~labels.known).sum())],
    }


def _titles(graph: Graph, clusters: Labels, marks: Marks) -> list[str]:
    """Name clusters: by their commonest class, or the node with most weight inside."""
    count, codes = len(clusters.classes), clusters.codes
    if marks.labels is not None:
        both = clusters.known & marks.labels.known
        size = (count, len(marks.labels.classes))
        table = np.zeros(size, np.int64)
        np.add.at(table, (codes[both], marks.labels.codes[both]), 1)
        says = [
            marks.labels.classes[row.argmax()] if row.any() else "" for row in table
        ]
    elif graph.ids is not None:
        edges = graph.adjacency.tocoo()
        inside = codes[edges.row] == codes[edges.col]
        weight = np.bincount(edges.row[inside], edges.data[inside], graph.n_nodes)
        order = np.lexsort((np.arange(graph.n_nodes), -weight, codes))
        begin = np.searchsorted(codes[order], np.arange(count))
        says = [graph.ids[order[min(at, len(order) - 1)]] for at in begin]
    else:
        return list(clusters.classes)
    return [
        f"{name} · {said}" if said else name
        for name, said in zip(clusters.classes, says, strict=True)
    ]


def _listed(graph: Graph, found: Findings, nodes: IndexArray) -> list[dict[str, Any]]:
    """Return every kind of findings: how many, and the first of them."""
    place = np.full(graph.n_nodes + 1, -1)
    place[nodes] = np.arange(len(nodes))
    name: Any = range(graph.n_nodes) if graph.ids is None else graph.ids
    layers = []
    for kind, title in enumerate(KINDS):
        every = found.at(kind)
        rows = [
            {
                "node": int(place[found.node[at]]),
                "other": int(place[found.other[at]]),
                "id": _short(str(name[found.node[at]])),
                "with": _short(str(name[found.other[at]]))
                if found.other[at] >= 0
                else "",
                **found.rows[at],
            }
            for at in every[:MOST_FINDINGS]
        ]
        layers.append({"name": title, "count": len(every), "rows": rows})
    return layers


def _given(graph: Graph, name: str, coordinates: Features) -> tuple[FloatArray, str]:
    """Return the places that the user gave, in a frame of their own."""
    if coordinates.x.shape[1] < 2:
        raise InputError(f"{coordinates.name}: one column; a drawing needs two")
    at = figure.for_nodes(figure.places(coordinates, (0, 1)), coordinates, graph, name)
    there = np.isfinite(at[:, 0])
    low, high = at[there].min(axis=0), at[there].max(axis=0)
    at = (at - (low + high) / 2) / (np.max(high - low) or 1.0)
    more = coordinates.x.shape[1] > 2
    caption = "Nodes are at the given coordinates"
    caption += f" (the first two of {coordinates.x.shape[1]} columns)." if more else "."
    if not there.all():
        caption += f" {int((~there).sum()):,} nodes have none and are left out."
    return at, caption
