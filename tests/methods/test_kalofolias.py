"""Graph learning with logarithms of degrees: optimal, and with the degree asked for."""

import json
from fractions import Fraction

import h5py
import numpy as np
import pytest
from conftest import SAMPLES, brute_force
from scipy.optimize import minimize

from nnkgraph.data import Candidates
from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Problem
from nnkgraph.kernels.cosine import Cosine
from nnkgraph.kernels.gaussian import Gaussian
from nnkgraph.kernels.laplacian import Laplacian
from nnkgraph.kernels.linear import Linear
from nnkgraph.kernels.precomputed import Precomputed
from nnkgraph.methods._logdegree import newton_step
from nnkgraph.methods.kalofolias import Kalofolias

METHOD = Kalofolias()


def problem(x, k, **more):
    x = np.asarray(x, np.float64)
    index, squares = brute_force(x, min(2 * k, len(x) - 1))
    return made(x, index, np.sqrt(squares), k, **more)


def made(x, index, distance, k, **more):
    return Problem(x, x, index, distance, Gaussian(1.0), np.arange(len(x)), k, **more)


def dense(asked, weights):
    """The matrix of weights, and which edges are allowed."""
    n = len(asked.index)
    row, column = np.nonzero(asked.index >= 0)
    allowed, matrix = np.zeros((n, n), bool), np.zeros((n, n))
    allowed[row, asked.index[row, column]] = True
    matrix[row, asked.index[row, column]] = weights[row, column]
    both = allowed & allowed.T
    assert np.array_equal(matrix[both], matrix.T[both]), "to the bit"
    return np.maximum(matrix, matrix.T), allowed | allowed.T


def squared_distances(x):
    return ((x[:, np.newaxis] - x[np.newaxis]) ** 2).sum(axis=2)


def violation(asked, found):
    """The certificate as it is defined, from the graph, the features and theta."""
    matrix, allowed = dense(asked, found.weights)
    price = 1.0 / matrix.sum(axis=1)
    pay = price[:, np.newaxis] + price
    loss = 2 * found.facts["theta"] * squared_distances(asked.x) - pay + 2 * matrix
    wrong = np.where(matrix > 0, np.abs(loss), np.maximum(-loss, 0.0))[allowed]
    return wrong.max() / pay[allowed].max()


def check(asked, found, *, bound=1e-8):
    assert np.isfinite(found.weights).all()
    assert (found.weights >= 0).all()
    assert json.loads(json.dumps(found.facts)) == found.facts
    matrix, allowed = dense(asked, found.weights)
    assert np.array_equal(matrix.any(axis=1), allowed.any(axis=1)), "isolated nodes"
    mean = np.count_nonzero(matrix) / len(matrix)
    assert found.facts["mean_degree"] == pytest.approx(mean)
    assert found.facts["certificate"] <= bound
    return matrix


def test_agrees_with_a_dense_solver_of_the_problem_itself():
    asked = problem(np.random.default_rng(3).normal(size=(60, 4)), 6)
    found = METHOD.weigh(asked)
    matrix, allowed = dense(asked, found.weights)
    one, two = np.nonzero(np.triu(allowed))
    z = found.facts["theta"] * squared_distances(asked.x)[one, two]

    def objective(w):
        degree = np.bincount(one, w, 60) + np.bincount(two, w, 60)
        # Below any degree that is best, a parabola goes on where the logarithm ends.
        safe = np.maximum(degree, 0.05)
        under = (safe - degree) / safe
        logs = np.log(safe) - under - under**2 / 2
        price = (1 + under) / safe
        slope = 2 * z - price[one] - price[two] + 2 * w
        return 2 * w @ z - logs.sum() + w @ w, slope

    best = minimize(
        objective,
        np.full(len(z), 0.1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(z),
        options={"ftol": 0, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 20_000},
    )
    assert matrix.sum(axis=1).min() > 0.05
    assert matrix[one, two] == pytest.approx(best.x, abs=1e-5)
    assert 0.3 < (best.x > 1e-5).mean() < 0.9, "there is something to choose"
    assert objective(matrix[one, two])[0] <= best.fun + 1e-12 * abs(best.fun)


@pytest.mark.parametrize("k", [5, 10, 20])
def test_digits_get_the_degree_and_the_optimum(k):
    with h5py.File(SAMPLES / "digits.h5") as file:
        x = file["features"][:600].astype(float)
    heard = []
    asked = problem(x, k, on_step=heard.append)
    found = METHOD.weigh(asked)
    check(asked, found)
    assert violation(asked, found) < 1e-10
    assert found.facts["mean_degree"] == pytest.approx(k, rel=0.05)
    assert found.failure == ""
    assert heard == [1] * found.facts["iterations"]
    assert METHOD.remarks(Candidates(asked.index, asked.distance), found) == []


@pytest.mark.parametrize("seed", range(5))
def test_features_of_all_sizes_converge(seed):
    # Some nodes are a million times as far from all others as nodes usually are.
    x = np.random.default_rng(seed).standard_cauchy((400, 2)) ** 3
    asked = problem(x, 5)
    found = METHOD.weigh(asked)
    check(asked, found)
    assert violation(asked, found) < 1e-8
    assert found.facts["mean_degree"] == pytest.approx(5, rel=0.05)
    assert found.failure == ""


@pytest.mark.parametrize("factor", [1e-6, 1e6, 1e-140, 1e140])
def test_the_unit_of_features_does_not_matter(factor):
    x = np.random.default_rng(1).normal(size=(150, 3))
    plain = METHOD.weigh(problem(x, 6))
    index, squares = brute_force(x, 12)
    scaled = METHOD.weigh(made(x, index, factor * np.sqrt(squares), 6))
    assert np.array_equal(scaled.weights > 0, plain.weights > 0)
    assert scaled.weights == pytest.approx(plain.weights, abs=1e-10)
    assert scaled.facts["mean_degree"] == plain.facts["mean_degree"]
    theta = scaled.facts["theta"] * factor * factor
    assert theta == pytest.approx(plain.facts["theta"], rel=1e-10)


def test_permuting_rows_permutes_the_graph():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 3))
    order = rng.permutation(200)
    asked, again = problem(x, 7), problem(x[order], 7)
    matrix, _ = dense(asked, METHOD.weigh(asked).weights)
    permuted, _ = dense(again, METHOD.weigh(again).weights)
    assert permuted == pytest.approx(matrix[np.ix_(order, order)], abs=1e-8)
    assert (
        METHOD.weigh(asked).weights.tobytes() == METHOD.weigh(asked).weights.tobytes()
    )


def test_two_nodes_and_equal_distances_have_the_weight_of_the_formula():
    # All edges alike: 2 z - 2 / ((n - 1) w) + 2 w = 0.
    for n in (2, 3, 8):
        asked = problem(np.eye(n), n - 1)
        found = METHOD.weigh(asked)
        matrix = check(asked, found)
        z = 2 * found.facts["theta"]
        w = (np.sqrt(z * z + 4 / (n - 1)) - z) / 2
        assert matrix == pytest.approx(w * (1 - np.eye(n)), rel=1e-9)
        assert found.failure == ""


def grid(side):
    return np.stack(np.meshgrid(*[np.arange(float(side))] * 2), -1).reshape(-1, 2)


def with_a_far_node(far):
    x = np.random.default_rng(4).normal(size=(80, 3))
    x[17] += far
    return x


RNG = np.random.default_rng(5)
CLOUD = RNG.normal(size=(60, 2))
CASES = {
    "two nodes": ([[0.0], [1.0]], 1),
    "three nodes": (RNG.normal(size=(3, 2)), 1),
    "all of three": (RNG.normal(size=(3, 2)), 2),
    "k is n - 1": (RNG.normal(size=(20, 2)), 19),
    "far node": (with_a_far_node(1e6), 5),
    "very far node": (with_a_far_node(1e9), 5),
    "absurdly far node": (with_a_far_node(1e100), 5),
    "far node, all edges": (with_a_far_node(1e6)[10:30], 19),
    "far clusters": (np.concatenate([CLOUD, CLOUD[:30] + 1e6]), 5),
    "far clusters, too small": (np.concatenate([CLOUD[:4], CLOUD + 1e6]), 5),
    "grid": (grid(6), 5),
    "larger grid": (grid(12), 8),
    "twins": (np.repeat(CLOUD, 2, axis=0), 5),
    "powers of two": (2.0 ** np.arange(50)[:, np.newaxis], 3),
}


@pytest.mark.parametrize("name", CASES)
def test_odd_data_gives_a_graph(name):
    asked = problem(*CASES[name])
    found = METHOD.weigh(asked)
    check(asked, found)
    assert found.failure == ""
    off = abs(found.facts["mean_degree"] - asked.k)
    assert off <= max(0.1 * asked.k, 2 / len(asked.index))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_ties_that_leave_no_choice_are_said(k):
    asked = problem(grid(6) if k < 4 else np.eye(20), k)
    found = METHOD.weigh(asked)
    matrix = check(asked, found)
    mean = np.count_nonzero(matrix) / len(matrix)
    assert f"reached {mean:.4g} edges a node instead of {k}" in found.failure
    assert "use a larger k" in found.failure


def test_missing_candidates_leave_out_edges_and_nodes():
    full = problem(CLOUD, 5)
    index, distance = full.index.copy(), full.distance.copy()
    gone = np.random.default_rng(6).random(index.shape) < 0.2
    gone[[7, 11]] = True  # 7 has no candidates; 11 is nobody's, either
    gone |= index == 11
    index[gone], distance[gone] = -1, np.inf
    asked = made(CLOUD, index, distance, 5)
    found = METHOD.weigh(asked)
    matrix = check(asked, found)
    assert not matrix[11].any()
    assert matrix[7].any()
    assert not found.weights[gone].any()
    assert found.failure == ""


def test_too_few_candidates_are_said():
    full = problem(CLOUD, 5)
    index, distance = full.index.copy(), full.distance.copy()
    index[:, 2:], distance[:, 2:] = -1, np.inf
    asked = made(CLOUD, index, distance, 5)
    found = METHOD.weigh(asked)
    check(asked, found)
    assert "instead of 5: the candidates allow no more than" in found.failure


def test_a_single_node_has_no_edges():
    found = METHOD.weigh(made(CLOUD[:1], np.empty((1, 0), int), np.empty((1, 0)), 1))
    assert found.weights.shape == (1, 0)
    assert found.failure == ""


def test_nodes_whose_edges_are_faint_are_said():
    asked = problem(with_a_far_node(1e6), 5)
    found = METHOD.weigh(asked)
    remarks = METHOD.remarks(Candidates(asked.index, asked.distance), found)
    assert len(remarks) == 1
    assert "1 of 80 nodes" in remarks[0]
    assert dense(asked, found.weights)[0][17].max() < 1e-8


def test_kernels_without_euclidean_distances_are_refused():
    METHOD.check(Gaussian())
    METHOD.check(Cosine())
    for kernel in (Linear(), Laplacian()):
        with pytest.raises(ParameterError, match="needs Euclidean distances"):
            METHOD.check(kernel)
    with pytest.raises(ParameterError, match="needs features"):
        METHOD.check(Precomputed())
    assert METHOD.width(10) == 20


def test_the_newton_step_solves_its_system():
    rng = np.random.default_rng(7)
    n = 30
    one, two = np.nonzero(np.triu(rng.random((n, n)) < 0.3, 1))
    # From prices that need no forest to prices for which it is nearly everything.
    price = 10.0 ** rng.uniform(-1, 4, n)
    stiffness = rng.uniform(0.1, 0.5, len(one))
    matrix = np.diag(1 / price**2)
    for e in range(len(one)):
        matrix[np.ix_([one[e], two[e]], [one[e], two[e]])] += stiffness[e]
    left = rng.normal(size=n)
    ends = one.astype(np.int32), two.astype(np.int32)
    x = newton_step(*ends, stiffness, price, left.copy(), 1e-14)
    assert matrix @ x == pytest.approx(left, abs=1e-9)


def test_the_newton_step_keeps_its_digits_among_far_nodes():
    # A path whose matrix has a condition number of 1e24, solved with fractions.
    n, far = 5, 10**12
    matrix = [[Fraction(i == j, far**2) for j in range(n)] for i in range(n)]
    for i in range(n - 1):
        for a in (i, i + 1):
            for b in (i, i + 1):
                matrix[a][b] += Fraction(1, 2)
    left = [Fraction(1, 2 + i) for i in range(n)]
    expected = solved(matrix, left)
    path = np.arange(n, dtype=np.int32)
    x = newton_step(
        path[:-1],
        path[1:],
        np.full(n - 1, 0.5),
        np.full(n, float(far)),
        np.array([float(v) for v in left]),
        1e-8,
    )
    assert x == pytest.approx([float(v) for v in expected], rel=1e-12)


def solved(matrix, left):
    """Gaussian elimination, in whatever numbers it is given."""
    rows = [[*row, b] for row, b in zip(matrix, left, strict=True)]
    n = len(rows)
    for i in range(n):
        for j in range(n):
            if i != j:
                share = rows[j][i] / rows[i][i]
                rows[j] = [b - share * a for a, b in zip(rows[i], rows[j], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]
