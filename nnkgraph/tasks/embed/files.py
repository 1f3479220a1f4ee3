"""Coordinates as a file: an array, a table of text, or an archive."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.tasks.tables import archive, names, numbers, text_table

if TYPE_CHECKING:
    from nnkgraph.data import Graph
    from nnkgraph.tasks.embed import Embedding

SUFFIXES = (".npy", ".csv", ".tsv", ".npz")


def content(path: str, graph: Graph, found: Embedding) -> bytes:
    """Return the file; nodes that were left out are NaN, or empty in a table."""
    ending = path.lower()[-4:]
    if ending == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, found.coordinates, allow_pickle=False)
        return buffer.getvalue()
    if ending == ".npz":
        members = {
            "coordinates": found.coordinates,
            "eigenvalues": found.eigenvalues,
            "component": found.component,
        }
        if graph.ids is not None:
            members["ids"] = np.array(graph.ids, np.str_)
        return archive(members)
    p = found.coordinates.shape[1]
    columns = [numbers(found.coordinates[:, at]) for at in range(p)]
    header = ["id", *(f"e{at}" for at in range(1, p + 1))]
    return text_table(path, header, [names(graph), *columns])
