"""Rules: the same as written out by hand, symmetric to the bit."""

import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkgraph.build.symmetrize import RULES, check_rule, symmetrize
from nnkgraph.data import Candidates, Neighborhoods
from nnkgraph.errors import ParameterError
from nnkgraph.runtime.arrays import limited
from nnkgraph.search.precomputed import without_repeats


def random_case(n, m, seed):
    rng = np.random.default_rng(seed)
    index = np.stack(
        [rng.permutation([j for j in range(n) if j != i])[:m] for i in range(n)]
    )
    index[rng.random(index.shape) < 0.1] = -1
    # Few values: ties are common.
    weights = rng.choice([0.0, 0.25, 0.5, 1.0], index.shape)
    weights[index < 0] = 0
    errors = rng.choice([0.1, 0.2, 0.3], n)
    far = lengths_of(np.arange(n)[:, np.newaxis], index)
    far[index < 0] = np.inf
    return Candidates(index, far), Neighborhoods(weights, errors)


def lengths_of(i, j):
    """Distances that are the same from both sides, and no others."""
    return np.hypot(i + j, i * j + 0.1)


def is_mapped(array):
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


def by_hand(rule, candidates, found, min_degree, K_qq):
    """The rules as methods describe them, with loops and dense matrices."""
    index, weights, J = candidates.index, found.weights, found.errors
    n = len(index)
    W, S, own = np.zeros((n, n)), np.zeros((n, n), bool), np.zeros((n, n), bool)
    for i in range(n):
        heavy = sorted(
            (-w, j) for w, j in zip(weights[i], index[i], strict=True) if w > 0
        )
        for _, j in heavy[:min_degree]:
            own[i, j] = own[j, i] = True
        for w, j in zip(weights[i], index[i], strict=True):
            if j >= 0:
                W[i, j], S[i, j] = w, True
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            a, b = W[i, j], W[j, i]
            larger = max(a, b)
            if rule.startswith("error"):
                if S[i, j] and S[j, i]:
                    tie = abs(J[i] - J[j]) <= 1e-12 * max(K_qq[i], K_qq[j])
                    value = larger if tie else a if J[i] < J[j] else b
                else:
                    value = larger if rule == "error-union" else 0
            elif rule == "mutual":
                value = (a + b) / 2 if a > 0 and b > 0 else 0
            else:
                value = {
                    "max": larger,
                    "mean": (a + b) / 2,
                    "min": min(a, b),
                    "none": a,
                }[rule]
            result[i, j] = (
                larger if own[i, j] and not value and rule != "none" else value
            )
    wanted = W > 0 if rule == "none" else np.triu(np.maximum(W, W.T) > 0)
    return result, int((wanted & (result == 0)).sum())


@pytest.mark.parametrize("rule", RULES)
@given(
    n=st.integers(2, 25), seed=st.integers(0, 2**32 - 1), min_degree=st.integers(0, 3)
)
def test_every_rule_is_what_it_says(rule, n, seed, min_degree):
    candidates, found = random_case(n, min(5, n - 1), seed)
    # Errors are equal or not in units of K_qq: here 1e12 makes them all equal.
    own = np.random.default_rng(seed).choice([1.0, 1e12], n, p=[0.8, 0.2])
    expected, lost = by_hand(rule, candidates, found, min_degree, own)
    settings = {"rule": rule, "min_weight": 0.0, "min_degree": min_degree, "own": own}
    matrix, dropped, none = symmetrize(candidates, found, **settings)
    assert none is None
    assert np.array_equal(matrix.toarray(), expected)
    assert dropped == lost
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format
    assert (matrix.data != 0).all()
    if rule != "none":
        assert (matrix != matrix.T).nnz == 0
    again, _, far = symmetrize(candidates, found, **settings, measured=True)
    assert (again != matrix).nnz == 0
    row, column = matrix.nonzero()
    assert np.array_equal(far, lengths_of(row, column))


def test_light_edges_are_dropped_in_the_end():
    candidates = Candidates(np.array([[1, 2], [0, 2], [0, 1]]), np.zeros((3, 2)))
    found = Neighborhoods(np.array([[1e-9, 0.5], [1e-8, 0.0], [0.5, 0.0]]), np.zeros(3))
    matrix, dropped, _ = symmetrize(candidates, found, rule="max")
    assert matrix.toarray().tolist() == [[0, 1e-8, 0.5], [1e-8, 0, 0], [0.5, 0, 0]]
    assert dropped == 0


def test_protected_edges_survive_a_rule_that_makes_them_too_light():
    candidates = Candidates(np.array([[1], [0]]), np.zeros((2, 1)))
    found = Neighborhoods(np.array([[0.5], [1e-9]]), np.array([0.2, 0.1]))
    for rule in ("error", "error-union", "min"):
        assert symmetrize(candidates, found, rule=rule)[0].nnz == 0
        kept, *_ = symmetrize(candidates, found, rule=rule, min_degree=1)
        assert kept.toarray().tolist() == [[0, 0.5], [0.5, 0]]


def test_identical_rows_keep_a_one_sided_edge():
    candidates = Candidates(np.array([[1], [0], [0]]), np.zeros((3, 1)))
    found = Neighborhoods(np.ones((3, 1)), np.zeros(3))
    without, *_ = symmetrize(candidates, found, rule="error")
    with_copies, *_ = symmetrize(
        candidates, found, rule="error", first=np.zeros(3, int)
    )
    assert without.nnz == 2
    assert with_copies.nnz == 4


def test_rules_that_need_errors_are_refused_where_there_are_none():
    with pytest.raises(ParameterError, match="does not have"):
        check_rule("error", has_error=False, method="knn")
    with pytest.raises(ParameterError, match="choose from"):
        check_rule("both", has_error=True, method="nnk")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("min_degree", [0, 2])
def test_directions_joined_through_files_are_the_same_bytes(rule, min_degree):
    rng = np.random.default_rng(7)
    n, m = 5000, 8
    # Some nodes are everybody's candidates: their edges fill a bucket and more.
    index = rng.integers(0, n, (n, m))
    index[:, 0] = rng.integers(0, 3, n)
    index[:, 1] = n - 1 - rng.integers(0, 3, n)
    index[index == np.arange(n)[:, np.newaxis]] = -1
    index = without_repeats(index.astype(np.int32))
    weights = rng.random(index.shape) * (rng.random(index.shape) < 0.6)
    weights[index < 0] = 0
    found = Neighborhoods(weights, rng.choice([0.1, 0.2, 0.3], n))
    settings = {
        "rule": rule,
        "min_weight": 0.2,
        "min_degree": min_degree,
        "own": rng.random(n),
        "first": rng.integers(0, 50, n),
        "measured": True,
    }
    far = lengths_of(np.arange(n)[:, np.newaxis], index)
    candidates = Candidates(index, far)
    whole, dropped, lengths = symmetrize(candidates, found, **settings)
    with limited(1):
        matrix, lost, others = symmetrize(candidates, found, **settings)
    assert lengths.tobytes() == others.tobytes()
    assert np.array_equal(lengths, lengths_of(*whole.nonzero()))
    assert is_mapped(matrix.data)
    assert lost == dropped
    for part in ("data", "indices", "indptr"):
        here, there = getattr(whole, part), getattr(matrix, part)
        assert here.dtype == there.dtype
        assert here.tobytes() == there.tobytes()
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format


@pytest.mark.parametrize(
    ("lead", "own", "weight"),
    [
        (0.5e-12, (1.0, 1.0), 3.0),  # a tie: the larger
        (1.5e-12, (1.0, 1.0), 2.0),  # the node with the smaller error decides
        (-1.5e-12, (1.0, 1.0), 3.0),
        (1.5e-12, (1.0, 2.0), 3.0),
        (1.5e-12, (2.0, 1.0), 3.0),
        (0.0, (0.0, 0.0), 3.0),
    ],
)
@pytest.mark.parametrize("rule", ["error", "error-union"])
def test_a_tie_of_errors_is_within_rounding(rule, lead, own, weight):
    index = np.array([[1], [0]])
    found = Neighborhoods(np.array([[2.0], [3.0]]), np.array([0.0, lead]))
    candidates = Candidates(index, np.ones((2, 1)))
    made = symmetrize(candidates, found, rule=rule, own=np.array(own))
    assert made.adjacency.toarray().tolist() == [[0, weight], [weight, 0]]
