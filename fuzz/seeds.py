"""Valid small files of every format, by the reader they are for."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import io as scipy_io
from scipy import sparse

from fuzz.cells import anndata, cell_ranger, matrix_market
from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.build.shards import Shard, build_shard, search_shard, write_part
from nnkgraph.data import Answers, Candidates, Features, Graph
from nnkgraph.runtime.checkpoint import Block, Checkpoint

RUN = {"schema": 1, "k": 4, "shape": [12, 3]}
"""Fingerprint of the run that the checkpoint seeds belong to."""

NODES, NEIGHBORS = 12, 4


@dataclass(frozen=True)
class Seed:
    """One valid file, and how it is read."""

    role: str
    name: str
    """File name; its ending says the format."""

    data: bytes
    beside: dict[str, bytes] = field(default_factory=dict)
    """Files that stand beside it and are not mutated."""


def make_seeds() -> list[Seed]:
    """Return all seeds, always the same and in the same order."""
    with tempfile.TemporaryDirectory(prefix="nnkgraph-fuzz-") as name:
        folder = Path(name)
        x = np.random.default_rng(1).integers(-40, 40, (NODES, 3)) / 4
        graph = build_graph(x, k=NEIGHBORS, workers=1)
        return [
            *_features(x),
            *_labels(x),
            *_candidates(x, folder),
            *_graphs(graph, folder),
            *_checkpoints(x, folder),
            *_shards(x, folder),
        ]


def packed(**members: object) -> bytes:
    """Return an npz file, compressed."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def plain(array: object) -> bytes:
    """Return an npy file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def hdf5(**members: object) -> bytes:
    """Return an HDF5 file."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for name, value in members.items():
            text = isinstance(value, list)
            file.create_dataset(
                name, data=value, dtype=h5py.string_dtype() if text else None
            )
    return stream.getvalue()


def parquet(**columns: object) -> bytes:
    """Return a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def matlab(*, packed: bool = True, **members: object) -> bytes:
    """Return a MATLAB file; its date is always the same."""
    stream = io.BytesIO()
    scipy_io.savemat(stream, members, do_compression=packed)
    return b"MATLAB 5.0 MAT-file".ljust(116) + stream.getvalue()[116:]


def matlab_4(**members: object) -> bytes:
    """Return a MATLAB file of version 4."""
    stream = io.BytesIO()
    scipy_io.savemat(stream, members, format="4")
    return stream.getvalue()


def matlab_73(x: np.ndarray, ids: list[str]) -> bytes:
    """Return a MATLAB file of version 7.3, with a structure that has cells."""
    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512) as file:
        found = []
        for at, one in enumerate(ids):
            name = f"#refs#/{at}"
            file[name] = np.frombuffer(one.encode("utf-16-le"), "<u2").reshape(-1, 1)
            file[name].attrs["MATLAB_class"] = np.bytes_("char")
            found.append(file[name].ref)
        refs = np.array([found], h5py.special_dtype(ref=h5py.Reference))
        parts = {"x": (x.T, "double"), "ids": (refs, "cell")}
        for folder in ("", "s/"):
            for name, (value, kind) in parts.items():
                file[folder + name] = value
                file[folder + name].attrs["MATLAB_class"] = np.bytes_(kind)
        file["s"].attrs["MATLAB_class"] = np.bytes_("struct")
    return b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + stream.getvalue()[128:]


def octave(x: np.ndarray, ids: list[str]) -> bytes:
    """Return what Octave's save -hdf5 writes."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        lines = [np.frombuffer(one.encode(), "i1").reshape(-1, 1) for one in ids]
        values = {"x": ("matrix", x.T), "s/value/x": ("float matrix", x.T)}
        values |= {"s": ("scalar struct", None), "ids": ("cell", None)}
        texts = enumerate(lines)
        values |= {f"ids/value/_{at}": ("sq_string", one) for at, one in texts}
        for name, (kind, value) in values.items():
            group = file.require_group(name)
            group.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
            group["type"] = np.bytes_(kind)
            if value is not None:
                group["value"] = value
        file["ids/value/dims"] = [1, len(ids)]
    return stream.getvalue()


def frames(x: np.ndarray, ids: list[str], *, table: bool) -> bytes:
    """Return what pandas writes for a data frame, one of two ways."""
    stream = io.BytesIO()
    names = np.array(ids, "S")
    with h5py.File(stream, "w") as file:
        group = file.create_group("df")
        group.attrs["pandas_type"] = np.bytes_("frame_table" if table else "frame")
        if table:
            rows = np.empty(len(x), [("index", "S8"), ("values_block_0", "f8", (3,))])
            rows["index"], rows["values_block_0"] = names, x
            group["table"] = rows
            group["table"].attrs["index_kind"] = np.bytes_("string")
            group["table"].attrs["values_block_0_dtype"] = np.bytes_("float64")
        else:
            group["axis0"], group["axis1"] = np.array(["a", "b", "c"], "S"), names
            group["axis1"].attrs["kind"] = np.bytes_("string")
            group["block0_items"], group["block0_values"] = np.array([b"b"]), x[:, 1:2]
            group["block1_items"] = np.array([b"a", b"c"])
            group["block1_values"] = x[:, ::2]
    return stream.getvalue()


def _table(x: np.ndarray, mark: str, *, names: bool = False) -> bytes:
    rows = [mark.join(map(repr, row)) for row in x.tolist()]
    if names:
        rows = [mark.join(["id", "a", "b", "c"]), *rows]
        rows[1:] = [f'"n {i}"{mark}{row}' for i, row in enumerate(rows[1:])]
    return ("\n".join(rows) + "\n").encode()


def _features(x: np.ndarray) -> list[Seed]:
    ids = [f"id {i}" for i in range(len(x))]
    gram = io.BytesIO()
    sparse.save_npz(gram, sparse.csr_array(np.exp(-np.abs(x @ x.T)) > 0.5) * 1.0)
    chunked = io.BytesIO()
    with h5py.File(chunked, "w") as file:
        file.create_dataset("deep/x", data=x, chunks=(5, 2), compression="gzip")
        file["deep/ids"] = ids
        file["other"] = h5py.SoftLink("/deep/x")
    files = {
        "x.npy": plain(x),
        "f.npy": plain(np.asfortranarray(x.astype(">f4"))),
        "x.npz": packed(x=x, ids=np.array(ids), y=np.arange(len(x))),
        "x.csv": _table(x, ",", names=True),
        "x.tsv": _table(x, "\t"),
        "x.txt": _table(x, " "),
        "x.csv.gz": gzip.compress(_table(x, ","), mtime=0),
        "x.h5": hdf5(x=x, ids=ids),
        "x.h5ad": chunked.getvalue(),
        "c.h5ad": anndata(x),
        "m.h5": cell_ranger(x),
        "g.h5": cell_ranger(x, genome="GRCh38"),
        "x.mtx": matrix_market(x),
        "x.mtx.gz": gzip.compress(matrix_market(x), mtime=0),
        "a.mtx": matrix_market(x, array=True),
        "x.parquet": parquet(id=ids, a=x[:, 0], b=x[:, 1].astype("f4")),
        "v.parquet": parquet(x=pa.array(x.tolist()), id=ids),
        "s.npz": _packed_sparse(x),
        "s.mat": matlab(x=sparse.csc_array(np.maximum(x, 0))),
        "x.mat": matlab(x=x, y=np.arange(len(x)), ids=np.array(ids, object)),
        "p.mat": matlab(packed=False, x=x.astype("i2"), s={"a": x, "b": "text"}),
    }
    decimals = pa.array([Decimal(one) for one in x[:, 0]], pa.decimal128(12, 4))
    files |= {
        "n.npz": packed(x=x, names=np.array(ids), index=np.arange(len(x))[::-1]),
        "n.h5": hdf5(x=x, id=np.arange(len(x)) * 2, obs_names=ids),
        "d.parquet": parquet(a=decimals, b=x[:, 1]),
        "l.parquet": parquet(x=pa.array(x.tolist(), pa.list_(pa.float32(), 3)), t=ids),
        "4.mat": matlab_4(x=x, y=np.arange(len(x)), ids=np.array(ids)),
        "s4.mat": matlab_4(x=sparse.csc_array(np.maximum(x, 0))),
        "73.mat": matlab_73(x, ids),
        "o.mat": octave(x, ids),
        "o.h5": octave(x, ids),
        "df.h5": frames(x, ids, table=False),
        "table.h5": frames(x, ids, table=True),
    }
    found = [Seed("features", name, data) for name, data in files.items()]
    lists = {
        "barcodes.tsv": "\n".join(ids).encode(),
        "features.tsv": b"a\tb\tGene Expression\n" * x.shape[1],
    }
    turned = matrix_market(x.T)
    found.append(Seed("features", "matrix.mtx", turned, lists))
    listed = {"matrix.mtx": turned}
    for name, data in lists.items():
        others = {one: kept for one, kept in lists.items() if one != name}
        found.append(Seed("cells", name, data, listed | others))
    found.append(Seed("into", "c.h5ad", anndata(x)))
    mtx = io.BytesIO()
    scipy_io.mmwrite(mtx, sparse.coo_array(np.exp(-np.abs(x @ x.T))))
    found.append(Seed("similarities", "gram.mtx", mtx.getvalue()))
    return [*found, Seed("similarities", "gram.npz", gram.getvalue())]


def _packed_sparse(x: np.ndarray) -> bytes:
    stream = io.BytesIO()
    sparse.save_npz(stream, sparse.csr_array(np.maximum(x, 0)))
    return stream.getvalue()


def _labels(x: np.ndarray) -> list[Seed]:
    text, numbers = ["ant", "bee", "", "cow"] * 3, np.array([0, 1, 2, -1] * 3)
    lines = "\n".join(f"n{i},{one}" for i, one in enumerate(text))
    files = {
        "y.npy": plain(np.array(text)),
        "s.npy": plain(np.array(text, "S")),
        "f.npy": plain(np.where(numbers < 0, np.nan, numbers)),
        "y.npz": packed(y=numbers, ids=np.array([f"n{i}" for i in range(12)])),
        "y.csv": f"id,label\n{lines}\n".encode(),
        "y.txt": "\n".join(map(str, numbers)).encode(),
        "y.txt.gz": gzip.compress("\n".join(text).encode(), mtime=0),
        "y.h5": hdf5(labels=text, ids=[f"n{i}" for i in range(12)]),
        "n.h5": hdf5(y=numbers),
        "c.h5ad": anndata(x),
        "y.parquet": parquet(id=[f"n{i}" for i in range(12)], label=text),
        "n.parquet": parquet(y=pa.array([1, None, 2, 3] * 3)),
        "y.mat": matlab(y=numbers, name=np.array(text), ids=np.array(text, object)),
    }
    lines = "\n".join(f"n{i}" for i in range(12)).encode()
    more = {"n.txt": lines, "n.txt.gz": gzip.compress(lines, mtime=0)}
    more |= {name: files[name] for name in ("y.npy", "s.npy", "y.csv", "y.mat")}
    more |= {"73.mat": matlab_73(x, text[:2]), "4.mat": matlab_4(y=numbers)}
    files |= {"o.h5": octave(x, ["a", "b"] * 6), "4.mat": more["4.mat"]}
    return [Seed("names", name, data) for name, data in more.items()] + [
        Seed(role, name, data)
        for role in ("labels", "values")
        for name, data in files.items()
    ]


def _candidates(x: np.ndarray, folder: Path) -> list[Seed]:
    distance = np.sqrt(((x[:, np.newaxis] - x) ** 2).sum(axis=2))
    index = np.argsort(distance, axis=1)[:, 1 : NEIGHBORS + 1].astype(np.int32)
    found = Candidates(index, np.take_along_axis(distance, index, axis=1))
    seeds = [Seed("candidates", "knn.npy", plain(index))]
    for name in ("knn.npz", "knn.h5"):
        formats.write_candidates(folder / name, found, provenance={"k": NEIGHBORS})
        seeds.append(Seed("candidates", name, (folder / name).read_bytes()))
    return seeds


def _graphs(graph: Graph, folder: Path) -> list[Seed]:
    ids = tuple(f"n<{i}" for i in range(NODES))
    known = {**graph.provenance, "note": "été"}
    rich = Graph(graph.adjacency, ids, errors=graph.errors, provenance=known)
    seeds = []
    suffixes = ("npz", "tsv", "csv", "edgelist", "graphml", "mtx", "tsv.gz")
    for suffix in (*suffixes, "gexf", "parquet", "pyg.npz", "mat"):
        for stem, one in (("a", graph), ("b", rich)):
            path = folder / f"{stem}.{suffix}"
            formats.write_graph(path, one)
            data, side = path.read_bytes(), path.with_name(path.name + ".nnk.npz")
            if not side.exists():
                seeds.append(Seed("graph", path.name, data))
                continue
            both = {side.name: side.read_bytes()}
            seeds.append(Seed("graph", path.name, data, both))
            seeds.append(Seed("sidecar", side.name, both[side.name], {path.name: data}))
    foreign = io.BytesIO()
    sparse.save_npz(foreign, graph.adjacency.tocoo())
    seeds.append(Seed("graph", "coo.npz", foreign.getvalue()))
    seeds.append(Seed("graph", "w.mat", matlab(G={"N": 12, "W": graph.adjacency})))
    answers = Answers(graph.adjacency[:5], graph.errors[:5], ids[:5], ids)
    formats.write_answers(folder / "answers.npz", answers)
    return [*seeds, Seed("graph", "q.npz", (folder / "answers.npz").read_bytes())]


def _checkpoints(x: np.ndarray, folder: Path) -> list[Seed]:
    point = Checkpoint(folder, RUN)
    about = {"backend": "exact", "exact": True, "threads": 1, "recall": None}
    after = np.arange(NODES)[:, None] + np.arange(1, NEIGHBORS + 1)
    index = (after % NODES).astype(np.int32)
    arrays = {"index": index, "distance": np.ones(index.shape)}
    point.save(Block("candidates", range(NODES), arrays, {**about, "notes": []}))
    solved = {"0": x[:, :1], "1": None, "2": x[:, 1]}
    point.save(Block("solve", range(NODES), solved))
    facts = json.dumps(RUN, indent=2)
    names = {"candidates": f"candidates-0-{NODES}.npz", "block": f"solve-0-{NODES}.npz"}
    seeds = [Seed(role, n, (folder / n).read_bytes()) for role, n in names.items()]
    # Their readers are called after what they hold.
    seeds[0] = Seed("kept search", seeds[0].name, seeds[0].data)
    seeds[1] = Seed("kept block", seeds[1].name, seeds[1].data)
    return [*seeds, Seed("kept facts", "checkpoint.json", facts.encode())]


def _shards(x: np.ndarray, folder: Path) -> list[Seed]:
    seeds = []
    features = Features.of(x[[*range(NODES), 0]], ids=[f"n{i}" for i in range(13)])
    for kind in ("search", "graph"):
        both = {}
        for number in (1, 2):
            shard = Shard(number, 2)
            settings = {"k": NEIGHBORS, "search": "exact"}
            if kind == "search":
                part = search_shard(features, shard, **settings)
            else:
                part, _ = build_shard(features, shard, sigma="local", **settings)
            path = folder / f"{kind}-{number}.npz"
            write_part(path, part)
            both[path.name] = path.read_bytes()
        for name, data in both.items():
            beside = {one: kept for one, kept in both.items() if one != name}
            seeds.append(Seed("shard", name, data, beside))
    return seeds
