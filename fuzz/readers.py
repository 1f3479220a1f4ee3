"""Every reader, called as commands call it, and what is done with its result."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fuzz.seeds import NEIGHBORS, NODES, RUN
from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.build.report import description
from nnkgraph.build.run import found_once
from nnkgraph.build.shards import merge_candidates, read_parts, read_solved
from nnkgraph.data import Candidates, Features
from nnkgraph.data.edges import component_labels
from nnkgraph.errors import NnkGraphError
from nnkgraph.formats import find_place
from nnkgraph.methods import nnk
from nnkgraph.runtime.checkpoint import Checkpoint, open_checkpoint
from nnkgraph.runtime.progress import Stages

ROLES = (
    *("features", "similarities", "labels", "values", "names", "candidates"),
    *("graph", "sidecar"),
    *("kept search", "kept block", "kept facts", "shard", "into", "cells"),
)
POINTS = Features.of(np.arange(2.0 * NODES).reshape(NODES, 2) ** 2)
GRAPH = build_graph(POINTS, k=NEIGHBORS, workers=1)
"""What is put into files that may take a graph."""

LOADED = (nnk, component_labels(csr_array((1, 1))))
"""What is imported, or compiled, before anybody looks at which files are opened."""

_OUTPUTS = ("out.npz", "out.graphml", "out.mtx", "out.tsv", "out.csv", "out.edgelist")
_OUTPUTS += ("out.gexf", "out.parquet", "out.pyg.npz", "out.mat")


def read(role: str, path: Path, chance: Random) -> Any:
    """Read one file as a role; options and items are drawn at random."""
    spec = str(path)
    if role == "cells" or path.name == "matrix.mtx":  # a folder of 10x Genomics
        return formats.read_features(path.parent)
    if role in {"features", "similarities"}:
        gaps, item, table = chance.random() < 0.2, _item(spec, chance), _table(chance)
        sparse = "similarities"
        if role == "features":
            sparse = chance.choice(["dense", "rows"])
        drop = chance.choice([(), (), ("a",), ("0", "b")]) if table else ()
        return formats.read_features(item, sparse=sparse, gaps=gaps, drop=drop, **table)
    if role in {"labels", "values"}:
        call: Any = formats.read_labels if role == "labels" else formats.read_values
        return call(_item(spec, chance), **_table(chance))
    if role == "names":
        return formats.read_names(_item(spec, chance))
    if role == "candidates":
        return formats.read_candidates(_item(spec, chance))
    if role == "graph":
        return _graph(path, chance)
    if role == "sidecar":
        return _graph(path.with_name(path.name.removesuffix(".nnk.npz")), chance)
    if role == "into":
        return _into(path, chance)
    return _merged(path) if role == "shard" else _kept(role, path)


def _item(spec: str, chance: Random) -> str:
    items = ["x", "y", "ids", "deep/x", "other", "0", "1", "label", "neighbors", "/"]
    items += ["s", "s.x", "df", "df/table", "#refs#"]
    if spec.endswith(".h5ad"):
        items = ["X", "obsm/X_pca", "obs/kind", "obs/depth", "obs", "uns", "var"]
    likely = 0.5 if spec.endswith(".mat") else 0.2  # others hold a single matrix
    return f"{spec}::{chance.choice(items)}" if chance.random() < likely else spec


def _table(chance: Random) -> dict[str, Any]:
    if chance.random() < 0.7:
        return {}
    return {
        "header": chance.choice([None, True, False]),
        "id_column": chance.choice([None, "0", "id"]),
        "delimiter": chance.choice([None, None, ",", "space"]),
        "known": chance.choice([(), tuple(f"n{i}" for i in range(NODES))]),
    }


def _graph(path: Path, chance: Random) -> Any:
    """Read a graph; one that was accepted can be described and written again."""
    graph = formats.read_graph(path)
    if chance.random() < 0.3:
        json.dumps(description(graph), allow_nan=False)
        formats.write_graph(path.parent / chance.choice(_OUTPUTS), graph)
    return graph


def _into(path: Path, chance: Random) -> Any:
    """Put a graph into a file, which must be readable with it and whole without."""
    before = path.read_bytes()
    key = chance.choice([None, None, "mine"])
    place = find_place(str(path), key, f"{path}::obsm/X_pca", no_clobber=False)
    try:
        place.check(POINTS)
        place.write(GRAPH)
    except NnkGraphError:
        if path.read_bytes() != before:
            raise AssertionError("a refused file was changed") from None
        raise
    return find_place(str(path), key, str(path), no_clobber=False)


def _kept(role: str, path: Path) -> Any:
    if role == "kept facts":
        with open_checkpoint(path.parent, RUN):
            return None
    point = Checkpoint(path.parent, RUN)
    if role == "kept block":
        like = {"0": np.empty((0, 1)), "1": None, "2": np.empty(0)}
        return point.load("solve", range(NODES), like)
    found = found_once(point, NODES, NEIGHBORS, _searched)
    # Compiled code takes these numbers without looking.
    if not (found.index.min() >= -1 and found.index.max() < NODES):
        raise AssertionError("candidates that do not exist were taken")
    return found


def _merged(path: Path) -> Any:
    """Put a shard together with the one beside it."""
    found = read_parts(sorted(path.parent.glob(f"{path.name.partition('-')[0]}-?.npz")))
    read_ = read_solved if found[0].kind == "graph" else merge_candidates
    return read_(found, Stages())


def _searched() -> Candidates:
    index = np.zeros((NODES, NEIGHBORS), np.int32)
    return Candidates(index, np.ones(index.shape))
