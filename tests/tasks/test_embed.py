"""Laplacian eigenmaps: eigenvectors, components, signs, files."""

import csv
import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from conftest import SAMPLES

from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.data import Graph
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.tasks.embed import embed

SOLVERS = ("dense", "factor", "lanczos")


def graph_of(weights, **more):
    matrix = sp.csr_array(weights)
    matrix.sort_indices()
    return Graph(matrix, **more)


def joined(n, edges, **more):
    weights = np.zeros((n, n))
    for a, b in edges:
        weights[a, b] = weights[b, a] = 1
    return graph_of(weights, **more)


@pytest.fixture(scope="module")
def roll():
    return build_graph(np.load(SAMPLES / "swiss_roll.npy")[:500], k=10, connect="mst")


def definition(graph, p):
    """The generalized problem, with dense matrices."""
    w = graph.adjacency.toarray()
    degree = np.diag(w.sum(axis=1))
    values, vectors = scipy.linalg.eigh(degree - w, degree)
    return values[1 : p + 1], vectors[:, 1 : p + 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_are_those_of_the_generalized_problem(roll, solver):
    values, vectors = definition(roll, 4)
    found = embed(roll, dimensions=4, solver=solver)
    np.testing.assert_allclose(found.eigenvalues[0], values, rtol=1e-8, atol=1e-12)
    sign = np.sign((vectors * found.coordinates).sum(axis=0))
    np.testing.assert_allclose(found.coordinates, sign * vectors, atol=1e-6)
    assert found.facts["residual"] < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_have_unit_length_by_degree_and_a_fixed_sign(roll, solver):
    f = embed(roll, dimensions=3, solver=solver).coordinates
    degree = roll.adjacency.sum(axis=1)
    np.testing.assert_allclose(f.T @ (degree[:, None] * f), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(degree @ f, 0, atol=1e-9)
    assert (f[np.abs(f).argmax(axis=0), range(3)] > 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_eigenvalues_are_all_found(solver):
    grid = nx.grid_2d_graph(9, 9)
    graph = graph_of(nx.to_scipy_sparse_array(grid, dtype=float))
    expected = np.sort(nx.normalized_laplacian_spectrum(grid))[1:6]
    assert expected[0] == pytest.approx(expected[1])
    found = embed(graph, dimensions=5, solver=solver)
    np.testing.assert_allclose(found.eigenvalues[0], expected, atol=1e-10)


def test_the_sign_does_not_depend_on_the_solver_where_entries_tie():
    graph = joined(101, [(i, i + 1) for i in range(100)])
    each = [embed(graph, dimensions=3, solver=one).coordinates for one in SOLVERS]
    for other in each[1:]:
        np.testing.assert_allclose(other, each[0], atol=1e-8)
    assert each[0][0, 0] > 0  # both ends are equally large: the first counts


def test_equal_calls_give_equal_bytes(roll):
    for solver in SOLVERS:
        first, second = (embed(roll, solver=solver).coordinates for _ in range(2))
        assert first.tobytes() == second.tobytes()


def test_multigrid_finds_what_steps_find_and_leaves_random_numbers_alone():
    x = np.random.default_rng(0).random((2500, 3))
    graph = build_graph(x, k=10)
    np.random.seed(5)  # noqa: NPY002, TID251
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002, TID251
    found, again = (embed(graph, dimensions=3, solver="amg") for _ in range(2))
    assert np.random.random() == expected  # noqa: NPY002
    assert found.coordinates.tobytes() == again.coordinates.tobytes()
    other = embed(graph, dimensions=3, solver="lanczos")
    assert found.facts["embedded_nodes"] > 2400
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-9)
    np.testing.assert_allclose(found.coordinates, other.coordinates, atol=1e-7)
    assert found.facts["residual"] < 1e-9


def test_multigrid_says_what_it_needs(monkeypatch):
    x = np.random.default_rng(0).random((1500, 3))
    monkeypatch.setitem(sys.modules, "pyamg", None)
    with pytest.raises(ResourceError, match=r"nnkgraph\[amg\]"):
        embed(build_graph(x, k=10), solver="amg")


PARTS = [(0, 2), (2, 4), (4, 6), (6, 0), (0, 4), (1, 3), (5, 7)]


def test_nodes_outside_the_largest_component_are_left_out():
    found = embed(joined(9, PARTS), dimensions=2)
    inside = np.isin(np.arange(9), [0, 2, 4, 6])
    assert np.isfinite(found.coordinates).all(axis=1).tolist() == inside.tolist()
    assert (found.component >= 0).tolist() == inside.tolist()
    alone = joined(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    expected = embed(alone, dimensions=2)
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-12)


def test_each_component_has_coordinates_of_its_own():
    found = embed(joined(9, PARTS), dimensions=2, component="each")
    assert found.component.tolist() == [0, 1, 0, 1, 0, 2, 0, 2, 3]
    np.testing.assert_allclose(found.eigenvalues[1:3, 0], 2)
    assert np.isnan(found.eigenvalues[1:, 1]).all()
    np.testing.assert_allclose(found.coordinates[[1, 3], 0], [0.5**0.5, -(0.5**0.5)])
    assert (found.coordinates[[1, 3, 5, 7, 8], 1] == 0).all()
    assert found.coordinates[8].tolist() == [0, 0]
    assert found.facts["padded_nodes"] == 5


def test_what_cannot_be_embedded_is_refused(monkeypatch, roll):
    with pytest.raises(InputError, match="no edge"):
        embed(joined(3, []))
    with pytest.raises(InputError, match="largest component has 3 nodes"):
        embed(joined(5, [(0, 1), (1, 2)]), dimensions=3)
    with pytest.raises(InputError, match="directed"):
        embed(graph_of(np.eye(3, k=1), directed=True))
    with pytest.raises(ParameterError, match="largest, each"):
        embed(roll, component="all")
    with pytest.raises(ParameterError, match="at least 1"):
        embed(roll, dimensions=0)
    monkeypatch.setattr("nnkgraph.tasks.embed._RESTARTS", 1)
    with pytest.raises(ResourceError, match="did not converge"):
        embed(roll, solver="lanczos")


def test_the_command_writes_arrays_and_tables_with_ids(run, tmp_path):
    ids = tuple(f"n,{i}" for i in range(9))
    formats.write_graph(tmp_path / "g.npz", joined(9, PARTS, ids=ids))
    out = {end: tmp_path / f"c.{end}" for end in ("npy", "npz", "csv", "tsv")}
    for path in out.values():
        result = run("embed", tmp_path / "g.npz", "-o", path, "--json")
        assert result.code == 0, result.err
        assert "5 of 9 nodes are outside the largest component" in result.err
        assert len(json.loads(result.out)["eigenvalues"]) == 2
    coords = np.load(out["npy"])
    assert coords.shape == (9, 2)
    with np.load(out["npz"]) as archive:
        np.testing.assert_array_equal(archive["coordinates"], coords)
        assert archive["ids"].tolist() == list(ids)
    for end, delimiter in (("csv", ","), ("tsv", "\t")):
        with out[end].open() as file:
            rows = list(csv.DictReader(file, delimiter=delimiter))
        assert [row["id"] for row in rows] == list(ids)
        read = [[float(row[c] or "nan") for c in ("e1", "e2")] for row in rows]
        np.testing.assert_array_equal(read, coords)
    result = run("embed", tmp_path / "g.npz", "-o", "-", "--component", "each")
    assert result.out.count("\n") == 10
    assert "4 components have coordinates of their own" in result.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("g.npz -o c.txt", 2, ".npy, .csv, .tsv, .npz"),
        ("g.npz -o c.csv -p 0", 2, "-p"),
        ("g.npz -o c.csv -p 4", 3, "at most 3 coordinates"),
        ("g.npz -o - --json", 2, "not both"),
        ("g.npz -o g.npz", 2, "also an input"),
        ("gone.npz -o c.csv", 3, "gone.npz: no such file"),
    ],
)
def test_mistakes_have_their_code(run, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    formats.write_graph("g.npz", joined(9, PARTS))
    result = run("embed", *words.split())
    assert result.code == code, result.err
    assert message in result.err
    assert not (tmp_path / "c.csv").exists()
