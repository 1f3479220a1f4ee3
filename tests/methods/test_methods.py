"""Methods against independent code: what each one computes, exactly."""

from itertools import pairwise

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.build.solve import solve
from nnkgraph.data import Features
from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.kernels import Problem
from nnkgraph.runtime import registry


@pytest.fixture(scope="module")
def digits():
    with h5py.File(SAMPLES / "digits.h5") as file:
        return file["features"][:].astype(float)


@pytest.fixture(scope="module")
def roll():
    return np.ascontiguousarray(np.load(SAMPLES / "swiss_roll.npy"))


def neighborhoods(x, method, k=30, kernel="gaussian", **options):
    candidates = find_candidates(x, k=k, kernel=kernel)
    fitted = registry.create("kernels", kernel).fit(candidates)
    with registry.create("executors", "serial").open(1) as pool:
        rows = fitted.prepare(np.asarray(x, float), "x")
        found = solve(
            pool,
            rows,
            candidates,
            kernel=fitted,
            method=registry.create("methods", method),
            **options,
        )
    return candidates, fitted, found


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "polynomial", "lle"])
@pytest.mark.parametrize("data", ["digits", "roll"])
def test_omp_is_nnk(request, data, kernel):
    x = request.getfixturevalue(data)[:700]
    nnk, omp = (
        build_graph(x, k=20, method=m, kernel=kernel, preset="paper")
        for m in ("nnk", "omp")
    )
    difference = abs(nnk.adjacency - omp.adjacency)
    # Kernels of finite rank have a ridge of 1e-8, and so matrices of condition 1e8.
    tolerance = 1e-9 if kernel == "gaussian" else 1e-6
    assert difference.max() <= tolerance * max(1.0, nnk.adjacency.data.max())
    assert np.abs(nnk.errors - omp.errors).max() <= 1e-9 * nnk.errors.max()


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial", "cosine", "laplacian"])
def test_mp_never_explains_a_node_better_than_nnk(digits, kernel):
    x = digits[:500]
    _, _, nnk = neighborhoods(x, "nnk", kernel=kernel)
    _, _, mp = neighborhoods(x, "mp", kernel=kernel)
    unit = max(1.0, nnk.errors.max())
    assert (mp.errors >= nnk.errors - 1e-12 * unit).all()
    assert (mp.errors > nnk.errors + 1e-6 * unit).any()


def test_mp_is_the_algorithm_as_it_is_written(roll):
    x = roll[:60]
    candidates, kernel, mp = neighborhoods(x, "mp", k=12)
    for i in range(len(x)):
        near = x[candidates.index[i]]
        gram = np.exp(-np.square(near[:, None] - near).sum(-1) / (2 * kernel.sigma**2))
        residual = np.exp(-np.square(near - x[i]).sum(-1) / (2 * kernel.sigma**2))
        theta = np.zeros(12)
        for _ in range(12):
            j = residual.argmax()
            if residual[j] <= 1e-15:
                break
            theta[j] += residual[j]
            residual = residual - residual[j] * gram[j]
        assert mp.weights[i] == pytest.approx(theta, abs=1e-12)


def test_l1_without_a_penalty_is_nnk(digits):
    nnk, l1 = (build_graph(digits[:600], method=m) for m in ("nnk", "l1:eta=0"))
    assert np.array_equal(nnk.adjacency.data, l1.adjacency.data)
    assert np.array_equal(nnk.adjacency.indices, l1.adjacency.indices)


def test_a_single_neighbor_pays_the_penalty():
    # K = exp(-d^2 / 2) = 0.8
    distance = np.sqrt(-2 * np.log(0.8))
    graph = build_graph(
        np.array([[0.0], [distance]]),
        k=1,
        method="l1:eta=0.1",
        sigma=1.0,
        weights="regression",
    )
    assert graph.adjacency.data == pytest.approx([0.7, 0.7], abs=1e-12)
    # J at theta: (1 - 2 * 0.8 * 0.7 + 0.7^2) / 2
    assert graph.errors == pytest.approx([(1 - 1.12 + 0.49) / 2] * 2, abs=1e-12)


def test_edges_become_fewer_as_the_penalty_grows(digits):
    edges = [
        build_graph(digits, method=f"l1:eta={eta}").n_edges
        for eta in (0, 0.02, 0.05, 0.1, 0.2, 0.3)
    ]
    assert all(more > fewer for more, fewer in pairwise(edges))


@pytest.mark.parametrize("kernel", ["laplacian", "gaussian"])
def test_l1_is_optimal_for_its_own_objective(roll, kernel):
    x = roll[:300]
    candidates, fitted, l1 = neighborhoods(x, "l1:eta=0.05", k=15, kernel=kernel)
    every = np.arange(300)
    local = Problem(
        x, x, candidates.index, candidates.distance, fitted, rows=every
    ).local()
    full = np.zeros((300, 15, 15))
    full[:, *np.tril_indices(15)] = local.gram
    full = np.maximum(full, full.transpose(0, 2, 1))
    residual = local.cross - 0.05 - np.einsum("qij,qj->qi", full, l1.weights)
    assert np.abs(residual[l1.weights > 0]).max() < 1e-12
    assert residual.max() < 1e-12
    assert l1.certificate.max() < 1e-12


def kstar_weights(beta):
    problem = Problem(
        None,
        None,
        np.arange(len(beta))[np.newaxis],
        np.sort(beta)[np.newaxis],
        None,
    )
    return registry.create("methods", "kstar").weigh(problem).weights[0]


def test_kstar_is_the_optimum_of_its_objective():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 20))
        beta = np.sort(rng.exponential(rng.choice([0.1, 1, 5]), n))
        found = kstar_weights(beta)
        assert found.sum() == pytest.approx(1)

        best = kstar_optimum(beta)
        assert np.sqrt(found @ found) + found @ beta <= best.fun + 1e-12
        assert found == pytest.approx(best.x, abs=1e-6)


@pytest.mark.parametrize("unit", [1e17, 1e40])
def test_kstar_takes_the_nearest_where_distances_are_huge(unit):
    assert kstar_weights(unit * np.array([2.0, 3.0, 5.0])).tolist() == [1, 0, 0]
    assert kstar_weights(unit * np.array([2.0, 2.0, 5.0])).tolist() == [0.5, 0.5, 0]


def kstar_optimum(beta):
    """Minimize |a| + a . beta over weights that sum to 1, by scipy alone."""

    def objective(a):
        size = np.sqrt(a @ a)
        return size + a @ beta, a / size + beta

    n = len(beta)
    rough = minimize(
        objective,
        np.full(n, 1 / n),
        jac=True,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    # Its line search stops at 1e-6: go on within its support, without constraints.
    there = np.flatnonzero(rough.x > 1e-5)

    def within(free):
        a = np.zeros(n)
        a[there[:-1]], a[there[-1]] = free, 1 - free.sum()
        value, slope = objective(a)
        return value, slope[there[:-1]] - slope[there[-1]]

    if len(there) > 1:
        better = minimize(
            within, rough.x[there[:-1]], jac=True, options={"gtol": 1e-11}
        )
        rough.x = np.zeros(n)
        rough.x[there[:-1]], rough.x[there[-1]] = better.x, 1 - better.x.sum()
        rough.fun = better.fun
    return rough


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=12))
def test_kstar_weights_are_weights(beta):
    found = kstar_weights(np.array(beta))
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert (np.diff(found) <= 1e-15).all()


def test_kstar_says_where_k_was_too_small(digits):
    few = build_graph(digits[:200], k=3, method="kstar:lc=0.001")
    assert any("took all 3 candidates" in line for line in few.report["warnings"])
    many = build_graph(digits[:200], k=50, method="kstar:lc=10", scale="standard")
    assert not any("candidates" in line for line in many.report["warnings"])
    # Where all others are candidates, there is no larger k to advise.
    every = build_graph(digits[:20], k=19, method="kstar:lc=1e-6")
    assert every.n_edges == 20 * 19 / 2
    assert not any("larger k" in line for line in every.report["warnings"])


def test_lle_is_the_best_combination_that_sums_to_one(digits):
    x = digits[:400]
    candidates, _, lle = neighborhoods(x, "lle", k=12)
    assert lle.weights.sum(axis=1) == pytest.approx(1)
    assert lle.certificate.max() < 1e-9
    for i in range(0, 400, 2):
        difference = x[candidates.index[i]] - x[i]
        gram = difference @ difference.T
        gram += 1e-3 * np.trace(gram) * np.eye(12)
        gram /= np.trace(gram)
        best = minimize(
            lambda w, g=gram: (w @ g @ w, 2 * g @ w),
            np.full(12, 1 / 12),
            jac=True,
            bounds=[(0, 1)] * 12,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 500},
        )
        assert lle.weights[i] == pytest.approx(best.x, abs=1e-5)


def test_lle_of_identical_candidates_has_equal_weights():
    x = np.zeros((6, 3))
    graph = build_graph(x, k=5, method="lle", duplicates="keep", symmetrize="none")
    assert graph.adjacency.data == pytest.approx(0.2)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("d", [3, 12])
def test_eps_joins_what_is_within_the_radius(kernel, d):
    x = np.random.default_rng(0).normal(size=(250, d))
    size = np.abs(x[:, None] - x) if kernel == "laplacian" else None
    distance = (
        size.sum(-1) if size is not None else np.sqrt(np.square(x[:, None] - x).sum(-1))
    )
    radius = float(np.quantile(distance, 0.1))
    graph = build_graph(x, method=f"eps:radius={radius}", kernel=kernel, min_weight=0)
    there = (distance <= radius) & ~np.eye(250, dtype=bool)
    assert np.array_equal(graph.adjacency.toarray() > 0, there)


def test_eps_takes_three_sigma_by_default(roll):
    x = roll[:300]
    graph = build_graph(x, k=10, method="eps")
    distance = np.sqrt(np.square(x[:, None] - x).sum(-1))
    near = distance <= 3 * graph.report["sigma"]
    assert graph.n_edges == (near.sum() - 300) // 2


def test_eps_on_the_very_radius_counts(tmp_path):
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 2), -1).reshape(-1, 2)
    assert build_graph(grid, k=4, method="eps:radius=1").n_edges == 60
    assert build_graph(np.hstack([grid] * 6), k=4, method="eps:radius=2.4").n_edges == 0


def test_eps_refuses_a_radius_that_joins_everything(monkeypatch):
    monkeypatch.setattr("nnkgraph.methods.eps._MOST_BYTES", 10_000)
    with pytest.raises(ResourceError, match="smaller radius"):
        build_graph(
            np.random.default_rng(0).normal(size=(100, 3)), method="eps:radius=9"
        )


@pytest.mark.parametrize("method", registry.names("methods"))
def test_a_permutation_of_the_rows_permutes_the_graph(method):
    x = np.random.default_rng(1).normal(size=(120, 4))
    order = np.random.default_rng(2).permutation(120)
    first = build_graph(x, k=8, method=method).adjacency[order][:, order]
    other = build_graph(x[order], k=8, method=method).adjacency
    assert abs(first - other).max() <= 1e-6 * max(1.0, first.max())


@pytest.mark.parametrize("method", registry.names("methods"))
def test_workers_and_blocks_cannot_be_seen_in_any_method(method):
    x = np.random.default_rng(1).normal(size=(300, 4))
    one, two = (build_graph(x, k=8, method=method, workers=n) for n in (1, 2))
    assert np.array_equal(one.adjacency.data, two.adjacency.data)
    assert np.array_equal(one.adjacency.indices, two.adjacency.indices)


@pytest.mark.parametrize("method", registry.names("methods"))
def test_tiny_inputs_give_graphs(method):
    for n in (1, 2, 3):
        x = np.arange(2.0 * n).reshape(n, 2) ** 2
        graph = build_graph(x, method="l1:eta=0" if method == "l1" else method)
        assert graph.n_nodes == n
        assert graph.n_edges >= (n > 1)


@pytest.mark.parametrize(
    "spec", ["l1:eta=-1", "eps:radius=-1", "kstar:lc=0", "lle:ridge=0"]
)
def test_parameters_are_checked(spec):
    with pytest.raises(ParameterError, match=r"method '\w+': "):
        registry.create("methods", spec)


def test_global_methods_want_distinct_rows():
    x = Features.of(np.zeros((4, 2)))
    with pytest.raises(ParameterError, match="distinct rows"):
        build_graph(x, method="kalofolias", duplicates="keep")
