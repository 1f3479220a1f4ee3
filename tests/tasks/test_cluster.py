"""Clusters: Leiden, measures against other packages, files, mistakes."""

import csv
import hashlib
import json
import random

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components

import nnkgraph
from nnkgraph import formats
from nnkgraph.data import Graph
from nnkgraph.data.labels import Labels
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.tasks.cluster import cluster, mutual_information, rand_index


def graph_of(weights, **more):
    matrix = sp.csr_array(np.asarray(weights, float))
    matrix.sort_indices()
    return Graph(matrix, **more)


@pytest.fixture(scope="module")
def blobs():
    """600 points in five groups that touch, a graph on them, and their classes."""
    rng = np.random.default_rng(3)
    classes = rng.integers(0, 5, 600)
    x = 3.5 * np.eye(5)[classes] + rng.normal(size=(600, 5))
    names = tuple(f"p{at}" for at in range(600))
    return nnkgraph.build_graph(nnkgraph.Features(x, names), k=12), classes


def parts_of(clusters):
    return [set(np.flatnonzero(clusters == at)) for at in range(clusters.max() + 1)]


def test_clusters_are_as_good_as_those_that_igraph_finds(blobs):
    igraph = pytest.importorskip("igraph")
    graph, classes = blobs
    other, best = graph.to_igraph(), 0.0
    for seed in range(3):
        igraph.set_random_number_generator(random.Random(seed))
        found = other.community_leiden("modularity", weights="weight", n_iterations=4)
        best = max(best, found.modularity)
    (ours,) = cluster(graph).partitions
    assert ours.modularity >= best - 0.01
    assert mutual_information(classes, ours.clusters) > 0.6


def test_groups_that_are_apart_are_the_clusters():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 4, 120)
    w = 0.01 + (kinds[:, None] == kinds) * rng.uniform(0.5, 1.5, (120, 120))
    w = np.triu(w, 1)
    for seed in range(3):
        found = cluster(graph_of(w + w.T), seed=seed)
        assert rand_index(kinds, found.clusters) == 1.0


@pytest.mark.parametrize("resolution", [0.1, 1.0, 5.0])
def test_clusters_are_connected_numbered_by_size_and_measured_as_networkx_does(
    blobs, resolution
):
    graph, _ = blobs
    (found,) = cluster(graph, resolution=resolution).partitions
    parts = parts_of(found.clusters)
    assert [len(one) for one in parts] == found.sizes.tolist()
    order = [(-len(one), min(one)) for one in parts]
    assert order == sorted(order)
    whole = graph.to_networkx()
    w = graph.adjacency.toarray()
    for at, part in enumerate(parts):
        members = sorted(part)
        inside = w[np.ix_(members, members)]
        assert connected_components(inside)[0] == 1
        assert found.medoids[at] == members[int(inside.sum(axis=1).round(12).argmax())]
    named = [{graph.ids[i] for i in part} for part in parts]
    assert found.modularity == pytest.approx(
        nx.community.modularity(whole, named), abs=1e-12
    )


def test_a_larger_resolution_gives_more_clusters(blobs):
    graph, _ = blobs
    found = cluster(graph, resolution=[0.05, 1.0, 20.0])
    counts = [len(one.sizes) for one in found.partitions]
    assert counts[0] < counts[1] < counts[2]
    alone = cluster(graph, resolution=1)
    np.testing.assert_array_equal(alone.clusters, found.partitions[1].clusters)


def test_nodes_without_an_edge_are_in_no_cluster():
    w = np.zeros((7, 7))
    w[[1, 1, 2, 5], [2, 3, 3, 6]] = 1.0
    found = cluster(graph_of(w + w.T))
    assert found.clusters.tolist() == [-1, 0, 0, 0, -1, 1, 1]
    assert found.facts["isolated"] == 2
    labels = Labels.of(["a", "b", "b", "b", "c", "d", ""])
    (one,) = cluster(graph_of(w + w.T), labels).partitions
    assert one.agreement.ami == one.agreement.ari == pytest.approx(1.0)
    assert one.agreement.commonest.tolist() == [1, 3]
    assert one.agreement.purity.tolist() == [1.0, 1.0]


def test_the_commonest_class_of_a_cluster_counts_what_has_a_label():
    w = np.kron(np.eye(2), 1 - np.eye(4))
    labels = Labels.of(["b", "a", "", "a", "", "", "", ""])
    (one,) = cluster(graph_of(w), labels).partitions
    assert one.agreement.commonest.tolist() == [0, -1]
    assert one.agreement.purity[0] == 2 / 3
    assert np.isnan(one.agreement.purity[1])


@given(st.data())
def test_measures_are_those_of_scikit_learn(data):
    metrics = pytest.importorskip("sklearn.metrics")
    n = data.draw(st.integers(1, 80))
    kinds = st.integers(0, data.draw(st.sampled_from([0, 1, 3, 10, 80])))
    a, b = (data.draw(arrays(np.int64, n, elements=kinds)) for _ in range(2))
    ours = mutual_information(a, b), rand_index(a, b)
    theirs = metrics.adjusted_mutual_info_score(a, b), metrics.adjusted_rand_score(a, b)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_measures_take_many_nodes():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 30, 100_000)
    b = np.where(rng.random(len(a)) < 0.5, a, rng.integers(0, 100, len(a)))
    wanted = metrics.adjusted_mutual_info_score(a, b)
    assert mutual_information(a, b) == pytest.approx(wanted, abs=1e-8)
    assert rand_index(a, b) == pytest.approx(metrics.adjusted_rand_score(a, b))


def test_the_same_graph_has_the_same_clusters_in_every_format_and_process(
    run, program, blobs, tmp_path
):
    graph, _ = blobs
    found = set()
    for name in ("g.npz", "g.graphml", "g.tsv", "g.mtx", "g.parquet"):
        formats.write_graph(tmp_path / name, graph)
        for call in (run, program):
            done = call("cluster", tmp_path / name, "-o", tmp_path / "c.csv", "-q")
            assert done.code == 0, done.err
            content = (tmp_path / "c.csv").read_bytes()
            found.add(hashlib.sha256(content).hexdigest())
    assert len(found) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory, blobs):
    graph, classes = blobs
    path = tmp_path_factory.mktemp("clusters")
    formats.write_graph(path / "g.npz", graph)
    np.save(path / "y.npy", classes)
    np.save(path / "short.npy", classes[:3])
    np.save(path / "one.npy", np.zeros(600, int))
    (path / "none.csv").write_text("label\n" + "NA\n" * 600)
    formats.write_graph(path / "empty.npz", graph_of(np.zeros((4, 4))))
    directed = np.zeros((4, 4))
    directed[0, 1] = 1.0
    formats.write_graph(path / "directed.npz", graph_of(directed, directed=True))
    return path


def test_clusters_go_to_tables_that_other_commands_take_as_labels(
    run, folder, blobs, tmp_path, monkeypatch
):
    graph, _ = blobs
    monkeypatch.chdir(tmp_path)
    wanted = cluster(graph).clusters
    for name in ("c.csv", "c.tsv", "c.parquet"):
        done = run("cluster", folder / "g.npz", "-o", name)
        assert done.code == 0, done.err
        labels = formats.read_labels(name, known=graph.ids)
        assert labels.ids == graph.ids
        assert [labels.classes[c] for c in labels.codes] == [str(c) for c in wanted]
        done = run("convert", folder / "g.npz", "g.graphml", "--labels", name)
        assert done.code == 0, done.err
        read = nx.read_graphml("g.graphml")
        got = [read.nodes[one]["class"] for one in graph.ids]
        assert got == [str(c) for c in wanted]
        drawn = run("plot", folder / "g.npz", "--labels", name, "-o", "g.png")
        assert drawn.code == 0, drawn.err
        page = run("report", folder / "g.npz", "--labels", name, "-o", "g.html")
        assert page.code == 0, page.err


TWO_PARTS = ["id,cluster", "0,-1", "1,0", "2,0", "3,0", "4,-1", "5,1", "6,1"]


def test_isolated_nodes_have_no_class_where_clusters_are_labels(run, tmp_path):
    w = np.zeros((7, 7))
    w[[1, 1, 2, 5], [2, 3, 3, 6]] = 1.0
    formats.write_graph(tmp_path / "g.npz", graph_of(w + w.T))
    done = run("cluster", tmp_path / "g.npz", "-o", "-")
    assert done.out.splitlines() == [
        "id,cluster",
        "0,-1",
        "1,0",
        "2,0",
        "3,0",
        "4,-1",
        "5,1",
        "6,1",
    ]
    assert "2 of 7 nodes have no edge" in done.err
    (tmp_path / "c.csv").write_text(done.out)
    args = ("convert", tmp_path / "g.npz", tmp_path / "g.graphml")
    assert run(*args, "--labels", tmp_path / "c.csv").code == 0
    read = nx.read_graphml(tmp_path / "g.graphml")
    assert [read.nodes[one].get("class") for one in "0125"] == [None, "0", "0", "1"]


def test_several_resolutions_are_a_table_and_a_column_each(run, folder, tmp_path):
    out = tmp_path / "c.csv"
    call = ("cluster", folder / "g.npz", "--labels", folder / "y.npy", "-o", out)
    done = run(*call, "--resolution", "0.5,1,2")
    assert done.code == 0, done.err
    head, *rows = (line.split() for line in done.out.splitlines())
    assert head == [
        "resolution",
        "clusters",
        "modularity",
        "largest",
        "smallest",
        "AMI",
        "ARI",
    ]
    assert [row[0] for row in rows] == ["0.5", "1", "2"]
    with out.open() as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["id", "cluster_0.5", "cluster_1", "cluster_2"]
    assert len(table) == 600
    facts = json.loads(run(*call, "--resolution", "0.5,1,2", "--json").out)
    lines = facts["resolutions"]
    assert [f"{one['ami']:.4f}" for one in lines] == [row[5] for row in rows]
    assert [len(one["by_cluster"]) for one in lines] == [int(row[1]) for row in rows]
    first = lines[0]["by_cluster"][0]
    assert first["medoid"].startswith("p")
    assert first["class"] in "01234"
    assert 0 < first["share"] <= 1


def test_the_table_shows_the_largest_clusters_and_their_medoids(run, folder, blobs):
    graph, _ = blobs
    call = ("cluster", folder / "g.npz", "-o", folder / "c.csv", "--top", 2)
    done = run(*call, "--resolution", 3)
    (found,) = cluster(graph, resolution=3.0).partitions
    lines = done.out.splitlines()
    medoid = graph.ids[found.medoids[0]]
    assert lines[4].split() == ["0", str(found.sizes[0]), medoid]
    assert lines[-1] == f"... {len(found.sizes) - 2} more"


MISTAKES = [
    ("g.npz -o c.csv --labels short.npy", 3, "short.npy: 3 labels, but"),
    ("g.npz -o c.csv --labels none.csv", 3, "none.csv: all 600 labels are missing"),
    ("empty.npz -o c.csv", 3, "empty.npz: the graph has no edges, and so no clusters"),
    ("directed.npz -o c.csv", 3, "directed.npz: the graph is directed"),
    ("g.npz -o c.csv --resolution 0", 2, "above 0"),
    ("g.npz -o c.csv --resolution 1,x", 2, "above 0"),
    ("g.npz -o c.csv --resolution 1,1.0", 2, "--resolution is named twice"),
    ("g.npz -o c.npz", 2, ".csv, .tsv, .parquet"),
    ("g.npz -o - --json", 2, "not both"),
    ("gone.npz -o c.csv", 3, "gone.npz: no such file"),
    ("g.npz", 2, "--output"),
]


@pytest.mark.parametrize(("words", "code", "message"), MISTAKES)
def test_mistakes_have_their_code_and_leave_no_file(
    run, folder, monkeypatch, words, code, message
):
    monkeypatch.chdir(folder)
    (folder / "c.csv").unlink(missing_ok=True)
    done = run("cluster", *words.split())
    assert done.code == code, done.err
    assert message in done.err
    assert done.lines[-1].startswith("nnkgraph: error: ")
    assert not (folder / "c.csv").exists()


def test_quiet_prints_no_table_that_a_file_holds(run, folder, tmp_path):
    call = ("cluster", folder / "g.npz", "-o", tmp_path / "c.csv")
    assert "modularity" in run(*call).out
    quiet = run(*call, "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert "modularity" in run(*call, "-q", "--json").out
    assert run(*call[:-1], "-", "-q").out == (tmp_path / "c.csv").read_text()


def test_one_class_is_said_to_say_nothing(run, folder, tmp_path):
    call = ("cluster", folder / "g.npz", "--labels", folder / "one.npy")
    done = run(*call, "-o", tmp_path / "c.csv")
    assert done.code == 0
    assert "only one class: AMI and ARI say nothing" in done.err


def test_what_is_missing_or_wrong_is_said(blobs, monkeypatch):
    graph, _ = blobs
    with pytest.raises(ParameterError, match="resolution"):
        cluster(graph, resolution=[])
    with pytest.raises(ParameterError, match="seed"):
        cluster(graph, seed=-1)
    with pytest.raises(InputError, match="negative"):
        cluster(graph_of([[0, -1], [-1, 0]]))
    monkeypatch.setitem(__import__("sys").modules, "graspologic_native", None)
    with pytest.raises(ResourceError, match=r"pip install 'nnkgraph\[cluster\]'"):
        cluster(graph)
