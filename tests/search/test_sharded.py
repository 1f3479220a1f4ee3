"""Search in parts: what is combined, and that nothing depends on who asks whom.

Parts of few rows are searched exactly, which shows all but pynndescent's share.
"""

import numpy as np
import pytest
from conftest import brute_force
from hypothesis import given
from hypothesis import strategies as st

from nnkgraph.build.run import find_candidates
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.executors.serial import InProcessPool
from nnkgraph.search import Wanted
from nnkgraph.search.sharded import best_of, rows_of_part


@given(
    n=st.integers(1, 12),
    k=st.integers(1, 9),
    widths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_best_of_several_lists_is_that_of_all_candidates(n, k, widths, seed):
    rng = np.random.default_rng(seed)
    names = rng.permuted(np.tile(np.arange(sum(widths)), (n, 1)), axis=1)
    values = rng.integers(0, 4, names.shape).astype(float)
    names[rng.random(names.shape) < 0.2] = -1
    values[names < 0] = np.inf
    lists, start = [], 0
    for width in widths:
        name, value = (a[:, start : start + width] for a in (names, values))
        order = np.lexsort((name, value), axis=1)
        pair = (np.take_along_axis(a, order, 1) for a in (name, value))
        lists.append(tuple(pair))
        start += width
    index, score = best_of(lists, k)
    for i in range(n):
        known = sorted((v, c) for v, c in zip(values[i], names[i], strict=True))
        known = [(v, c) for v, c in known if c >= 0]
        expected = [*known, *[(np.inf, -1)] * k][:k]
        assert list(zip(score[i], index[i], strict=True)) == expected
    again, _ = best_of(lists[::-1], k)
    assert np.array_equal(index, again)


@pytest.mark.parametrize("parts", [1, 2, 7, 50])
def test_every_row_is_in_one_part_and_parts_are_alike(parts):
    rows = [rows_of_part(5000, parts, one, 3) for one in range(parts)]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(5000))
    assert all((np.diff(one) > 0).all() for one in rows)
    sizes = [len(one) for one in rows]
    mean = 5000 / parts
    assert max(abs(size - mean) for size in sizes) < 5 * np.sqrt(mean)
    # The first half of the rows is spread like all of them.
    for one in rows:
        assert abs((one < 2500).sum() - len(one) / 2) < 5 * np.sqrt(mean)
    other = rows_of_part(5000, parts, 0, 4)
    assert parts == 1 or not np.array_equal(rows[0], other)


def test_workers_that_cannot_write_to_this_machine_find_the_same():
    x = np.random.default_rng(2).normal(size=(400, 3))
    found = [
        registry.create("search", "sharded:parts=3").find(
            Wanted(x, 6, "squared-distance", InProcessPool(1, in_place=here))
        )
        for here in (True, False)
    ]
    assert np.array_equal(found[0].index, found[1].index)
    assert np.array_equal(found[0].distance, found[1].distance)


@pytest.mark.parametrize("base", ["squared-distance", "l1-distance"])
def test_small_parts_find_what_the_definition_says(base):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, (300, 4)).astype(float)  # full of ties and copies
    with registry.create("executors", "serial").open(1) as pool:
        wanted = Wanted(x, 6, base, pool)
        found = registry.create("search", "sharded:parts=3").find(wanted)
        exact = registry.create("search", "exact").find(wanted)
    assert np.array_equal(found.index, exact.index)
    assert np.array_equal(found.distance, exact.distance)
    assert (found.backend, found.exact, found.recall) == ("sharded:parts=3", False, 1.0)


def test_more_parts_than_neighbors_lose_nothing_that_is_not_mended():
    x = np.random.default_rng(1).normal(size=(400, 3))
    found = find_candidates(x, k=10, search="sharded:parts=40")
    assert (found.index >= 0).all()
    truth, _ = brute_force(x, 10)
    same = [np.isin(a, b).mean() for a, b in zip(truth, found.index, strict=True)]
    assert np.mean(same) > 0.98
    assert found.recall == pytest.approx(np.mean(same), abs=0.02)


def test_workers_executors_and_checkpoints_do_not_change_the_result(tmp_path):
    x = np.random.default_rng(2).normal(size=(900, 4))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    ways = [
        (x, {"workers": 1}),
        (x, {"workers": 2, "executor": "threads"}),
        (mapped, {"workers": 2, "executor": "processes"}),
        (mapped, {"workers": 1, "resume": tmp_path / "kept"}),
    ]
    results = [
        find_candidates(given, k=8, search="sharded:parts=5", seed=4, **options)
        for given, options in ways
    ]
    for one in results[1:]:
        assert one.index.tobytes() == results[0].index.tobytes()
        assert one.distance.tobytes() == results[0].distance.tobytes()
        assert one.backend == results[0].backend == "sharded:parts=5"


def test_pynndescent_searches_larger_parts_whoever_asks(program, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2600, 3)) @ rng.normal(size=(3, 8)) + 1e6
    sizes = [len(rows_of_part(2600, 2, one, 3)) for one in range(2)]
    assert min(sizes) > 1000  # else they would be searched exactly
    np.save(tmp_path / "x.npy", x)
    found = find_candidates(x, k=10, search="sharded:parts=2", seed=3)
    truth, _ = brute_force(x - 1e6, 10)
    same = [np.isin(a, b).mean() for a, b in zip(truth, found.index, strict=True)]
    assert np.mean(same) > 0.98
    assert found.recall == pytest.approx(np.mean(same), abs=0.02)
    assert not found.exact
    assert (np.diff(found.distance, axis=1) >= 0).all()
    options = ("-k", 10, "--search", "sharded:parts=2", "--seed", 3, "-j", 2)
    said = program("search", "x.npy", "-o", "knn.npz", "-q", *options)
    assert (said.code, said.err) == (0, "")
    with np.load(tmp_path / "knn.npz") as again:
        assert again["neighbors"].tobytes() == found.index.tobytes()
        assert again["distances"].tobytes() == found.distance.tobytes()


def test_rows_are_counted_once_however_many_parts_there_are():
    x = np.random.default_rng(2).normal(size=(50, 2))
    heard = []
    with registry.create("executors", "serial").open(1) as pool:
        wanted = Wanted(x, 3, "squared-distance", pool, on_rows=heard.append)
        registry.create("search", "sharded:parts=7").find(wanted)
    assert sum(heard) == 50
    assert len(heard) == 7


@pytest.mark.parametrize(
    "spec", ["parts=-1", "threads=0", "n_trees=-2", "epsilon=-0.1", "epsilon=nan"]
)
def test_parameters_that_make_no_sense_are_refused(spec):
    with pytest.raises(ParameterError, match="search 'sharded'"):
        registry.create("search", f"sharded:{spec}")


def shards_of(run, points, folder, count, *options):
    made = []
    for number in range(1, count + 1):
        made.append(folder / f"{number}.npz")
        given = ("search", points, "-o", made[-1], "--shard", f"{number}/{count}")
        result = run(*given, "--search", "sharded", *options)
        assert result.code == 0, result.err
    return made


@pytest.mark.parametrize(("rows", "count"), [(300, 3), (12, 20)])
def test_one_task_for_each_part_gives_the_same_bytes(run, tmp_path, rows, count):
    x = np.random.default_rng(1).integers(0, 6, (rows, 3)).astype(float)
    np.save(tmp_path / "x.npy", x)  # with copies
    made = shards_of(run, tmp_path / "x.npy", tmp_path, count, "-k", 5)
    assert run("merge", *made[::-1], "-o", tmp_path / "knn.npz").code == 0
    whole = ("search", tmp_path / "x.npy", "-o", tmp_path / "whole.npz", "-k", 5)
    assert run(*whole, "--search", f"sharded:parts={count}").code == 0
    merged = (tmp_path / "knn.npz").read_bytes()
    assert merged == (tmp_path / "whole.npz").read_bytes()
    found = run(
        "build",
        tmp_path / "x.npy",
        "-o",
        tmp_path / "g.npz",
        "-k",
        5,
        "--search",
        f"precomputed:path={tmp_path / 'knn.npz'}",
    )
    assert found.code == 0, found.err


def test_parts_that_are_missing_foreign_or_damaged_are_refused(run, points, tmp_path):
    made = shards_of(run, points, tmp_path, 3, "-k", 5)
    out = tmp_path / "knn.npz"
    refused = run("merge", *made[:2], "-o", out)
    assert (refused.code, "1 shard is missing of 3: 3" in refused.err) == (3, True)
    (tmp_path / "other").mkdir()
    other = shards_of(run, points, tmp_path / "other", 3, "-k", 6)
    refused = run("merge", *made[:2], other[2], "-o", out)
    assert (refused.code, "do not belong together" in refused.err) == (3, True)
    refused = run("merge", *made[:2], made[1], "-o", out)
    assert (refused.code, "both shard" in refused.err) == (3, True)
    assert not out.exists()
    given = ("search", points, "-o", out, "--shard", "1/3", "--search")
    refused = run(*given, "sharded:parts=4")
    assert (refused.code, "one of 3 parts" in refused.err) == (2, True)


def test_a_part_that_was_ended_is_not_computed_again(run, points, tmp_path):
    from nnkgraph.build.shards import Shard, search_shard
    from nnkgraph.data import Features

    features = Features.of(np.load(points))
    options = {"k": 5, "search": "sharded", "resume": tmp_path / "kept"}
    first, again = (search_shard(features, Shard(2, 3), **options) for _ in range(2))
    assert "0 of 1 blocks were there" in first.notes[-1]
    assert "1 of 1 blocks were there" in again.notes[-1]
    for key in ("index", "score"):
        assert np.array_equal(first.arrays[key], again.arrays[key])
