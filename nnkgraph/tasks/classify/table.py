"""Predictions as a file: a .csv table or the arrays of an .npz."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nnkgraph.tasks.classify import Classified, Predictions


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
