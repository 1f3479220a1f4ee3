"""Kernel ``distance``: a matrix of distances, dense or sparse, in place of features."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.data import Features, SparseGram
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Problem
from nnkgraph.runtime import registry
from nnkgraph.tasks.explain import explain
from nnkgraph.tasks.verify import verify


def points(n=200):
    return np.random.default_rng(0).normal(size=(n, 4))


def wild(n=150):
    """Return distances of no points at all."""
    d = np.random.default_rng(0).random((n, n))
    d = d + d.T
    np.fill_diagonal(d, 0)
    return d


def known_to_k(d, k):
    """Return the k nearest of each row as a sparse matrix, as scikit-learn does."""
    near = np.argsort(d, axis=1, kind="stable")[:, 1 : k + 1]
    ends = np.arange(0, near.size + 1, k)
    values = np.take_along_axis(d, near, 1).ravel()
    return sparse.csr_array((values, near.ravel(), ends), d.shape)


def sparse_features(matrix):
    return Features(SparseGram.of(matrix), None, "d.npz")


SIGMAS = [None, "auto", "kth-max", "kth-mean", "local", "matlab", 0.8]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("method", ["nnk", "knn", "kstar"])
def test_distances_of_points_give_the_graph_of_the_points(sigma, method):
    x = points()
    given = cdist(x, x)
    if method == "kstar" and sigma is not None:
        return
    options = {"k": 9, "sigma": sigma, "method": method}
    one = build_graph(x, **options)
    two = build_graph(given, kernel="distance", **options)
    assert np.array_equal(one.adjacency.indices, two.adjacency.indices)
    assert two.adjacency.data == pytest.approx(one.adjacency.data, abs=1e-9)
    assert two.distances == pytest.approx(one.distances, rel=1e-12)
    assert two.provenance["metric"] == "precomputed"


@pytest.mark.parametrize("sigma", ["auto", "local", 5.0])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_distances_of_no_points_are_solved_with_a_ridge(sigma, form):
    d = wild()
    given = d if form == "dense" else sparse_features(known_to_k(d, 20))
    graph = build_graph(given, k=12, kernel="distance", sigma=sigma)
    assert graph.report["certificate"]["kkt_max"] < 1e-10
    assert (graph.errors >= 0).all()
    assert not verify(given, graph).failed


def problem_of(d, k=12, sigma=5.0):
    found = find_candidates(d, k=k, kernel="distance")
    kernel = registry.create("kernels", f"distance:sigma={sigma}")
    known = found.index, found.distance, kernel
    return Problem(d, d, *known, rows=np.arange(len(d)))


def full(gram, m):
    matrix = np.zeros((len(gram), m, m))
    matrix[:, *np.tril_indices(m)] = gram
    return matrix + np.tril(matrix, -1).transpose(0, 2, 1)


def test_the_ridge_is_the_least_power_of_two_that_does():
    d = wild()
    problem = problem_of(d)
    local = problem.local()
    gram, m = full(local.gram, 12), 12
    ridge = gram[:, 0, 0] - 1
    near = d[problem.index[:, :, None], problem.index[:, None]]
    border = np.ones((len(d), m + 1, m + 1))
    border[:, :m, :m] = np.exp(-(near**2) / 50)
    border[:, m, :m] = border[:, :m, m] = local.cross
    assert (ridge > 0).sum() > 100
    atoms = np.arange(m)

    def least(more):
        lifted = border.copy()
        lifted[:, atoms, atoms] += more[:, None]
        return np.linalg.eigvalsh(lifted).min(axis=1)

    some = ridge > 0
    assert np.array_equal(np.exp2(np.rint(np.log2(ridge[some]))), ridge[some])
    assert (least(ridge / 2)[some] > 0).all()
    smaller = ridge > 2.0**-26
    assert (least(ridge / 4)[smaller] <= 1e-14).all()
    assert (least(np.full(len(d), 1e-11))[~some] > 0).all()
    plain = border[:, :m, :m] + ridge[:, None, None] * np.eye(m)
    assert gram == pytest.approx(plain, abs=1e-12)


def test_points_need_no_ridge():
    x = points()
    gram = full(problem_of(cdist(x, x), sigma=2.0).local().gram, 12)
    assert (gram[:, range(12), range(12)] == 1).all()


def test_explain_says_the_ridge():
    notes = explain(wild(), 3, k=12, kernel="distance", sigma=5.0).notes
    assert any("a ridge" in note for note in notes)
    x = points()
    notes = explain(cdist(x, x), 3, k=12, kernel="distance").notes
    assert not any("a ridge" in note for note in notes)


def test_verify_sees_the_graph_of_other_distances():
    d = wild()
    graph = build_graph(d, k=12, kernel="distance")
    graph.adjacency.data[:4] *= 1.1
    assert {check.name for check in verify(d, graph).failed} >= {"weights"}


def test_sparse_distances_are_known_from_both_sides():
    d = cdist(points(), points())
    one_sided = known_to_k(d, 10)
    both = one_sided.maximum(one_sided.T).tocsr()
    found = find_candidates(sparse_features(one_sided), k=6, kernel="distance")
    again = find_candidates(sparse_features(both), k=6, kernel="distance")
    assert np.array_equal(found.index, again.index)
    whole = find_candidates(d, k=6, kernel="distance")
    assert np.array_equal(found.index, whole.index)
    assert np.array_equal(found.distance, whole.distance)


def test_a_pair_that_is_not_stored_is_not_alike():
    # Three in a row: the outer two do not know each other.
    d = sparse.csr_array(([1.0, 1.0], ([0, 1], [1, 2])), (3, 3))
    graph = build_graph(
        sparse_features(d), k=2, kernel="distance", sigma=1.0, symmetrize="none"
    )
    alike = np.exp(-0.5)
    expected = [[0, alike, 0], [alike, 0, alike], [0, alike, 0]]
    assert graph.adjacency.toarray() == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("duplicates", ["merge", "keep"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_rows_at_no_distance_are_identical(duplicates, form):
    x = points(60)
    x[40:50] = x[:10]
    d = cdist(x, x)
    given = d if form == "dense" else sparse_features(known_to_k(d, 59))
    graph = build_graph(given, k=6, kernel="distance", duplicates=duplicates)
    plain = build_graph(x, k=6, duplicates=duplicates)
    assert graph.report["duplicates"] == 10
    assert np.array_equal(graph.adjacency.indices, plain.adjacency.indices)
    assert graph.adjacency.data == pytest.approx(plain.adjacency.data, abs=1e-9)
    assert not verify(given, graph).failed


def test_an_explicit_zero_makes_rows_one_and_a_missing_entry_does_not():
    d = known_to_k(cdist(points(40), points(40)), 8).tolil()
    rows = np.repeat(np.arange(40), 8)
    matrix = d.tocsr()
    at = int(np.flatnonzero(rows == 5)[0])
    twin = int(matrix.indices[at])
    matrix.data[at] = 0.0
    back = matrix[[twin]].indices == 5
    matrix.data[matrix.indptr[twin] : matrix.indptr[twin + 1]][back] = 0.0
    graph = build_graph(sparse_features(matrix), k=5, kernel="distance")
    assert graph.report["duplicates"] == 1
    assert graph.adjacency[5, twin] == 1.0


def test_the_order_of_rows_does_not_matter():
    d, order = wild(), np.random.default_rng(1).permutation(150)
    one = build_graph(d, k=9, kernel="distance").adjacency.toarray()
    two = build_graph(d[np.ix_(order, order)], k=9, kernel="distance").adjacency
    assert two.toarray() == pytest.approx(one[np.ix_(order, order)], abs=1e-9)


def test_a_mapped_matrix_is_not_copied(tmp_path):
    np.save(tmp_path / "d.npy", cdist(points(), points()).astype(np.float32))
    mapped = np.load(tmp_path / "d.npy", mmap_mode="r")
    assert registry.create("kernels", "distance").prepare(mapped, "d") is mapped


def test_files_and_workers_give_the_same_bytes(run, tmp_path):
    d = cdist(points(), points())
    np.save(tmp_path / "d.npy", d)
    sparse.save_npz(tmp_path / "d.npz", known_to_k(d, 199))
    texts = set()
    for name in ("d.npy", "d.npz"):
        for workers in (1, 2):
            out = tmp_path / f"{name}-{workers}.tsv"
            build = ("build", tmp_path / name, "-o", out, "--kernel", "distance")
            assert run(*build, "-k", 5, "-j", workers).code == 0
            lines = out.read_text().splitlines()
            texts.add("\n".join(line for line in lines if not line.startswith("#")))
    assert len(texts) == 1
    checked = run("verify", tmp_path / "d.npz", tmp_path / "d.npz-1.tsv")
    assert checked.code == 0, checked.err


def changed(*places):
    d = cdist(points(20), points(20))
    for i, j, value in places:
        d[i, j] = value
    return d


WRONG = {
    "rectangular": (np.ones((4, 3)), "as many columns as rows|square"),
    "asymmetric": (changed((3, 7, 9.5)), "row 3, column 7 is 9.5, but row 7, column 3"),
    "negative": (changed((3, 7, -1), (7, 3, -1)), "at row 3, column 7 .* is -1"),
    "apart from itself": (changed((4, 4, 1)), "row 4 from itself is 1"),
    "not a number": (
        changed((2, 5, np.nan)),
        "NaN at row 2, column 5|row 2, column 5, value nan",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_matrices_that_cannot_be_distances(run, tmp_path, wrong, form):
    matrix, words = WRONG[wrong]
    path = tmp_path / ("d.npy" if form == "dense" else "d.npz")
    if form == "dense":
        np.save(path, matrix)
    else:
        sparse.save_npz(path, sparse.csr_array(matrix))
    done = run("build", path, "-o", tmp_path / "g.npz", "--kernel", "distance")
    assert done.code == 3
    with pytest.raises(InputError, match=words):
        raise InputError(done.err)
    assert str(path) in done.err
    assert len(done.lines) == 1
    assert not (tmp_path / "g.npz").exists()


def test_rounding_is_no_asymmetry():
    d = cdist(points(), points())
    noise = 1e-9 * np.random.default_rng(1).normal(size=d.shape)
    graph = build_graph(d + noise, k=9, kernel="distance")
    plain = build_graph(d, k=9, kernel="distance")
    assert abs(graph.adjacency - plain.adjacency).max() < 1e-5
    assert not verify(d + noise, graph).failed
    similar = np.exp(-(d**2) / 8) + noise
    graph = build_graph(similar, k=9, kernel="precomputed")
    assert not verify(similar, graph).failed


def test_distances_are_told_from_similarities(run, tmp_path):
    np.save(tmp_path / "d.npy", wild(20))
    out = tmp_path / "g.npz"
    done = run("build", tmp_path / "d.npy", "-o", out, "--kernel", "precomputed")
    assert done.code == 3
    assert "--kernel distance" in done.err


@pytest.mark.parametrize(
    "options",
    [
        {"scale": "standard"},
        {"method": "lle"},
        {"method": "kalofolias"},
        {"search": "kdtree"},
        {"grow": 0.1},
        {"updatable": True},
    ],
)
def test_what_needs_features_is_refused(options):
    with pytest.raises(ParameterError):
        build_graph(wild(), k=5, kernel="distance", **options)


def test_a_sparse_matrix_of_features_is_told_from_one_of_distances():
    with pytest.raises(ParameterError, match="SparseGram"):
        build_graph(known_to_k(wild(), 9), k=5, kernel="distance")


def test_components_are_joined_by_the_shortest_distances():
    x = np.concatenate([points(40), points(40) + 30])
    one = build_graph(x, k=5, connect="mst")
    two = build_graph(cdist(x, x), k=5, kernel="distance", connect="mst")
    assert np.array_equal(one.bridges, two.bridges)
