"""The estimators for scikit-learn: its own checks, pipelines, and edge cases."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, SpectralClustering
from sklearn.datasets import load_diabetes, load_digits
from sklearn.manifold import Isomap
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nnkgraph.build.graph import build_graph
from nnkgraph.build.query import query_neighborhoods
from nnkgraph.sklearn import NNKClassifier, NNKRegressor, NNKTransformer
from nnkgraph.tasks.classify import classify

X, Y = load_digits(return_X_y=True)
ALL = [NNKTransformer, NNKClassifier, NNKRegressor]
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(80, 3))
NEW = RNG.normal(size=(20, 3))
COPIED = np.concatenate([POINTS, POINTS[:5], POINTS[:5]])
"""The first five rows stand three times each."""


@parametrize_with_checks(
    [NNKTransformer(), NNKTransformer(mode="distance"), NNKClassifier(), NNKRegressor()]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


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
    asked = query_neighborhoods(POINTS, NEW, k=10, sigma=sigma, scale=scale)
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
    np.testing.assert_allclose(distances[row, column], true, rtol=1e-12)
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
    pipeline = make_pipeline(NNKTransformer(mode="distance"), isomap)
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
    weights = query_neighborhoods(POINTS, NEW, k=10, normalize=True).weights
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
    assert query_neighborhoods(POINTS, far, k=10).weights.nnz == 0
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
