"""Predictions as a file: a .csv table or the arrays of an .npz."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.archive import write_archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nnkgraph.data import FloatArray, Graph
    from nnkgraph.tasks.classify import Classified, Predictions
    from nnkgraph.tasks.embed import Embedding
    from nnkgraph.tasks.propagate import Propagated


def text_table(
    path: str, header: Sequence[str], columns: Sequence[Iterable[Any]]
) -> bytes:
    """Return columns as a table with commas, or with tabs where the name ends so."""
    delimiter = "\t" if path.lower().endswith(".tsv") else ","
    text = io.StringIO()
    table = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    table.writerow(header)
    table.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def numbers(values: FloatArray) -> Iterable[str]:
    """Return numbers as text that reads back to the same bits; NaN is empty."""
    return ("" if one != one else repr(one) for one in values.tolist())  # noqa: PLR0124


def names(graph: Graph) -> Sequence[str | int]:
    """Return the ids of the nodes, or their numbers."""
    return range(graph.n_nodes) if graph.ids is None else graph.ids


def archive(members: Mapping[str, Any]) -> bytes:
    """Return arrays as an .npz file, the same bytes every time."""
    buffer = io.BytesIO()
    write_archive(buffer, members)
    return buffer.getvalue()


EMBEDDING_SUFFIXES = (".npy", ".csv", ".tsv", ".npz")


def embedding_content(path: str, graph: Graph, found: Embedding) -> bytes:
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


LABEL_SUFFIXES = (".csv", ".tsv", ".npz")

_MOST = 50
"""Up to so many classes have a column each in a table of text."""


def label_content(
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


def as_csv(found: Classified) -> bytes:
    """Return a line for every test row and method."""
    own = _present(found)
    learned = own.weights.shape[2]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        ["id" if own.ids else "row", "method", "class", "predicted", "neighbors", "J"]
        + [f"weight_{name}" for name in found.classes[:learned]]
    )
    names: Any = own.rows.tolist() if own.ids is None else own.ids
    truth = [-1] * len(names) if own.truth is None else own.truth.tolist()
    for at, method in enumerate(own.methods):
        columns = own.predicted[:, at], own.neighbors[:, at], own.errors[:, at]
        lines = zip(
            names,
            truth,
            *(column.tolist() for column in columns),
            own.weights[:, at].tolist(),
            strict=True,
        )
        table.writerows(
            [
                name,
                method,
                "" if true < 0 else found.classes[true],
                found.classes[predicted],
                neighbors,
                "" if math.isnan(error) else repr(error),
                *map(repr, weights),
            ]
            for name, true, predicted, neighbors, error, weights in lines
        )
    return text.getvalue().encode()


def as_npz(found: Classified) -> bytes:
    """Return arrays by method and test row; classes are numbered, -1 is unknown."""
    own = _present(found)
    stream = io.BytesIO()
    rows = len(own.rows)
    arrays: dict[str, Any] = {
        "classes": np.array(found.classes),
        "methods": np.array(own.methods),
        "rows": own.rows,
        "true": np.full(rows, -1) if own.truth is None else own.truth,
        "predicted": own.predicted.T,
        "weights": own.weights.transpose(1, 0, 2),
        "errors": own.errors.T,
        "neighbors": own.neighbors.T,
    }
    if own.ids is not None:
        arrays["ids"] = np.array(own.ids)
    np.savez(stream, **arrays)
    return stream.getvalue()


def _present(found: Classified) -> Predictions:
    if found.predictions is None:
        raise ValueError("there is no test part, and so there are no predictions")
    return found.predictions
