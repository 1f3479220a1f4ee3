"""Searches: exact means the definition, ties and rounding included."""

import json
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import brute_force
from hypothesis import given
from hypothesis import strategies as st

import nnkgraph
from bench.data import topics
from nnkgraph import formats
from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.data import SparseRows, pairs
from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.runtime import registry
from nnkgraph.search import Wanted
from nnkgraph.search.auto import Auto, Costs, choose
from nnkgraph.search.exact import nearest
from nnkgraph.search.precomputed import Precomputed
from nnkgraph.search.pynndescent import _make_cacheable, repair


def find(x, k, search="exact", base="squared-distance", **options):
    x = np.ascontiguousarray(x)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    with registry.create("executors", "serial").open(1) as pool:
        return registry.create("search", search).find(
            Wanted(x, k, base, pool, **options)
        )


def grid(side):
    return np.stack(np.meshgrid(*[np.arange(side)] * 2), -1).reshape(-1, 2)


@given(
    n=st.integers(2, 80),
    d=st.integers(1, 40),
    values=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    offset=st.sampled_from([0, 1000, 10**6]),
    data=st.data(),
)
def test_exact_and_kdtree_are_the_definition_on_data_full_of_ties(
    n, d, values, seed, offset, data
):
    x = np.random.default_rng(seed).integers(0, values, (n, d)).astype(float) + offset
    k = data.draw(st.integers(1, n - 1))
    index, score = brute_force(x, k)
    for search in ("exact", "kdtree"):
        found = find(x, k, search)
        assert found.index.tolist() == index.tolist()
        assert found.distance.tolist() == np.sqrt(score).tolist()
    index, score = brute_force(x - offset, k, "inner-product")
    found = find(x - offset, k, base="inner-product")
    assert found.index.tolist() == index.tolist()
    assert found.distance.tolist() == score.tolist()


@pytest.mark.parametrize("scale", [1e-310, 1e-170, 1e-162, 1e-140])
@pytest.mark.parametrize("d", [8, 15, 40])
def test_exact_is_the_definition_where_squares_vanish(scale, d):
    rng = np.random.default_rng(0)
    mixed = (
        rng.normal(size=(200, d)) * np.where(np.arange(200) % 2, scale, 1e-140)[:, None]
    )
    beside_ones = np.column_stack([np.ones(200), rng.normal(size=(200, d)) * scale])
    for x in (mixed, beside_ones):
        found = find(x, 5)
        for i in (0, 1, 57, 120):
            # Scores are sums in the order of nnkgraph, whatever digits they lost.
            score = pairs.cross_values(
                x, x[i : i + 1], np.delete(np.arange(200), i)[None], "squared-distance"
            )[0]
            best = np.lexsort((np.arange(199), score))[:5]
            assert found.index[i].tolist() == (best + (best >= i)).tolist()


@pytest.mark.parametrize("values", [2, 4, 30])
@pytest.mark.parametrize("base", ["squared-distance", "inner-product"])
def test_exact_is_the_definition_on_many_rows_full_of_ties(values, base):
    x = np.random.default_rng(values).integers(0, values, (1500, 8)).astype(float)
    index, _ = brute_force(x, 20, base)
    assert np.array_equal(find(x, 20, base=base).index, index)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [1e-12, 1.0, 1e12])
def test_exact_agrees_with_kdtree_on_real_numbers(dtype, spread):
    x = (np.random.default_rng(3).normal(size=(3000, 20)) * spread).astype(dtype)
    exact, tree = find(x, 15), find(x, 15, "kdtree")
    assert np.array_equal(exact.index, tree.index)
    assert np.array_equal(exact.distance, tree.distance)


def test_exact_is_exact_where_float32_cannot_tell_rows_apart():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.normal(size=(400, 20)) * 1e-9, 1e6 * rng.normal(size=(4, 20))]
    )
    index, _ = brute_force(x, 10)
    # Only the rows that are close together: the others see near-ties everywhere.
    assert np.array_equal(find(x, 10).index[:400], index[:400])


@pytest.mark.parametrize("shape", ["outlier", "clusters", "outliers"])
@pytest.mark.parametrize("base", ["squared-distance", "inner-product"])
def test_far_points_do_not_spoil_the_search(shape, base):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 20))
    if shape == "outlier":
        x[17] = 1e8
    elif shape == "outliers":
        x[::60] *= 1e5
    else:
        x[300:] += 1e4
    found = find(x, 10, base=base)
    index, _ = brute_force(x, 10, base)
    # Rows far away see the others at distances that differ in the last digits only.
    near = np.abs(x).max(axis=1) < 100
    if shape == "clusters" and base == "squared-distance":
        near[:] = True
    assert np.array_equal(found.index[near], index[near])


def test_many_identical_rows_are_searched_in_reasonable_time():
    x = np.zeros((3000, 2))
    x[:1500] = np.random.default_rng(0).normal(size=(1500, 2))
    exact, tree = find(x, 10), find(x, 10, "kdtree")
    assert np.array_equal(exact.index, tree.index)
    assert exact.index[2000].tolist() == list(range(1500, 1510))


def test_a_grid_is_searched_in_the_order_of_the_row_numbers():
    found = find(grid(12), 8)
    index, _ = brute_force(grid(12), 8)
    assert np.array_equal(found.index, index)


@pytest.mark.parametrize("search", ["exact", "kdtree"])
def test_the_block_size_cannot_be_seen(search):
    x = np.random.default_rng(2).normal(size=(500, 30)).astype(np.float32)
    first, other = (find(x, 20, search, block=block) for block in (256, 7))
    assert np.array_equal(first.index, other.index)
    assert np.array_equal(first.distance, other.distance)


class _MortalPool:
    """A pool whose workers die during the products, leaving work half done."""

    def __init__(self, pool, calls):
        self._pool, self._calls, self.revived = pool, calls, 0

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def submit(self, function, /, *args):
        self._calls -= 1
        if self._calls == 0:
            raise BrokenExecutor
        return self._pool.submit(function, *args)

    def revive(self):
        self.revived += 1


@pytest.mark.parametrize("calls", [1, 2, 9])
def test_a_worker_that_dies_during_the_products_cannot_be_seen(calls):
    x = np.random.default_rng(2).normal(size=(9000, 5)).astype(np.float32)
    with registry.create("executors", "serial").open(1) as pool:
        exact, told = registry.create("search", "exact"), []
        whole = exact.find(Wanted(x, 4, "squared-distance", pool))
        mortal = _MortalPool(pool, calls)
        wanted = Wanted(x, 4, "squared-distance", mortal, on_rows=told.append)
        again = exact.find(wanted)
    assert mortal.revived == 1
    assert sum(told) == 9000
    assert np.array_equal(whole.index, again.index)
    assert np.array_equal(whole.distance, again.distance)


@pytest.mark.parametrize("executor", ["serial", "threads", "processes"])
@pytest.mark.parametrize("order", ["random", "sorted", "reversed"])
def test_pairs_of_groups_find_what_single_rows_find(executor, order):
    x = np.random.default_rng(2).normal(size=(9000, 3))
    if order != "random":  # every row meets nearer and nearer ones, or farther ones
        x = x[np.argsort(x[:, 0])][:: 1 if order == "sorted" else -1].copy()
    with registry.create("executors", executor).open(3) as pool:
        wanted = Wanted(x, 12, "squared-distance", pool)
        found = registry.create("search", "exact").find(wanted)
        index, distance = np.array(found.index), np.array(found.distance)
    rows = np.arange(0, 9000, 7)
    assert np.array_equal(index[rows], nearest(Wanted(x, 12, wanted.base, pool), rows))
    tree = find(x, 12, "kdtree")
    assert np.array_equal(index, tree.index)
    assert np.array_equal(distance, tree.distance)


def test_identical_rows_never_find_themselves():
    found = find(np.ones((20, 3)), 5)
    own = np.arange(20)[:, np.newaxis]
    assert not (found.index == own).any()
    assert found.index[9].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("search", ["kdtree", "pynndescent"])
def test_searches_by_distance_refuse_inner_products(search):
    with pytest.raises(ParameterError, match="needs search 'exact'"):
        find(grid(4), 3, search, base="inner-product")


@pytest.mark.parametrize(
    ("n", "d", "k", "name"),
    [
        (10**6, 3, 30, "kdtree"),
        (5000, 784, 30, "exact"),
        (10**6, 64, 30, "partition"),
        (10**5, 64, 300, "exact"),
    ],
)
def test_auto_looks_at_the_shape_only(n, d, k, name):
    assert choose(Costs(n, d, k, "squared-distance"))[0] == name


def test_auto_searches_exactly_by_similarity():
    rows = np.broadcast_to(np.float32(1.0), (10**6, 64))
    assert registry.spec(Auto().chosen(rows, 30, "inner-product")[0]) == "exact"


def test_auto_looks_at_the_columns_that_sparse_rows_share():
    few, many = (SparseRows.of(topics(n, 300, words=20), "") for n in (3000, 60_000))
    assert choose(Costs.of(few, 30, "squared-distance"))[0] == "exact"
    costs = Costs.of(many, 30, "squared-distance")
    name, why = choose(costs)
    assert name == "partition"
    assert "approximate, about" in why
    assert "exact would take about" in why
    assert registry.spec(Auto().chosen(many, 30, "inner-product")[0]) == "exact"
    # As many entries, but no two rows share one: a search by columns has less to do.
    apart = replace(many, indices=np.arange(many.data.size), columns=many.data.size)
    assert Costs.of(apart, 30, "squared-distance").exact < 0.7 * costs.exact
    assert Auto().chosen(many, 30, "squared-distance")[0].recall == 0.99


def test_auto_says_what_it_chose():
    found = find(grid(5), 3, "auto")
    assert found.backend == "exact"
    assert "exact was chosen for 25 x 2" in found.notes[0]


def test_repair_lets_the_nearer_side_in():
    # 0 knows 2; 2 does not know 0, although 0 is nearer than the last one 2 knows.
    index = np.array([[1, 2], [0, 2], [3, 1], [2, 1]])
    score = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 4.0], [1.0, 9.0]])
    mended, scores = repair(index, score)
    assert mended[2].tolist() == [3, 0]
    assert scores[2].tolist() == [1.0, 2.0]
    assert mended[[0, 1, 3]].tolist() == index[[0, 1, 3]].tolist()


@given(n=st.integers(3, 40), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_repair_takes_the_best_of_both_sides(n, seed, data):
    k = data.draw(st.integers(1, n - 1))
    rng = np.random.default_rng(seed)
    distance = rng.integers(1, 6, (n, n)).astype(float)
    distance += distance.T
    lists = []
    for i in range(n):
        some = rng.choice(np.delete(np.arange(n), i), k, replace=False)
        some = sorted((distance[i, j], j) for j in some)
        known = rng.integers(1, k + 1)  # the others are missing
        lists.append([*some[:known], *[(np.inf, -1)] * (k - known)])
    index = np.array([[j for _, j in row] for row in lists], np.int32)
    score = np.array([[value for value, _ in row] for row in lists])
    mended, scores = repair(index, score)
    for i in range(n):
        union = {(value, j) for value, j in lists[i] if j >= 0}
        union |= {(distance[i, j], j) for j in range(n) if i in index[j]}
        best = [*sorted(union)[:k], *[(np.inf, -1)] * k][:k]
        assert list(zip(scores[i], mended[i], strict=True)) == best


_WARM_START = """
import sys
import numpy as np, pynndescent
from nnkgraph.search.pynndescent import warm_start

def search():
    x = np.random.default_rng(0).normal(size=(1500, 20)).astype(np.float32)
    return pynndescent.NNDescent(x, n_neighbors=11, n_jobs=2, random_state=3)

with warm_start():
    warm = search().neighbor_graph
kernels = getattr(pynndescent, "kernels", pynndescent.utils)  # since 0.7
modules = {pynndescent.pynndescent_, pynndescent.utils, kernels}
found = [f for m in modules for f in vars(m).values() if hasattr(f, "stats")]
print("missed", sum(sum(f.stats.cache_misses.values()) for f in found))
print("hits", sum(sum(f.stats.cache_hits.values()) for f in found))
plain = search().neighbor_graph if sys.argv[1] == "compare" else warm
print("equal", all(np.array_equal(a, b) for a, b in zip(warm, plain)))
"""


@pytest.mark.slow
def test_pynndescent_need_not_compile_in_every_process():
    """The second process finds all in the cache, and the result is pynndescent's."""
    import nnkgraph.runtime.jit  # noqa: F401 - sets the cache folder

    for what in ("fill", "compare"):  # pynndescent on its own compiles for long
        done = subprocess.run(
            [sys.executable, "-c", _WARM_START, what],
            capture_output=True,
            text=True,
            check=True,
            timeout=280,
        )
        missed, hits, equal = done.stdout.splitlines()
    assert equal == "equal True"
    assert missed == "missed 0"
    assert hits != "hits 0"


@pytest.mark.parametrize("search", ["pynndescent"])
def test_more_threads_than_there_are_is_refused(search):
    spec = f"{search}{',' if ':' in search else ':'}threads=5000"
    with pytest.raises(ParameterError, match="5000 threads, and there are"):
        find(np.random.default_rng(0).normal(size=(1200, 3)), 3, spec)


def test_pynndescent_finds_neighbors_in_any_unit():
    x = np.random.default_rng(0).normal(size=(1500, 3))
    found = find(x, 10, "pynndescent:threads=2")
    for unit in (2.0**-90, 2.0**90):
        other = find(x * unit, 10, "pynndescent:threads=2")
        assert np.array_equal(found.index, other.index)


@pytest.mark.parametrize("d", [3, 20])
def test_pynndescent_is_repeatable_and_estimates_its_recall(d):
    x = np.random.default_rng(d).normal(size=(1500, d)) + 1e6
    first, again = (find(x, 10, "pynndescent:threads=2", seed=3) for _ in range(2))
    assert np.array_equal(first.index, again.index)
    truth, _ = brute_force(x, 10)
    true = np.mean(
        [len(set(a) & set(b)) for a, b in zip(truth, first.index, strict=True)]
    )
    assert not first.exact
    assert first.recall == pytest.approx(true / 10, abs=0.02)
    assert first.recall > 0.9
    assert "threads=2" in first.backend
    assert (np.diff(first.distance, axis=1) >= 0).all()


def test_c17_rows_that_pynndescent_left_short_are_searched_exactly(monkeypatch):
    import pynndescent

    x = np.random.default_rng(0).normal(size=(300, 4))

    class Short:
        def __init__(self, data, *, n_neighbors, **_):
            index, _ = brute_force(x, n_neighbors - 1)
            index = np.column_stack([np.arange(300), index])
            index[::7, 3:] = -1
            self.neighbor_graph = index, None

    monkeypatch.setattr(pynndescent, "NNDescent", Short)
    found = find(x, 10, "pynndescent:threads=1")
    assert np.array_equal(found.index, brute_force(x, 10)[0])


@pytest.mark.parametrize("version", ["0.5.13", "0.6.0", "0.7.0"])
def test_more_rows_than_float32_can_number_need_another_pynndescent(
    version, monkeypatch
):
    module = "nnkgraph.search.pynndescent"
    monkeypatch.setattr(f"{module}.version", lambda _: version)
    monkeypatch.setattr(f"{module}._FLOAT_ROWS", 299)
    monkeypatch.setattr("pynndescent.NNDescent", None)  # not that far
    x = np.random.default_rng(0).normal(size=(300, 4))
    bad = version == "0.6.0"
    with pytest.raises(ResourceError if bad else TypeError) as error:
        find(x, 10, "pynndescent:threads=1")
    told = ("pynndescent 0.6.0", "299", "300", "pynndescent>=0.7", "partition")
    assert not bad or all(one in str(error.value) for one in told)


class TestPrecomputed:
    @pytest.fixture
    def x(self):
        return np.random.default_rng(4).normal(size=(50, 5))

    def write(self, path, neighbors, **others):
        np.savez(path, neighbors=neighbors, **others)
        return f"precomputed:path={path}"

    def test_order_self_repeats_and_gaps_do_not_matter(self, x, tmp_path):
        exact = find(x, 6)
        mixed = np.column_stack(
            [np.arange(50), exact.index[:, ::-1], exact.index[:, 0]]
        )
        mixed = np.column_stack([mixed, np.full(50, -1)])
        found = find(x, 6, self.write(tmp_path / "a.npz", mixed))
        assert np.array_equal(found.index, exact.index)
        assert np.array_equal(found.distance, exact.distance)
        assert found.recall == 1.0

    def test_squared_distances_of_other_tools_are_noticed_and_not_used(
        self, x, tmp_path
    ):
        exact = find(x, 6)
        spec = self.write(
            tmp_path / "a.npz", exact.index, distances=(exact.distance**2).astype("f4")
        )
        found = find(x, 6, spec)
        assert np.array_equal(found.distance, exact.distance)
        assert "squared distances" in found.notes[0]

    def test_squared_distances_are_noticed_among_copies_too(self, x, tmp_path):
        exact = find(x, 6)
        spec = self.write(tmp_path / "a.npz", exact.index, distances=exact.distance**2)
        copied = np.concatenate([x, x[:1]])
        more = np.concatenate([exact.index, exact.index[:1]])
        distance = np.concatenate([exact.distance, exact.distance[:1]]) ** 2
        spec = self.write(tmp_path / "a.npz", more, distances=distance)
        graph = build_graph(copied, k=6, search=spec)
        assert "squared distances" in graph.report["notes"][0]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda i: i[:40], "50"),
            (lambda i: np.where(i == i[0, 0], 50, i), "is no row number"),
            (lambda i: np.where(i == i[0, 0], -2, i), "is no row number"),
            (lambda i: i[:, :3], "3 neighbors a row, but k is 6"),
            (lambda i: i[:, :0], "no columns"),
            (lambda i: i.ravel(), "a.npz"),
            (lambda i: i + 0.5, "a.npz"),
        ],
    )
    def test_files_that_do_not_fit_are_refused(self, x, tmp_path, change, message):
        spec = self.write(tmp_path / "a.npz", change(find(x, 6).index))
        with pytest.raises(InputError, match=message):
            find(x, 6, spec)

    def test_missing_candidates_are_said(self, x, tmp_path):
        index = find(x, 6).index.copy()
        index[3, 4:] = -1
        found = find(x, 6, self.write(tmp_path / "a,b.npz", index))
        assert found.index[3, 4:].tolist() == [-1, -1]
        assert np.isinf(found.distance[3, 4:]).all()
        assert "2 of 300 candidates are missing" in found.notes[0]


def test_the_warm_start_leaves_alone_what_it_does_not_know():
    _make_cacheable(SimpleNamespace(py_func=None))  # as of a numba with other names


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_candidates_name_their_rows_and_are_refused_for_others(run, tmp_path, suffix):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    text = "id,a,b,c\n" + "".join(
        f"n{i},{a},{b},{c}\n" for i, (a, b, c) in enumerate(rows)
    )
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "y.csv").write_text(text.replace("n7,", "m,"))
    knn = tmp_path / f"knn.{suffix}"
    assert run("search", tmp_path / "x.csv", "-o", knn, "-k", 5).code == 0
    assert formats.candidate_ids(knn) == tuple(f"n{i}" for i in range(40))
    known = json.loads(run("info", knn, "--json").out)
    assert (known["rows"], known["k"], known["metric"]) == (40, 5, "euclidean")
    assert known["ids"] == "yes"
    _, distance = formats.read_candidates(knn)
    assert known["distance"]["max"] == distance.max()
    search = "--search", f"precomputed:path={knn}"
    done = run("build", tmp_path / "x.csv", *search, "-k", 5, "-o", tmp_path / "g.npz")
    assert done.code == 0, done.err
    done = run("build", tmp_path / "y.csv", *search, "-k", 5, "-o", tmp_path / "g.npz")
    assert done.code == 3
    assert "row 7 (counted from 0) is 'n7', and 'm' in the features" in done.err
    found = nnkgraph.find_candidates(nnkgraph.read_features(tmp_path / "x.csv"), k=5)
    with pytest.raises(InputError, match="row 7"):
        nnkgraph.build_graph(
            nnkgraph.read_features(tmp_path / "y.csv"), k=5, candidates=found
        )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--kernel", "linear"), "has no distances"),
        (("--shard", "1/2"), "--self-first and --shard"),
    ],
)
def test_rows_that_cannot_begin_with_themselves_are_refused(
    run, tmp_path, options, told
):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(40, 3)))
    target = tmp_path / "knn.npz"
    done = run("search", tmp_path / "x.npy", "-o", target, "--self-first", *options)
    assert done.code == 2
    assert told in done.err
    assert not target.exists()


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_rows_that_begin_with_themselves_give_the_same_graph(run, tmp_path, suffix):
    x = np.random.default_rng(0).normal(size=(40, 3))
    np.save(tmp_path / "x.npy", np.concatenate([x, x[:3]]))
    features, knn = tmp_path / "x.npy", tmp_path / f"knn.{suffix}"
    assert run("search", features, "-k", 9, "-o", knn, "--self-first").code == 0
    search = f"precomputed:path={knn}"
    lines = {"a": (), "b": ("--search", search)}
    made = []
    for name, more in lines.items():
        target = tmp_path / f"{name}.npz"
        assert run("build", features, "-k", 9, "-o", target, *more).code == 0
        made.append(formats.read_graph(target).adjacency)
    assert (made[0] != made[1]).nnz == 0


def test_what_compares_all_rows_says_so():
    x = np.random.default_rng(0).normal(size=(300, 4))
    for search in ("exact", "kdtree"):
        assert find_candidates(x, k=5, search=search).exact
    known = find_candidates(x, k=5, search="exact")
    assert not find_candidates(x, k=5, search=Precomputed.of(known)).exact


@pytest.mark.parametrize("index", [np.arange(6), np.full((6, 2), 1.0)])
def test_candidates_that_are_no_matrix_of_whole_numbers_are_refused(index):
    with pytest.raises(InputError, match="a matrix of row numbers is needed"):
        Precomputed.of(index)
