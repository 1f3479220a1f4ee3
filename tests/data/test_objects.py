"""Graphs as objects of scipy, networkx, igraph and pygsp."""

import dataclasses
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from nnkgraph.build.graph import build_graph
from nnkgraph.data import Features, Graph
from nnkgraph.formats import read_graph, write_graph

IDS = [f"node {i}" for i in range(40)]
X = np.random.default_rng(0).normal(size=(40, 3))


def graph_of(rule, *, named=True):
    graph = build_graph(
        Features.of(X, ids=IDS if named else None), k=8, symmetrize=rule
    )
    # The last node loses its edges: it must stay nevertheless.
    adjacency = graph.adjacency.tolil()
    adjacency[39, :] = 0
    adjacency[:, 39] = 0
    left = csr_array(adjacency)
    return dataclasses.replace(graph, adjacency=left, distances=None)


@pytest.fixture(params=["error", "none"], ids=["undirected", "directed"])
def graph(request):
    return graph_of(request.param)


def test_scipy_gets_a_copy(graph):
    matrix = graph.to_scipy()
    assert (matrix != graph.adjacency).nnz == 0
    matrix.data[:] = 7
    assert (graph.adjacency.data != 7).all()


def test_networkx_gets_everything(graph):
    found = graph.to_networkx()
    assert found.is_directed() == graph.directed
    assert list(found) == IDS
    assert found.number_of_edges() == graph.n_edges
    assert found.degree("node 39") == 0
    assert (nx.to_scipy_sparse_array(found) != graph.adjacency).nnz == 0
    errors = nx.get_node_attributes(found, "error")
    assert [errors[one] for one in IDS] == graph.errors.tolist()
    assert all(type(w) is float for *_, w in found.edges(data="weight"))


def test_igraph_gets_everything(graph):
    found = graph.to_igraph()
    assert found.is_directed() == graph.directed
    assert found.vs["name"] == IDS
    assert found.vs["error"] == graph.errors.tolist()
    assert found.ecount() == graph.n_edges
    assert found.degree(39) == 0
    there = found.get_adjacency_sparse("weight")
    assert abs(there - graph.adjacency).max() == 0


def test_pygsp_gets_everything_but_names(graph):
    found = graph.to_pygsp()
    assert found.is_directed() == graph.directed
    assert (found.n_vertices, found.n_edges) == (40, graph.n_edges)
    assert abs(found.W - graph.adjacency).max() == 0
    assert found.signals["error"].tolist() == graph.errors.tolist()
    found.compute_laplacian()


def test_nodes_without_names_are_known_by_number():
    graph = graph_of("error", named=False)
    assert list(graph.to_networkx()) == list(range(40))
    assert "name" not in graph.to_igraph().vs.attributes()


def test_a_graph_without_errors_has_no_such_attribute():
    graph = dataclasses.replace(graph_of("mean"), errors=None)
    assert not nx.get_node_attributes(graph.to_networkx(), "error")
    assert graph.to_igraph().vs.attributes() == ["name"]
    assert not graph.to_pygsp().signals


def test_a_graph_without_edges_keeps_its_nodes():
    graph = Graph(csr_array((3, 3)))
    assert graph.to_networkx().number_of_nodes() == 3
    assert graph.to_igraph().vcount() == 3


def test_networkx_says_the_same_as_the_graphml_file(graph, tmp_path):
    write_graph(tmp_path / "graph.graphml", graph)
    there = nx.read_graphml(tmp_path / "graph.graphml")
    here = read_graph(tmp_path / "graph.graphml").to_networkx()
    assert set(here.edges) == set(there.edges)
    for one, attributes in there.nodes(data=True):
        assert attributes.pop("name") == one  # igraph looks nodes up by it
        assert attributes == here.nodes[one]
    for *ends, attributes in there.edges(data=True):
        assert attributes == here.edges[tuple(ends)]


@pytest.mark.parametrize("package", ["networkx", "igraph", "pygsp"])
def test_a_missing_package_is_named_and_nothing_else_is_loaded(package):
    script = f"""
import sys
sys.modules["{package}"] = None
import numpy
from scipy.sparse import csr_array
from nnkgraph import Graph
from nnkgraph.errors import ResourceError
loaded = {{"networkx", "igraph", "pygsp"}} & {{m for m, v in sys.modules.items() if v}}
assert not loaded, loaded
try:
    Graph(csr_array((3, 3))).to_{package}()
except ResourceError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"this needs {package}: pip install {package}\n"
