"""Parquet, GEXF, PyTorch Geometric and MATLAB: what others write, and what is wrong."""

from __future__ import annotations

import decimal
import io
import struct
import subprocess
import sys
import zlib

import h5py
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
from test_formats_graphs import assert_same, full, make

from nnkgraph import formats
from nnkgraph.errors import InputError, OutputError, ParameterError
from nnkgraph.formats._base import Target
from nnkgraph.formats.mat import MatLab

X = np.arange(12, dtype=np.float64).reshape(4, 3) / 8 - 0.5


def table(path, **columns):
    pq.write_table(pa.table(columns), path)
    return str(path)


def pairs(graph):
    a = sp.coo_array(sp.triu(graph.adjacency))
    ends = zip(*(one.tolist() for one in a.coords), strict=True)
    return dict(zip(ends, a.data.tolist(), strict=True))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_networkx_reads_gexf_to_the_bit(tmp_path, directed, ids):
    graph = full(directed=directed, ids=ids)
    formats.write_graph(tmp_path / "g.gexf", graph)
    theirs = nx.read_gexf(tmp_path / "g.gexf")
    names = graph.ids or [str(node) for node in range(7)]
    assert theirs.is_directed() == directed
    assert list(theirs.nodes) == list(names)
    assert theirs.number_of_edges() == graph.n_edges
    for i, j in zip(*graph.adjacency.nonzero(), strict=True):
        assert theirs.edges[names[i], names[j]]["weight"] == graph.adjacency[i, j]
    assert [theirs.nodes[i]["error"] for i in names] == graph.errors.tolist()
    assert [theirs.nodes[i]["label"] for i in names] == list(names)


@pytest.mark.parametrize("version", ["1.1draft", "1.2draft"])
def test_gexf_of_networkx_is_read(tmp_path, version):
    theirs = nx.Graph()
    theirs.add_node("lonely", color="red")
    theirs.add_edge("a", "b<\n", weight=0.1, color="red")
    theirs.add_edge("b<\n", "c")
    nx.write_gexf(theirs, tmp_path / "g.gexf", version=version)
    graph = formats.read_graph(tmp_path / "g.gexf")
    assert pairs(graph) == {(1, 2): 0.1, (2, 3): 1}
    assert graph.ids[0] == "lonely"
    nx.write_gexf(nx.path_graph(3, nx.DiGraph), tmp_path / "p.gexf")
    plain = formats.read_graph(tmp_path / "p.gexf")
    assert (plain.ids, plain.directed) == (None, True)


GEXF = '<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph>{}</graph></gexf>'
NODES = '<nodes><node id="0" label="x"/><node id="1" label="y"/></nodes>'


def test_gexf_of_gephi_is_read_with_its_labels(tmp_path):
    edges = (
        '<edges><edge source="0" target="1" weight="2.5" type="undirected"/></edges>'
    )
    (tmp_path / "g.gexf").write_text(GEXF.format(NODES + edges))
    graph = formats.read_graph(tmp_path / "g.gexf")
    assert graph.ids == ("x", "y")
    assert pairs(graph) == {(0, 1): 2.5}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (GEXF.format(NODES.replace('id="1"', "")), "line 1.*lacks the attribute 'id'"),
        (GEXF.format(NODES + '<edge source="0" target="2"/>'), "only edges name it"),
        (
            GEXF.format(NODES + '<edge source="0" target="1" weight="x"/>'),
            "'x' is no number",
        ),
        (
            GEXF.format(NODES + '<edge source="0" target="1" type="directed"/>'),
            "mixed",
        ),
        (GEXF.replace("<graph>", '<graph mode="dynamic">'), "changes with time"),
        (GEXF.replace("<graph>", '<graph defaultedgetype="mutual">'), "all directed"),
        (GEXF.format("<graph/>"), "more than one graph"),
        ("<gexf>", "not well-formed"),
        ('<!DOCTYPE g [<!ENTITY a "b">]><gexf>&a;</gexf>', "refused"),
        ('<?xml version="1.0"?><graphml/>', r"looks like XML \(graphml\).*`format`"),
    ],
)
def test_wrong_gexf_is_refused(tmp_path, text, match):
    (tmp_path / "g.gexf").write_text(text)
    with pytest.raises(InputError, match=match):
        formats.read_graph(tmp_path / "g.gexf")


def test_gexf_under_the_name_of_graphml_is_recognized(tmp_path):
    formats.write_graph(tmp_path / "g.gexf", full())
    (tmp_path / "g.graphml").write_bytes((tmp_path / "g.gexf").read_bytes())
    with pytest.raises(InputError, match="name its `format`, gexf"):
        formats.read_graph(tmp_path / "g.graphml")


def test_pyg_arrays_have_both_directions_in_order(tmp_path):
    graph = full()
    formats.write_graph(tmp_path / "g.pyg.npz", graph)
    with np.load(tmp_path / "g.pyg.npz") as data:
        index, weight = data["edge_index"], data["edge_weight"]
        assert data["num_nodes"] == 7
    assert index.dtype == np.int64
    assert index.shape == (2, 2 * graph.n_edges)
    assert (np.diff(index[0] * 7 + index[1]) > 0).all()
    both = sp.coo_array((weight, tuple(index)), shape=(7, 7))
    assert (both != graph.adjacency).nnz == 0
    assert (both != both.T).nnz == 0


def test_bare_arrays_of_pyg_are_read(tmp_path):
    path = tmp_path / "g.pyg.npz"
    index = np.array([[0, 1, 1, 2], [1, 0, 2, 1]], np.int32)
    np.savez(path, edge_index=index)
    graph = formats.read_graph(path)
    assert (graph.n_nodes, graph.directed, graph.n_edges) == (3, False, 2)
    np.savez(path, edge_index=index[:, :1], edge_attr=np.ones((1, 1)), num_nodes=5)
    graph = formats.read_graph(path)
    assert (graph.n_nodes, graph.directed, graph.n_edges) == (5, True, 1)
    np.savez(tmp_path / "plain.npz", edge_index=index)
    assert formats.read_graph(tmp_path / "plain.npz", format="pyg").n_edges == 2
    with pytest.raises(InputError, match="holds a graph, not features"):
        formats.read_features(path)


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"x": np.ones(2)}, "no array 'edge_index'"),
        ({"edge_index": np.ones((2, 2))}, "no 2 x E matrix of integers"),
        ({"edge_index": np.ones((3, 2), int)}, "no 2 x E matrix of integers"),
        (
            {"edge_index": np.array([[0], [1]]), "edge_weight": np.ones(2)},
            "not one number per edge",
        ),
        ({"edge_index": np.array([[0], [0]])}, "column 0 of edge_index.*loop"),
        ({"edge_index": np.array([[0], [7]]), "num_nodes": 3}, "does not exist"),
        ({"edge_index": np.array([[0], [1]]), "num_nodes": 1.5}, "no whole number"),
        ({"edge_index": np.array([[0, 0], [1, 1]])}, "more than once"),
    ],
)
def test_wrong_pyg_arrays_are_refused(tmp_path, arrays, match):
    np.savez(tmp_path / "g.pyg.npz", **arrays)
    with pytest.raises(InputError, match=match):
        formats.read_graph(tmp_path / "g.pyg.npz")


@pytest.mark.parametrize("ids", [False, True])
def test_parquet_edges_read_in_pyarrow(tmp_path, ids):
    graph = full(ids=ids)
    formats.write_graph(tmp_path / "g.parquet", graph)
    theirs = pq.read_table(tmp_path / "g.parquet")
    assert theirs.column_names == ["source", "target", "weight"]
    names = graph.ids or range(7)
    found = {
        (one["source"], one["target"]): one["weight"] for one in theirs.to_pylist()
    }
    assert found == {(names[i], names[j]): w for (i, j), w in pairs(graph).items()}
    assert b"nodes: 7" in theirs.schema.metadata[b"nnkgraph graph"]


def test_parquet_edges_of_other_programs_are_read(tmp_path):
    path = table(tmp_path / "g.parquet", From=["a", "b"], to=["b", "c"])
    graph = formats.read_graph(path)
    assert graph.ids == ("a", "b", "c")
    assert pairs(graph) == {(0, 1): 1, (1, 2): 1}
    weight = pa.array([2, 3], pa.int8())
    path = table(tmp_path / "g.parquet", weight=weight, source=[0, 3], target=[1, 0])
    graph = formats.read_graph(path)
    assert (graph.ids, graph.n_nodes) == (None, 4)
    assert pairs(graph) == {(0, 1): 2, (0, 3): 3}


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"a": [1], "b": [2]}, "columns source and target; these are a, b"),
        ({"source": [0.5], "target": [1]}, "'source' .double. holds neither names"),
        ({"source": [0, None], "target": [1, 2]}, "row 1 .* 'source' is null"),
        ({"source": [0], "target": [1], "weight": ["x"]}, "weights are no numbers"),
        ({"source": [0], "target": [1], "weight": [0.0]}, "row 0 .*weight zero"),
        ({"source": [0, 1], "target": [1, 0]}, "row 1 .*more than once"),
    ],
)
def test_wrong_parquet_edges_are_refused(tmp_path, columns, match):
    with pytest.raises(InputError, match=match):
        formats.read_graph(table(tmp_path / "g.parquet", **columns))


def test_parquet_features_are_columns_of_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("nnkgraph.formats.parquet.BATCH", 3)
    columns = {name: X[:, at] for at, name in enumerate("abc")}
    path = table(tmp_path / "x.parquet", id=["p", "q", "ü", ""], **columns)
    features = formats.read_features(path, id_column="id")
    assert np.array_equal(features.x, X)
    assert features.ids == ("p", "q", "ü", "")
    assert formats.read_features(path, id_column="0").ids == features.ids
    assert np.array_equal(formats.read_features(f"{path}::b").x, X[:, 1:2])
    said = []
    assert formats.read_features(path, note=said.append).ids == features.ids
    assert said == [f"{path}: the column 'id' names the rows"]
    left = formats.read_features(path, drop=["id,b"])
    assert (left.ids, left.columns) == (None, ("a", "c"))
    assert np.array_equal(left.x, X[:, [0, 2]])
    with pytest.raises(InputError, match=r"'bb' to drop .*; did you mean 'b'"):
        formats.read_features(path, drop=["bb"])
    table(tmp_path / "w.parquet", b_id=[4, 7], a=[1, 2])
    formats.read_features(tmp_path / "w.parquet", note=said.append)
    assert "if 'b_id' is no feature, name the rows by it with `id_column=" in said[-1]
    other = table(tmp_path / "z.parquet", who=["p", "q"], a=[1, 2])
    message = r"'who' \(string\) holds no numbers.*`id_column='who'`, .*`drop='who'`"
    with pytest.raises(InputError, match=message):
        formats.read_features(other)
    with pytest.raises(InputError, match="no single column 'z'; there are id, a, b, c"):
        formats.read_features(f"{path}::z")
    with pytest.raises(ParameterError, match="text tables only"):
        formats.read_features(path, delimiter=";")
    mixed = table(
        tmp_path / "y.parquet",
        a=pa.array([True, False]),
        b=pa.array([1, 2], pa.uint8()),
        c=pa.array([0.5, 1.5], pa.float32()),
    )
    read = formats.read_features(mixed).x
    assert read.dtype == np.float32
    assert read.tolist() == [[1, 1, 0.5], [0, 2, 1.5]]


@pytest.mark.parametrize("fixed", [False, True])
def test_a_parquet_column_of_lists_is_a_matrix(tmp_path, monkeypatch, fixed):
    monkeypatch.setattr("nnkgraph.formats.parquet.BATCH", 3)
    kind = pa.list_(pa.float64(), 3 if fixed else -1)
    vectors = pa.array(X.tolist(), kind)
    path = table(tmp_path / "x.parquet", text=["a", "b", "c", "d"], vector=vectors)
    assert np.array_equal(formats.read_features(f"{path}::vector").x, X)
    named = formats.read_features(f"{path}::vector", id_column="text")
    assert named.ids == ("a", "b", "c", "d")
    said = []
    only = formats.read_features(path, id_column="text", note=said.append)
    assert np.array_equal(only.x, X)
    assert (only.ids, only.columns) == (named.ids, None)
    assert said == [f"{path}: features are the lists in 'vector'"]
    for more in ([0, 1, 0, 1], vectors):
        other = table(tmp_path / "y.parquet", vector=vectors, kind=more)
        with pytest.raises(InputError, match=r"as .*::vector"):
            formats.read_features(other)
        assert np.array_equal(formats.read_features(other, drop=["kind"]).x, X)


def test_decimals_of_parquet_are_the_nearest_numbers(tmp_path):
    whole = np.random.default_rng(4).integers(-(10**17), 10**17, 500).tolist()
    for scale in (0, 3, 18, 30):
        values = [decimal.Decimal(one).scaleb(-scale) for one in whole]
        column = pa.array(values, pa.decimal128(38, scale))
        lists = pa.array([[one] for one in values], pa.list_(column.type))
        path = table(tmp_path / "x.parquet", a=column, b=np.arange(500))
        found = formats.read_features(path).x
        assert found[:, 0].tolist() == [float(one) for one in values]
        assert formats.read_labels(path + "::b").classes[-1] == "499"
        path = table(tmp_path / "y.parquet", a=lists)
        assert formats.read_features(path).x[:, 0].tolist() == found[:, 0].tolist()
    column = pa.array([decimal.Decimal("1.5"), None])
    with pytest.raises(InputError, match=r"row 1 .* 'a' is null"):
        formats.read_features(table(tmp_path / "x.parquet", a=column))


def test_an_empty_column_and_arrow_files_are_refused_with_advice(tmp_path):
    path = table(tmp_path / "x.parquet", a=[1.0, 2.0], n=pa.nulls(2))
    with pytest.raises(InputError, match=r"'n' .null.*; leave it out with"):
        formats.read_features(path)
    for name in ("x.feather", "x.arrow"):
        (tmp_path / name).write_bytes(b"ARROW1")
        with pytest.raises(ParameterError, match="not read: take Parquet"):
            formats.read_features(tmp_path / name)
        with pytest.raises(ParameterError, match="not written: take Parquet"):
            formats.check_output(tmp_path / name)


@pytest.mark.parametrize(
    ("columns", "item", "match"),
    [
        ({"a": [1.0, None]}, "", r"row 1 \(counted from 0\), column 'a' is null"),
        (
            {"b": [1.0, 2.0], "a": [1.0, np.nan]},
            "",
            r"row 1 .* column 'a' is null or NaN",
        ),
        ({"a": [np.inf]}, "", r"row 0 .* column 'a' is infinity"),
        ({"a": pa.array([0], pa.timestamp("s"))}, "", "convert it to numbers"),
        ({"a": [[1.0], [1.0, 2.0]]}, "::a", "row 1 .* 2 numbers where 1 are"),
        ({"a": [[1.0], None]}, "::a", "row 1 .* is null"),
        ({"a": [[1.0, 2.0], [1.0, None]]}, "::a", "row 1 .*, column 1 is null"),
        ({"a": [[["x"]]]}, "::a", "holds no numbers"),
        ({"a": pa.array([], pa.float64())}, "", "no rows"),
        ({}, "", "no (rows|columns)"),
    ],
)
def test_wrong_parquet_features_are_refused(tmp_path, columns, item, match):
    path = table(tmp_path / "x.parquet", **columns)
    with pytest.raises(InputError, match=match):
        formats.read_features(path + item)


def test_parquet_gaps_may_stand_for_coordinates(tmp_path):
    path = table(tmp_path / "x.parquet", a=[1, None], b=[True, None])
    found = formats.read_features(path, gaps=True).x
    assert np.array_equal(found, [[1, 1], [np.nan, np.nan]], equal_nan=True)


def test_the_index_of_pandas_names_the_rows(tmp_path):
    schema = pa.schema(
        [("a", pa.float64()), ("__index_level_0__", pa.string())],
        metadata={"pandas": '{"index_columns": ["__index_level_0__"]}'},
    )
    pq.write_table(
        pa.Table.from_arrays([pa.array([1.0, 2]), pa.array(["p", "q"])], schema=schema),
        tmp_path / "x.parquet",
    )
    notes = []
    features = formats.read_features(tmp_path / "x.parquet", note=notes.append)
    assert features.ids == ("p", "q")
    assert "index of pandas" in notes[0]


def test_parquet_labels_and_values(tmp_path):
    path = table(
        tmp_path / "y.parquet",
        id=["a", "b", "c"],
        label=pa.array(["x", None, "x"]).dictionary_encode(),
        score=[0.5, None, 1],
    )
    labels = formats.read_labels(path, id_column="id")
    assert labels.ids == ("a", "b", "c")
    assert labels.classes == ("x",)
    values = formats.read_values(f"{path}::score").x[:, 0]
    assert np.array_equal(values, [0.5, np.nan, 1], equal_nan=True)
    with pytest.raises(InputError, match="neither numbers nor text"):
        formats.read_labels(f"{table(tmp_path / 'z.parquet', a=[[1]])}::a")


def test_damaged_parquet_is_refused(tmp_path):
    path = table(tmp_path / "x.parquet", a=X[:, 0])
    data = (tmp_path / "x.parquet").read_bytes()
    for bad in (data[:-3], data[:40], b"PAR1", data[:8] + b"\xff" * 30 + data[38:]):
        (tmp_path / "x.parquet").write_bytes(bad)
        with pytest.raises(InputError, match="Parquet"):
            formats.read_features(path)


def test_without_pyarrow_one_line_names_the_extra(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 3)))
    hide = "import sys; sys.modules['pyarrow'] = None; "
    run = "from nnkgraph.cli.main import main; main()"
    for arguments in (
        ["build", f"{tmp_path}/x.npy", "-o", f"{tmp_path}/g.parquet"],
        ["build", f"{tmp_path}/x.parquet", "-o", f"{tmp_path}/g.npz"],
    ):
        (tmp_path / "x.parquet").write_bytes(b"PAR1")
        done = subprocess.run(
            [sys.executable, "-c", hide + run, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 5
        assert done.stderr.count("\n") == 1
        assert "pip install 'nnkgraph[arrow]'" in done.stderr
    assert {one.name for one in tmp_path.iterdir()} == {"x.npy", "x.parquet"}


@pytest.mark.parametrize("directed", [False, True])
def test_scipy_reads_mat_graphs_to_the_bit(tmp_path, directed):
    graph = full(directed=directed)
    formats.write_graph(tmp_path / "g.mat", graph)
    theirs = scipy.io.loadmat(tmp_path / "g.mat", spmatrix=False)
    assert (sp.csr_array(theirs["W"]) != graph.adjacency).nnz == 0
    assert theirs["errors"][:, 0].tolist() == graph.errors.tolist()
    assert [one.item() for one in theirs["ids"][:, 0]] == list(graph.ids)
    assert theirs["directed"].dtype == np.uint8
    assert bool(theirs["directed"].item()) is directed
    assert theirs["provenance"].item().startswith('{"list"')


@pytest.mark.parametrize("compress", [False, True])
def test_mat_files_of_scipy_are_read(tmp_path, compress):
    path = tmp_path / "x.mat"
    names = np.array(["a", "bc", "ü", "日本"], object)
    scipy.io.savemat(
        path,
        {
            "X": np.asfortranarray(X),
            "gnd": np.array([[1], [2], [1], [2]], np.uint8),
            "names": np.array(["ant", "bee", "bee", "ox"]),
            "ids": names[:, np.newaxis],
            "f": {"a": 1, "W": sp.csc_array(np.eye(3)[::-1] - np.diag([0, 1, 0]))},
            "z": np.ones((2, 2)) * 1j,
        },
        do_compression=compress,
    )
    features = formats.read_features(f"{path}::X")
    assert np.array_equal(features.x, X)
    assert features.ids == ("a", "bc", "ü", "日本")
    assert formats.read_labels(f"{path}::gnd").classes == ("1", "2")
    assert formats.read_labels(f"{path}::names").classes == ("ant", "bee", "ox")
    assert pairs(formats.read_graph(path)) == {(0, 2): 1}
    with pytest.raises(InputError, match="'complex', which is not used here"):
        formats.read_features(f"{path}::z")
    with pytest.raises(InputError, match="no variable 'q' inside; it holds X 4 x 3"):
        formats.read_features(f"{path}::q")
    assert np.array_equal(formats.read_features(path).x, X)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i8", "?", ">f8"])
def test_mat_numbers_of_all_kinds_are_read(tmp_path, dtype):
    values = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    scipy.io.savemat(tmp_path / "x.mat", {"x": values})
    assert np.array_equal(formats.read_features(tmp_path / "x.mat").x, values)


def test_mat_files_in_the_other_byte_order_are_read(tmp_path):
    def element(code, data):
        return struct.pack(">II", code, len(data)) + data + bytes(-len(data) % 8)

    body = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 2, 2))
    body += struct.pack(">HHI", 1, 1, ord("x") << 24)  # a short element
    body += element(9, np.array([1, 2, 3, 4], ">f8").tobytes())
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "x.mat").write_bytes(head + element(14, body))
    assert formats.read_features(tmp_path / "x.mat").x.tolist() == [[1, 3], [2, 4]]


def test_dense_and_named_matrices_of_mat_files_are_graphs(tmp_path):
    a = np.array([[0, 2.0], [2.0, 0]])
    scipy.io.savemat(tmp_path / "g.mat", {"A": a, "B": sp.csc_array(a * 2)})
    assert pairs(formats.read_graph(f"{tmp_path}/g.mat::A")) == {(0, 1): 2}
    assert pairs(formats.read_graph(tmp_path / "g.mat")) == {(0, 1): 4}
    scipy.io.savemat(tmp_path / "g.mat", {"A": a})
    with pytest.raises(InputError, match="a sparse matrix W; the file holds A 2 x 2"):
        formats.read_graph(tmp_path / "g.mat")
    scipy.io.savemat(tmp_path / "g.mat", {"W": np.ones((2, 3))})
    with pytest.raises(InputError, match="square, not 2 x 3"):
        formats.read_graph(tmp_path / "g.mat")


def mat73(path, **members):
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in members.items():
            if sp.issparse(value):
                part = file.create_group(name)
                part.attrs["MATLAB_sparse"] = np.uint64(value.shape[0])
                part.attrs["MATLAB_class"] = np.bytes_("double")
                for key, array in (
                    ("ir", value.indices.astype("u8")),
                    ("jc", value.indptr.astype("u8")),
                    ("data", value.data),
                ):
                    part[key] = array
            else:
                file[name] = np.asarray(value).T
                kind = "char" if value.dtype == np.uint16 else "double"
                file[name].attrs["MATLAB_class"] = np.bytes_(kind)
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def test_mat_files_of_version_73_are_read(tmp_path):
    path = tmp_path / "x.mat"
    names = np.array([list(b"ant "), list(b"bee ")], np.uint16)
    mat73(path, X=X, W=full().adjacency.tocsc(), names=names)
    assert np.array_equal(formats.read_features(f"{path}::X").x, X)
    assert (formats.read_graph(path).adjacency != full().adjacency).nnz == 0
    assert formats.read_labels(f"{path}::names").classes == ("ant", "bee")


def test_a_graph_beyond_two_gigabytes_is_no_mat_file(tmp_path, monkeypatch):
    monkeypatch.setattr("nnkgraph.formats.mat._MOST", 100)
    with pytest.raises(OutputError, match=r"W takes more than the 2 GB.*\.npz"):
        formats.write_graph(tmp_path / "g.mat", full())
    assert not list(tmp_path.iterdir())


def test_ids_beyond_two_gigabytes_are_no_mat_file(tmp_path, monkeypatch):
    monkeypatch.setattr("nnkgraph.formats.mat._MOST", 1000)
    graph = make([(0, 1, 1.0)], 2, ids=("a", "b" * 1000))
    with pytest.raises(OutputError, match=r"ids takes more than the 2 GB"):
        formats.write_graph(tmp_path / "g.mat", graph)
    assert not list(tmp_path.iterdir())


def test_a_mat_file_has_no_date_and_is_the_same_through_a_pipe(tmp_path):
    formats.write_graph(tmp_path / "g.mat", full())
    data = (tmp_path / "g.mat").read_bytes()
    assert data[:116].rstrip() == b"MATLAB 5.0 MAT-file, written by nnkgraph"
    assert data[116:128] == bytes(8) + b"\x00\x01IM"
    with (tmp_path / "pipe").open("wb") as stream:  # not readable, as pipes are
        MatLab().write_graph(stream, full(), Target("-", ".mat"))
    assert (tmp_path / "pipe").read_bytes() == data


def test_cells_within_cells_are_no_danger(tmp_path):
    """``scipy.io.loadmat`` does not survive this."""
    head = struct.pack("<IIIIIIiiI4s", 6, 8, 1, 0, 5, 8, 1, 1, 1 << 16 | 1, b"c")
    sizes = range(48 * 100_000, 0, -48)
    cells = b"".join(struct.pack("<II", 14, size - 8) + head for size in sizes)
    begin = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM"
    (tmp_path / "x.mat").write_bytes(begin + cells)
    with pytest.raises(InputError, match="no matrix inside"):
        formats.read_features(tmp_path / "x.mat")
    with pytest.raises(InputError, match="no list of text"):
        formats.read_labels(f"{tmp_path}/x.mat::c")


def packed_bomb(size):
    """Return a variable that claims and holds zeros without end, well compressed."""
    body = struct.pack("<IIII", 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, size // 16, 2)
    body += struct.pack("<IIQ", 1, 1, ord("x")) + struct.pack("<II", 9, size)
    data = zlib.compress(struct.pack("<II", 14, len(body) + size) + body + bytes(4000))
    return struct.pack("<II", 15, len(data)) + data


def test_wrong_mat_files_are_refused(tmp_path):
    path, head = tmp_path / "x.mat", b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM"
    stream = io.BytesIO()
    scipy.io.savemat(stream, {"x": X}, do_compression=True)
    good = stream.getvalue()
    for bad, match in (
        (head[:60], "truncated or damaged"),
        (head, "no matrix inside: nothing"),
        (good[:-9], "truncated"),
        (good[:-2] + b"??", "damaged MATLAB file"),
        (head + struct.pack("<II", 14, 2**31), "truncated"),
        (head + packed_bomb(2**31 - 8), r"truncated|more than the file can hold"),
        (head + struct.pack("<IIII", 14, 8, 6, 2**31), "more than the file can"),
        (good[:128] + good[128:] * 2, "two variables are 'x'"),
        (b"\x89HDF\r\n\x1a\n" + bytes(600), "damaged HDF5|truncated"),
        (b"plain", "looks like plain text"),
    ):
        path.write_bytes(bad)
        with pytest.raises(InputError, match=match):
            formats.read_features(path)


def test_ids_that_are_no_text_are_refused(tmp_path):
    graph = make([(0, 1, 1.0)], 2, ids=("a", "\ud800"))
    for suffix in ("mat", "parquet", "gexf"):
        with pytest.raises(OutputError, match=r"write \.npz instead"):
            formats.write_graph(tmp_path / f"g.{suffix}", graph)
    assert_same(make([], 1), make([], 1))
