"""Vector instructions compute what is written down in plain.py, to the last bit."""

import numpy as np
import plain
import pytest

from nnkgraph.data import similarity, sums
from nnkgraph.methods.qp import _active, _factor
from nnkgraph.methods.qp import _factor as ws
from nnkgraph.runtime.jit import borrowed
from nnkgraph.search import _reservoir


def called(intrinsic, count):
    """Return a compiled function that calls an intrinsic, with all that is in w."""
    names = ", ".join("abcdef"[:count])
    space = {"intrinsic": intrinsic}
    exec(f"def call({names}):\n    return intrinsic({names})", space)
    return compiled_here(space["call"])


def compiled_here(function):
    import numba

    return numba.njit(error_model="numpy")(function)


@pytest.fixture
def w():
    """A workspace of 20 atoms, full of numbers in every row."""
    numbers, _ = ws.new_workspace(20)
    numbers[:] = np.random.default_rng(7).normal(size=numbers.shape)
    return numbers


L = ws.K + 24
CASES = {
    "most_wanted": (_active.most_wanted, (0.3,)),
    "most_wanted, none": (_active.most_wanted, (1e9,)),
    "largest_residual": (_active.largest_residual, ()),
    "narrow_values of distances": (_active.narrow_values, (ws.K + 3, 5, 0)),
    "narrow_values of products": (_active.narrow_values, (ws.K + 3, 15, 1)),
    "extend, first": (_factor.extend, (L, 0, 4, 1.5, -0.7)),
    "extend": (_factor.extend, (L, 9, 17, 1.5, -0.7)),
    "stretch, first": (_factor.stretch, (L, 0, 4, 1.5, -0.7)),
    "stretch": (_factor.stretch, (L, 17, 3, 1.5, -0.7)),
    "combine": (_factor.combine, (ws.Z, 19, L + 24)),
    "combine, one": (_factor.combine, (ws.Z, 1, L + 24)),
    "rotate": (_factor.rotate, (L, 11, 0.6, 0.8)),
    "release": (_factor.release, (L + 2, 0.3)),
    "copy_row": (_factor.copy_row, (L, L + 5, 9)),
}


@pytest.mark.parametrize(("intrinsic", "args"), CASES.values(), ids=CASES)
def test_instructions_on_the_workspace(w, intrinsic, args, request):
    name = request.node.callspec.id.partition(",")[0].split()[0]
    other = w.copy()
    found = called(intrinsic, 1 + len(args))(w, *args)
    expected = getattr(plain, name)(other, *args)
    assert found == expected
    assert w.tobytes() == other.tobytes()


def test_equal_scores_give_the_first_atom(w):
    w[ws.R] = w[ws.GATE] = 0.0
    w[ws.R, [13, 6, 9, 22]] = w[ws.GATE, [13, 6, 9, 22]] = 2.0
    w[ws.R, 1] = np.nan
    assert called(_active.most_wanted, 2)(w, 0.0) == plain.most_wanted(w, 0.0) == 6


def test_the_residual_is_computed_afresh(w):
    _, n = ws.new_workspace(20)
    n[ws.CHOSEN, :4] = [11, 2, 19, 5]
    other = w.copy()
    called(_active.exact_residual, 3)(w, n, 4)
    plain.exact_residual(other, n, 4)
    assert w.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 16, 45])
@pytest.mark.parametrize("name", ["squared_distance", "inner_product", "l1_distance"])
def test_sums_over_features(name, d, dtype):
    a, b = np.random.default_rng(d).normal(size=(2, 3, d)).astype(dtype)
    found = called(getattr(sums, name), 4)(a, 2, b, 1)
    assert found == getattr(plain, name)(a, 2, b, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks(dtype):
    row, add, limit = np.random.default_rng(3).normal(size=(3, 80)).astype(dtype)
    limit[5] = np.nan
    call, bit = called(_reservoir.below, 4), called(_reservoir.lowest_bit, 1)
    for args in ((4, add, limit), (3, dtype(0.25), limit), (0, add, dtype(0.5))):
        mask = call(row, *args)
        assert mask == plain.below(row, *args)
        assert bit(np.uint32(mask)) == plain.lowest_bit(mask)


def test_exponentials():
    values = -np.geomspace(1e-6, 720, 83).reshape(1, -1)
    other = values.copy()

    @compiled_here
    def call(values):
        similarity.exponentials(values, 0, 83, 1.0)

    call(values)
    plain._groups(other, 0, 83, 1.0)
    assert values.tobytes() == other.tobytes()
    assert values[0, -1] == other[0, -1] == 0.0


def test_a_borrowed_array_is_the_array():
    @compiled_here
    def last(array):
        return borrowed(array)[-1]

    array = np.arange(5.0)
    assert last(array) == plain.borrowed(array)[-1] == 4.0
