"""The solver: exact, proven, and never surprised by singular matrices."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

import nnkgraph
from nnkgraph.kernels import Problem
from nnkgraph.methods import _pursuit, qp
from nnkgraph.methods.qp import _active


def pack(K):
    return K[np.tril_indices(len(K))][np.newaxis]


def solve_one(K, b):
    theta, certificate, gain = qp.solve(
        pack(K), b[np.newaxis], np.ones((1, len(b)), bool)
    )
    return theta[0], certificate[0], gain[0]


def gaussian_problem(size, seed, d=3, sigma=1.0):
    x = np.random.default_rng(seed).normal(size=(size + 1, d))
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    K = np.exp(-squares / (2 * sigma**2))
    return K[1:, 1:], K[1:, 0].copy()


def violation(K, b, theta):
    r = b - K @ theta
    off = np.where(theta > 0, np.abs(r), r) / np.sqrt(np.diag(K))
    return max(off.max(), 0) / (np.abs(b) / np.sqrt(np.diag(K))).max()


@given(
    size=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 30),
    log_sigma=st.floats(-0.3, 3),
)
def test_solution_meets_the_optimality_conditions(size, seed, d, log_sigma):
    K, b = gaussian_problem(size, seed, d, sigma=10**log_sigma * np.sqrt(d))
    theta, certificate, gain = solve_one(K, b)
    assert (theta >= 0).all()
    assert certificate <= 1e-12
    assert violation(K, b, theta) <= 1e-12
    assert (theta <= b + 1e-9).all()  # a bound of the theory for such kernels
    assert gain == pytest.approx(b @ theta - theta @ K @ theta / 2, abs=1e-12)


@given(size=st.integers(1, 30), seed=st.integers(0, 2**32 - 1), d=st.integers(1, 20))
def test_solution_agrees_with_scipy_nnls(size, seed, d):
    K, b = gaussian_problem(size, seed, d, sigma=np.sqrt(d) / 2)
    theta, _, gain = solve_one(K, b)
    L = np.linalg.cholesky(K + 1e-15 * np.eye(size))
    other, _ = nnls(L.T, np.linalg.solve(L, b))
    value = other @ K @ other / 2 - b @ other
    assert -gain <= value + 1e-12
    if violation(K, b, other) < 1e-10:  # nnls itself may stop early
        assert theta == pytest.approx(other, abs=1e-6)


def test_general_matrices_with_any_diagonal_and_sign():
    rng = np.random.default_rng(0)
    for _ in range(200):
        A = rng.normal(size=(12, 9)) * rng.uniform(0.1, 10, size=9)
        K, b = A.T @ A, A.T @ rng.normal(size=12)
        theta, certificate, _ = solve_one(K, b)
        assert certificate <= 1e-12
        assert theta == pytest.approx(
            nnls(A, np.linalg.lstsq(A.T, b, rcond=None)[0])[0]
        )


@pytest.mark.parametrize("size", [5, 17, 40, 64])
def test_atoms_that_leave_again_leave_nothing_behind(size):
    """Columns with a common part make later atoms push out earlier ones."""
    rng = np.random.default_rng(size)
    for _ in range(40):
        A = rng.normal(size=(size + 5, size)) + 2 * rng.normal(size=(size + 5, 1))
        target = A @ np.maximum(rng.normal(size=size), 0) + rng.normal(size=size + 5)
        theta, certificate, _ = solve_one(A.T @ A, A.T @ target)
        assert certificate <= 1e-12
        assert theta == pytest.approx(nnls(A, target)[0], abs=1e-8)


def test_the_certificate_is_the_violation_of_what_is_returned():
    """What is returned is judged by its residual, however the search for it ended."""
    K, b = gaussian_problem(60, 5, d=2, sigma=300.0)
    theta, certificate, _ = solve_one(K, b)
    assert certificate == pytest.approx(violation(K, b, theta), abs=1e-15)


@pytest.mark.parametrize("factor", [0.0, 0.7, 1.0, 1.5])
def test_the_certificate_of_wrong_weights_is_their_violation(factor):
    """Weights that are too large leave negative residuals at the chosen atoms."""
    K, b = gaussian_problem(12, 3)
    task = pack(K), b[np.newaxis], np.ones((1, 12), bool)
    theta = factor * solve_one(K, b)[0]
    expected = violation(K, b, theta)
    _, _, w, n, full, *_ = _active.new_workspace(12, 0)
    chosen = np.flatnonzero(theta) if factor else np.arange(3)
    n[_active.COUNT, 0], n[_active.CHOSEN, : len(chosen)] = len(chosen), chosen
    full[:12, :12], w[_active.B, :12], w[_active.UNIT, :12] = K, b, 1.0
    w[_active.THETA, : len(chosen)] = theta[chosen]
    measured = getattr(_active.violation, "py_func", _active.violation)
    found = measured(w, n, full, 12) / abs(b).max()
    assert found == pytest.approx(expected, abs=1e-15)
    assert _pursuit.violations(*task, theta[np.newaxis]) == pytest.approx(
        [expected], abs=1e-15
    )
    assert (expected < 1e-15) == (factor == 1)


@pytest.mark.parametrize("copies", [2, 5])
def test_dependent_atoms_are_skipped_not_divided_by(copies):
    K, b = gaussian_problem(6, 3)
    K = np.tile(K, (copies, copies))
    b = np.tile(b, copies)
    theta, certificate, gain = solve_one(K, b)
    single, _, single_gain = solve_one(K[:6, :6], b[:6])
    assert certificate <= 1e-12
    assert gain == pytest.approx(single_gain, abs=1e-14)
    assert theta.reshape(copies, 6).sum(axis=0) == pytest.approx(single, abs=1e-9)


def test_near_duplicates_give_no_garbage():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(11, 3))
    x = np.concatenate([x, x[1:] + 1e-9 * rng.normal(size=(10, 3))])
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    K = np.exp(-squares / 2)
    theta, certificate, _ = solve_one(K[1:, 1:], K[1:, 0].copy())
    assert certificate <= 1e-12
    assert (theta <= 1).all()


def regress(x, k=None, *, base="squared-distance", sigma=1.0, ridge=0.0):
    """Regress the first row on all others."""
    if base == "squared-distance":
        form, coefficients = "exponential", [-0.5 / sigma**2, 0.0]
    else:
        form, coefficients = "affine", [1.0, 0.0]
    index = np.arange(1, len(x))[np.newaxis]
    coefficients = np.array([coefficients])
    kernel = SimpleNamespace(
        base=base, form=form, ridge=ridge, coefficients=lambda _: coefficients
    )
    problem = Problem(x, x[:1], index, np.zeros(index.shape), kernel)
    how = {"base": base, "form": form, "coefficients": coefficients}
    solved = qp.regress(x, x[:1], index, problem.diagonal(), **how)
    return *solved, problem.own()


@given(
    size=st.integers(1, 60),
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 40),
    log_sigma=st.floats(-0.5, 2.5),
)
def test_regression_from_features_is_the_regression_with_the_whole_matrix(
    size, seed, d, log_sigma
):
    x = np.random.default_rng(seed).normal(size=(size + 1, d))
    sigma = 10**log_sigma * np.sqrt(d)
    theta, certificate, gain, scale, _ = regress(x, sigma=sigma)
    K, b = gaussian_problem(size, seed, d, sigma=sigma)
    assert certificate[0] <= 1e-12
    assert scale[0] == 1
    assert violation(K, b, theta[0]) <= 1e-12
    assert gain[0] == pytest.approx(solve_one(K, b)[2], abs=1e-14)


@pytest.mark.parametrize("d", [1, 9, 15, 16, 33])
@pytest.mark.parametrize("base", ["squared-distance", "inner-product"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regression_agrees_for_few_and_many_features(d, base, dtype):
    x = np.random.default_rng(d).normal(size=(26, d)).astype(dtype)
    theta, certificate, _, _, own = regress(x, base=base, sigma=np.sqrt(d), ridge=1e-6)
    full = x.astype(np.float64)
    if base == "squared-distance":
        squares = ((full[:, None] - full[None]) ** 2).sum(axis=2)
        G = np.exp(-squares / (2 * d))
    else:
        G = full @ full.T
    K = G[1:, 1:] + 1e-6 * G[1:, 1:].diagonal().max() * np.eye(25)
    assert own[0] == pytest.approx(G[0, 0], rel=1e-12)
    assert certificate[0] <= 1e-12
    assert violation(K, G[1:, 0], theta[0]) <= 1e-9


def test_a_ridge_makes_singular_problems_unique():
    x = np.random.default_rng(0).normal(size=(11, 3))
    theta, certificate, _, _, _ = regress(x, base="inner-product", ridge=1e-8)
    K = x[1:] @ x[1:].T
    ridged = K + 1e-8 * K.diagonal().max() * np.eye(10)
    assert certificate[0] <= 1e-9
    assert violation(ridged, x[1:] @ x[0], theta[0]) <= 1e-9


def test_weights_that_underflow_end_the_search_and_fail_the_certificate():
    x = np.array([[1e-175, 1e-175], [1e150, 0], [0, 1e150]])
    theta, certificate, _, _, _ = regress(x, base="inner-product", ridge=1e-8)
    assert theta.tolist() == [[0, 0]]
    assert certificate[0] > 1e-9


def test_weights_that_overflow_fail_the_certificate():
    x = np.array([[1e150, 1e150], [1e-160, 0], [0, 1e-160]])
    with np.errstate(all="ignore"):
        _, certificate, _, _, _ = regress(x, base="inner-product", ridge=1e-8)
    assert not certificate[0] <= 1e-9
    K, b = gaussian_problem(5, 0)
    b[0] = np.nan
    assert not solve_one(K, b)[1] <= 1e-9


def test_similarities_that_underflow_are_scaled_up():
    x = np.random.default_rng(0).normal(size=(9, 3))
    theta, certificate, _, scale, _ = regress(x, sigma=0.01)
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    assert scale[0] < 1e-250
    assert certificate[0] <= 1e-12
    nearest = 1 + np.argmin(squares[0, 1:])
    assert theta[0, nearest - 1] == pytest.approx(1.0)  # the nearest, scaled to 1


def test_missing_and_zero_atoms_get_no_weight():
    K, b = gaussian_problem(5, 0)
    present = np.array([[True, False, True, True, False]])
    theta, certificate, _ = qp.solve(pack(K), b[np.newaxis], present)
    kept = present[0]
    alone, _, _ = solve_one(K[np.ix_(kept, kept)], b[kept])
    assert certificate[0] <= 1e-12
    assert theta[0, kept].tolist() == alone.tolist()
    assert not theta[0, ~kept].any()
    K[2], K[:, 2], b[2] = 0.0, 0.0, 0.0
    theta, certificate, _ = solve_one(K, b)
    assert theta[2] == 0
    assert certificate <= 1e-12


@pytest.mark.parametrize("b", [[0.0, 0.0], [-1.0, -2.0]])
def test_nothing_is_chosen_where_nothing_helps(b):
    theta, certificate, gain = solve_one(np.eye(2), np.array(b))
    assert theta.tolist() == [0, 0]
    assert certificate == 0
    assert gain == 0


def test_tolerances_are_relative():
    K, b = gaussian_problem(20, 7, d=10, sigma=2.0)
    theta, _, _ = solve_one(K, b)
    tiny, certificate, _ = solve_one(K, b * 1e-200)
    assert certificate <= 1e-12
    assert tiny * 1e200 == pytest.approx(theta, rel=1e-9)


def test_a_problem_does_not_depend_on_its_block():
    problems = [gaussian_problem(12, seed, d=1 + seed % 9) for seed in range(50)]
    gram = np.concatenate([pack(K) for K, _ in problems])
    cross = np.stack([b for _, b in problems])
    together = qp.solve(gram, cross, np.ones(cross.shape, bool))[0]
    for row, (K, b) in zip(together, problems, strict=True):
        assert row.tolist() == solve_one(K, b)[0].tolist()


@pytest.mark.parametrize("k", [20, 50])
def test_an_atom_that_depended_on_others_is_asked_again_when_they_leave(k):
    """Angles of three columns: the similarities of k candidates have rank four."""
    x = np.load(SAMPLES / "swiss_roll.npy")
    graph = nnkgraph.build_graph(x, k=k, kernel="cosine")
    assert graph.report.certificate.max <= 1e-12
