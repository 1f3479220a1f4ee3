"""Results as files: predictions, labels and coordinates as tables and arrays."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.runtime.archive import write_archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nnkgraph.data import FloatArray, Graph
    from nnkgraph.tasks.classify import Classified, Predictions
    from nnkgraph.tasks.cluster import Clustered
    from nnkgraph.tasks.embed import Embedding
    from nnkgraph.tasks.propagate import Checked, Propagated


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


def parquet_table(columns: Mapping[str, Any]) -> bytes:
    """Return columns by their names as a Parquet file."""
    from nnkgraph.formats.parquet import arrow

    pa = arrow()
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table(dict(columns)), buffer)
    return buffer.getvalue()


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


def ids_of(ids: Sequence[str] | None) -> dict[str, Any]:
    """Return the member of an .npz file for ids, where there are any."""
    return {} if ids is None else {"ids": np.array(ids, np.str_)}


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
        return archive(members | ids_of(graph.ids))
    p = found.coordinates.shape[1]
    columns = [numbers(found.coordinates[:, at]) for at in range(p)]
    header = ["id", *(f"e{at}" for at in range(1, p + 1))]
    return text_table(path, header, [names(graph), *columns])


CLUSTER_SUFFIXES = (".csv", ".tsv", ".parquet")


def cluster_content(path: str, graph: Graph, found: Clustered) -> bytes:
    """Return the file: id and cluster; of several resolutions a column each."""
    several = len(found.partitions) > 1
    columns = {
        f"cluster_{one.resolution:g}" if several else "cluster": one.clusters
        for one in found.partitions
    }
    ids = names(graph)
    if path.lower().endswith(".parquet"):
        return parquet_table({"id": np.array(ids), **columns})
    values = [one.tolist() for one in columns.values()]
    return text_table(path, ["id", *columns], [ids, *values])


LABEL_SUFFIXES = (".csv", ".tsv", ".npz")

_MOST = 50  # up to so many classes have a column each in a table of text


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
        return archive(members | ids_of(graph.ids))
    header = ["id", "label", "confidence", "given"]
    given = np.where(found.given, "yes", "no").tolist()
    columns = [names(graph), texts.tolist(), numbers(found.confidence), given]
    if len(classes) <= _MOST:
        header += [f"weight_{one}" for one in classes]
        columns += [numbers(found.weights[:, at]) for at in range(len(classes))]
    return text_table(path, header, columns)


def check_content(
    path: str, graph: Graph, found: Checked, classes: tuple[str, ...]
) -> bytes:
    """Return the file of known labels: id, label, confidence and suggested."""
    every, ids = np.array([*classes, ""], np.str_), np.array(names(graph))
    columns: dict[str, Any] = {
        "id": ids[found.nodes],
        "label": every[found.codes],
        "confidence": found.confidence,
        "suggested": every[found.suggested],
    }
    if path.lower().endswith(".npz"):
        return archive(columns)
    columns["confidence"] = numbers(found.confidence)
    return text_table(path, list(columns), list(columns.values()))


def as_csv(found: Classified) -> bytes:
    """Return a line for every row that was predicted and every method."""
    own = _present(found)
    q, count, learned = own.weights.shape
    header = ["id" if own.ids else "row", "method", "class", "predicted"]
    header += ["neighbors", "J", *(f"weight_{c}" for c in found.classes[:learned])]
    classes = np.array([*found.classes, ""], np.str_)
    truth = np.full(q, -1) if own.truth is None else own.truth
    columns = [
        [*(own.rows.tolist() if own.ids is None else own.ids)] * count,
        np.repeat(own.methods, q).tolist(),
        np.tile(classes[truth], count).tolist(),
        classes[own.predicted.T.ravel()].tolist(),
        own.neighbors.T.ravel().tolist(),
        numbers(own.errors.T.ravel()),
        *(numbers(own.weights[:, :, c].T.ravel()) for c in range(learned)),
    ]
    return text_table("", header, columns)


def as_npz(found: Classified) -> bytes:
    """Return arrays by method and row; classes are numbered, -1 is unknown."""
    own = _present(found)
    arrays = {
        "classes": np.array(found.classes, np.str_),
        "methods": np.array(own.methods, np.str_),
        "rows": own.rows,
        "true": np.full(len(own.rows), -1) if own.truth is None else own.truth,
        "predicted": own.predicted.T,
        "weights": own.weights.transpose(1, 0, 2),
        "errors": own.errors.T,
        "neighbors": own.neighbors.T,
    }
    return archive(arrays | ids_of(own.ids))


def _present(found: Classified) -> Predictions:
    if found.predictions is None:
        raise ValueError("there is no test part, and nobody asked for predictions")
    return found.predictions
