"""Other people's programs on the same problems, where they are installed.

Where ours has to give the same, it is compared; where another program stops early or
solves something else, that is measured, too.
"""

import numpy as np
import pytest
from scipy.spatial.distance import squareform

import nnkgraph
from nnkgraph.data import Graph
from nnkgraph.kernels import Problem
from nnkgraph.kernels.gaussian import Gaussian
from nnkgraph.methods.kalofolias import Kalofolias

neighbors = pytest.importorskip("sklearn.neighbors", reason="needs scikit-learn")

X = np.random.default_rng(11).normal(size=(300, 4))
METRICS = {
    "euclidean": ("gaussian:sigma=0.7", lambda d: d),
    "manhattan": ("laplacian:sigma=0.7", lambda d: d),
    "cosine": ("cosine", lambda d: np.sqrt(2 * d)),  # the chord
    "correlation": ("correlation", lambda d: np.sqrt(2 * d)),
}


@pytest.mark.parametrize("metric", list(METRICS))
def test_neighbors_and_lengths_are_those_of_scikit_learn(metric):
    kernel, ours = METRICS[metric]
    options = {"k": 9, "method": "knn", "kernel": kernel, "symmetrize": "none"}
    built = nnkgraph.build_graph(X, **options, min_weight=0.0)
    theirs = neighbors.kneighbors_graph(X, 9, mode="distance", metric=metric)
    theirs.sort_indices()
    assert np.array_equal(built.adjacency.indices, theirs.indices)
    assert built.distances == pytest.approx(ours(theirs.data), rel=1e-9)
    if kernel.startswith("gaussian"):
        weights = np.exp(-(theirs.data**2) / (2 * 0.7**2))
        assert built.adjacency.data == pytest.approx(weights, rel=1e-9)


def test_neighbors_within_a_radius_are_those_of_scikit_learn():
    built = nnkgraph.build_graph(X, method="eps:radius=0.9", min_weight=0.0)
    theirs = neighbors.radius_neighbors_graph(X, 0.9, mode="distance")
    theirs.sort_indices()
    assert theirs.nnz > 300
    assert np.array_equal(built.adjacency.indptr, theirs.indptr)
    assert np.array_equal(built.adjacency.indices, theirs.indices)
    assert built.distances == pytest.approx(theirs.data, rel=1e-9)


def test_local_linear_weights_are_those_of_scikit_learn_where_none_is_negative():
    """Its weights may be negative; where none is, they are the best of ours as well."""
    from sklearn.manifold._locally_linear import barycenter_kneighbors_graph

    theirs = barycenter_kneighbors_graph(X, 4, reg=1e-3).toarray()
    options = {"k": 4, "method": "lle:ridge=0.001", "symmetrize": "none"}
    ours = nnkgraph.build_graph(X, **options, min_weight=0.0).adjacency.toarray()
    free = (theirs >= 0).all(axis=1)
    assert 30 < free.sum() < 270
    assert ours[free] == pytest.approx(theirs[free], abs=1e-9)
    for i in np.flatnonzero(~free):
        near = np.flatnonzero(theirs[i])
        moved = X[near] - X[i]
        gram = moved @ moved.T
        gram += 1e-3 * np.trace(gram) * np.eye(len(near))
        a, b = theirs[i, near], ours[i, near]
        assert b.sum() == pytest.approx(1)
        assert a @ gram @ a < b @ gram @ b  # more is allowed to them
        clipped = np.maximum(a, 0) / np.maximum(a, 0).sum()
        assert b @ gram @ b <= clipped @ gram @ clipped * (1 + 1e-12)


@pytest.fixture(scope="module")
def joined():
    options = {"k": 12, "sigma": "auto", "symmetrize": "error-union"}
    graph = nnkgraph.build_graph(X, **options)
    assert len(nnkgraph.embed(graph, component="each").eigenvalues) == 1
    return graph


def test_labels_propagate_as_in_scikit_learn(joined):
    """Both end in the harmonic function; scikit-learn walks there step by step."""
    from sklearn.semi_supervised import LabelPropagation

    rng = np.random.default_rng(0)
    codes = np.full(len(X), -1)
    known = rng.permutation(len(X))[:30]
    codes[known] = np.arange(30) % 3
    weights = joined.adjacency.toarray()
    far = LabelPropagation(kernel=lambda a, b: weights, max_iter=100_000, tol=1e-13)
    far.fit(X, codes)
    text = np.where(codes >= 0, np.array(["a", "b", "c"])[codes], "")
    ours = nnkgraph.propagate(joined, nnkgraph.Labels.of(text))
    assert ours.weights == pytest.approx(far.label_distributions_, abs=1e-8)
    assert np.array_equal(ours.codes, far.transduction_)


def test_eigenmaps_are_those_of_scikit_learn(joined):
    from sklearn.manifold import spectral_embedding

    ours = nnkgraph.embed(joined, dimensions=3)
    theirs = spectral_embedding(joined.adjacency, n_components=3, random_state=0)
    for a, b in zip(ours.coordinates.T, theirs.T, strict=True):
        unit = np.sign(a @ b) * b / np.linalg.norm(b)
        assert a / np.linalg.norm(a) == pytest.approx(unit, abs=1e-7)


# Graph learning with logarithms of degrees: PyGSP2 has the problem
# 2 w . z - a sum(log degree) + b |w|^2 over all pairs of nodes, with z divided by the
# largest of all. With a = 1 / m and b = 1 / m for m = max(z) it is that of ours.


@pytest.fixture(scope="module")
def learned():
    """Ours, with all pairs of nodes allowed; costs and weights of pairs."""
    x = np.random.default_rng(3).normal(size=(60, 4))
    n, far = len(x), np.sqrt(((x[:, np.newaxis] - x) ** 2).sum(axis=2))
    index = np.argsort(far + np.diag(np.full(n, -1.0)), axis=1)[:, 1:]
    length = np.take_along_axis(far, index, 1)
    asked = Problem(x, x, index, length, Gaussian(1.0), np.arange(n), 6)
    found = Kalofolias().weigh(asked)
    matrix = np.zeros((n, n))
    matrix[np.arange(n)[:, np.newaxis], index] = found.weights
    costs = found.facts["theta"] * squareform(far**2, checks=False)
    return costs, squareform(matrix)


def objective(costs, w):
    return 2 * w @ costs - np.log(squareform(w).sum(axis=1)).sum() + w @ w


def by_pygsp(costs, **options):
    learning = pytest.importorskip("pygsp2.graph_learning", reason="needs PyGSP2")
    m = float(costs.max())
    options = {"a": 1 / m, "b": 1 / m, "verbose": False, **options}
    return squareform(learning.graph_log_degree(squareform(costs), **options))


@pytest.mark.filterwarnings("ignore")  # of what PyGSP2 imports
def test_a_graph_is_learned_as_by_pygsp_once_that_has_converged(learned):
    costs, ours = learned
    theirs = by_pygsp(costs, tol=1e-13, maxiter=100_000)
    assert theirs == pytest.approx(ours, abs=1e-9 * ours.max())
    assert np.array_equal(theirs > 1e-8 * theirs.max(), ours > 0)
    best = objective(costs, ours)
    assert objective(costs, theirs) == pytest.approx(best, rel=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_pygsp_stops_before_the_optimum_as_it_comes(learned):
    """What its defaults leave: 1000 steps from zero, of a length that is fixed."""
    costs, ours = learned
    best, m = objective(costs, ours), float(costs.max())
    gaps, alike = [], []
    for most in (250, 500, 1000):
        # The same problem with a = 1, in other units of the weights.
        theirs = by_pygsp(costs, a=1.0, b=m**-2, maxiter=most) / m
        gaps.append(objective(costs, theirs) - best)
        alike.append(np.corrcoef(theirs, ours)[0, 1])
    assert gaps[0] > gaps[1] > gaps[2] > 1.0
    assert alike[0] < alike[1] < alike[2] < 0.99
    assert (theirs > 1e-8 * theirs.max()).sum() > 5 * (ours > 0).sum()


@pytest.mark.filterwarnings("ignore")  # of what UMAP imports
def test_the_edges_of_umap_are_verified():
    umap = pytest.importorskip("umap.umap_", reason="needs UMAP")
    near = neighbors.NearestNeighbors(n_neighbors=10).fit(X).kneighbors(X)
    options = {"knn_indices": near[1], "knn_dists": near[0].astype(np.float32)}
    matrix, *_ = umap.fuzzy_simplicial_set(X, 10, 0, "euclidean", **options)
    # 10 with the row itself; its weights are of no kernel.
    asked = {"k": 9, "method": "knn", "symmetrize": "max"}
    assert not nnkgraph.verify(X, matrix, weights="any", **asked).failed
    odd = nnkgraph.verify(X, matrix, sigma=0.7, **asked)
    assert [check.name for check in odd.failed] == ["weights"]
    assert nnkgraph.verify(X[::-1].copy(), matrix, weights="any", **asked).failed


def test_graphs_of_scikit_learn_are_verified():
    from sklearn.neighbors import kneighbors_graph

    ones = kneighbors_graph(X, 9)
    both = (0.5 * (ones + ones.T)).tocsr()  # what spectral embedding makes of it
    asked = {"k": 9, "method": "knn", "weights": "one"}
    assert not nnkgraph.verify(X, ones, **asked).failed
    assert not nnkgraph.verify(X, both, symmetrize="mean", **asked).failed
    found = nnkgraph.verify(X, Graph(both), **asked)
    assert [check.name for check in found.failed] == ["weights"]
    lengths = kneighbors_graph(X.astype(np.float32), 9, mode="distance")
    asked["weights"] = "distance"
    found = nnkgraph.verify(X, lengths, digits=6, **asked)
    assert not found.failed
