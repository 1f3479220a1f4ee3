"""The estimators for scikit-learn: its own checks, pipelines, and edge cases."""

import doctest
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.cluster import DBSCAN, SpectralClustering
from sklearn.datasets import load_diabetes, load_digits, make_blobs
from sklearn.manifold import TSNE, Isomap, SpectralEmbedding
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    LocalOutlierFactor,
    NearestNeighbors,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import nnkgraph.sklearn
from nnkgraph.build.graph import build_graph
from nnkgraph.build.query import query
from nnkgraph.errors import QualityWarning
from nnkgraph.search.exact import Exact
from nnkgraph.sklearn import (
    KNNTransformer,
    NNKClassifier,
    NNKRegressor,
    NNKTransformer,
)
from nnkgraph.tasks.classify import classify

X, Y = load_digits(return_X_y=True)
ALL = [NNKTransformer, NNKClassifier, NNKRegressor]
FIXED = [KNNTransformer(n_neighbors=7, method=method) for method in ("knn", "nnk")]
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(80, 3))
NEW = RNG.normal(size=(20, 3))
COPIED = np.concatenate([POINTS, POINTS[:5], POINTS[:5]])
"""The first five rows stand three times each."""

ZEROS = "a row of zeros has no direction"
KERNELS = ["cosine", "laplacian", "linear", "lle", "polynomial"]
METHODS = ["knn", "kstar", "l1", "lle", "mp", "omp"]
VARIANTS = [{}, *({"kernel": k} for k in KERNELS), *({"method": m} for m in METHODS)]
MODES = ("connectivity", "distance")


def refused_by(estimator):
    """Return the checks whose data have rows of zeros."""
    if estimator.kernel != "cosine":
        return {}
    names = ("dtypes", "sparse_tag", "sparse_array", "sparse_matrix")
    return {
        f"check_estimator{'s' * (name == 'dtypes')}_{name}": ZEROS for name in names
    }


# What methods and kernels do is the same code in all three.
@parametrize_with_checks(
    [
        *(NNKTransformer(**variant) for variant in VARIANTS),
        *(NNKTransformer(mode=mode) for mode in MODES),
        *(NNKTransformer(mode=mode, method="knn") for mode in MODES),
        *(one(**some) for one in ALL[1:] for some in ({}, {"method": "knn"})),
        *FIXED,
    ],
    expected_failed_checks=refused_by,
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:Skipping check")
@pytest.mark.parametrize("estimator", ALL)
def test_scikit_learn_agrees_about_functions(estimator):
    results = check_estimator(estimator(kernel=rbf_kernel))
    assert sum(one["status"] == "passed" for one in results) > 40


def test_the_examples_of_the_docstrings_run():
    found = doctest.testmod(nnkgraph.sklearn)
    assert found.attempted > 10
    assert found.failed == 0


@pytest.mark.parametrize("estimator", ALL)
def test_parameters_are_given_by_name_only(estimator):
    with pytest.raises(TypeError):
        estimator(10)


# The transformer.


def test_the_graph_of_the_rows_is_the_one_that_build_makes():
    ours = NNKTransformer(n_neighbors=10, min_degree=2, symmetrize="mean").fit(POINTS)
    graph = build_graph(POINTS, k=10, min_degree=2, symmetrize="mean")
    assert ours.graph_.has_canonical_format
    assert (ours.graph_ != graph.adjacency).nnz == 0
    assert ours.result_.report["certificate"]["nodes_failed"] == 0


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("sigma", [None, 0.7, "local", "kth-max"])
def test_new_points_get_the_neighborhoods_of_query(sigma, scale):
    ours = NNKTransformer(n_neighbors=10, sigma=sigma, scale=scale).fit(POINTS)
    asked = query(POINTS, NEW, k=10, sigma=sigma, scale=scale)
    assert (ours.transform(NEW) != asked.weights).nnz == 0


def test_a_bandwidth_that_stands_in_the_kernel_is_kept():
    spec = NNKTransformer(kernel="gaussian:sigma=kth-max", n_neighbors=10).fit(POINTS)
    apart = NNKTransformer(sigma="kth-max", n_neighbors=10).fit(POINTS)
    assert spec.kernel_ == apart.kernel_
    assert spec.kernel_.startswith("gaussian:sigma=0.")


@pytest.mark.parametrize("mode", ["weights", "distance"])
@pytest.mark.parametrize("rows", [POINTS, COPIED], ids=["distinct", "copies"])
def test_fit_transform_and_transform_agree(mode, rows):
    ours = NNKTransformer(n_neighbors=10, mode=mode)
    graph = ours.fit_transform(rows)
    assert (graph != ours.transform(rows)).nnz == 0
    assert (graph != ours.transform(rows.astype(np.float64))).nnz == 0
    # A point's row depends on no other point.
    assert (graph[[7]] != ours.transform(rows[[7]])).nnz == 0


def test_a_point_is_no_neighbor_of_itself_and_copies_count_as_one():
    graph = NNKTransformer(n_neighbors=10).fit_transform(COPIED)
    assert not graph.diagonal().any()
    assert graph[:, 80:].nnz == 0
    assert (graph[[0]] != graph[[80]]).nnz == 0


def test_distances_are_those_of_the_neighbors_with_weights():
    weights = NNKTransformer(n_neighbors=10).fit_transform(POINTS)
    distances = NNKTransformer(n_neighbors=10, mode="distance").fit_transform(POINTS)
    row, column = weights.nonzero()
    true = np.linalg.norm(POINTS[row] - POINTS[column], axis=1)
    np.testing.assert_allclose(distances[row, column].A1, true, rtol=1e-12)
    assert distances.nnz == weights.nnz + len(POINTS)


def test_distances_have_the_form_of_scikit_learns_own():
    ours = NNKTransformer(n_neighbors=10, mode="distance").fit_transform(COPIED)
    theirs = KNeighborsTransformer(n_neighbors=10).fit_transform(COPIED)
    assert ours.indices.dtype == np.int32  # what spectral clustering insists on
    for graph in (ours, theirs):
        assert graph.format == "csr"
        stored = [set(graph[[i]].indices) for i in range(len(COPIED))]
        assert all(i in row for i, row in enumerate(stored))  # zeros are explicit
        assert stored[0] >= {0, 80, 85}
        for start, stop in zip(graph.indptr, graph.indptr[1:], strict=False):
            assert (np.diff(graph.data[start:stop]) >= 0).all()


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_kernels_without_distances_refuse_the_mode(kernel):
    with pytest.raises(ValueError, match="has no distances"):
        NNKTransformer(kernel=kernel, mode="distance").fit(POINTS)
    assert NNKTransformer(kernel=kernel).fit_transform(POINTS).nnz


def test_float32_rows_and_float64_points_go_together():
    rows = POINTS.astype(np.float32)
    low = NNKTransformer(n_neighbors=10).fit(rows)
    high = NNKTransformer(n_neighbors=10).fit(rows.astype(np.float64))
    assert (low.transform(NEW) != high.transform(NEW)).nnz == 0
    assert low.transform(NEW).dtype == np.float64


@pytest.mark.parametrize("estimator", ALL)
def test_k_is_at_most_one_less_than_the_rows(estimator):
    y = np.arange(6) % 2
    with pytest.warns(UserWarning, match="n_neighbors = 5 is used") as caught:
        ours = estimator(n_neighbors=6).fit(POINTS[:6], y)
    assert caught[0].filename == __file__
    assert ours.n_neighbors_ == 5
    assert estimator(n_neighbors=5).fit(POINTS[:6], y).n_neighbors_ == 5
    assert estimator().fit(POINTS[:6], y).n_neighbors_ == 5
    assert estimator().fit(POINTS, np.arange(80) % 2).n_neighbors_ == 30


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"n_neighbors": 0}, ValueError),
        ({"n_neighbors": 2.5}, TypeError),
        ({"method": "nonsense"}, ValueError),
        ({"method": "kalofolias"}, ValueError),
        ({"kernel": "precomputed"}, ValueError),
        ({"sigma": -1.0}, ValueError),
        ({"scale": "nonsense"}, ValueError),
        ({"n_jobs": 0}, ValueError),
    ],
)
@pytest.mark.parametrize("estimator", ALL)
def test_wrong_parameters_are_refused_by_fit(estimator, wrong, kind):
    with pytest.raises(kind):
        estimator(**wrong).fit(POINTS, np.arange(80) % 2)


@pytest.mark.parametrize(
    "wrong", [{"mode": "nonsense"}, {"search": "none"}, {"symmetrize": "both"}]
)
def test_wrong_parameters_of_the_transformer_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong.values()))):
        NNKTransformer(**wrong).fit(POINTS)


# Pipelines.


def test_spectral_clustering_takes_the_graph_and_the_pipeline():
    spectral = SpectralClustering(10, affinity="precomputed", random_state=0)
    graph = NNKTransformer().fit(X).graph_
    assert adjusted_rand_score(Y, spectral.fit_predict(graph)) > 0.7
    pipeline = make_pipeline(NNKTransformer(), clone(spectral))
    with pytest.warns(UserWarning, match="by average with its transpose"):
        labels = pipeline.fit_predict(X)
    assert adjusted_rand_score(Y, labels) > 0.7


@pytest.mark.parametrize(
    "isomap",
    [Isomap(metric="precomputed", n_neighbors=None, radius=np.inf), None],
    ids=["all neighbors", "five"],
)
def test_isomap_takes_distances(isomap):
    isomap = isomap or Isomap(metric="precomputed")
    how = {"mode": "distance", "preset": "paper"}
    pipeline = make_pipeline(NNKTransformer(**how), isomap)
    train = pipeline.fit_transform(X[:600])
    test = pipeline.transform(X[600:800])
    assert train.shape == (600, 2)
    near = KNeighborsClassifier().fit(train, Y[:600])
    assert near.score(test, Y[600:800]) > 0.5  # ten classes in two dimensions


def test_dbscan_takes_distances():
    pipeline = make_pipeline(
        NNKTransformer(mode="distance"), DBSCAN(eps=21, metric="precomputed")
    )
    assert adjusted_rand_score(Y, pipeline.fit_predict(X)) > 0.55


def test_dbscan_gives_copies_one_cluster():
    graph = NNKTransformer(mode="distance", n_neighbors=10).fit_transform(COPIED)
    labels = DBSCAN(eps=1, min_samples=3, metric="precomputed").fit_predict(graph)
    assert (labels[:5] == labels[80:85]).all()
    assert (labels[:5] == labels[85:]).all()


# In place of scikit-learn's own transformer: what its tests of pipelines demand.


def knn(n_neighbors, mode="distance", **others):
    return NNKTransformer(n_neighbors=n_neighbors, mode=mode, method="knn", **others)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cosine"])
def test_knn_is_the_transformer_of_scikit_learn(mode, kernel):
    ours = knn(7, mode, kernel=kernel)
    own = ours.fit_transform(POINTS)
    metric = ours.effective_metric_
    theirs = KNeighborsTransformer(n_neighbors=7, mode=mode, metric=metric)
    np.testing.assert_allclose(
        own.toarray(), theirs.fit_transform(POINTS).toarray(), atol=1e-7
    )
    for points in (POINTS, NEW):
        graph, other = ours.transform(points), theirs.transform(points)
        np.testing.assert_allclose(graph.toarray(), other.toarray(), atol=1e-7)
        assert (np.diff(graph.indptr) == np.diff(other.indptr)).all()


@pytest.mark.filterwarnings("ignore:Array is not symmetric")  # theirs is neither
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_spectral_clustering_and_embedding_after_knn():
    rows, _ = make_blobs(random_state=0)
    inside = {"n_neighbors": 5, "random_state": 42}
    for spectral, name, some in (
        (SpectralClustering, "fit_predict", rows),
        (SpectralEmbedding, "fit_transform", POINTS),
    ):
        chain = make_pipeline(
            knn(5, "connectivity"), spectral(affinity="precomputed", **inside)
        )
        compact = spectral(affinity="nearest_neighbors", **inside)
        ours, theirs = (getattr(one, name)(some) for one in (chain, compact))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    labels = make_pipeline(
        knn(10), SpectralClustering(3, affinity="precomputed_nearest_neighbors")
    ).fit_predict(make_blobs(random_state=1)[0])
    assert adjusted_rand_score(make_blobs(random_state=1)[1], labels) == 1.0


@pytest.mark.parametrize("ours", FIXED, ids=["knn", "nnk"])
def test_a_fixed_number_of_entries_each_begins_with_the_row_itself(ours):
    """What scanpy takes for granted: it reshapes what is stored, and calls getnnz."""
    assert ours.get_params()["n_neighbors"] == 7
    for rows in (POINTS, POINTS.astype(np.float32), COPIED):
        found = ours.fit_transform(rows)
        assert type(found) is csr_matrix
        assert set(found.getnnz(axis=1)) == {8}
        index = found.indices.reshape(len(rows), 8)
        distance = found.data.reshape(len(rows), 8)
        assert (index[:, 0] == np.arange(len(rows))).all()
        assert (distance[:, 0] == 0).all()
        assert (np.diff(distance, axis=1) >= 0).all()
        assert all(len(set(row)) == 8 for row in index)
        true = np.linalg.norm(rows[:, None] - rows[index], axis=2)
        np.testing.assert_allclose(distance, true, rtol=1e-5, atol=1e-12)


def test_a_fixed_number_of_nearest_is_what_scikit_learn_finds():
    theirs = KNeighborsTransformer(n_neighbors=7).fit(POINTS)
    for rows in (POINTS, NEW):
        ours = FIXED[0].fit(POINTS).transform(rows)
        assert (ours.indices == theirs.transform(rows).indices).all()
        np.testing.assert_allclose(ours.data, theirs.transform(rows).data, atol=1e-7)


def test_a_fixed_number_by_nnk_has_its_neighbors_first_and_the_nearest_after():
    ours, k = FIXED[1], 14
    found = ours.fit_transform(POINTS)
    assert ours.n_candidates_ == k
    near = KNeighborsTransformer(n_neighbors=k).fit_transform(POINTS)
    weights = NNKTransformer(n_neighbors=k).fit_transform(POINTS)
    filled = 0
    for i in range(len(POINTS)):
        order = [j for j in near.indices[near.indptr[i] : near.indptr[i + 1]] if j != i]
        kept = [j for j in order if weights[i, j] > 0]
        rest = [j for j in order if weights[i, j] == 0]
        assert set(found[[i]].indices) == {i, *[*kept, *rest][:7]}
        filled += len(kept) < 7
    assert filled > 0
    assert (found != FIXED[0].fit_transform(POINTS)).nnz  # another choice
    again = ours.transform(POINTS)
    assert (again != found).nnz == 0
    assert (again.indices == found.indices).all()
    assert set(np.diff(ours.transform(NEW).indptr)) == {8}


def test_a_fixed_number_has_fewer_where_there_are_no_more():
    with pytest.warns(UserWarning, match="n_neighbors = 5 is used") as caught:
        ours = KNNTransformer(n_neighbors=9, method="nnk").fit(POINTS[:6])
    assert caught[0].filename == __file__
    assert ours.transform(POINTS[:6]).nnz == 36
    with pytest.raises(ValueError, match="n_candidates == 6"):
        KNNTransformer(n_neighbors=7, method="nnk", n_candidates=6).fit(POINTS)


def test_matrices_are_of_the_kind_that_scikit_learn_gives():
    for ours in (NNKTransformer(mode=mode) for mode in ("weights", *MODES)):
        assert type(ours.fit_transform(POINTS)) is csr_matrix
        assert type(ours.transform(NEW)) is csr_matrix
        assert type(ours.kneighbors_graph()) is csr_matrix


def test_dbscan_after_knn_with_enough_neighbors():
    rows, _ = make_blobs(random_state=3, cluster_std=0.4)
    chain = make_pipeline(knn(len(rows) - 1), DBSCAN(eps=0.3, metric="precomputed"))
    assert (chain.fit_predict(rows) == DBSCAN(eps=0.3).fit_predict(rows)).all()


def test_isomap_after_knn():
    chain = make_pipeline(knn(10), Isomap(n_neighbors=10, metric="precomputed"))
    compact = Isomap(n_neighbors=10)
    rows = np.concatenate([POINTS, NEW])
    for name, points in (("fit_transform", rows), ("transform", NEW + 0.1)):
        ours, theirs = (getattr(one, name)(points) for one in (chain, compact))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_tsne_after_knn():
    how = {"init": "random", "perplexity": 5, "max_iter": 250, "random_state": 42}
    chain = make_pipeline(knn(16), TSNE(metric="precomputed", **how))
    ours, theirs = chain.fit_transform(NEW), TSNE(**how).fit_transform(NEW)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_outlier_factors_after_knn():
    for novelty in (False, True):
        compact = LocalOutlierFactor(n_neighbors=4, novelty=novelty)
        chain = make_pipeline(knn(4), clone(compact).set_params(metric="precomputed"))
        if novelty:
            ours, theirs = (m.fit(POINTS).predict(NEW) for m in (chain, compact))
        else:
            ours, theirs = (m.fit_predict(POINTS) for m in (chain, compact))
        assert (ours == theirs).all()


@pytest.mark.parametrize(
    ("factor", "compact"),
    [
        (1, KNeighborsRegressor(n_neighbors=12)),
        (1, KNeighborsClassifier(n_neighbors=12)),
        (1, KNeighborsRegressor(n_neighbors=12, weights="distance")),
        (5, RadiusNeighborsRegressor(radius=1.5)),
    ],
)
def test_predictors_after_knn(factor, compact):
    y = np.arange(80.0) % 4
    chain = make_pipeline(
        knn(12 * factor), clone(compact).set_params(metric="precomputed")
    )
    near = POINTS[:20] + 0.1
    ours, theirs = (one.fit(POINTS, y).predict(near) for one in (chain, compact))
    np.testing.assert_allclose(ours, theirs)


# Neighbors.


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cosine"])
def test_kneighbors_are_those_of_scikit_learn(estimator, kernel):
    ours = estimator(n_neighbors=6, kernel=kernel).fit(POINTS, np.arange(80) % 2)
    theirs = NearestNeighbors(n_neighbors=6, metric=ours.effective_metric_).fit(POINTS)
    for points in (None, POINTS, NEW):
        for k in (None, 3):
            distance, index = ours.kneighbors(points, k)
            true, at = theirs.kneighbors(points, k)
            assert index.shape == true.shape
            assert (index == at).all()
            np.testing.assert_allclose(distance, true, atol=1e-7)
            alone = ours.kneighbors(points, k, return_distance=False)
            assert (alone == index).all()
            for mode in MODES:
                a, b = (one.kneighbors_graph(points, k, mode) for one in (ours, theirs))
                np.testing.assert_allclose(a.toarray(), b.toarray(), atol=1e-7)


def test_ties_go_to_the_lower_row_and_copies_are_neighbors():
    ours = NNKTransformer(n_neighbors=3).fit([[0.0], [0.0], [1.0], [-1.0], [0.0]])
    index = ours.kneighbors(return_distance=False)
    assert index.tolist()[0] == [1, 4, 2]
    assert index.tolist()[4] == [0, 1, 2]
    assert ours.kneighbors([[0.0]], 4, return_distance=False).tolist() == [[0, 1, 4, 2]]


@pytest.mark.parametrize("kernel", ["linear", rbf_kernel])
def test_kernels_without_distances_have_neighbors_all_the_same(kernel):
    ours = NNKTransformer(kernel=kernel, n_neighbors=4).fit(POINTS)
    similar = NEW @ POINTS.T if kernel == "linear" else rbf_kernel(NEW, POINTS)
    best = np.argsort(-similar, axis=1)[:, :4]
    assert (ours.kneighbors(NEW, return_distance=False) == best).all()
    assert ours.kneighbors_graph(NEW).sum() == 80
    assert ours.effective_metric_ is None
    with pytest.raises(ValueError, match="has no distances"):
        ours.kneighbors(NEW)


def test_kneighbors_refuse_what_is_not_there():
    ours = NNKTransformer().fit(POINTS)
    assert ours.kneighbors(NEW, 80)[1].shape == (20, 80)
    for points, k, kind in ((None, 80, ValueError), (NEW, 81, ValueError)):
        with pytest.raises(kind, match="rows are there"):
            ours.kneighbors(points, k)
    with pytest.raises(TypeError, match="n_neighbors"):
        ours.kneighbors(NEW, 2.5)
    with pytest.raises(ValueError, match="mode must be"):
        ours.kneighbors_graph(NEW, mode="weights")


# Sparse rows, tables, functions, workers.


def answers_of(ours, points):
    name = "predict" if hasattr(ours, "predict") else "transform"
    found = getattr(ours, name)(points)
    return found.toarray() if hasattr(found, "toarray") else found


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("kernel", ["gaussian", "cosine", "linear"])
@pytest.mark.parametrize("form", [csr_array, csr_matrix])
def test_sparse_rows_give_what_dense_ones_do(estimator, kernel, form):
    rows = np.where(RNG.random((60, 30)) < 0.3, RNG.integers(1, 5, (60, 30)), 0.0)
    rows[:, 0] = 1.0
    rows[7] = rows[3]
    new = rows[::6] * 2 + (np.arange(30) == 4)
    new[2] = rows[3]
    y = np.arange(60) % 3
    dense = estimator(kernel=kernel, n_neighbors=8).fit(rows, y)
    sparse = estimator(kernel=kernel, n_neighbors=8).fit(form(rows), y)
    assert dense.kernel_ == sparse.kernel_
    expected = answers_of(dense, new)
    for fitted, points in ((sparse, form(new)), (sparse, new), (dense, form(new))):
        assert (answers_of(fitted, points) == expected).all()
    for points in (None, form(new)):
        same = (
            one.kneighbors(points, 5, return_distance=False) for one in (dense, sparse)
        )
        assert np.array_equal(*same)
    if estimator is NNKTransformer:
        both = (clone(dense).fit_transform(one).toarray() for one in (rows, form(rows)))
        assert np.array_equal(*both)


def test_kernels_that_need_all_values_refuse_sparse_rows():
    for wrong in ({"kernel": "laplacian"}, {"method": "lle"}):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            NNKTransformer(**wrong).fit(csr_array(POINTS))
    with pytest.raises(ValueError, match="sparse"):
        NNKTransformer(scale="standard").fit(csr_array(POINTS))


@pytest.mark.parametrize("package", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", ALL)
def test_tables_give_what_their_values_do(estimator, package):
    frame = pytest.importorskip(package).DataFrame
    names = ["x", "y", "z"]
    table, new = (frame(dict(zip(names, one.T, strict=True))) for one in (POINTS, NEW))
    y = np.arange(80) % 3
    ours = estimator(n_neighbors=10).fit(table, y)
    assert ours.feature_names_in_.tolist() == names
    assert ours.n_features_in_ == 3
    plain = estimator(n_neighbors=10).fit(POINTS, y)
    assert (answers_of(ours, new) == answers_of(plain, NEW)).all()
    with pytest.raises(ValueError, match="feature names"):
        ours.kneighbors(new[["z", "y", "x"]])
    if estimator is NNKTransformer:
        out = ours.get_feature_names_out()
        assert out.tolist() == [f"nnktransformer{i}" for i in range(80)]


@pytest.mark.parametrize("estimator", ALL)
def test_a_function_is_a_kernel(estimator):
    y = np.arange(80) % 3
    ours = estimator(kernel=rbf_kernel, n_neighbors=10).fit(POINTS, y)
    same = estimator(sigma=np.sqrt(1.5), n_neighbors=10).fit(POINTS, y)  # gamma = 1/3
    np.testing.assert_allclose(answers_of(ours, NEW), answers_of(same, NEW), atol=1e-8)
    again = pickle.loads(pickle.dumps(ours))
    assert (answers_of(again, NEW) == answers_of(ours, NEW)).all()
    assert clone(ours).kernel is rbf_kernel


def test_a_function_that_is_nowhere_to_import_stays_in_this_process():
    def local(a, b):
        return rbf_kernel(a, b)

    ours = NNKTransformer(kernel=local, n_neighbors=10).fit(POINTS)
    apart = NNKTransformer(kernel=rbf_kernel, n_neighbors=10).fit(POINTS)
    assert (ours.transform(NEW) != apart.transform(NEW)).nnz == 0
    with pytest.raises(ValueError, match="at the top of a module"):
        ours.set_params(n_jobs=2).transform(NEW)


@pytest.mark.parametrize("n_jobs", [None, 2, -1])
def test_the_number_of_jobs_changes_nothing(n_jobs):
    ours = NNKTransformer(n_neighbors=10, n_jobs=n_jobs)
    alone = NNKTransformer(n_neighbors=10)
    assert (ours.fit_transform(POINTS) != alone.fit_transform(POINTS)).nnz == 0
    assert (ours.transform(NEW) != alone.transform(NEW)).nnz == 0
    assert (ours.kneighbors(NEW)[1] == alone.kneighbors(NEW)[1]).all()


def test_a_random_state_is_a_seed_and_none_is_zero():
    seeds = [
        NNKTransformer(random_state=state).fit(POINTS).result_.provenance["seed"]
        for state in (None, 0, 5, np.random.RandomState(3), np.random.RandomState(3))
    ]
    assert seeds[:3] == [0, 0, 5]
    assert seeds[3] == seeds[4] > 5


@pytest.mark.parametrize("mode", ["weights", *MODES])
@pytest.mark.parametrize("method", ["nnk", "knn"])
def test_one_search_is_enough_for_the_rows(mode, method, monkeypatch):
    sizes, find = [], Exact.find

    def counted(self, wanted):
        sizes.append(len(wanted.x))
        return find(self, wanted)

    monkeypatch.setattr(Exact, "find", counted)
    ours = NNKTransformer(n_neighbors=10, mode=mode, method=method, search="exact")
    ours.fit_transform(POINTS)
    assert sizes.count(80) == 1


def test_nodes_that_miss_the_certificate_bring_a_warning(monkeypatch):
    from nnkgraph.methods import qp

    regress = qp.regress

    def wrong(*args, **options):
        theta, certificate, *others = regress(*args, **options)
        certificate[:2] = 1e-3
        return theta, certificate, *others

    monkeypatch.setattr(qp, "regress", wrong)
    ours = NNKTransformer(n_neighbors=10, sigma=1.0).fit(POINTS)
    for ask in (lambda: ours.transform(NEW), lambda: ours.graph_):
        with pytest.warns(QualityWarning, match="2 (nodes|queries)"):
            ask()


@pytest.mark.parametrize("estimator", ALL)
def test_estimators_can_be_pickled_and_cloned(estimator):
    y = np.arange(80) % 3
    ours = estimator(n_neighbors=10, kernel="cosine").fit(POINTS, y)
    again = pickle.loads(pickle.dumps(ours))
    name = "predict" if hasattr(ours, "predict") else "transform"
    before, after = (getattr(one, name)(NEW) for one in (ours, again))
    assert abs(before - after).max() == 0
    fresh = clone(ours)
    assert fresh.get_params() == ours.get_params()
    assert not hasattr(fresh, "n_neighbors_")


def test_a_grid_is_searched():
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), NNKClassifier()),
        {
            "nnkclassifier__n_neighbors": [5, 15],
            "nnkclassifier__method": ["nnk", "knn"],
        },
        cv=3,
        error_score="raise",
    )
    grid.fit(X[:500], Y[:500])
    assert grid.best_score_ > 0.9


# The predictors.


def test_the_classifier_says_what_the_command_says():
    train, test = X[:600], X[600:800]
    theirs = classify(
        train, Y[:600], test, k=15, methods=["nnk"], scale="minmax"
    ).predictions
    ours = NNKClassifier(n_neighbors=15, scale="minmax").fit(train, Y[:600])
    assert (ours.predict(test) == theirs.predicted[:, 0]).all()
    np.testing.assert_allclose(
        ours.predict_proba(test), theirs.weights[:, 0], atol=1e-12
    )


def test_probabilities_are_shares_of_the_weights():
    y = np.where(POINTS[:, 0] > 0, "right", "left")
    ours = NNKClassifier(n_neighbors=10).fit(POINTS, y)
    weights = query(POINTS, NEW, k=10, normalize=True).weights
    expected = weights @ np.column_stack([y == "left", y == "right"])
    assert ours.classes_.tolist() == ["left", "right"]
    np.testing.assert_allclose(ours.predict_proba(NEW), expected, atol=1e-14)
    assert ours.score(NEW, np.where(NEW[:, 0] > 0, "right", "left")) > 0.7


def test_a_point_that_is_known_has_its_own_class_and_value():
    y = RNG.integers(0, 5, 80)
    assert NNKClassifier().fit(POINTS, y).score(POINTS, y) == 1.0
    assert (NNKRegressor().fit(POINTS, y).predict(POINTS) == y).all()


def test_copies_share_the_mean_of_their_classes_and_values():
    y = np.zeros(len(COPIED), int)
    y[[0, 80]] = 1
    shares = NNKClassifier(n_neighbors=10).fit(COPIED, y).predict_proba(POINTS[:1])
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3]])
    value = NNKRegressor(n_neighbors=10).fit(COPIED, 3.0 * y).predict(POINTS[:1])
    np.testing.assert_allclose(value, [2.0])


def test_the_nearest_row_decides_where_similarities_vanish():
    far = np.array([[1e6, 0.0, 0.0]])
    nearest = POINTS[:, 0].argmax()
    y = np.zeros(80, int)
    y[nearest] = 1
    assert query(POINTS, far, k=10, sigma="auto").weights.nnz == 0
    assert NNKClassifier(n_neighbors=10).fit(POINTS, y).predict(far) == [1]
    assert NNKRegressor(n_neighbors=10).fit(POINTS, y).predict(far) == [1]
    both = (
        NNKRegressor(n_neighbors=10).fit(POINTS, y).predict(np.concatenate([NEW, far]))
    )
    assert both[-1] == 1


def test_rows_that_are_all_equal_say_the_same_for_every_point():
    rows, y = np.ones((4, 2)), [0, 0, 0, 1]
    points = [[1.0, 1.0], [9.0, -9.0]]
    shares = NNKClassifier().fit(rows, y).predict_proba(points)
    np.testing.assert_allclose(shares, [[0.75, 0.25]] * 2)
    assert NNKTransformer().fit_transform(rows).nnz == 0


def test_values_may_be_several():
    x, y = load_diabetes(return_X_y=True)
    y = np.column_stack([y, -y])
    ours = NNKRegressor(scale="standard").fit(x[:300], y[:300])
    found = ours.predict(x[300:])
    assert found.shape == (142, 2)
    np.testing.assert_allclose(found[:, 0], -found[:, 1])
    assert ours.score(x[300:], y[300:]) > 0.2


def test_nnk_classifies_digits_well():
    scores = cross_val_score(NNKClassifier(), X, Y, cv=3)
    assert scores.mean() > 0.95
