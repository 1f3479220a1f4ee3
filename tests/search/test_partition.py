"""Search by partition: exact in groups, whoever computes them; a recall that holds."""

from concurrent.futures import BrokenExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conftest import brute_force
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from bench.data import manifold, topics
from nnkgraph.data import SparseRows, pairs
from nnkgraph.data.scaling import unit_rows
from nnkgraph.data.sparse import share_rows
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.checkpoint import Block, open_checkpoint
from nnkgraph.runtime.executors import Here
from nnkgraph.search import Wanted
from nnkgraph.search._groups import GroupInputs, search_groups
from nnkgraph.search._leaders import (
    cut_groups,
    drawn,
    groups_of,
    hashed,
    nearest_leaders,
)
from nnkgraph.search._lists import Findings, Lists, Runner
from nnkgraph.search._pilot import Costs, Plan, Truth, plan_of, whole_price
from nnkgraph.search._refine import _factors, mark_new, refine_rows, share_pass, turned
from nnkgraph.search._reservoir import WIDTH, scan, scan_both, settle
from nnkgraph.search.exact import interval, slack_of
from nnkgraph.search.partition import (
    _PASS,
    _ROUND,
    Partition,
    _check_kept,
    _query_round,
    _Work,
)


def opened(executor="serial", workers=1):
    return registry.create("executors", executor).open(workers)


def all_scores(x, base):
    """Return the scores of all pairs as nnkgraph adds them up; inf for a row itself."""
    every = np.tile(np.arange(len(x)), (len(x), 1))
    score = pairs.cross_values(x, x, every, base)
    score[np.arange(len(x)), np.arange(len(x))] = np.inf
    return score


def best_of(score, allowed, k):
    """Return the k best of what is allowed to every row, -1 and inf for none."""
    n = len(score)
    index, found = np.full((n, k), -1), np.full((n, k), np.inf)
    for i in range(n):
        near = np.flatnonzero(allowed[i] & np.isfinite(score[i]))
        near = near[np.lexsort((near, score[i, near]))][:k]
        index[i, : len(near)], found[i, : len(near)] = near, score[i, near]
    return index, found


def together(n, groups):
    met = np.zeros((n, n), bool)
    for rows in groups:
        met[np.ix_(rows, rows)] = True
    return met


def search(x, k, groups, base="squared-distance", executor="serial", workers=1):
    rows = np.concatenate(groups).astype(np.int32)
    edges = np.cumsum([0, *map(len, groups)])
    with opened(executor, workers) as pool:
        shared = share_rows(pool, x)
        lists = Lists.empty(pool, len(x), k)
        inputs = GroupInputs(shared, pool.share(rows), lists.seen(pool), base, k)
        tasks = [[(int(a), int(b))] for a, b in pairwise(edges)]
        room = max(map(len, groups)) * (k + max(8, k // 4) + 1)
        Runner(pool, lists, room).run(search_groups, inputs, tasks)
        index, score = lists.open()
        return index.copy(), score.copy()


@settings(max_examples=40)
@given(
    n=st.integers(4, 90),
    d=st.integers(1, 12),
    values=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    offset=st.sampled_from([0, 1000, 10**6]),
    base=st.sampled_from(["squared-distance", "l1-distance"]),
    k=st.integers(1, 12),
)
def test_lists_are_the_best_of_all_who_share_a_group(
    n, d, values, seed, offset, base, k
):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, values, (n, d)).astype(float) + offset
    groups = [
        np.sort(rng.choice(n, rng.integers(2, n + 1), replace=False)) for _ in range(6)
    ]
    index, score = search(x, k, groups, base)
    best, values = best_of(all_scores(x, base), together(n, groups), k)
    assert index.tolist() == best.tolist()
    assert score.tolist() == values.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_large_groups_are_searched_exactly_in_any_order(dtype, far):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 10)).astype(dtype)
    x[750:] += far  # float32 sees little of either half from the middle of both
    groups = [np.sort(rng.choice(1500, 900, replace=False)) for _ in range(4)]
    index, score = search(x, 20, groups)
    best, values = best_of(
        all_scores(x, "squared-distance"), together(1500, groups), 20
    )
    assert np.array_equal(index, best)
    assert np.array_equal(score, values)
    again = search(x, 20, groups[::-1])
    assert np.array_equal(again[0], index)
    assert np.array_equal(again[1], score)


def test_ties_beyond_all_room_go_to_the_lower_row_number():
    x = np.zeros((700, 3))
    x[::2, 0] = 1.0  # two places only
    index, _ = search(x, 9, [np.arange(700)])
    assert index[4].tolist() == [0, 2, 6, 8, 10, 12, 14, 16, 18]


def test_sparse_groups_are_searched_exactly():
    matrix = random_array((200, 40), density=0.1, rng=np.random.default_rng(0))
    x = SparseRows.of(csr_array(matrix), "")
    groups = [np.arange(0, 120), np.arange(80, 200)]
    index, score = search(x, 7, groups)
    every = np.tile(np.arange(200), (200, 1))
    scores = pairs.cross_values(x, x, every, "squared-distance")
    np.fill_diagonal(scores, np.inf)
    best, values = best_of(scores, together(200, groups), 7)
    assert np.array_equal(index, best)
    assert np.array_equal(score, values)


def test_entering_keeps_lists_sorted_without_repeats():
    with opened() as pool:
        lists = Lists.empty(pool, 3, 2)
        rows = np.array([0, 0, 0, 0, 2, 2], np.int32)
        others = np.array([2, 1, 2, 1, 0, 1], np.int32)
        scores = np.array([3.0, 3.0, 3.0, 3.0, 5.0, 5.0])
        lists.enter(Findings(rows, others, scores), 6)
        index, score = lists.open()
        assert index.tolist() == [[1, 2], [-1, -1], [0, 1]]
        assert score[0].tolist() == [3.0, 3.0]


def refined(x, k, before, index, score, base, room=1 << 14):
    """Return the lists after a pass, and the pairs that a pass has to look at."""
    with opened() as pool:
        lists = Lists.empty(pool, len(x), k)
        now, values = lists.open()
        now[:], values[:] = index, score
        begun, new = now.copy(), np.empty(now.shape, bool)
        assert mark_new(before.astype(now.dtype), begun, new) == new.sum()
        was = (begun[:, :, None] == before[:, None, :]).any(axis=2)
        assert np.array_equal(new, (begun >= 0) & ~was)
        order = np.arange(len(x), dtype=np.int32)
        shared = share_rows(pool, x)
        who = turned(begun, new, np.empty(begun.size, np.int32))
        begin = (begun, new), who, lists
        inputs = share_pass(pool, shared, order, *begin, base, 3)
        tasks = [(0, len(x), 0)]
        Runner(pool, lists, room).run(refine_rows, inputs, tasks)
        return now.copy(), values.copy(), new


@settings(max_examples=25)
@given(
    n=st.integers(8, 120),
    d=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    base=st.sampled_from(["squared-distance", "l1-distance", "sparse"]),
    ties=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    first=st.booleans(),
)
def test_a_pass_takes_the_best_of_all_new_pairs_around_a_row(  # noqa: C901
    n, d, seed, base, ties, dtype, first
):
    rng = np.random.default_rng(seed)
    x = (rng.integers(0, 4, (n, d)) if ties else rng.normal(size=(n, d))).astype(dtype)
    k = int(rng.integers(1, 7))
    if base == "sparse":
        base, kept = "squared-distance", rng.random((n, d)) < 0.4  # some rows are zero
        x = SparseRows.of(csr_array(np.where(kept, x, 0)), "")
    scores = all_scores(x, base)
    allowed = rng.random((n, n)) < 0.3
    index, score = best_of(scores, allowed, k)
    before = np.full((n, k), -1)
    if not first:
        before = best_of(scores, allowed & (rng.random((n, n)) < 0.7), k)[0]
    now, values, new = refined(x, k, before, index, score, base)
    met = np.zeros((n, n), bool)
    for i in range(n):
        met[i, index[i][index[i] >= 0]] = True
    for v in range(n):  # all groups are smaller than the core here
        links = {v: False}
        for t in range(k):
            if index[v, t] >= 0:
                links[int(index[v, t])] = bool(new[v, t])
        for i, t in zip(*np.nonzero(index == v), strict=True):
            links[int(i)] = links.get(int(i), False) or bool(new[i, t])
        core = len(links) <= k + 32
        for a, is_new in links.items():
            for b, other_new in links.items():
                if core and a != b and (is_new or other_new):
                    met[a, b] = True
    best, expected = best_of(scores, met, k)
    if all((index == v).sum() <= 32 for v in range(n)):
        assert now.tolist() == best.tolist()
        assert values.tolist() == expected.tolist()
    assert (values <= score).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_refinement_goes_on_where_its_room_ended(sparse):
    x = np.random.default_rng(1).normal(size=(900, 6)).astype(np.float32)
    x[0] = 0.0  # in many lists
    if sparse:
        x = SparseRows.of(csr_array(np.where(np.abs(x) < 0.5, 0, x)), "")
    scores = all_scores(x, "squared-distance")
    rng = np.random.default_rng(2)
    index, score = best_of(scores, rng.random(scores.shape) < 0.05, 5)
    nothing = np.full((900, 5), -1)
    base = "squared-distance"
    roomy = refined(x, 5, nothing, index, score, base)
    tight = refined(x, 5, nothing, index, score, base, room=300)
    assert np.array_equal(roomy[0], tight[0])
    assert (roomy[0] != index).any()


def reservoirs(n, keep, dtype):
    room = keep + 2 * WIDTH + 3
    index, filled = np.full((n, room), -1, np.int32), np.zeros(n, np.int64)
    return np.empty((n, room), dtype), index, filled, np.full(n, np.inf, dtype)


def assert_smallest(kept, sums):
    """The smallest of every row, where all differ, and a limit that they stay below."""
    value, index, filled, limit = kept
    keep = int(filled[0])
    order = np.argsort(sums, axis=1)[:, :keep]
    assert set(filled.tolist()) == {keep}
    assert np.array_equal(np.sort(index[:, :keep]), np.sort(order))
    known = np.take_along_axis(sums, index[:, :keep], axis=1)
    assert np.array_equal(value[:, :keep], known)
    assert (value[:, :keep] <= limit[:, None]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [29, 100, 400])
@pytest.mark.parametrize("order", [-1, 0, 1])
def test_reservoirs_keep_the_smallest_sums(dtype, step, order):
    rng = np.random.default_rng(step)
    product, offset = rng.normal(size=(6, 331)), 3 * rng.normal(size=331)
    if order:  # all of them enter, or only the first ones do
        offset = np.sort(offset)[::order]
    product, offset = product.astype(dtype), offset.astype(dtype)
    rows, kept = np.array([0, 5, 40, 99, 330, 400]), reservoirs(6, 9, dtype)
    for first in range(0, 331, step):
        part = slice(first, first + step)
        block = product[:, part].copy()
        scan(block, offset[part].copy(), first, rows, *kept, 9)
    settle(*kept, 9)
    sums = product + offset
    sums[np.arange(5), rows[:5]] = np.inf  # a row is none of its own
    assert_smallest(kept, sums)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_goes_to_the_reservoirs_of_both_sides(dtype):
    rng = np.random.default_rng(1)
    product = rng.normal(size=(70, 90)).astype(dtype)
    mine, yours = (3 * rng.normal(size=n).astype(dtype) for n in product.shape)
    left, right = reservoirs(70, 9, dtype), reservoirs(90, 9, dtype)
    for low in (0, 35):
        for start in (0, 45):
            a, b = slice(low, low + 35), slice(start, start + 45)
            some = [one[a] for one in left], [one[b] for one in right]
            block = product[a, b].copy()
            firsts = low, start
            scan_both(block, mine[a], yours[b], *firsts, *some[0], *some[1], 9)
    for kept in (left, right):
        settle(*kept, 9)
    assert_smallest(left, product + yours)
    assert_smallest(right, product.T + mine)


@pytest.mark.parametrize("base", ["squared-distance", "l1-distance"])
@pytest.mark.parametrize("d", [1, 40, 5000, 2**23])
def test_bounds_allow_for_all_that_float32_may_lose(base, d):
    share, scale, lost = _factors(d, base, 3)
    margin = 1.0 - share if base == "squared-distance" else -share
    assert margin >= (2 * d + 24) * 2.0**-24  # as is derived there
    if d < 10_000:
        assert margin <= 1.1 * (2 * d + 24) * 2.0**-24
    assert scale == (2.0**-6 if base == "squared-distance" else 2.0**-3)
    assert lost >= (d + 16) * (2.0**-140 + 5e-324)


def test_who_has_a_row_is_put_down_new_ones_first_then_by_place():
    index = np.array([[1, 2], [2, 0], [1, 0], [1, -1]])
    new = np.array([[False, True], [True, True], [False, False], [True, False]])
    who, start = turned(index, new, np.empty(8, np.int64))
    assert start.tolist() == [0, 2, 5, 7, 7]
    assert [(one >> 1, one & 1) for one in who[2:5].tolist()] == [
        (3, 1),
        (0, 0),
        (2, 0),
    ]


def test_hashes_are_those_that_are_written_down():
    # splitmix64 with seed 0: its first number.
    assert int(hashed(0)[0]) == 0xE220A8397B1DCDAF
    assert len(set(hashed(7, 1, np.arange(10_000)).tolist())) == 10_000
    assert (
        drawn(4, np.arange(50), 0, 1).tolist() == drawn(4, np.arange(50), 0, 1).tolist()
    )
    assert drawn(9, np.arange(4), 0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("base", ["squared-distance", "l1-distance"])
def test_rows_go_to_their_nearest_leaders(base):
    x = np.random.default_rng(0).normal(size=(600, 4))
    leaders = drawn(40, np.arange(600), 0, 0)
    with opened() as pool:
        found = np.array(nearest_leaders(Wanted(x, 5, base, pool), leaders, 3, (0, 0)))
    every = np.tile(leaders, (600, 1))
    score = pairs.cross_values(x, x, every, base)
    assert np.array_equal(found, np.argsort(score, axis=1, kind="stable")[:, :3])


def test_rows_that_are_as_near_to_all_leaders_do_not_all_go_to_one():
    x = np.zeros((2000, 4))
    leaders = drawn(20, np.arange(2000), 0, 0)
    with opened() as pool:
        wanted = Wanted(x, 5, "squared-distance", pool)
        found = np.array(nearest_leaders(wanted, leaders, 2, (0, 0)))
        some = nearest_leaders(wanted, leaders, 2, (0, 0), np.arange(900, 1000))
        assert np.array_equal(found[900:1000], some)
    assert np.bincount(found.ravel(), minlength=20).max() < 400
    assert (found[:, 0] != found[:, 1]).all()


def test_sparse_rows_go_to_leaders_of_their_direction_and_ties_by_hash():
    rng = np.random.default_rng(0)
    full = rng.integers(1, 4, (600, 30)) * (rng.random((600, 30)) < 0.1)
    full = full / 4  # lengths below 1 and above
    full[:40] = 0  # rows without a direction
    x, leaders = SparseRows.of(csr_array(full), ""), drawn(60, np.arange(600), 0, 0)
    with opened() as pool:
        wanted = Wanted(x, 5, "squared-distance", pool)
        found = np.array(nearest_leaders(wanted, leaders, 3, (0, 0)))
    length = np.sqrt((full[leaders] ** 2).sum(axis=1))
    unit = full[leaders] / np.where(length > 0, length, 1)[:, np.newaxis]
    product = sum(np.multiply.outer(full[:, t], unit[:, t]) for t in range(30))
    draw = hashed(0, 0, np.arange(600)[:, np.newaxis], np.arange(60))
    assert np.array_equal(found, np.lexsort((draw, -product), axis=1)[:, :3])
    assert np.bincount(found[:40].ravel(), minlength=60).max() < 12


@pytest.mark.parametrize("kind", ["normal", "same"])
def test_groups_that_are_too_large_are_cut_and_lose_nobody(kind):
    x = np.random.default_rng(0).normal(size=(3000, 3))
    if kind == "same":
        x[:] = 1.0
    member = np.zeros((3000, 1), np.int32)
    rows, edges = groups_of(member, 1, 2)
    with opened() as pool:
        wanted = Wanted(x, 5, "squared-distance", pool)
        cut, ends = cut_groups(wanted, rows, edges, 500, (0, 0))
    assert np.diff(ends).max() <= 500
    assert set(cut.tolist()) == set(range(3000))
    assert ends[-1] == len(cut)


def test_rows_of_a_group_that_is_cut_go_to_two_pieces_and_other_groups_stay():
    x = np.random.default_rng(0).normal(size=(4500, 3))
    rows, edges = np.arange(4500, dtype=np.int32), np.array([0, 1500, 4500])
    with opened() as pool:
        wanted = Wanted(x, 5, "squared-distance", pool)
        whole = cut_groups(wanted, rows, edges, 3000, (0, 0))
        cut, ends = cut_groups(wanted, rows, edges, 1500, (0, 0))
    assert np.array_equal(whole[0], rows)
    assert np.array_equal(whole[1], edges)
    assert ends[1] == 1500
    assert np.array_equal(cut[:1500], np.arange(1500))
    again = np.bincount(cut[1500:], minlength=4500)[1500:]
    assert set(again.tolist()) <= {2, 3, 4}  # more, where a piece is cut again
    assert (again == 2).sum() > 1000


@pytest.mark.parametrize("points", [False, True])
def test_the_truth_is_that_of_brute_force(points):
    rng = np.random.default_rng(1)
    x, asked = rng.normal(size=(900, 3)), rng.normal(size=(400, 3))
    with opened() as pool:
        wanted = Wanted(x, 6, "squared-distance", pool)
        truth = Truth.of_points(wanted, asked) if points else Truth.of(wanted)
    rows = asked if points else x
    far = np.square(rows[:, None] - x).sum(-1)
    if not points:
        np.fill_diagonal(far, np.inf)
    index = np.argsort(far, axis=1)[:, :6]
    assert np.array_equal(np.sort(truth.index), np.sort(index[truth.rows]))
    for known, last in ((truth.rows, truth.last), (truth.judging, truth.judged)):
        assert len(known) == len(last) > 0
        assert last == pytest.approx(np.sort(far[known], axis=1)[:, 5], rel=1e-12)
    assert not set(truth.rows) & set(truth.judging)


PLAN = Plan(60, 3, 2, 0.0, 1e9)


class _Apart:
    """A pool whose workers see copies only, as on other machines."""

    in_place = False

    def __init__(self, pool):
        self._pool = pool

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def share(self, array):
        copy = np.array(array)
        copy.flags.writeable = False
        return Here(copy)


class _Mortal(_Apart):
    """A pool whose workers die now and then, and leave what they were doing."""

    in_place = True
    deaths = calls = 0

    def share(self, array):
        return self._pool.share(array)

    def submit(self, function, /, *args):
        self.calls += 1
        if self.calls % 7 == 0 and self.deaths < 3:
            self.deaths += 1
            raise BrokenExecutor
        return self._pool.submit(function, *args)

    def revive(self):
        pass


def worked(
    x,
    executor="serial",
    workers=1,
    base="squared-distance",
    around=None,
    passes=True,
    **options,
):
    """Return lists of a plan that a formula would not choose for so few rows."""
    with opened(executor, workers) as pool:
        used = around(pool) if around else pool
        shared = x if isinstance(x, SparseRows) else pool.share(x).open()
        wanted = Wanted(shared, 10, base, used, **options)
        costs = Costs(10**6, x.shape[1], 10, base)
        work = _Work(wanted, Truth.of(wanted), PLAN, costs)
        work.run(0.999 if passes else 0.0)
        index, score = work.lists.open()
        return index.copy(), score.copy(), work


@pytest.fixture(scope="module")
def surface():
    return manifold(6000, 16)


@pytest.fixture(scope="module")
def counts():
    return SparseRows.of(topics(5000, 800, count=20, words=20), "")


@pytest.mark.parametrize(
    ("executor", "workers"),
    [("threads", 2), ("processes", 2), ("processes", 3), ("serial", 2)],
)
def test_nobody_sees_who_computed_it(surface, executor, workers):
    index, score, one = worked(surface)
    other = worked(surface, executor, workers, block=64)
    assert "p" in one.steps
    assert np.array_equal(index, other[0])
    assert np.array_equal(score, other[1])


@pytest.mark.parametrize("how", ["threads", "processes", _Apart, _Mortal, "resumed"])
def test_nobody_sees_who_computed_it_of_sparse_rows(counts, how, tmp_path, monkeypatch):
    index, score, one = worked(counts)
    assert "p" in one.steps
    if how == "resumed":
        monkeypatch.setattr("nnkgraph.search.partition._EVERY", 0.0)
        done = []

        def on_rows(rows):
            done.append(rows)
            if sum(done) > 2500:
                raise KeyboardInterrupt

        with (
            open_checkpoint(tmp_path / "kept", {}) as kept,
            pytest.raises(KeyboardInterrupt),
        ):
            worked(counts, checkpoint=kept, on_rows=on_rows)
        with open_checkpoint(tmp_path / "kept", {}) as kept:
            other = worked(counts, checkpoint=kept)
            assert kept.reused == 1
    elif isinstance(how, str):
        other = worked(counts, how, 2, block=64)
    else:
        other = worked(counts, around=how)
    assert np.array_equal(index, other[0])
    assert np.array_equal(score, other[1])


@pytest.mark.parametrize("unit", [False, True])
def test_sparse_rows_are_refined_to_the_recall_that_is_wanted(counts, unit):
    x = unit_rows(counts, "") if unit else counts
    groups = worked(x, around=None, passes=False)
    _, score, work = worked(x)
    true = np.sort(all_scores(x, "squared-distance"), axis=1)[:, 9:10]
    found = (score <= true).mean()
    assert found > 0.99
    assert found > (groups[1] <= true).mean() + 0.02
    assert work.truth.estimate(score)["recall"] == pytest.approx(found, abs=0.02)


@pytest.mark.parametrize("around", [_Apart, _Mortal])
def test_copies_and_deaths_cannot_be_seen(surface, around):
    index, score, _ = worked(surface)
    other = worked(surface, around=around)
    assert np.array_equal(index, other[0])
    assert np.array_equal(score, other[1])
    if around is _Mortal:
        assert other[2].wanted.pool.deaths


def test_dask_finds_the_same(surface):
    pytest.importorskip("distributed")
    index, score, _ = worked(surface)
    other = worked(surface, "dask", 2)
    assert np.array_equal(index, other[0])
    assert np.array_equal(score, other[1])


def test_the_plan_knows_what_recall_groups_will_have(surface):
    with opened() as pool:
        wanted = Wanted(surface, 10, "squared-distance", pool)
        truth = Truth.of(wanted)
        costs = Costs(6000, 2000, 10, "squared-distance")
        plan = plan_of(wanted, truth, whole_price(costs, 0.5), costs.exact)
        assert plan is not None
        work = _Work(wanted, truth, plan, costs)
        for _ in range(plan.rounds):
            work.do_round()
        assert work.recall == pytest.approx(plan.recall)


def test_recall_is_what_brute_force_says(surface):
    with opened() as pool:
        wanted = Wanted(surface, 10, "squared-distance", pool)
        truth = Truth.of(wanted)
        work = _Work(wanted, truth, PLAN, Costs(6000, 16, 10, "squared-distance"))
        work.do_round()
        _, score = work.lists.open()
        known = truth.estimate(score)
    _, true = brute_force(surface.astype(float), 10)
    share = (score <= true[:, -1:] * (1 + 1e-12)).mean()
    low, high = known["recall_interval"]
    assert low <= share <= high
    assert low < known["recall"] < high
    assert not set(truth.rows.tolist()) & set(truth.judging.tolist())


def test_intervals_are_wide_enough_for_what_was_never_seen():
    known = interval(np.ones(100))
    low, high = known["recall_interval"]
    assert (known["recall"], high) == (1.0, 1.0)
    assert 0.95 < low < 1.0
    for hits in ([1.0, 1.0, 1.0, 0.2], [0.0, 0.0, 0.0, 0.8], [0.0] * 9):
        low, high = interval(np.array(hits))["recall_interval"]
        assert 0.0 <= low <= np.mean(hits) <= high <= 1.0


@pytest.mark.parametrize("stored", [1, 3, 200])
def test_products_of_sparse_rows_may_be_off_by_what_they_add_up(stored):
    x = SparseRows.of(csr_array(np.eye(4, 200) + (np.arange(200) < stored)), "")
    longest = int(np.diff(x.indptr).max())
    assert slack_of(x) >= 2 * longest * 2.0**-50
    assert slack_of(x) <= 40 * longest * 2.0**-50


def test_few_rows_are_searched_exactly():
    x = np.random.default_rng(0).normal(size=(300, 4))
    with opened() as pool:
        found = Partition().find(Wanted(x, 7, "squared-distance", pool))
    assert found.exact
    assert "exact was taken" in found.notes[0]
    assert np.array_equal(found.index, brute_force(x, 7)[0])


@pytest.mark.parametrize("base", ["inner-product", "similarity"])
def test_bases_without_distances_are_refused(base):
    with opened() as pool, pytest.raises(ParameterError, match="'exact'"):
        Partition().find(Wanted(np.ones((9, 2)), 2, base, pool))


@pytest.mark.parametrize("recall", [0.0, -1.0, 1.5])
def test_recalls_that_are_none_are_refused(recall):
    with pytest.raises(ParameterError, match="recall must be"):
        registry.create("search", f"partition:recall={recall}")


def test_progress_ends_with_all_rows(surface):
    told = []
    worked(surface, on_rows=told.append)
    assert sum(told) == 6000
    assert min(told) >= 0


@pytest.mark.parametrize("at", [0.05, 0.3, 0.6, 0.9])
def test_a_search_that_was_ended_goes_on(surface, tmp_path, monkeypatch, at):
    monkeypatch.setattr("nnkgraph.search.partition._EVERY", 0.0)
    index, score, _ = worked(surface)
    told = 0

    def on_rows(rows):
        nonlocal told
        told += rows
        if told > at * 6000:
            raise KeyboardInterrupt

    with (
        open_checkpoint(tmp_path / "kept", {}) as kept,
        pytest.raises(KeyboardInterrupt),
    ):
        worked(surface, checkpoint=kept, on_rows=on_rows)
    with open_checkpoint(tmp_path / "kept", {}) as kept:
        other = worked(surface, checkpoint=kept)
        assert kept.reused == (1 if at > 0.1 else kept.reused)
        assert not kept.warnings
    assert np.array_equal(index, other[0])
    assert np.array_equal(score, other[1])


def test_a_damaged_checkpoint_is_not_taken_for_a_result(surface, tmp_path):
    index, _, work = worked(surface)
    with open_checkpoint(tmp_path / "kept", {}) as kept:
        work.wanted = replace(work.wanted, checkpoint=kept)
        work.lists.open()[0][17, 3] = 6000
        work._keep()
        other = worked(surface, checkpoint=kept)
        assert "damaged" in kept.warnings[0]
    assert np.array_equal(index, other[0])


ABOUT = {"steps": _ROUND + _PASS, "recalls": [0.5, 0.9], "spent": 1.5, "tasks": 0}
ABOUT |= {"passing": False}


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"tasks": 3, "passing": True}, True),
        ({"more": 1}, False),
        ({"steps": 5}, False),
        ({"steps": _ROUND + "x"}, False),
        ({"recalls": [0.5]}, False),
        ({"recalls": [0.5, 1]}, False),
        ({"spent": "all"}, False),
        ({"tasks": -1}, False),
        ({"index": 4}, False),
        ({"index": -2}, False),
        ({"index": 3}, True),
        ({"begun": 4}, False),
        ({"begun": -1}, True),
    ],
    ids=str,
)
def test_only_what_a_search_keeps_is_taken_for_its_state(change, good):
    about = ABOUT | change
    arrays = {name: np.zeros((4, 2), int) for name in ("index", "begun")}
    for name in set(arrays) & set(change):
        arrays[name][1, 1] = about.pop(name)
    block = Block("search", range(4), arrays, about, "search-0-4.npz")
    refused = pytest.raises(InputError, match=r"search-0-4\.npz: its lists are damaged")
    with nullcontext() if good else refused:
        _check_kept(block)


def test_rounds_beyond_the_plan_have_half_as_many_groups(surface):
    with opened() as pool:
        wanted = Wanted(surface, 10, "squared-distance", pool)
        costs = Costs(6000, 16, 10, "squared-distance")
        work = _Work(wanted, Truth.of(wanted), PLAN, costs)
        many = [len(work._groups(number, 0.0)[0]) for number in range(PLAN.rounds + 1)]
    assert PLAN.many == 3
    assert many == [18_000, 18_000, 12_000]


def test_queries_find_what_all_groups_of_their_leaders_have(surface):
    x, points = surface[:5000], surface[5000:]
    with opened() as pool:
        wanted = Wanted(x, 10, "squared-distance", pool)
        lists = Lists.empty(pool, len(points), 10)
        _query_round(wanted, points, PLAN, Runner(pool, lists, 60_000), 0)
        leaders = drawn(PLAN.leaders, np.arange(5000), 0, 0)
        members = nearest_leaders(wanted, leaders, 3, (0, 0))
        asked = nearest_leaders(wanted, leaders, 3, (0, 0), points=points)
        index, score = lists.open()
    every = np.tile(np.arange(5000), (len(points), 1))
    scores = pairs.cross_values(x, points, every, "squared-distance")
    for i in range(0, len(points), 50):
        near = np.flatnonzero(np.isin(members, asked[i]).any(axis=1))
        best = near[np.lexsort((near, scores[i, near]))][:10]
        assert index[i].tolist() == best.tolist()
        assert score[i].tolist() == scores[i, best].tolist()


def test_many_queries_are_not_brute_force_and_their_recall_is_known():
    x = manifold(32_000, 160)
    x, points = x[:12_000], x[12_000:]
    with opened("threads", 2) as pool:
        wanted = Wanted(x, 10, "squared-distance", pool)
        found = Partition(recall=0.9).query(wanted, points)
        exact = registry.create("search", "exact").query(wanted, points)
    true = (found.distance <= exact.distance[:, -1:]).mean()
    assert not found.exact
    assert found.recall == pytest.approx(true, abs=0.05)
    assert true > 0.85


def test_parts_of_the_groups_make_the_same_lists():
    x = manifold(9000, 400)
    search = Partition(recall=0.8)
    with opened("threads", 2) as pool:
        wanted = Wanted(x, 8, "squared-distance", pool)
        whole = search.find(wanted)
        parts = [search.find_part(wanted, number, 3) for number in range(3)]
        found = search.finish(wanted, parts)
    assert not whole.exact
    assert np.array_equal(whole.index, found.index)
    assert np.array_equal(whole.distance, found.distance)
    assert (whole.recall, whole.notes) == (found.recall, found.notes)
