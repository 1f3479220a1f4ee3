"""Valid files of cells as scanpy and Cell Ranger leave them, by h5py alone."""

from __future__ import annotations

import io

import h5py
import numpy as np
from scipy import io as scipy_io
from scipy import sparse


def anndata(x: np.ndarray) -> bytes:
    """Return a file with sparse counts, components, a category and a graph's place."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        _say(file, "anndata", "0.1.0")
        counts = sparse.csr_array(np.maximum(x, 0))
        group = _group(file, "X", "csr_matrix", "0.1.0")
        group.attrs["shape"] = counts.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(counts, part)
        obs = _frame(file, "obs", [f"cell {i}" for i in range(len(x))])
        obs["depth"] = x.sum(axis=1)
        kind = _group(obs, "kind", "categorical", "0.2.0")
        kind["codes"] = np.resize(np.array([0, 1, -1], np.int8), len(x))
        kind["categories"] = ["B", "T"]
        _frame(file, "var", [f"gene {i}" for i in range(x.shape[1])])
        _group(file, "obsm", "dict", "0.1.0")["X_pca"] = x
        _group(file, "obsp", "dict", "0.1.0")
        uns = _group(file, "uns", "dict", "0.1.0")
        params = _group(uns, "neighbors", "dict", "0.1.0").create_group("params")
        params["n_neighbors"], params["method"] = 4, "umap"
    return stream.getvalue()


def cell_ranger(x: np.ndarray, *, genome: str = "") -> bytes:
    """Return a file of version 3, or of version 2 for a genome."""
    stream, counts = io.BytesIO(), sparse.csr_array(np.maximum(x, 0).astype("i4"))
    with h5py.File(stream, "w") as file:
        group = file.create_group(genome or "matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(counts, part)
        group["shape"] = np.array(counts.shape[::-1], "i4")
        group["barcodes"] = np.array([f"cell {i}" for i in range(len(x))], "S")
        kinds = np.array(
            ["Gene Expression", "Antibody Capture", "Gene Expression"], "S"
        )
        if genome:
            group["genes"] = kinds
        else:
            group["features/feature_type"] = kinds
    return stream.getvalue()


def matrix_market(x: np.ndarray, *, array: bool = False) -> bytes:
    """Return counts as text."""
    stream = io.BytesIO()
    scipy_io.mmwrite(stream, x if array else sparse.coo_array(np.maximum(x, 0)))
    return stream.getvalue()


def _frame(file: h5py.Group, name: str, index: list[str]) -> h5py.Group:
    frame = _group(file, name, "dataframe", "0.2.0")
    frame.attrs["_index"] = "_index"
    frame["_index"] = index
    return frame


def _group(parent: h5py.Group, name: str, kind: str, version: str) -> h5py.Group:
    group = parent.create_group(name)
    _say(group, kind, version)
    return group


def _say(node: h5py.Group, kind: str, version: str) -> None:
    node.attrs["encoding-type"], node.attrs["encoding-version"] = kind, version
