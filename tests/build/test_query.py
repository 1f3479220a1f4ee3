"""Queries: neighborhoods of new points, and of old ones."""

import csv
import json

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy import sparse
from scipy.optimize import nnls

import nnkgraph
from bench.data import manifold
from nnkgraph.build.graph import build_graph
from nnkgraph.build.query import query
from nnkgraph.errors import InputError, ParameterError


@pytest.fixture(scope="module")
def digits():
    with h5py.File(SAMPLES / "digits.h5") as file:
        return file["features"][:].astype(float)


@pytest.mark.parametrize("method", ["nnk", "knn", "mp", "omp", "l1", "kstar", "lle"])
@pytest.mark.parametrize("kernel", ["gaussian", "cosine", "laplacian"])
def test_data_in_itself_is_the_directed_graph(digits, method, kernel):
    x = np.unique(digits[:500], axis=0)
    options = {"k": 15, "method": method, "kernel": kernel}
    graph = build_graph(x, symmetrize="none", min_weight=0, **options)
    found = query(x, x, exclude_identical=True, **options)
    assert np.array_equal(found.weights.indptr, graph.adjacency.indptr)
    assert np.array_equal(found.weights.indices, graph.adjacency.indices)
    assert np.array_equal(found.weights.data, graph.adjacency.data)
    if graph.errors is not None:
        assert np.array_equal(found.errors, graph.errors)


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "lle"])
def test_inner_products_too(digits, kernel):
    x = np.unique(digits[:300], axis=0) / 16
    options = {"k": 9, "kernel": kernel}
    graph = build_graph(x, symmetrize="none", min_weight=0, **options)
    found = query(x, x, exclude_identical=True, **options)
    assert abs(found.weights - graph.adjacency).max() <= 1e-12


def test_weights_solve_the_regression(digits):
    data, queries = digits[:600], digits[600:700]
    found = query(data, queries, k=20, preset="paper")
    sigma = found.report["sigma"]
    assert sigma == build_graph(data, k=20, preset="paper").report["sigma"]
    for i in range(0, 100, 10):
        distance = np.square(data - queries[i]).sum(1)
        near = np.argsort(distance, kind="stable")[:20]
        gram = np.exp(
            -np.square(data[near][:, None] - data[near]).sum(-1) / (2 * sigma**2)
        )
        cross = np.exp(-distance[near] / (2 * sigma**2))
        root = np.linalg.cholesky(gram).T
        theta, _ = nnls(root, np.linalg.solve(root.T, cross))
        weights = found.weights[[i]].toarray()[0]
        assert weights[near] == pytest.approx(theta, abs=1e-8)
        assert found.errors[i] == pytest.approx(
            0.5 - cross @ theta + theta @ gram @ theta / 2, abs=1e-10
        )


def test_a_query_that_is_in_the_data_finds_itself(digits):
    data = np.unique(digits[:200], axis=0)
    found = query(data, data[[5, 7]], k=9)
    assert found.weights.toarray()[[0, 1], [5, 7]].tolist() == [1.0, 1.0]
    assert found.weights.nnz == 2
    assert found.errors.tolist() == [0.0, 0.0]
    assert found.report["identical"] == 2


def test_copies_in_the_data_count_as_one(digits):
    data = np.unique(digits[:200], axis=0)
    twice = np.concatenate([data, data])
    one, two = (query(d, digits[300:320], k=9) for d in (data, twice))
    assert np.array_equal(one.weights.toarray(), two.weights.toarray()[:, : len(data)])
    assert two.weights[:, len(data) :].nnz == 0


def test_distances_nearest_and_identical_rows_are_those_of_the_data_as_given(digits):
    data = np.concatenate([digits[:2], digits[:100]])  # rows 2 and 3 are copies
    queries = digits[[1, 50, 700]]
    found = query(data, queries, k=12, scale="standard")
    assert found.identical.tolist() == [1, 52, -1]
    assert found.nearest[:2].tolist() == [1, 52]
    assert np.array_equal(found.distances.indices, found.weights.indices)
    width = np.where(data.std(axis=0) > 0, data.std(axis=0), np.inf)
    row, column = found.weights.nonzero()
    distance = np.linalg.norm((queries[row] - data[column]) / width, axis=1)
    np.testing.assert_allclose(found.distances[row, column], distance, rtol=1e-10)
    far = np.linalg.norm((queries[2] - data) / width, axis=1)
    assert found.nearest[2] == far.argmin()
    assert query(data, queries, k=5, kernel="linear").distances is None


def test_scaling_comes_from_the_data(digits):
    data, queries = digits[:300], digits[300:340]
    found = query(data, queries, k=9, scale="standard")
    low, width = data.mean(0), data.std(0)
    width[width == 0] = np.inf
    by_hand = query((data - low) / width, (queries - low) / width, k=9)
    assert abs(found.weights - by_hand.weights).max() < 1e-12


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("k", [1, 30, 300])
def test_workers_cannot_be_seen(digits, workers, k):
    data = np.unique(digits[:320], axis=0)[:300]
    found = query(data, digits[700:760], k=k, workers=workers)
    first = query(data, digits[700:760], k=k)
    assert np.array_equal(found.weights.data, first.weights.data)


def test_candidates_from_a_file(run, digits, tmp_path):
    data, queries = digits[:200], digits[300:330]
    distance = np.square(data - queries[:, None]).sum(-1)
    near = np.argsort(distance, axis=1, kind="stable")[:, :12]
    np.savez(tmp_path / "knn.npz", neighbors=near)
    np.save(tmp_path / "data.npy", data)
    np.save(tmp_path / "queries.npy", queries)
    files = (tmp_path / "data.npy", tmp_path / "queries.npy", "-k", 12)
    search = f"precomputed:path={tmp_path / 'knn.npz'}"
    assert run("query", *files, "-o", tmp_path / "a.npz").code == 0
    assert run("query", *files, "-o", tmp_path / "b.npz", "--search", search).code == 0
    a, b = (sparse.load_npz(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert a.shape == (30, 200)
    assert (a != b).nnz == 0


def test_the_recall_of_an_approximate_search_is_said(run, tmp_path):
    x = manifold(32_000, 160)
    np.save(tmp_path / "data.npy", x[:12_000])
    np.save(tmp_path / "new.npy", x[12_000:])
    files = tmp_path / "data.npy", tmp_path / "new.npy", "-o", tmp_path / "a.npz"
    how = "--search", "partition:recall=0.9", "-k", 10, "--sigma", 1, "--json"
    result = run("query", *files, *how)
    assert result.code == 0
    known = json.loads(result.out)
    low, high = known["recall_interval"]
    assert 0.85 < low <= known["recall"] <= high < 0.98
    assert f"search partition:recall=0.9, recall {known['recall']:.4f}" in result.err
    assert "warning" in result.err
    assert "--search exact" in result.err


def test_tables_name_queries_and_rows(run, tmp_path):
    (tmp_path / "data.csv").write_text("id,x,y\na,0,0\nb,0,1\nc,9,9\n")
    (tmp_path / "new.csv").write_text("id,x,y\nq,0,0.5\nfar,1e6,1e6\n")
    result = run(
        "query",
        tmp_path / "data.csv",
        tmp_path / "new.csv",
        *("--id-column", "id", "-o", tmp_path / "out.tsv", "--sigma", 1, "-k", 2),
        *("--normalize", "--json"),
    )
    assert result.code == 0, result.err
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    assert lines[0] == "# query\tneighbor\tweight\terror\tdistance"
    cells = [line.split("\t") for line in lines[1:3]]
    assert [cell[:2] for cell in cells] == [["q", "a"], ["q", "b"]]
    assert [float(cell[2]) for cell in cells] == pytest.approx([0.5, 0.5])
    assert [float(cell[4]) for cell in cells] == [0.5, 0.5]
    assert lines[3].split("\t")[:3] == ["far", "", "0"]
    assert len(lines[3].split("\t")) == 5
    report = json.loads(result.out)
    assert report["without_neighbors"] == 1
    assert report["certificate"]["nodes_failed"] == 0


def test_neighbors_come_by_weight_with_distance_and_cosine(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "q.npy", q := x[:9] + 0.3)
    files = tmp_path / "x.npy", tmp_path / "q.npy"
    for out in ("a.csv", "a.npz"):
        done = run("query", *files, "--scale", "unit", "-o", tmp_path / out, "-k", 9)
        assert done.code == 0, done.err
    with (tmp_path / "a.csv").open() as file:
        lines = list(csv.DictReader(line.removeprefix("# ") for line in file))
    assert len(lines) > 20
    for line in lines:
        a, b = q[int(line["query"])], x[int(line["neighbor"])]
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert float(line["cosine"]) == pytest.approx(cosine, abs=1e-12)
        chord = np.sqrt(2 - 2 * cosine)
        assert float(line["distance"]) == pytest.approx(chord, abs=1e-9)
    order = [(int(one["query"]), -float(one["weight"])) for one in lines]
    assert order == sorted(order)
    again = nnkgraph.read_answers(tmp_path / "a.npz")
    found = nnkgraph.query(x, q, scale="unit", k=9)
    assert (again.weights != found.weights).nnz == 0
    assert np.array_equal(again.distances.data, found.distances.data)
    assert np.array_equal(again.distances.indices, found.weights.indices)
    assert np.array_equal(again.errors, found.errors)
    assert again.provenance == found.provenance
    told = run("info", tmp_path / "a.npz")
    assert told.code == 0
    for words in ("queries         9", "rows            60", "chord c between rows"):
        assert words in told.out
    known = json.loads(run("info", tmp_path / "a.npz", "--json").out)
    assert known["metric"] == "chord"
    assert known["distance"]["max"] == float(found.distances.data.max())


@pytest.mark.parametrize(
    "damage",
    [
        {"distances": np.ones(2)},
        {"errors": np.array([np.nan] * 3)},
        {"query_ids": np.array(["a"])},
        {"data": np.array(["x", "y"])},
        {"indices": np.array([99] * 4)},
    ],
)
def test_damaged_answers_are_refused(tmp_path, damage):
    x = np.random.default_rng(0).normal(size=(20, 3))
    nnkgraph.write_answers(tmp_path / "a.npz", nnkgraph.query(x, x[:3] + 0.1, k=4))
    with np.load(tmp_path / "a.npz") as file:
        members = dict(file) | damage
    np.savez(tmp_path / "a.npz", **members)
    with pytest.raises(InputError):
        nnkgraph.read_answers(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"method": "kalofolias"}, ParameterError),
        ({"method": "eps"}, ParameterError),
        ({"kernel": "precomputed"}, ParameterError),
        ({"search": "kdtree"}, ParameterError),
        ({"k": 21}, InputError),
    ],
)
def test_what_cannot_be_asked(options, error):
    x = np.random.default_rng(0).normal(size=(20, 20))
    with pytest.raises(error):
        query(x, x[:3], **options)


@pytest.mark.parametrize("far", [1e30, 1e60, 1e140])
@pytest.mark.parametrize("workers", [1, 2])
def test_queries_far_from_the_data_find_the_nearest_rows(far, workers):
    t = np.random.default_rng(0).normal(size=(3000, 1))
    for data in (np.hstack([t, -t]), np.random.default_rng(1).normal(size=(3000, 3))):
        points = np.full((7, data.shape[1]), far)
        found = query(
            data, points, k=5, method="lle", kernel="gaussian", workers=workers
        )
        assert (np.diff(found.weights.indptr) > 0).all()
        # Seen from there all rows are equally far: the lowest row numbers win.
        assert found.weights.indices.max() < 5


def test_a_single_row_can_be_found():
    found = query([[1.0, 2.0]], [[1.0, 3.0]], sigma=1.0)
    assert found.weights.toarray() == pytest.approx(np.exp(-0.5))
    with pytest.raises(InputError, match="give one"):
        query([[1.0, 2.0]], [[1.0, 3.0]], sigma="auto")


def test_columns_have_to_match():
    with pytest.raises(InputError, match="3 columns"):
        query(np.ones((4, 2)), np.ones((2, 3)))
