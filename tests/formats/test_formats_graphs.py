"""Writing and reading graphs: nothing is lost, and other programs agree."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import itertools
import sys

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkgraph import formats
from nnkgraph.data import Graph
from nnkgraph.data.labels import Labels
from nnkgraph.errors import InputError, OutputError, ParameterError
from nnkgraph.formats._choose import suffixes

FORMATS = tuple(one[1:] for one in suffixes("write_graph"))
WEIGHTS = [5e-324, 0.1, 1e308, 1 / 3, 2.0**-1022, 7.0]


def make(edges, n, *, directed=False, **rest):
    rows = np.array([e[0] for e in edges], int)
    cols = np.array([e[1] for e in edges], int)
    weights = np.array([e[2] for e in edges], float)
    if not directed:
        rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        weights = np.concatenate([weights, weights])
    a = sp.csr_array(sp.coo_array((weights, (rows, cols)), shape=(n, n)))
    a.sort_indices()
    return Graph(a, directed=directed, **rest)


def full(*, directed=False, ids=True, candidates=True):
    """Return a graph with everything a graph can carry; nodes 2 and 6 are isolated."""
    pairs = [(0, 1), (1, 3), (4, 0), (5, 1), (3, 5), (4, 5)]
    edges = [(*pair, w) for pair, w in zip(pairs, WEIGHTS, strict=True)]
    return make(
        edges,
        7,
        directed=directed,
        ids=("10", "b-é", "c", "d.e", "日本", "x:y", "1") if ids else None,
        errors=np.array([0.1, 5e-324, 1 / 3, 0, 1e-9, 0.5, 1]),
        candidates=np.array([[1, -1], [0, 2]] * 3 + [[6, 0]], np.int32)
        if candidates
        else None,
        provenance={"schema": 1, "sigma": 0.1, "text": "<&\"'> ü", "list": [1, None]},
    )


def measured(graph):
    """Return the graph with distances that are the same from both sides."""
    row, column = graph.adjacency.nonzero()
    return dataclasses.replace(graph, distances=(row + column - 1) / 3)


def assert_same(a, b):
    assert a.adjacency.shape == b.adjacency.shape
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(a.adjacency, part), getattr(b.adjacency, part))
    assert (a.ids, a.directed, a.provenance) == (b.ids, b.directed, b.provenance)
    for part in ("errors", "candidates", "distances"):
        one, other = getattr(a, part), getattr(b, part)
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_carries_everything(tmp_path, suffix, ids, directed):
    graph = full(directed=directed, ids=ids)
    formats.write_graph(tmp_path / f"a.{suffix}", graph)
    assert_same(formats.read_graph(tmp_path / f"a.{suffix}"), graph)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_graph_of_many_blocks_is_written_as_one(
    tmp_path, monkeypatch, suffix, directed
):
    graph = full(directed=directed)
    formats.write_graph(tmp_path / f"a.{suffix}", graph)
    whole = (tmp_path / f"a.{suffix}").read_bytes()
    # A node or an edge at a time becomes text; two edges are a group of Parquet.
    monkeypatch.setattr("nnkgraph.runtime.arrays._MOST_BLOCK", 64)
    formats.write_graph(tmp_path / f"a.{suffix}", graph)
    assert_same(formats.read_graph(tmp_path / f"a.{suffix}"), graph)
    same = (tmp_path / f"a.{suffix}").read_bytes() == whole
    assert same == (suffix != "parquet")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_graph_is_known_where_features_are_asked_for(tmp_path, suffix):
    formats.write_graph(tmp_path / f"a.{suffix}", full())
    said = "a graph that nnkgraph wrote, not features: .*; info, plot, .* read graphs"
    with pytest.raises(InputError, match=said):
        formats.read_features(tmp_path / f"a.{suffix}")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_a_graph_goes_through_all_formats_in_turn(tmp_path, ids, directed):
    graph = middle = full(directed=directed, ids=ids)
    for suffix in (*FORMATS, *reversed(FORMATS)):
        formats.write_graph(tmp_path / f"b.{suffix}", middle)
        middle = formats.read_graph(tmp_path / f"b.{suffix}")
    assert_same(middle, graph)


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 8))
    directed = draw(st.booleans())
    pairs = itertools.permutations if directed else itertools.combinations
    chosen = draw(
        st.lists(st.sampled_from([*pairs(range(n), 2)] or [None]), unique=True)
    )
    weight = st.floats(allow_nan=False, allow_infinity=False).filter(bool)
    edges = [(*pair, draw(weight)) for pair in chosen if pair]
    letters = st.characters(
        min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc", "Cn"]
    )
    names = st.lists(st.text(letters, max_size=5), min_size=n, max_size=n, unique=True)
    ids = draw(st.none() | names)
    numbers = st.lists(st.floats(0, 1), min_size=n, max_size=n)
    errors = draw(st.none() | numbers)
    provenance = draw(
        st.dictionaries(
            st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=2
        )
    )
    return make(
        edges,
        n,
        directed=directed,
        ids=None if ids is None else tuple(ids),
        errors=None if errors is None else np.array(errors),
        provenance=provenance,
    )


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    graph=graphs(),
    suffix=st.sampled_from(
        ["npz", "csv", "csv.gz", "graphml", "mtx", "gexf", "parquet", "pyg.npz", "mat"]
    ),
)
def test_any_graph_survives_a_round_trip(tmp_path, graph, suffix):
    path = tmp_path / f"g.{suffix}"
    formats.write_graph(path, graph)
    assert_same(formats.read_graph(path), graph)


@pytest.mark.parametrize("suffix", FORMATS)
def test_e11_equal_graphs_are_equal_bytes(tmp_path, suffix):
    contents = set()
    for name in ("a", "b"):
        formats.write_graph(tmp_path / f"{name}.{suffix}", full())
        side = tmp_path / f"{name}.{suffix}.nnk.npz"
        contents.add(
            (tmp_path / f"{name}.{suffix}").read_bytes()
            + (side.read_bytes() if side.exists() else b"")
        )
    assert len(contents) == 1


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("directed", [False, True])
def test_distances_go_with_the_edges(tmp_path, suffix, directed):
    graph = measured(full(directed=directed, ids=False))
    path = tmp_path / f"g.{suffix}"
    formats.write_graph(path, graph)
    assert_same(formats.read_graph(path), graph)
    beside = tmp_path / f"g.{suffix}.nnk.npz"
    if beside.exists() and suffix.startswith(("graphml", "gexf", "parquet")):
        beside.unlink()  # these have a place for them
        assert np.array_equal(formats.read_graph(path).distances, graph.distances)


@pytest.mark.parametrize("suffix", ["graphml", "gexf"])
def test_distances_read_bit_exact_in_networkx(tmp_path, suffix):
    graph = measured(full(ids=False))
    formats.write_graph(path := tmp_path / f"g.{suffix}", graph)
    found = getattr(nx, f"read_{suffix}")(path)
    far = nx.to_scipy_sparse_array(found, list("0123456"), weight="distance")
    row, column = graph.adjacency.nonzero()
    assert far.toarray()[row, column].tolist() == graph.distances.tolist()


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d + np.arange(len(d)), lambda d: -d]
)
@pytest.mark.parametrize("suffix", ["npz", "pyg.npz", "mtx"])
def test_damaged_distances_are_refused(tmp_path, suffix, change):
    graph, path = measured(full()), tmp_path / f"g.{suffix}"
    formats.write_graph(path, graph)
    place = path if suffix.endswith("npz") else tmp_path / "g.mtx.nnk.npz"
    with np.load(place) as file:
        members = dict(file)
    np.savez(place, **members | {"distances": change(members["distances"])})
    with pytest.raises(InputError, match="distance"):
        formats.read_graph(path)


@pytest.mark.parametrize("directed", [False, True])
def test_e12_graphml_reads_bit_exact_in_networkx_and_igraph(tmp_path, directed):
    graph = full(directed=directed)
    # igraph refuses subnormal numbers, however they are written.
    graph.adjacency.data[graph.adjacency.data < 1e-300] = 0.3
    graph.errors[1] = 0.2
    formats.write_graph(tmp_path / "g.graphml", graph)
    wanted = {
        (graph.ids[i], graph.ids[j]): graph.adjacency[i, j]
        for i, j in zip(*graph.adjacency.nonzero(), strict=True)
    }
    theirs = nx.read_graphml(tmp_path / "g.graphml")
    assert theirs.is_directed() == directed
    assert list(theirs.nodes) == list(graph.ids)
    assert theirs.number_of_edges() == graph.n_edges
    assert all(theirs.edges[pair]["weight"] == w for pair, w in wanted.items())
    assert [theirs.nodes[i]["error"] for i in graph.ids] == graph.errors.tolist()
    other = igraph.Graph.Read_GraphML(str(tmp_path / "g.graphml"))
    assert (other.vcount(), other.ecount()) == (graph.n_nodes, graph.n_edges)
    assert other.is_directed() == directed
    assert tuple(other.vs["id"]) == graph.ids
    assert other.vs["error"] == graph.errors.tolist()
    for edge in other.es:
        assert edge["weight"] == graph.adjacency[edge.source, edge.target]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("n", [1, 5])
def test_e13_graphs_without_edges_are_valid(tmp_path, suffix, n):
    graph = make([], n)
    path = tmp_path / f"g.{suffix}"
    formats.write_graph(path, graph)
    assert_same(formats.read_graph(path), graph)
    if suffix == "graphml":
        assert nx.read_graphml(path).number_of_nodes() == n
        assert igraph.Graph.Read_GraphML(str(path)).vcount() == n


@pytest.mark.parametrize("suffix", FORMATS)
def test_e14_extreme_weights_keep_their_bits(tmp_path, suffix):
    edges = [(0, i + 1, w) for i, w in enumerate(WEIGHTS)]
    graph = make(edges, len(WEIGHTS) + 1)
    formats.write_graph(tmp_path / f"g.{suffix}", graph)
    assert_same(formats.read_graph(tmp_path / f"g.{suffix}"), graph)


def test_e15_npz_loads_in_scipy_as_it_was(tmp_path):
    graph = full()
    formats.write_graph(tmp_path / "g.npz", graph)
    loaded = sp.load_npz(tmp_path / "g.npz")
    assert isinstance(loaded, sp.csr_array)
    loaded.check_format(full_check=True)
    assert loaded.has_canonical_format
    assert (loaded != graph.adjacency).nnz == 0
    assert (loaded != loaded.T).nnz == 0
    assert not loaded.diagonal().any()
    assert (loaded.data != 0).all()
    with np.load(tmp_path / "g.npz") as archive:
        assert archive["ids"].tolist() == list(graph.ids)
        assert archive["candidates"].dtype == np.int32
        assert archive["errors"].dtype == np.float64
        assert archive["provenance"].item().startswith('{"list"')
        assert not archive["directed"]


def test_e16_large_graphs_get_long_indices(tmp_path, monkeypatch):
    graph = full()
    formats.write_graph(tmp_path / "short.npz", graph)
    monkeypatch.setattr("nnkgraph.runtime.archive._INT32_END", 3)
    formats.write_graph(tmp_path / "long.npz", graph)
    for name, dtype in (("short", np.int32), ("long", np.int64)):
        with np.load(tmp_path / f"{name}.npz") as archive:
            assert archive["indices"].dtype == archive["indptr"].dtype == dtype
        assert_same(formats.read_graph(tmp_path / f"{name}.npz"), graph)


@pytest.mark.parametrize(
    ("suffix", "sep"), [("tsv", "\t"), ("csv", ","), ("edgelist", " ")]
)
def test_edge_lists_read_in_networkx(tmp_path, suffix, sep):
    graph = full(ids=False)
    path = tmp_path / f"g.{suffix}"
    formats.write_graph(path, graph)
    lines = path.read_text().splitlines()
    assert lines[:3] == ["# nnkgraph graph", "# nodes: 7", "# directed: false"]
    assert lines[3].startswith("# provenance: {")
    assert lines[4] == f"# source{sep}target{sep}weight"
    assert len(lines) == 5 + graph.n_edges
    theirs = nx.read_weighted_edgelist(path, comments="#", delimiter=sep, nodetype=int)
    assert {(*sorted(e), w) for *e, w in theirs.edges.data("weight")} == {
        (i, j, w) for i, j, w in _upper(graph)
    }


def test_ids_name_the_nodes_of_an_edge_list(tmp_path):
    graph = full()
    formats.write_graph(tmp_path / "g.tsv.gz", graph)
    theirs = nx.read_weighted_edgelist(
        tmp_path / "g.tsv.gz", comments="#", delimiter="\t"
    )
    assert set(theirs.nodes) == set(graph.ids) - {"c", "1"}
    assert theirs.edges["10", "b-é"]["weight"] == graph.adjacency[0, 1]


@pytest.mark.parametrize("directed", [False, True])
def test_mtx_reads_bit_exact_in_scipy(tmp_path, directed):
    graph = full(directed=directed)
    formats.write_graph(tmp_path / "g.mtx", graph)
    theirs = sp.csr_array(scipy.io.mmread(tmp_path / "g.mtx", spmatrix=False))
    theirs.sort_indices()
    assert (theirs != graph.adjacency).nnz == 0
    kind = "general" if directed else "symmetric"
    assert scipy.io.mminfo(tmp_path / "g.mtx")[2:] == (
        graph.n_edges,
        "coordinate",
        "real",
        kind,
    )


def _upper(graph):
    a = sp.coo_array(sp.triu(graph.adjacency))
    return zip(a.coords[0].tolist(), a.coords[1].tolist(), a.data.tolist(), strict=True)


def test_gz_members_carry_no_time_and_no_name(tmp_path):
    formats.write_graph(tmp_path / "g.tsv.gz", full())
    head = (tmp_path / "g.tsv.gz").read_bytes()[:10]
    assert head[3:8] == b"\0" * 5


@pytest.mark.parametrize("suffix", ["tsv", "mtx", "graphml"])
def test_a_file_beside_the_graph_comes_and_goes(tmp_path, suffix):
    path, side = tmp_path / f"g.{suffix}", tmp_path / f"g.{suffix}.nnk.npz"
    formats.write_graph(path, full())
    assert side.exists()
    notes = []
    other = dataclasses.replace(full(), provenance={"other": 1})
    formats.write_graph(tmp_path / f"other.{suffix}", other)
    path.write_bytes((tmp_path / f"other.{suffix}").read_bytes())
    if suffix != "tsv":
        assert formats.read_graph(path, note=notes.append).candidates is None
        assert "does not belong" in notes[0]
    side.write_bytes(b"PK\x03\x04 damaged")
    if suffix != "tsv":
        assert formats.read_graph(path, note=notes.append).candidates is None
        assert any("damaged" in one for one in notes)
    formats.write_graph(path, make([(0, 1, 0.5)], 2))
    assert not side.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [path.name, f"other.{suffix}", f"other.{suffix}.nnk.npz"]
    )


def test_without_the_file_beside_it_ids_come_in_order_of_appearance(tmp_path):
    path = tmp_path / "g.tsv"
    graph = make([(0, 2, 0.5), (1, 2, 0.25)], 3, ids=("7", "8", "9"))
    formats.write_graph(path, graph)
    (tmp_path / "g.tsv.nnk.npz").unlink()
    assert formats.read_graph(path).ids == ("7", "9", "8")
    formats.write_graph(path, full())
    (tmp_path / "g.tsv.nnk.npz").unlink()
    with pytest.raises(InputError, match=r"5 of 7 nodes.*\.nnk\.npz"):
        formats.read_graph(path)


@pytest.mark.parametrize("link", ["here.tsv", "sub/there.tsv"])
def test_a_link_finds_the_file_beside_its_target(tmp_path, link):
    formats.write_graph(tmp_path / "g.tsv", full())
    (tmp_path / "sub").mkdir()
    (tmp_path / link).symlink_to(tmp_path / "g.tsv")
    assert_same(formats.read_graph(tmp_path / link), full())


@pytest.mark.parametrize(
    ("name", "text", "ids", "edges"),
    [
        ("g.tsv", "0\t3\t0.5\n1\t0\t2\n", None, {(0, 3): 0.5, (0, 1): 2}),
        ("g.csv", 'Source,Target,Weight\n"a,b",c,0.5\n', ("a,b", "c"), {(0, 1): 0.5}),
        (
            "g.edgelist",
            "# hi\n\na b\nb   c\n# bye\n",
            ("a", "b", "c"),
            {(0, 1): 1, (1, 2): 1},
        ),
        ("g.csv", "2,0\n", None, {(0, 2): 1}),
    ],
)
def test_edge_lists_of_other_programs_are_read(tmp_path, name, text, ids, edges):
    (tmp_path / name).write_text(text)
    graph = formats.read_graph(tmp_path / name)
    assert graph.ids == ids
    assert not graph.directed
    assert {(i, j): w for i, j, w in _upper(graph)} == edges


@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "g.edgelist"])
def test_ids_of_nineteen_digits_are_names_and_no_numbers(tmp_path, name):
    # They are the same as float64, and one is beyond int64.
    ids = ("9223372036854775807", "9223372036854775808", "0000000000000000001")
    sep = {"tsv": "\t", "csv": ","}.get(name[2:], " ")
    text = f"{ids[0]}{sep}{ids[1]}{sep}0.5\n{ids[1]}{sep}{ids[2]}{sep}2\n"
    (tmp_path / name).write_text(text)
    graph = formats.read_graph(tmp_path / name)
    assert graph.ids == ids
    assert {(i, j): w for i, j, w in _upper(graph)} == {(0, 1): 0.5, (1, 2): 2.0}


def test_graphml_of_networkx_and_igraph_is_read(tmp_path):
    theirs = nx.Graph()
    theirs.add_node("lonely")
    theirs.add_edge("a", "b<", weight=0.1, color="red")
    theirs.add_edge("b<", "c")
    nx.write_graphml(theirs, tmp_path / "nx.graphml")
    graph = formats.read_graph(tmp_path / "nx.graphml")
    assert graph.ids == ("lonely", "a", "b<", "c")
    assert {(i, j): w for i, j, w in _upper(graph)} == {(1, 2): 0.1, (2, 3): 1}
    other = igraph.Graph([(0, 1), (1, 2)], n=4, directed=True)
    other.es["weight"] = [0.1, 0.2]
    other.write_graphml(str(tmp_path / "ig.graphml"))
    graph = formats.read_graph(tmp_path / "ig.graphml")
    assert graph.ids is None
    assert graph.directed
    assert graph.adjacency.toarray()[[0, 1], [1, 2]].tolist() == [0.1, 0.2]
    other.vs["name"] = ["p", "q", "r", "s"]
    other.write_graphml(str(tmp_path / "ig.graphml"))
    assert formats.read_graph(tmp_path / "ig.graphml").ids == ("p", "q", "r", "s")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_plain_sparse_matrices_of_scipy_are_graphs(tmp_path, kind, symmetric):
    graph = full(directed=not symmetric)
    sp.save_npz(tmp_path / "g.npz", graph.adjacency.asformat(kind))
    read = formats.read_graph(tmp_path / "g.npz")
    assert read.directed is not symmetric
    assert (read.adjacency != graph.adjacency).nnz == 0
    scipy.io.mmwrite(tmp_path / "g.mtx", sp.coo_array(graph.adjacency), precision=17)
    read = formats.read_graph(tmp_path / "g.mtx")
    assert read.directed is not symmetric
    assert (read.adjacency != graph.adjacency).nnz == 0


def test_mtx_patterns_and_integers_are_read(tmp_path):
    path = tmp_path / "g.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n3 1\n")
    assert formats.read_graph(path).adjacency[0, 2] == 1
    path.write_text("%%MatrixMarket matrix coordinate integer general\n3 3 1\n3 1 4\n")
    assert formats.read_graph(path).adjacency[2, 0] == 4
    assert formats.read_graph(path).directed


@pytest.mark.parametrize("suffix", FORMATS)
def test_graphs_go_through_standard_output_and_input(tmp_path, monkeypatch, suffix):
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(stream))
    graph = make([(0, 1, 0.1), (1, 3, 0.2)], 4, provenance={"a": 1})
    formats.check_output("-", format=suffix)
    formats.write_graph("-", graph, format=suffix)
    data = stream.getvalue()
    monkeypatch.undo()
    assert data
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert_same(formats.read_graph("-", format=suffix), graph)


def test_a_named_format_is_compressed_where_the_file_name_says_so(tmp_path):
    formats.write_graph(tmp_path / "g.gz", full(), format="csv")
    text = gzip.decompress((tmp_path / "g.gz").read_bytes()).decode()
    rows = [row for row in csv.reader(io.StringIO(text)) if not row[0].startswith("#")]
    assert rows[0] == ["10", "b-é", "5e-324"]
    assert_same(formats.read_graph(tmp_path / "g.gz", format="csv"), full())


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("suffix", ["gexf", "graphml", "gexf.gz", "graphml.gz"])
def test_classes_are_attributes_of_nodes_for_other_programs(tmp_path, suffix, ids):
    edges = [(0, 1, 0.5), (1, 3, 0.1), (4, 0, 7.0), (5, 1, 1.0)]
    names = ("10", "b-é", "c", "d.e", "日本", "x:y", "1") if ids else None
    graph = make(edges, 7, ids=names, errors=np.arange(7) / 9)
    path = tmp_path / f"a.{suffix}"
    kinds = ['é <&">', "", "b c", 'é <&">', "0", "", "b c"]
    formats.write_graph(path, graph, labels=Labels.of(kinds))
    assert_same(formats.read_graph(path), graph)
    read = nx.read_gexf if suffix.startswith("gexf") else nx.read_graphml
    net = read(path)
    names = graph.ids or tuple(map(str, range(7)))
    found = {node: net.nodes[node].get("class", "") for node in names}
    assert list(found.values()) == kinds
    if suffix.startswith("gexf"):
        assert all(net.nodes[node]["label"] == node for node in names)
    if suffix == "graphml":
        vertices = igraph.Graph.Read(str(path)).vs
        seen = dict(zip(vertices["id"], vertices["class"], strict=True))
        assert [seen[node] or "" for node in names] == kinds


def test_classes_follow_ids_and_are_refused_where_there_is_no_room(tmp_path):
    graph = full()
    labels = Labels.of(["x", "y"], ids=["c", "10"])
    formats.write_graph(tmp_path / "a.gexf", graph, labels=labels)
    net = nx.read_gexf(tmp_path / "a.gexf")
    found = {
        node: known["class"] for node, known in net.nodes.items() if "class" in known
    }
    assert found == {"c": "x", "10": "y"}
    for suffix in set(FORMATS) - {"gexf", "graphml", "gexf.gz", "graphml.gz"}:
        with pytest.raises(ParameterError, match="has no room for classes"):
            formats.write_graph(tmp_path / f"b.{suffix}", graph, labels=labels)
    odd = Labels.of(["\x01"] * 7)
    with pytest.raises(OutputError, match=r"the class .* that XML forbids"):
        formats.write_graph(tmp_path / "b.gexf", graph, labels=odd)
    assert [one.name for one in tmp_path.glob("b.*")] == []
