"""Sums over features, in the order that is written down."""

import numpy as np
import pytest

from nnkgraph.data import pairs
from nnkgraph.data.pairs import cross_values, first_equal_rows, within_values
from nnkgraph.data.similarity import similarities

TERMS = {
    "squared-distance": lambda a, b: (a - b) ** 2,
    "inner-product": lambda a, b: a * b,
    "absolute-product": lambda a, b: a * b,
    "l1-distance": lambda a, b: abs(a - b),
}


def value(a, b, base):
    total = 0.0
    for term in TERMS[base](a.astype(float), b.astype(float)):
        total = total + term
    return abs(total) if base == "absolute-product" else total


@pytest.mark.parametrize("base", TERMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 4, 7, 16, 33, 70])
def test_features_are_added_from_the_first_to_the_last(base, dtype, d):
    x = np.random.default_rng(d).normal(size=(90, d)).astype(dtype)
    every = np.tile(np.arange(90, dtype=np.int32), (2, 1))
    expected = [[value(x[i], x[j], base) for j in range(90)] for i in range(2)]
    assert (cross_values(x, x[:2], every, base) == expected).all()
    packed = within_values(x, every[:1, :20], base)[0]
    triangle = [value(x[i], x[j], base) for i in range(20) for j in range(i + 1)]
    assert (packed == triangle).all()


@pytest.mark.parametrize("d", [3, 4, 6, 21])
def test_the_solver_computes_the_same_distances(d):
    """Two rows and four features at a time, and yet in the same order."""
    from nnkgraph.methods import qp

    x = np.random.default_rng(d).normal(size=(31, d))
    index = np.arange(1, 31)[np.newaxis]
    rates = np.array([[-0.1, 0.0]])
    task = {"base": "squared-distance", "form": "exponential", "coefficients": rates}
    gram = similarities("exponential", rates, within_values(x, index, task["base"]))
    cross = similarities(
        "exponential", rates, cross_values(x, x[:1], index, task["base"])
    )
    ones = np.ones(index.shape)
    theta, _, gain, scale = qp.regress(x, x[:1], index, ones, **task)
    same, _, as_much = qp.solve(gram, cross, index >= 0)
    assert (theta == same).all()
    assert gain == as_much
    assert scale == 1


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("base", ["squared-distance", "inner-product"])
def test_pair_loops_agree_with_numpy(d, base):
    x = np.random.default_rng(1).normal(size=(30, d))
    index = np.array([[3, 9, 27], [0, -1, 5]], np.int32)
    cross = cross_values(x, x[:2], index, base)
    assert cross[1, 1] == np.inf
    for i, j in [(0, 0), (0, 2), (1, 0), (1, 2)]:
        a, b = x[i], x[index[i, j]]
        value = ((a - b) ** 2).sum() if base == "squared-distance" else a @ b
        assert cross[i, j] == pytest.approx(value, rel=1e-13)


def test_the_exponential_is_right_to_the_last_digits():
    values = -np.concatenate(
        [[0.0], np.geomspace(1e-300, 707, 20_000), [709, 1e9, np.inf]]
    )
    found = similarities(
        "exponential", np.array([[1.0, 0.0]]), values[np.newaxis].copy()
    )[0]
    exact = np.exp(values)
    assert found[0] == 1.0
    assert (np.abs(found - exact)[:-3] <= 2 * np.spacing(exact)[:-3]).all()
    assert found[-3:].tolist() == [0.0, 0.0, 0.0]
    assert (np.diff(found) <= 0).mean() > 0.999


def test_equal_rows_are_found_whatever_the_sign_of_their_zeros():
    x = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0], [2.0, 3.0], [2.0, 3.5]])
    assert first_equal_rows(x).tolist() == [0, 1, 0, 1, 4]
    assert first_equal_rows(x.astype(np.float32)).tolist() == [0, 1, 0, 1, 4]


def test_rows_with_the_same_hash_are_told_apart():
    """The hash is a sum of products: for any first number there is a second."""
    a, b = (int(f) for f in pairs._mixed(np.array([1, 2], np.uint64)) | np.uint64(1))
    first, second = (int(n) for n in pairs._bits(np.array([3.0, 5.0])))
    other = int(pairs._bits(np.array([4.0]))[0])
    rest = (second + (first - other) * a * pow(b, -1, 2**64)) % 2**64
    bits = np.array([rest ^ (rest >> 32)], np.uint64)
    twin = bits.view(np.float64)[0]
    assert np.isfinite(twin)
    x = np.array([[3.0, 5.0], [4.0, twin], [3.0, 5.0], [4.0, twin], [7.0, 7.0]])
    hashes = pairs._bits(x) @ np.array([a, b], np.uint64)
    assert len(set(hashes.tolist())) == 2
    assert first_equal_rows(x).tolist() == [0, 1, 0, 1, 4]
