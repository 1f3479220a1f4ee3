"""Sparse features: the graph of their dense copy, without the copy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nnkgraph import formats
from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.build.query import query
from nnkgraph.data import Features, SparseRows, pairs
from nnkgraph.data.scaling import unit_rows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.tasks.verify import verify


def counts(n=90, d=53, *, seed=0, share=0.15):
    """Return counts with at least one word in every row; rows 5 and 7 repeat row 3."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(1.5, (n, d)) * (rng.random((n, d)) < share)
    x[np.arange(n), rng.integers(0, d, n)] += 1
    x[5] = x[7] = x[3]
    return sp.csr_array(x.astype(np.float64))


def assert_equal_graphs(a, b):
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(a.adjacency, part), getattr(b.adjacency, part))
    assert np.array_equal(a.errors, b.errors)
    assert a.provenance == b.provenance


@pytest.mark.parametrize("d", [7, 16, 53, 400])
@pytest.mark.parametrize("base", ["squared-distance", "inner-product"])
def test_sparse_rows_have_the_values_of_dense_ones_to_the_bit(d, base):
    a = unit_rows(SparseRows.of(counts(d=d, share=0.3), "x"), "x")
    b = unit_rows(counts(d=d, share=0.3).toarray(), "x")
    assert np.array_equal(a.dense(), b)
    rng = np.random.default_rng(1)
    index = rng.integers(-1, 90, (90, 8))
    for one, other in (
        (pairs.cross_values(a, a, index, base), pairs.cross_values(b, b, index, base)),
        (pairs.within_values(a, index, base), pairs.within_values(b, index, base)),
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "linear"])
@pytest.mark.parametrize("duplicates", ["merge", "keep"])
def test_the_graph_is_that_of_the_dense_copy(kernel, duplicates):
    x = counts()
    options = {"k": 8, "kernel": kernel, "duplicates": duplicates, "search": "exact"}
    sparse = build_graph(x, **options)
    assert_equal_graphs(sparse, build_graph(x.toarray(), **options))
    assert sparse.report["certificate"]["nodes_failed"] == 0


def test_candidates_of_rows_without_a_common_word_are_those_of_the_dense_copy():
    x = sp.csr_array(sp.block_diag([counts(12, 20, seed=s) for s in range(4)]))
    for kernel in ("cosine", "gaussian", "linear"):
        options = {"k": 20, "kernel": kernel, "search": "exact", "duplicates": "keep"}
        sparse = find_candidates(x, **options)
        dense = find_candidates(x.toarray(), **options)
        assert np.array_equal(sparse.index, dense.index)
        assert np.array_equal(sparse.distance, dense.distance)


@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "linear"])
@pytest.mark.parametrize("exclude", [True, False])
def test_queries_get_the_neighborhoods_of_the_dense_copy(kernel, exclude):
    x, new = counts(), sp.csr_array(sp.vstack([counts(20, seed=3), counts()[[3, 40]]]))
    options = {"k": 8, "kernel": kernel, "exclude_identical": exclude}
    sparse = query(x, new, **options)
    dense = query(x.toarray(), new.toarray(), **options)
    assert sparse.identical[-2:].tolist() == [3, 40]
    for part in ("indptr", "indices", "data"):
        ours, theirs = (getattr(one.weights, part) for one in (sparse, dense))
        assert np.array_equal(ours, theirs)
    for part in ("errors", "identical", "nearest"):
        assert np.array_equal(getattr(sparse, part), getattr(dense, part))
    assert sparse.provenance == dense.provenance


@pytest.mark.parametrize("method", ["knn", "kstar", "omp", "mp", "l1", "kalofolias"])
def test_methods_work_on_sparse_features(method):
    options = {"k": 6, "kernel": "cosine", "method": method, "search": "exact"}
    a, b = build_graph(counts(), **options), build_graph(counts().toarray(), **options)
    assert (a.adjacency != b.adjacency).nnz == 0


def test_candidates_grow_and_blocks_and_workers_change_nothing():
    options = {"k": 3, "kernel": "cosine", "grow": 1e-3, "search": "exact"}
    graph = build_graph(counts(), **options)
    assert graph.report["candidates_grown"] > 0
    assert_equal_graphs(graph, build_graph(counts().toarray(), **options))
    options = {"k": 5, "kernel": "cosine"}
    one = build_graph(counts(), **options)
    for more in ({"workers": 2}, {"workers": 2, "executor": "threads"}):
        assert_equal_graphs(build_graph(counts(), **options, **more), one)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kernel": "laplacian"}, "kernels cosine, gaussian, jaccard and linear"),
        ({"kernel": "polynomial"}, "kernels cosine, gaussian, jaccard and linear"),
        ({"kernel": "lle"}, "kernels cosine, gaussian, jaccard and linear"),
        ({"scale": "standard"}, "fill the zeros"),
        ({"scale": "minmax"}, "fill the zeros"),
        ({"search": "kdtree"}, "searched by 'exact' only"),
        ({"search": "pynndescent"}, "searched by 'exact' only"),
        ({"method": "eps"}, "'eps' needs a dense matrix"),
        ({"method": "lle"}, "'lle' needs a dense matrix"),
        ({"method": "aew"}, "'aew' needs a dense matrix"),
        ({"connect": "mst"}, "bridges need a dense matrix"),
    ],
)
def test_what_needs_all_zeros_is_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        build_graph(counts(), k=5, **options)


def test_rows_without_a_word_have_no_direction():
    x = counts().tolil()
    x[4] = 0
    with pytest.raises(InputError, match=r"row 4 .* all zeros"):
        build_graph(x.tocsr(), k=5, kernel="cosine")
    assert build_graph(x.tocsr(), k=5, kernel="gaussian").n_nodes == 90


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.nan, "NaN at row 2, column 3"),
        (-np.inf, "infinity at row 2, column 3"),
        (1e200, "range of squared distances"),
    ],
)
def test_values_are_checked(value, match):
    x = sp.coo_array(([1.0, value], ([0, 2], [1, 3])), shape=(4, 5))
    with pytest.raises(InputError, match=match):
        Features.of(x)
    with pytest.raises(InputError, match="no real number"):
        Features.of(sp.csr_array(np.eye(2) * 1j))


def test_equal_matrices_have_equal_hashes(monkeypatch):
    x = counts()
    wanted = Features.of(x.toarray()).sha256
    explicit = sp.coo_array(
        (
            np.concatenate([x.data / 2, x.data / 2, [0.0]]),
            (
                np.concatenate(
                    [*[np.repeat(np.arange(90), np.diff(x.indptr))] * 2, [0]]
                ),
                np.concatenate([x.indices, x.indices, [52]]),
            ),
        ),
        x.shape,
    )
    for one in (x, x.tocsc(), explicit, x.astype(np.int16)):
        assert Features.of(one).sha256 == wanted
    monkeypatch.setattr("nnkgraph.data.sparse._HASHED", 10)
    assert Features.of(x).sha256 == Features.of(explicit).sha256 != wanted


def test_rows_are_taken_out_as_from_arrays():
    x, dense = SparseRows.of(counts(), "x"), counts().toarray()
    for rows in (slice(3, 9), slice(80, 200), slice(5, 5), np.array([7, 7, 0, 89])):
        assert np.array_equal(x[rows].dense(), dense[rows])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_files_are_read_sparse_or_dense(tmp_path, kind):
    x = counts()
    sp.save_npz(tmp_path / "x.npz", x.asformat(kind).astype(np.int32))
    scipy.io.savemat(tmp_path / "x.mat", {"fea": x.asformat(kind)})
    for path in (tmp_path / "x.npz", tmp_path / "x.mat"):
        rows = formats.read_features(path)
        assert isinstance(rows.x, SparseRows)
        dense = formats.read_features(path, sparse="dense")
        assert np.array_equal(dense.x, x.toarray())
        assert np.array_equal(rows.x.dense(), dense.x)
        assert rows.sha256 == dense.sha256 == Features.of(x.toarray()).sha256


def test_ids_stand_beside_a_sparse_matrix(tmp_path):
    sp.save_npz(tmp_path / "x.npz", counts(8))
    with np.load(tmp_path / "x.npz") as archive:
        members = dict(archive)
    np.savez(tmp_path / "x.npz", **members, ids=np.array(list("abcdefgh")))
    for sparse in ("dense", "rows"):
        read = formats.read_features(tmp_path / "x.npz", sparse=sparse)
        assert read.ids == tuple("abcdefgh")


def test_graphs_and_similarities_are_no_features(tmp_path):
    graph = build_graph(counts().toarray(), k=5)
    formats.write_graph(tmp_path / "g.npz", graph)
    with pytest.raises(InputError, match="a graph that nnkgraph wrote, not features"):
        formats.read_features(tmp_path / "g.npz", sparse="rows")
    sp.save_npz(tmp_path / "s.npz", graph.adjacency)
    scipy.io.savemat(tmp_path / "s.mat", {"W": graph.adjacency})
    for name in ("s.npz", "s.mat"):
        with pytest.raises(InputError, match="symmetric, as graphs and similarities"):
            formats.read_features(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"shape": [3, 2**40]}, "claims|not believed"),
        ({"shape": [3, 50_000_000]}, "not believed"),
        ({"indices": [9, 0]}, "outside of the 3 x 4 matrix"),
        ({"indices": [-1, 0]}, "outside of the 3 x 4 matrix"),
        ({"indptr": [0, 2, 1, 2]}, "'indptr' decreases"),
        ({"data": [np.nan, 1]}, "NaN at row 0, column 1"),
        ({"shape": [-3, 4]}, "impossible extents"),
        ({"format": b"bsr"}, "save it as csr, csc or coo"),
    ],
)
def test_malformed_sparse_features_are_refused(tmp_path, changes, match):
    parts = {"format": b"csr", "shape": [3, 4], "data": [0.5, 2], "indices": [1, 0]}
    members = {**parts, "indptr": [0, 1, 2, 2], **changes}
    np.savez(tmp_path / "x.npz", **{k: np.array(v) for k, v in members.items()})
    with pytest.raises(InputError, match=match):
        formats.read_features(tmp_path / "x.npz", sparse="rows")


def test_commands_take_sparse_features(tmp_path, run):
    x, y, graph = tmp_path / "x.npz", tmp_path / "y.npy", tmp_path / "g.npz"
    sp.save_npz(x, counts())
    np.save(y, np.arange(90) % 3)
    done = run("build", x, "--kernel", "cosine", "-k", 6, "-o", graph)
    assert done.code == 0, done.err
    for arguments in (
        ["verify", x, graph],
        ["search", x, "--kernel", "cosine", "-k", 6, "-o", tmp_path / "knn.npz"],
        ["explain", x, "--node", 3, "--kernel", "cosine", "-k", 6],
        ["query", x, x, "-k", 6, "-o", tmp_path / "q.npz"],
        ["classify", x, "--labels", y, "-k", 6],
        ["build", x, "-k", 5, "-o", graph, "--dry-run"],
    ):
        done = run(*arguments)
        assert done.code == 0, (arguments, done.err)
    done = run("build", x, "--scale", "standard", "-o", graph)
    assert done.code == 2
    assert done.err.count("\n") == 1


# The commands


@pytest.fixture
def both(tmp_path):
    """Write the same rows as a sparse and as a dense file, with labels and queries."""
    x = counts(160)
    sp.save_npz(tmp_path / "sparse.npz", x)
    np.save(tmp_path / "dense.npy", x.toarray())
    new = sp.csr_array(sp.vstack([counts(20, seed=3), counts(160)[[3, 40]]]))
    sp.save_npz(tmp_path / "sparse-new.npz", new)
    np.save(tmp_path / "dense-new.npy", new.toarray())
    np.save(tmp_path / "y.npy", np.arange(160) % 3)
    return tmp_path


def answers(run, folder, command, *options):
    """Return what a command says of the sparse and of the dense file."""
    found = []
    for name in ("sparse.npz", "dense.npy"):
        asked = [str(one).replace("NEW", name.replace(".", "-new.")) for one in options]
        done = run(command, folder / name, *asked, "--json")
        assert done.code == 0, done.err
        found.append(json.loads(done.out.replace(name, "x")))
    return found


@pytest.mark.parametrize("kernel", ["gaussian", "cosine", "linear"])
def test_commands_say_what_they_say_of_the_dense_copy(run, both, kernel):
    how = ("--kernel", kernel)
    one, two = answers(run, both, "explain", "--node", 7, "-k", 6, *how)
    assert one == two
    labels = ("--labels", both / "y.npy", "--method", "nnk", "-k", "4,6", *how)
    one, two = answers(run, both, "classify", *labels)
    del one["seconds"], two["seconds"]
    assert one == two
    test = ("--test", both / "NEW", *labels[:4], *how)
    one, two = answers(run, both, "classify", *test)
    del one["seconds"], two["seconds"]
    assert one == two
    for path in (both / "sparse-new.npz", both / "dense-new.npy"):  # in either form
        output = both / f"{path.name}.a.npz"
        assert run("query", both / "sparse.npz", path, "-o", output, *how).code == 0
        assert (
            run("query", both / "dense.npy", path, "-o", both / "d.npz", *how).code == 0
        )
        assert output.read_bytes() == (both / "d.npz").read_bytes()
    if kernel != "linear":
        one, two = answers(run, both, "audit", "--labels", both / "y.npy", *how)
        assert one["table"] == two["table"]


@pytest.mark.parametrize("scale", ["none", "unit"])
@pytest.mark.parametrize("kernel", ["gaussian", "cosine", "linear"])
@pytest.mark.parametrize("method", ["nnk", "knn"])
def test_graphs_of_sparse_rows_are_derived_again(run, both, kernel, method, scale):
    x, g = both / "sparse.npz", both / "g.npz"
    how = ("--kernel", kernel, "--method", method, "--scale", scale, "-k", 6)
    assert run("build", x, "-o", g, *how).code == 0
    assert run("verify", x, g).code == 0
    assert run("verify", x, g, "--sample", 20).code == 0
    assert run("verify", both / "dense.npy", g).code == 0


@pytest.mark.parametrize("part", ["edge", "weight", "error", "sigma"])
def test_wrong_graphs_of_sparse_rows_are_found_out(part):
    x = counts(120)
    graph = build_graph(x, k=8)
    adjacency, errors = graph.adjacency.copy(), np.array(graph.errors)
    about = dict(graph.provenance)
    if part == "edge":
        one = int(adjacency.indices[0])
        adjacency = adjacency.tolil()
        adjacency[0, one] = adjacency[one, 0] = 0
        adjacency = sp.csr_array(adjacency)
    elif part == "weight":
        adjacency.data *= 1.001
    elif part == "error":
        errors[3] += 1e-6
    else:
        about["sigma"] *= 1.01
    wrong = replace(
        graph, adjacency=adjacency, errors=errors, provenance=about, distances=None
    )
    assert not verify(x, replace(graph, distances=None)).failed
    assert verify(x, wrong).failed
