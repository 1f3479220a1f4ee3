"""Kernel ``jaccard``: distances, candidates, neighborhoods, what it refuses."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from nnkgraph import testing
from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.build.query import query
from nnkgraph.data import SparseRows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.search import Wanted
from nnkgraph.search._overlaps import overlap_inputs
from nnkgraph.tasks.verify import verify


def draw(kind, n=240):
    rng = np.random.default_rng(0)
    return {
        "few bits": rng.random((n, 300)) < 0.03,
        "many bits": rng.random((n, 166)) < 0.3,
        "counts": rng.poisson(0.4, (n, 20)),
        "histograms": rng.random((n, 12)),
    }[kind].astype(float)


KINDS = ["few bits", "many bits", "counts", "histograms"]


def ruzicka(a, b):
    """Return the distances by their definition; rows of zeros are the same."""
    low = np.minimum(a[:, None], b[None]).sum(-1)
    high = np.maximum(a[:, None], b[None]).sum(-1)
    return np.where(high > 0, (high - low) / np.where(high > 0, high, 1), 0.0)


def nearest(distance, k):
    distance = distance.copy()
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("kind", ["few bits", "many bits"])
def test_bits_are_compared_as_scipy_compares_them(kind):
    x = draw(kind)
    found = find_candidates(x, k=9, kernel="jaccard", duplicates="keep")
    expected = cdist(x.astype(bool), x.astype(bool), "jaccard")
    best = nearest(expected, 9)
    assert np.array_equal(found.index, best)  # ties go to the lower row number
    assert np.array_equal(found.distance, np.take_along_axis(expected, best, 1))


@pytest.mark.parametrize("kind", ["counts", "histograms"])
def test_numbers_are_compared_by_minima_and_maxima(kind):
    x = draw(kind)
    found = find_candidates(x, k=9, kernel="jaccard", duplicates="keep")
    best = nearest(ruzicka(x, x), 9)
    assert np.array_equal(found.index, best)
    known = np.take_along_axis(ruzicka(x, x), best, 1)
    assert found.distance == pytest.approx(known, rel=1e-14, abs=1e-14)


def test_rows_are_searched_by_bits_or_by_columns():
    ways = {}
    with registry.create("executors", "serial").open(1) as pool:
        for kind in KINDS:
            rows = SparseRows.of(sparse.csr_array(draw(kind)), kind)
            wanted = Wanted(rows, 5, "jaccard-distance", pool)
            ways[kind] = overlap_inputs(wanted).bits is not None
    assert ways == {name: name == "many bits" for name in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_are_proven_and_derived_again(kind):
    x = draw(kind)
    graph = build_graph(x, k=12, kernel="jaccard")
    assert graph.report["certificate"]["kkt_max"] < 1e-12
    assert not verify(x, graph).failed
    assert graph.provenance["metric"] == "jaccard"


def test_verify_sees_weights_of_another_kernel():
    x = draw("counts")
    graph = build_graph(x, k=12, kernel="jaccard", weights="regression")
    graph.adjacency.data[:] = np.sqrt(graph.adjacency.data)
    failed = {check.name for check in verify(x, graph).failed}
    assert "weights" in failed


@pytest.mark.parametrize("kind", KINDS)
def test_similarities_are_positive_definite(kind):
    x = np.unique(draw(kind), axis=0)
    least = np.linalg.eigvalsh(1 - ruzicka(x, x)).min()
    assert least > 0  # which is why the kernel needs no ridge
    testing.check_kernel("jaccard", x=x[:60])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 2])
def test_dense_and_sparse_rows_give_the_same_bits(kind, workers):
    x = draw(kind)
    dense = build_graph(x, k=8, kernel="jaccard")
    other = build_graph(sparse.csr_array(x), k=8, kernel="jaccard", workers=workers)
    small = build_graph(x.astype(np.float32).astype(float), k=8, kernel="jaccard")
    assert (dense.adjacency != other.adjacency).nnz == 0
    assert np.array_equal(dense.distances, other.distances)
    if kind != "histograms":
        assert (dense.adjacency != small.adjacency).nnz == 0


def test_the_order_of_rows_and_columns_does_not_matter():
    x = draw("counts") + np.arange(240)[:, None] * 1e-4  # no ties
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(240), rng.permutation(x.shape[1])
    graph = build_graph(x, k=8, kernel="jaccard").adjacency.toarray()
    moved = build_graph(x[rows][:, columns], k=8, kernel="jaccard").adjacency
    assert moved.toarray() == pytest.approx(graph[np.ix_(rows, rows)], abs=1e-12)


@pytest.mark.parametrize("kind", ["few bits", "many bits", "counts"])
def test_rows_of_zeros_are_one_and_like_no_other(kind):
    x = draw(kind)[:30]
    x[[4, 9]] = 0.0
    found = find_candidates(x, k=3, kernel="jaccard", duplicates="keep")
    assert found.index[9, 0] == 4
    assert found.distance[9].tolist() == [0.0, 1.0, 1.0]
    graph = build_graph(x, k=3, kernel="jaccard", min_degree=0)
    weights = graph.adjacency.toarray()
    assert weights[4, 9] == 1.0
    assert weights[4].sum() == weights[9].sum() == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_new_points_are_answered_as_rows_are(kind):
    x = draw(kind)
    found = query(x[:200], x[200:], k=7, kernel="jaccard")
    expected = ruzicka(x[200:], x[:200])
    near = np.argsort(expected, axis=1, kind="stable")[:, :7]
    assert np.array_equal(found.nearest, near[:, 0])
    for i in range(len(near)):
        assert np.isin(found.weights[[i]].indices, near[i]).all()


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_negative_values_are_refused_with_their_place(run, tmp_path, form):
    x = draw("counts", 20)
    x[3, 2] = -1.5
    path = tmp_path / ("x.npy" if form == "dense" else "x.npz")
    if form == "dense":
        np.save(path, x)
    else:
        sparse.save_npz(path, sparse.csr_array(x))
    done = run("build", path, "-o", tmp_path / "g.npz", "--kernel", "jaccard")
    assert done.code == 3
    assert f"{path}: -1.5 at row 3, column 2" in done.err
    assert len(done.lines) == 1
    assert not (tmp_path / "g.npz").exists()


def test_negative_values_are_seen_in_every_block_of_rows(monkeypatch):
    x = np.ones((900, 3))
    x[800, 1] = x[850, 2] = -2
    monkeypatch.setattr("nnkgraph.runtime.arrays._MOST_BLOCK", 1 << 10)
    with pytest.raises(InputError, match=r"row 800, column 1 .*; 2 negative"):
        registry.create("kernels", "jaccard").prepare(x, "x")


@pytest.mark.parametrize(
    "options",
    [
        {"search": "kdtree"},
        {"search": "partition"},
        {"method": "eps:radius=0.5"},
        {"method": "lle"},
        {"method": "kalofolias"},
        {"connect": "mst"},
        {"grow": 0.1},
        {"updatable": True},
    ],
)
def test_what_needs_points_is_refused(options):
    with pytest.raises(ParameterError):
        build_graph(draw("counts"), k=5, kernel="jaccard", **options)
