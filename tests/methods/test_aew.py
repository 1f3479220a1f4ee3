"""Adaptive edge weighting: the right gradient, downhill all the way, the same twice."""

import dataclasses
import math

import h5py
import numpy as np
import pytest
from conftest import SAMPLES, brute_force
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Problem
from nnkgraph.kernels.cosine import Cosine
from nnkgraph.kernels.gaussian import Gaussian
from nnkgraph.methods.aew import Aew, Reconstruction, descend, edges_of
from nnkgraph.methods.knn import Knn


def problem_of(x, k, sigma=None, index=None):
    found, squares = brute_force(x, k)
    if index is None:
        index = found.astype(np.int32)
        distance = np.sqrt(squares)
    else:
        gaps = np.asarray(x)[:, np.newaxis] - np.asarray(x)[index]
        distance = np.where(index >= 0, np.sqrt((gaps**2).sum(axis=2)), np.inf)
    sigma = sigma or max(float(distance[np.isfinite(distance)].mean()) / 2, 1e-3)
    return Problem(x, x, index, distance, Gaussian(sigma), np.arange(len(x)), k)


def reconstruction(problem):
    return Reconstruction.of(
        problem.x, problem.index, problem.distance, problem.kernel.sigma
    )


def normal(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def digits(rows):
    with h5py.File(SAMPLES / "digits.h5") as file:
        return file["features"][:rows].astype(np.float64)


def dense_matrix(problem, weights):
    full = np.zeros((len(problem.x), len(problem.x)))
    rows, places = np.nonzero(problem.index >= 0)
    full[rows, problem.index[rows, places]] = weights[rows, places]
    return full


def dense_error(problem, scales):
    """The definition, with a matrix of all pairs."""
    x = np.asarray(problem.x, np.float64)
    there = dense_matrix(problem, np.ones(problem.index.shape)) > 0
    there |= there.T
    squares = (((x[:, np.newaxis] - x[np.newaxis]) * scales) ** 2).sum(axis=2)
    W = np.where(there, np.exp(-squares / (2 * problem.kernel.sigma**2)), 0.0)
    linked = there.any(axis=1)
    P = W[linked] / W[linked].sum(axis=1, keepdims=True)
    return ((x[linked] - P @ x) ** 2).sum()


@pytest.mark.parametrize("d", [1, 3, 20])
def test_the_error_is_the_one_that_is_defined(d):
    problem = problem_of(normal(60, d), 5)
    error = reconstruction(problem)
    for scales in (np.ones(d), np.random.default_rng(1).uniform(0.3, 2, d)):
        found = error(scales)[0] * error.unit**2
        assert found == pytest.approx(dense_error(problem, scales), rel=1e-12)


@pytest.mark.parametrize(
    "x",
    [normal(100, 1), normal(120, 6, 1), normal(60, 40, 2), digits(300)],
    ids=["d=1", "d=6", "d=40", "digits"],
)
def test_the_gradient_agrees_with_finite_differences(x):
    error, d = reconstruction(problem_of(x, 8)), x.shape[1]
    for scales in (np.ones(d), np.random.default_rng(3).uniform(0.3, 2, d)):
        moves = 1e-5 * np.eye(d)
        slopes = [error(scales + h)[0] - error(scales - h)[0] for h in moves]
        gradient = error(scales)[1]
        off = np.linalg.norm(np.array(slopes) / 2e-5 - gradient)
        assert off < 1e-6 * np.linalg.norm(gradient)


@pytest.mark.parametrize(
    "x",
    [normal(200, 5), digits(300), normal(150, 8) * np.geomspace(1, 100, 8)],
    ids=["normal", "digits", "unequal"],
)
def test_every_step_lowers_the_error(x):
    problem = problem_of(x, 10)
    error, start = reconstruction(problem), np.ones(x.shape[1])
    found = descend(error, start, iterations=100, tolerance=1e-4)
    assert found.converged
    assert len(found.trace) > 5
    assert (np.diff(found.trace) < 0).all()
    assert found.trace[-1] == error(found.point)[0]
    facts = Aew().weigh(problem).facts
    assert facts["objective"] == [found.trace[i] * error.unit**2 for i in (0, -1)]
    assert facts["objective"][1] == pytest.approx(dense_error(problem, found.point))
    assert facts["iterations"] == len(found.trace) - 1


def test_the_descent_ends_in_a_minimum():
    error = reconstruction(problem_of(normal(200, 3), 10))
    found = descend(error, np.ones(3), iterations=100, tolerance=1e-12)
    assert found.converged
    assert found.norms[-1] < 1e-6 * found.norms[0]
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        assert error(found.point + size * rng.normal(size=3))[0] > found.trace[-1]


def test_a_steep_narrow_valley_is_followed_to_its_end():
    def valley(point):  # Rosenbrock's, plus 1
        a, b = point
        value = 1 + (1 - a) ** 2 + 100 * (b - a * a) ** 2
        slope = [-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)]
        return value, np.array(slope)

    found = descend(valley, np.array([-1.2, 1.0]), iterations=100, tolerance=1e-12)
    assert found.converged
    assert found.point == pytest.approx([1, 1], abs=1e-5)
    assert (np.diff(found.trace) < 0).all()


def test_a_bottom_that_is_hit_exactly_ends_the_descent():
    found = descend(
        lambda x: (1 + x[0] ** 2, 2 * x), np.ones(1), iterations=9, tolerance=1e-4
    )
    assert found.converged
    assert found.trace == [2.0, 1.0]
    assert found.norms == [2.0, 0.0]


def test_a_cliff_that_was_left_behind_is_forgotten():
    def cliff(point):  # so steep beyond 1 that its curvature would forbid any step
        over = max(point[0] - 1, 0.0)
        return 10 + 1e-3 * point[0] + 0.5e20 * over**2, np.array([1e-3 + 1e20 * over])

    found = descend(cliff, np.array([1 + 1e-9]), iterations=12, tolerance=1e-5)
    assert found.point[0] < -5
    assert (np.diff(found.trace) < 0).all()


def test_scales_of_one_give_the_kernels_own_weights():
    problem = problem_of(normal(80, 7), 6, sigma=0.7)
    weights = reconstruction(problem).weights(np.ones(7))
    assert np.array_equal(weights, Knn().weigh(problem).weights)


def test_weights_are_those_of_the_scales_and_the_same_in_both_directions():
    problem = problem_of(normal(150, 4), 7)
    error = reconstruction(problem)
    found = Aew().weigh(problem)
    end = descend(error, np.ones(4), iterations=100, tolerance=1e-4).point
    gaps = (problem.x[:, np.newaxis] - problem.x[problem.index]) * end
    exact = np.exp(-(gaps**2).sum(axis=2) / (2 * problem.kernel.sigma**2))
    assert found.weights == pytest.approx(exact, rel=1e-12)
    full = dense_matrix(problem, found.weights)
    mutual = (full > 0) & (full.T > 0)
    assert mutual.sum() > 300
    assert np.array_equal(full[mutual], full.T[mutual])


def test_the_origin_does_not_matter():
    problem = problem_of(normal(150, 5), 8)
    far = problem.x + 1e6
    moved = dataclasses.replace(problem, x=far, queries=far)
    assert Aew().weigh(moved).weights == pytest.approx(
        Aew().weigh(problem).weights, rel=1e-6
    )
    whole = problem_of(digits(200), 8)  # here not a digit gets lost by moving
    far = whole.x + 1e6
    moved = dataclasses.replace(whole, x=far, queries=far)
    assert np.array_equal(Aew().weigh(moved).weights, Aew().weigh(whole).weights)


@pytest.mark.parametrize("power", [-120, -1, 1, 120])
def test_the_unit_does_not_matter(power):
    x = normal(100, 5)
    plain = Aew().weigh(problem_of(x, 8, sigma=0.5))
    size = 2.0**power
    scaled = Aew().weigh(problem_of(x * size, 8, sigma=0.5 * size))
    assert np.array_equal(scaled.weights, plain.weights)
    assert scaled.facts["objective"][1] == plain.facts["objective"][1] * size**2
    assert scaled.facts["gradient_norm"] == plain.facts["gradient_norm"] * size**2


def test_the_same_input_gives_the_same_bytes_and_a_permutation_permutes():
    problem = problem_of(digits(300), 10)
    found, again = Aew().weigh(problem), Aew().weigh(problem)
    assert found.weights.tobytes() == again.weights.tobytes()
    assert found.facts == again.facts
    order = np.random.default_rng(0).permutation(300)
    x, index = problem.x[order], np.argsort(order)[problem.index[order]]
    moved = Problem(x, x, index, problem.distance[order], problem.kernel)
    assert Aew().weigh(moved).weights == pytest.approx(found.weights[order], rel=1e-9)


def test_kinds_of_arrays_do_not_matter():
    problem = problem_of(digits(120), 6)
    plain = Aew().weigh(problem).weights
    frozen = problem.x.copy()
    frozen.flags.writeable = False
    for x in (problem.x.astype(np.float32), np.asfortranarray(problem.x), frozen):
        other = dataclasses.replace(problem, x=x, queries=x)
        assert np.array_equal(Aew().weigh(other).weights, plain)


def test_edges_are_the_union_of_all_candidate_pairs():
    index = np.array([[1, 2], [-1, 0], [-1, -1], [0, -1], [-1, -1]], np.int32)
    starts, others = edges_of(index)
    assert starts.tolist() == [0, 3, 4, 5, 6, 6]
    assert others.tolist() == [1, 2, 3, 0, 0, 0]


def test_missing_candidates_and_nodes_without_any_have_no_weight():
    problem = problem_of(normal(40, 3), 6)
    index = problem.index.copy()
    index[::2, 4:] = -1
    index[7] = -1
    index[index == 7] = -1
    bare = problem_of(problem.x, 6, problem.kernel.sigma, index)
    found = Aew().weigh(bare)
    assert found.failure == ""
    assert (found.weights[index < 0] == 0).all()
    assert (found.weights[index >= 0] > 0).all()
    assert found.facts["objective"][0] == pytest.approx(
        dense_error(bare, np.ones(3)), rel=1e-12
    )


@pytest.mark.parametrize("m", [0, 3])
def test_nobody_has_a_candidate(m):
    x = normal(5, 2)
    index, distance = np.full((5, m), -1, np.int32), np.full((5, m), np.inf)
    found = Aew().weigh(Problem(x, x, index, distance, Gaussian(1.0)))
    assert found.weights.tolist() == [[0.0] * m] * 5
    assert found.facts["objective"] == [0.0, 0.0]
    assert not found.failure


def test_two_nodes_have_nothing_to_adapt():
    found = Aew().weigh(problem_of(np.array([[0.0, 1.0], [0.3, 0.0]]), 1, sigma=1.0))
    assert found.weights == pytest.approx(math.exp(-1.09 / 2), rel=1e-14)
    assert found.facts == {
        "iterations": 0,
        "gradient_norm": 0.0,
        "gradient_norm_relative": 0.0,
        "objective": [2 * 1.09, 2 * 1.09],
    }
    assert not found.failure


def test_a_constant_feature_keeps_its_scale():
    x = normal(80, 4)
    x[:, 2] = 7.0
    error = reconstruction(problem_of(x, 6))
    assert error(np.ones(4))[1][2] == 0.0
    found = descend(error, np.ones(4), iterations=100, tolerance=1e-4)
    assert found.point[2] == 1.0
    assert (found.point[[0, 1, 3]] != 1.0).all()


def test_copies_weigh_one():
    x = np.repeat(normal(30, 3), 2, axis=0)
    problem = problem_of(x, 5)
    found = Aew().weigh(problem)
    copies = problem.distance == 0
    assert copies.sum() == 60
    assert (found.weights[copies] == 1.0).all()
    same = Aew().weigh(problem_of(np.ones((6, 2)), 3))
    assert (same.weights == 1.0).all()
    assert same.facts["objective"] == [0.0, 0.0]


@pytest.mark.parametrize("sigma", [1e-150, 1e-9, 1e-3, 1e3, 1e150])
def test_weights_that_vanish_leave_the_error_finite(sigma):
    problem = problem_of(normal(60, 3), 5, sigma=sigma)
    found = Aew().weigh(problem)
    assert np.isfinite(found.facts["objective"]).all()
    assert found.facts["objective"][1] <= found.facts["objective"][0]
    assert np.isfinite(found.weights).all()
    assert (found.weights <= 1).all()
    if sigma < 1e-2:  # every node is rebuilt from its nearest neighbor alone
        full = dense_matrix(problem, problem.distance)
        full = np.where(full > 0, full, np.inf)
        nearest = np.minimum(full, full.T).min(axis=1)
        assert found.facts["objective"][0] == pytest.approx((nearest**2).sum())


@pytest.mark.parametrize(("size", "sigma"), [(1e149, 1e-150), (1e-150, 1e150)])
def test_extremes_stay_within_range(size, sigma):
    plain = problem_of(normal(60, 3), 5)
    x, distance = plain.x * size, plain.distance * size
    found = Aew().weigh(Problem(x, x, plain.index, distance, Gaussian(sigma)))
    assert np.isfinite(found.facts["objective"]).all()
    assert (found.weights == (0.0 if sigma < size else 1.0)).all()


@settings(max_examples=40)
@given(
    n=st.integers(2, 25),
    d=st.integers(1, 4),
    k=st.integers(1, 6),
    levels=st.integers(1, 5),
    sigma=st.floats(0.05, 5),
    seed=st.integers(0, 2**32 - 1),
)
@example(n=12, d=2, k=4, levels=2, sigma=0.125, seed=0)  # squares that vanish
def test_grids_full_of_ties_and_copies_are_no_trouble(n, d, k, levels, sigma, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, (n, d)).astype(float)
    problem = problem_of(x, min(k, n - 1), sigma=sigma)
    gone = rng.random(problem.index.shape) < 0.2
    index = np.where(gone, -1, problem.index)
    found = Aew().weigh(problem_of(x, k, sigma, index))
    first, last = found.facts["objective"]
    assert 0 <= last <= first < math.inf
    assert math.isfinite(found.facts["gradient_norm"])
    assert ((found.weights >= 0) & (found.weights <= 1)).all()
    assert (found.weights[index < 0] == 0).all()


def test_too_few_iterations_are_a_failure_that_says_so():
    steps = []
    problem = dataclasses.replace(problem_of(digits(200), 8), on_step=steps.append)
    found = Aew(iterations=3).weigh(problem)
    assert found.facts["iterations"] == 3
    assert steps == [1, 1, 1]
    assert "did not converge: after 3 iterations" in found.failure
    assert "tolerance 0.0001" in found.failure
    assert "\n" not in found.failure
    steps.clear()
    enough = Aew().weigh(problem)
    assert not enough.failure
    assert steps == [1] * enough.facts["iterations"]
    assert enough.facts["gradient_norm_relative"] < 0.1


def test_kernels_that_do_not_fit_are_refused():
    method = Aew()
    method.check(Gaussian())
    method.check(Gaussian(0.5))
    with pytest.raises(ParameterError, match="cannot use kernel 'cosine'"):
        method.check(Cosine())
    with pytest.raises(ParameterError, match="needs one sigma for all nodes"):
        method.check(Gaussian("local"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"iterations": 0}, "iterations must be at least 1, not 0"),
        ({"tolerance": 0.0}, "tolerance must be a number above 0, not 0"),
        ({"tolerance": math.nan}, "tolerance must be a number above 0, not nan"),
        ({"tolerance": math.inf}, "tolerance must be a number above 0, not inf"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=f"method 'aew': {message}"):
        Aew(**parameters)
