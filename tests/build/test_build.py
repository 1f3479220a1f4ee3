"""Whole graphs: small ones by hand, larger ones against independent code."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import SAMPLES, brute_force
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from nnkgraph.build.graph import build_graph
from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats import read_features
from nnkgraph.runtime import registry


@pytest.fixture(scope="module")
def digits():
    return read_features(f"{SAMPLES}/digits.h5::features").x


@pytest.fixture(scope="module")
def roll():
    return read_features(SAMPLES / "swiss_roll.npy").x


def same(a, b):
    """Equal to the bit: structure, weights and errors."""
    return (
        np.array_equal(a.adjacency.indptr, b.adjacency.indptr)
        and np.array_equal(a.adjacency.indices, b.adjacency.indices)
        and np.array_equal(a.adjacency.data, b.adjacency.data)
        and np.array_equal(a.errors, b.errors)
    )


@pytest.mark.parametrize("rule", ["error", "max", "none"])
@pytest.mark.parametrize(
    ("options", "metric"),
    [
        ({}, "euclidean"),
        ({"kernel": "laplacian", "connect": "mst", "k": 3}, "cityblock"),
        ({"kernel": "cosine", "duplicates": "keep"}, "chord"),
        ({"scale": "unit", "search": "pynndescent"}, "chord"),
        ({"weights": "one", "connect": "mst", "k": 3}, "euclidean"),
    ],
)
def test_edges_are_as_long_as_their_rows_are_apart(digits, rule, options, metric):
    x = np.concatenate([digits[:150], digits[20:30]]).astype(float)
    options = {"k": 8, "symmetrize": rule} | options
    if rule == "none":
        options["connect"] = "none"
    graph = build_graph(x, **options)
    names = {"cityblock": "manhattan"}
    assert graph.provenance["metric"] == names.get(metric, metric)
    if metric == "chord":
        x, metric = x / np.linalg.norm(x, axis=1, keepdims=True), "euclidean"
    row, column = graph.adjacency.nonzero()
    wanted = cdist(x, x, metric)[row, column]
    assert graph.distances == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert (graph.distances == 0).sum() >= 10
    if not graph.directed:
        matrix = csr_array((graph.distances + 1, (row, column)))
        assert (matrix != matrix.T).nnz == 0


def test_distances_are_rounded_and_go_with_their_adjacency(digits):
    exact = build_graph(digits[:100], k=8)
    rounded = build_graph(digits[:100], k=8, digits=3)
    shown = [float(f"{one:.3g}") for one in exact.distances]
    assert rounded.distances.tolist() == shown
    with pytest.raises(ParameterError, match="replace both"):
        replace(exact, adjacency=exact.adjacency[:50, :50])
    for kernel in ("linear", "polynomial:gamma=0.01"):
        assert build_graph(digits[:100], k=8, kernel=kernel).distances is None


def symmetric(graph):
    matrix = graph.adjacency
    return (matrix != matrix.T).nnz == 0 and not matrix.diagonal().any()


def by_hand(x, k, sigma=None):
    """Algorithm 3 with brute force, scipy's nnls and dense matrices."""
    index, score = brute_force(x, k)
    sigma = sigma or np.sqrt(score[:, -1]).mean() / 3
    n = len(x)
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    K = np.exp(-squares / (2 * sigma**2))
    W, E, J = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for i, S in enumerate(index):
        L = np.linalg.cholesky(K[np.ix_(S, S)])
        theta, _ = nnls(L.T, np.linalg.solve(L, K[S, i]))
        W[i, S] = theta
        J[i] = theta @ K[np.ix_(S, S)] @ theta / 2 - K[S, i] @ theta + 0.5
        E[i, S] = J[i]
    chosen = np.where(E < E.T, W, W.T)
    chosen = np.where(np.abs(E - E.T) <= 1e-12, np.maximum(W, W.T), chosen)
    chosen[(E == 0) | (E.T == 0)] = 0
    return np.where(chosen >= 1e-8, chosen, 0), J


@given(
    n=st.integers(6, 40),
    d=st.integers(3, 8),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_a_graph_is_what_the_algorithm_says(n, d, seed, data):
    x = np.random.default_rng(seed).normal(size=(n, d))
    k = data.draw(st.integers(1, min(n - 1, 12)))
    graph = build_graph(x, k=k, preset="paper")
    expected, J = by_hand(x, k)
    assert graph.adjacency.toarray() == pytest.approx(expected, abs=1e-7)
    assert graph.errors == pytest.approx(J, abs=1e-9)
    assert symmetric(graph)
    assert graph.report["certificate"]["kkt_max"] <= 1e-12


def test_a_unit_square_has_four_edges():
    graph = build_graph([[0, 0], [0, 1], [1, 0], [1, 1]], k=2, preset="paper")
    assert graph.n_edges == 4
    assert symmetric(graph)
    assert len(set(graph.adjacency.data)) == 1


@pytest.mark.parametrize("k", [4, 8, 12])
def test_c14_a_grid_keeps_the_edges_of_the_grid(k):
    x = np.stack(np.meshgrid(range(6), range(6)), -1).reshape(-1, 2)
    graph = build_graph(x, k=k)
    assert graph.n_edges == 60
    assert symmetric(graph)
    assert same(graph, build_graph(x, k=k))
    row, column = graph.adjacency.nonzero()
    assert (np.abs(x[row] - x[column]).sum(axis=1) == 1).all()


class TestDuplicates:
    @pytest.fixture
    def fifty(self):
        return np.random.default_rng(0).random((50, 3))

    def test_merge_gives_the_graph_of_the_distinct_rows_plus_a_leaf_per_copy(
        self, fifty
    ):
        twice = np.repeat(fifty, 2, axis=0)
        graph = build_graph(twice, k=10)
        alone = build_graph(fifty, k=10)
        assert graph.report["duplicates"] == 50
        dense = graph.adjacency.toarray()
        assert np.array_equal(dense[::2, ::2], alone.adjacency.toarray())
        assert np.array_equal(dense[1::2, ::2], np.eye(50))
        assert not dense[1::2, 1::2].any()
        assert np.array_equal(graph.errors[::2], alone.errors)
        assert not graph.errors[1::2].any()

    def test_keep_joins_every_point_with_its_copy(self, fifty):
        graph = build_graph(np.repeat(fifty, 2, axis=0), k=10, duplicates="keep")
        assert graph.n_edges == 50
        assert graph.report["isolated"] == 0
        assert (graph.adjacency.data == 1).all()

    def test_c07_more_copies_than_candidates_hang_on_the_first(self):
        x = np.repeat([[0.0, 0], [5, 5], [9, 1]], 30, axis=0)
        graph = build_graph(x, k=5, duplicates="keep")
        assert graph.report["isolated"] == 0
        assert graph.report["components"] == 3
        assert symmetric(graph)

    def test_identical_candidates_count_as_one_and_the_lowest_gets_the_weight(self):
        x = np.array([[0.0, 0], [1, 0], [1, 0], [0, 1.5], [9, 9]])
        graph = build_graph(x, k=3, duplicates="keep", sigma=1, symmetrize="none")
        alone = build_graph(x[[0, 1, 3]], sigma=1, symmetrize="none")
        row = graph.adjacency.toarray()[0]
        assert row[[1, 3]] == pytest.approx(alone.adjacency.toarray()[0, 1:])
        assert row[2] == 0

    def test_error_names_the_first_copy(self, fifty):
        x = np.concatenate([fifty, fifty[7:8]])
        with pytest.raises(InputError, match="row 50 repeats row 7"):
            build_graph(x, k=5, duplicates="error")
        assert build_graph(fifty, k=5, duplicates="error").n_nodes == 50

    def test_c06_identical_rows_alone_make_a_star(self):
        graph = build_graph(np.ones((40, 2)))
        assert graph.n_edges == 39
        assert graph.adjacency[[0]].sum() == 39
        kept = build_graph(np.ones((40, 2)), duplicates="keep")
        assert kept.report["isolated"] == 0
        assert symmetric(kept)


def test_integer_valued_features_give_the_same_edges_in_every_dtype(digits):
    reference = build_graph(np.asarray(digits, np.float64))
    for x in (
        digits.astype(np.float32),
        digits.astype(np.int16),
        digits.astype(np.float16),
        digits.astype(">f8"),
        digits.astype(np.longdouble),
        np.asfortranarray(digits),
        np.repeat(digits, 2, axis=1)[:, ::2],
        digits.astype(np.float64) + 1e6,
        digits.astype(np.int64) + 10**6,
    ):
        assert same(build_graph(x), reference)


@pytest.mark.parametrize("search", ["exact", "kdtree"])
def test_both_exact_searches_give_the_same_graph(digits, search):
    assert same(build_graph(digits, search=search), build_graph(digits))


def test_c19_shuffled_rows_give_the_shuffled_graph(roll):
    order = np.random.default_rng(1).permutation(len(roll))
    plain, shuffled = build_graph(roll), build_graph(roll[order])
    back = shuffled.adjacency[np.argsort(order)][:, np.argsort(order)]
    assert abs(plain.adjacency - back).max() <= 1e-12
    assert plain.report["sigma"] == shuffled.report["sigma"]


def test_scaling_features_and_sigma_together_changes_nothing(roll):
    assert same(build_graph(roll, sigma=1.5), build_graph(roll * 4, sigma=6.0))


@pytest.mark.parametrize("factor", [1e-3, 1e-2, 0.1, 10, 100, 1e3])
@pytest.mark.parametrize("name", ["roll", "digits"])
def test_b05_any_bandwidth_gives_a_graph_and_a_warning(name, factor, request):
    x = request.getfixturevalue(name)
    sigma = build_graph(x).report["sigma"]
    graph = build_graph(x, sigma=sigma * factor)
    assert np.isfinite(graph.adjacency.data).all()
    assert np.isfinite(graph.errors).all()
    assert graph.report["certificate"]["kkt_max"] <= 1e-9
    if factor in {1e-3, 1e3}:
        word = "small" if factor < 1 else "large"
        assert any(word in warning for warning in graph.report["warnings"])


def test_where_similarities_underflow_weights_are_zero_but_proven():
    x = np.array([[0.0], [1.0], [3.0], [6.0]])
    graph = build_graph(x, k=2, sigma=1e-3)
    assert graph.n_edges == 0
    assert graph.report["certificate"]["kkt_max"] <= 1e-12
    assert graph.errors.tolist() == [0.5] * 4


class TestBandwidthRules:
    def test_rules_are_what_methods_say(self, roll):
        _, score = brute_force(roll, 10)
        distance = np.sqrt(score)

        def sigma(rule):
            return build_graph(roll, k=10, sigma=rule).report["sigma"]

        assert sigma("auto") == pytest.approx(distance[:, 9].mean() / 3, rel=1e-12)
        assert sigma("kth-max") == pytest.approx(distance[:, 9].max() / 3, rel=1e-12)
        assert sigma("matlab") == pytest.approx(distance[:, 8].mean() / 3, rel=1e-12)
        assert sigma("local") == pytest.approx(distance[:, 9].mean() / 3, rel=1e-12)
        assert sigma(2.5) == 2.5
        assert sigma("2.5") == 2.5

    def test_local_gives_each_node_its_own(self, roll):
        graph = build_graph(roll[:200], k=8, sigma="local", symmetrize="none")
        _, score = brute_force(roll[:200], 8)
        node = 17
        own = np.sqrt(score[node, -1]) / 3
        single = build_graph(roll[:200], k=8, sigma=float(own), symmetrize="none")
        assert graph.adjacency[[node]].toarray() == pytest.approx(
            single.adjacency[[node]].toarray(), rel=1e-12
        )

    @pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf"), "wide"])
    def test_b04_nonsense_is_refused(self, roll, sigma):
        with pytest.raises(ParameterError, match="sigma"):
            build_graph(roll, sigma=sigma)

    def test_kernels_without_a_bandwidth_take_none(self, roll):
        with pytest.raises(ParameterError, match="no bandwidth"):
            build_graph(roll, kernel="cosine", sigma=1.0)


class TestKernels:
    def test_cosine_ignores_the_length_of_rows(self, digits):
        lengths = np.random.default_rng(0).uniform(0.1, 10, (300, 1))
        graph = build_graph(digits[:300], kernel="cosine")
        longer = build_graph(digits[:300] * lengths, kernel="cosine")
        assert abs(graph.adjacency - longer.adjacency).max() <= 1e-9
        assert graph.report["certificate"]["kkt_max"] <= 1e-12

    def test_cosine_agrees_with_nnls(self, digits):
        x = digits[:150].astype(float)
        graph = build_graph(x, k=12, kernel="cosine", symmetrize="none")
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        K = 0.5 + 0.5 * unit @ unit.T
        for i in range(0, 150, 10):
            S = np.argsort(-K[i] + 9 * (np.arange(150) == i), kind="stable")[:12]
            L = np.linalg.cholesky(K[np.ix_(S, S)])
            theta, _ = nnls(L.T, np.linalg.solve(L, K[S, i]))
            assert graph.adjacency[[i]].toarray()[0, S] == pytest.approx(
                theta, abs=1e-6
            )

    def test_c11_rows_of_zeros_have_no_angle(self):
        x = np.eye(5)
        x[3] = 0
        with pytest.raises(InputError, match="row 3"):
            build_graph(x, kernel="cosine")

    def test_linear_solves_the_ridged_problem(self):
        x = np.random.default_rng(0).normal(size=(200, 5))
        graph = build_graph(x, k=15, kernel="linear", symmetrize="none")
        assert graph.report["certificate"]["kkt_max"] <= 1e-9
        K = x @ x.T
        for i in range(0, 200, 20):
            S = np.argsort(-K[i] + 1e9 * (np.arange(200) == i))[:15]
            A = K[np.ix_(S, S)]
            A = A + 1e-8 * A.diagonal().max() * np.eye(15)
            L = np.linalg.cholesky(A)
            theta, _ = nnls(L.T, np.linalg.solve(L, K[S, i]))
            value = theta @ A @ theta / 2 - K[S, i] @ theta + K[i, i] / 2
            assert graph.errors[i] == pytest.approx(value, abs=1e-9 * K[i, i])

    def test_linear_warns_of_hubs(self, digits):
        report = build_graph(digits, kernel="linear", preset="paper").report
        assert "try `scale='unit'`" in report["warnings"][0]


@pytest.mark.parametrize("scale", ["standard", "minmax", "unit"])
def test_scalings_do_what_their_names_say(scale, roll):
    x = np.column_stack([roll, np.full(len(roll), 0.1)])
    by_hand_ = {
        "standard": lambda x: (
            (x - x.mean(0)) / np.where(np.ptp(x, axis=0) > 0, x.std(0), 1)
        ),
        "minmax": lambda x: (
            (x - x.min(0)) / np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1)
        ),
        "unit": lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    }[scale](x)
    graph = build_graph(x, scale=scale, k=10)
    other = build_graph(by_hand_, k=10)
    assert abs(graph.adjacency - other.adjacency).max() < 1e-9


@pytest.mark.parametrize("n", [1, 2, 3])
def test_c02_c03_few_nodes_are_enough(n):
    graph = build_graph(np.arange(n * 2.0).reshape(n, 2) ** 2)
    assert graph.n_nodes == n
    assert graph.n_edges == max(0, n - 1)
    assert graph.report["isolated"] == (n == 1)


def test_b02_b03_k_is_at_most_n_minus_1():
    x = np.random.default_rng(0).normal(size=(10, 2))
    assert build_graph(x).report["k"] == 9
    assert build_graph(x, k=9).report["certificate"]["kkt_max"] < 1e-12
    with pytest.raises(InputError, match="at most 9"):
        build_graph(x, k=10)


def test_c05_one_column_and_many_columns_work():
    rng = np.random.default_rng(0)
    line = build_graph(rng.normal(size=(100, 1)), k=10)
    assert line.n_edges / 100 == pytest.approx(1, abs=0.2)
    wide = build_graph(rng.normal(size=(100, 50_000)), k=10)
    assert wide.report["certificate"]["kkt_max"] < 1e-12


def test_c08_far_clusters_are_counted():
    x = np.random.default_rng(0).normal(size=(60, 2))
    x[30:] += 1e4
    assert build_graph(x, k=5).report["components"] >= 2


def test_c10_c15_flat_data_is_no_problem():
    t = np.linspace(0, 1, 80)
    collinear = np.stack([t, 2 * t, np.ones(80)], axis=1)
    graph = build_graph(collinear, k=12)
    assert graph.report["certificate"]["kkt_max"] <= 1e-9
    assert graph.report["components"] == 1


@pytest.mark.parametrize("value", [1e300, 1e-300])
def test_c12_values_out_of_range_are_refused(value):
    with pytest.raises(InputError, match="range"):
        build_graph(np.random.default_rng(0).normal(size=(20, 3)) * value)


def test_c13_an_offset_of_a_billion_is_nothing(digits):
    x = digits[:300].astype(np.float64)
    assert same(build_graph(x + 1e9), build_graph(x))


def test_min_degree_leaves_no_node_alone(digits):
    loose = build_graph(digits, sigma=2.0, min_degree=0)
    assert loose.report["isolated"] > 0
    tight = build_graph(digits, sigma=2.0, min_degree=3, min_weight=0.0)
    assert tight.report["isolated"] == 0
    assert symmetric(tight)


def test_many_isolated_nodes_bring_a_hint():
    x = np.random.default_rng(0).normal(size=(400, 30))
    report = build_graph(x, k=8, preset="paper").report
    assert report["isolated"] > 4
    assert "`min_degree=3`" in report["warnings"][0]


def test_c18_nodes_that_miss_the_certificate_are_counted_and_named(monkeypatch):
    from nnkgraph.methods import qp

    regress = qp.regress

    def wrong(*args, **options):
        theta, certificate, *others = regress(*args, **options)
        certificate[:2] = 1e-3
        return theta, certificate, *others

    monkeypatch.setattr(qp, "regress", wrong)
    graph = build_graph(np.random.default_rng(0).normal(size=(30, 2)), k=5)
    assert graph.report["certificate"]["nodes_failed"] == 2
    assert graph.report["certificate"]["failed"] == [0, 1]
    assert graph.provenance["nodes_failed"] == 2


def test_knn_has_the_kernel_as_weight_and_no_error(roll):
    graph = build_graph(roll, k=5, method="knn", sigma=2.0)
    row, column = graph.adjacency.nonzero()
    squares = ((roll[row] - roll[column]) ** 2).sum(axis=1)
    assert graph.adjacency.data == pytest.approx(np.exp(-squares / 8))
    assert graph.errors is None
    assert graph.n_edges >= 5 * len(roll) / 2


def test_provenance_holds_what_determines_the_graph_and_nothing_else(digits):
    one = build_graph(digits, workers=1).provenance
    assert one["sha256"] == Features.of(digits.astype(np.float64)).sha256
    assert (
        one == build_graph(Features.of(digits, name="other.npy"), workers=2).provenance
    )
    assert one["search"] == "exact"
    assert one["shape"] == [1797, 64]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nkn"}, "did you mean 'nnk'"),
        ({"kernel": "gauss"}, "unknown kernel"),
        ({"search": "faiss"}, "unknown search"),
        ({"symmetrize": "both"}, "unknown rule"),
        ({"method": "knn", "symmetrize": "error"}, "does not have"),
        ({"method": "nnk:eta=3"}, "no parameter 'eta'"),
        ({"search": "pynndescent:threads=x"}, "is not int"),
        ({"search": "pynndescent:threads=-1"}, "negative"),
        ({"search": "precomputed"}, "needs path"),
        ({"search": "precomputed:file"}, "key=value"),
        ({"executor": "processes:start=fork", "workers": 2}, "forkserver or spawn"),
        ({"scale": "max"}, "unknown scale"),
        ({"duplicates": "drop"}, "unknown policy"),
        ({"k": 0}, "at least 1"),
        ({"workers": 0}, "at least 1"),
        ({"min_weight": -1}, "negative"),
        ({"sigma": "matlab", "k": 1}, "needs k >= 2"),
    ],
)
def test_b06_b09_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        build_graph(np.random.default_rng(0).normal(size=(20, 3)), **options)


def test_rules_of_methods_are_known():
    from nnkgraph.build.symmetrize import RULES

    for name in registry.names("methods"):
        assert registry.load("methods", name).rule in RULES
