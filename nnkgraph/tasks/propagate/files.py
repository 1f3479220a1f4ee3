"""Propagated labels as a file: a table of text or an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnkgraph.tasks.tables import archive, names, numbers, text_table

if TYPE_CHECKING:
    from nnkgraph.data import Graph
    from nnkgraph.tasks.propagate import Propagated

SUFFIXES = (".csv", ".tsv", ".npz")

_MOST = 50
"""Up to so many classes have a column each in a table of text."""


def content(
    path: str, graph: Graph, found: Propagated, classes: tuple[str, ...]
) -> bytes:
    """Return the file: id, label, confidence, given, and the weight of every class."""
    texts = np.array([*classes, ""], np.str_)[found.codes]
    if path.lower().endswith(".npz"):
        members = {
            "labels": texts,
            "codes": found.codes,
            "classes": np.array(classes, np.str_),
            "confidence": found.confidence,
            "weights": found.weights,
            "given": found.given,
        }
        if graph.ids is not None:
            members["ids"] = np.array(graph.ids, np.str_)
        return archive(members)
    header = ["id", "label", "confidence", "given"]
    given = np.where(found.given, "yes", "no").tolist()
    columns = [names(graph), texts.tolist(), numbers(found.confidence), given]
    if len(classes) <= _MOST:
        header += [f"weight_{one}" for one in classes]
        columns += [numbers(found.weights[:, at]) for at in range(len(classes))]
    return text_table(path, header, columns)
