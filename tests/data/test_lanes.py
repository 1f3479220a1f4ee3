"""Sums over features: exact for integers, the same in every order of the arguments."""

import numpy as np
import pytest

from nnkgraph.data.pairs import cross_values, first_equal_rows
from nnkgraph.data.similarity import similarities
from nnkgraph.data.sums import inner_product as inner_product_of_rows
from nnkgraph.data.sums import squared_distance as squared_distance_of_rows
from nnkgraph.runtime.jit import compiled


@compiled
def squared_distance(a, b):
    return squared_distance_of_rows(np.stack((b, a)), 1, np.stack((b, b)), 0)


@compiled
def inner_product(a, b):
    return inner_product_of_rows(np.stack((b, a)), 1, np.stack((b, b)), 0)


@pytest.mark.parametrize("d", [1, 2, 7, 15, 16, 17, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_exact_for_integers_of_any_length(d, dtype):
    a, b = np.random.default_rng(d).integers(-50, 50, (2, d)).astype(dtype)
    assert squared_distance(a, b) == ((a - b).astype(float) ** 2).sum()
    assert inner_product(a, b) == (a.astype(float) * b).sum()
    assert squared_distance(a, b) == squared_distance(b, a)


@pytest.mark.parametrize("d", [3, 16, 40])
def test_lanes_add_up_in_the_order_that_is_written_down(d):
    a, b = np.random.default_rng(0).normal(size=(2, d))
    terms = (a - b) ** 2
    whole = d - d % 16
    lanes = np.zeros(16)
    for start in range(0, whole, 16):
        lanes += terms[start : start + 16]
    width = 16
    while width > 1:
        width //= 2
        lanes = lanes[:width] + lanes[width : 2 * width]
    total = lanes[0] if whole else 0.0
    for t in range(whole, d):
        total += terms[t]
    assert squared_distance(a, b) == total


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
