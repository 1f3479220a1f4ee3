"""Bad parameters and odd data through the command."""

import json

import numpy as np
import pytest
import scipy.sparse
from conftest import brute_force
from faults import assert_one_line, content

from nnkgraph.build.graph import build_graph
from nnkgraph.formats import read_graph


@pytest.fixture
def refused(run, points, tmp_path, monkeypatch):
    """Run a build that has to fail at its options, and leave nothing behind."""
    monkeypatch.chdir(tmp_path)

    def call(code, words, *options):
        before = content(tmp_path)
        result = run("build", "points.npy", "-o", "g.npz", *options)
        assert result.code == code, result.err
        assert_one_line(result.err, words)
        assert not result.out
        assert content(tmp_path) == before

    return call


@pytest.mark.parametrize("k", ["0", "-1", "1.5", "ten"])
def test_b01_k_has_to_be_a_positive_integer(refused, k):
    refused(2, f"'-k' / '--k'.*{k}", "-k", k)


def test_b02_k_is_below_the_number_of_rows(refused, run, points, tmp_path):
    for k in (60, 10**9):
        refused(3, "points.npy: k is .* a node of 60 can have at most 59", "-k", k)
    np.save(tmp_path / "few.npy", np.load(points)[:9])
    assert run("build", tmp_path / "few.npy", "-o", tmp_path / "g.npz").code == 0
    assert read_graph(tmp_path / "g.npz").provenance["k"] == 8


@pytest.mark.parametrize("sigma", ["0", "-2", "nan", "inf", "-inf", "1e999"])
def test_b04_a_bandwidth_is_positive_and_finite(refused, sigma):
    refused(2, "'--sigma'", "--sigma", sigma)


@pytest.mark.parametrize(("sigma", "word"), [("1e-9", "small"), ("1e9", "large")])
def test_b05_extreme_bandwidths_warn(run, points, tmp_path, sigma, word):
    target = tmp_path / "g.npz"
    result = run("build", points, "-o", target, "--sigma", sigma)
    assert result.code == 0, result.err
    assert any("nnkgraph: warning: " in x and word in x for x in result.lines)
    graph = read_graph(target)
    assert np.isfinite(graph.adjacency.data).all()
    assert np.isfinite(graph.errors).all()


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("--kernel", "cosine.*gaussian"),
        ("--method", "knn.*nnk"),
        ("--search", "exact.*kdtree"),
        ("--executor", "processes.*serial"),
        ("--symmetrize", "'error'.*'max'"),
    ],
)
def test_b06_unknown_names_bring_the_choices(refused, option, choices):
    refused(2, f"{option}.*{choices}", option, "nope")


@pytest.mark.parametrize("workers", ["0", "-1", "many"])
def test_b07_workers_are_a_number_or_auto(refused, workers):
    refused(2, "'-j' / '--workers'", "-j", workers)


def test_b08_seeds_are_unsigned_and_reproducible(refused, run, points, tmp_path):
    for seed in (-1, 2**32, "x"):
        refused(2, "'--seed'", "--seed", seed)
    graphs = set()
    for _ in range(2):
        target = tmp_path / "g.npz"
        assert run("build", points, "-o", target, "--seed", 2**32 - 1).code == 0
        graphs.add(target.read_bytes())
    assert len(graphs) == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--kernel", "cosine", "--sigma", "1"),
        ("--kernel", "gaussian:sigma=1", "--sigma", "2"),
        ("--method", "knn", "--symmetrize", "error"),
        ("--max-k", "50"),
        ("--grow", "0.1", "--max-k", "3", "-k", "9"),
        ("--connect", "mst", "--symmetrize", "none"),
        ("--report", "g.npz"),
        ("--delimiter", ";"),
    ],
)
def test_b09_options_that_contradict_each_other_are_refused(refused, options):
    refused(2, "nnkgraph: error: ", *options)


def test_b14_version_and_help_ignore_a_broken_environment(program):
    env = {"NNKGRAPH_BUILD_K": "zz", "NNKGRAPH_WORKERS": "x", "NNKGRAPH_INFO_JSON": "?"}
    for args in (["--version"], ["--help"], ["info", "--help"]):
        assert program(*args, env=env).code == 0


@pytest.mark.parametrize("env", [{"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}])
def test_b15_numbers_are_written_the_same_in_every_country(program, points, env):
    texts = [
        program("build", points, "-o", "-", "--format", "tsv", "-q", env=one).out
        for one in (None, env)
    ]
    assert texts[0] == texts[1]
    assert len(texts[0]) > 1000


def test_c01_c04_matrices_without_rows_or_columns_are_refused(run, tmp_path):
    for shape, word in (((0, 3), "no rows"), ((3, 0), "no columns")):
        np.save(tmp_path / "x.npy", np.zeros(shape))
        result = run("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz")
        assert result.code == 3
        assert_one_line(result.err, f"x.npy: the matrix has {word}")
    assert not (tmp_path / "g.npz").exists()


def test_c09_the_first_bad_value_is_placed_and_all_are_counted(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 4))
    x[7:, 2] = np.nan
    x[9, 0] = np.inf
    np.save(tmp_path / "x.npy", x)
    result = run("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz")
    assert result.code == 3
    expected = r"NaN at row 7, column 2.*; 23 such values.*and 1 infinite"
    assert_one_line(result.err, expected)


def test_c02_one_row_is_one_isolated_node(run, tmp_path):
    np.save(tmp_path / "x.npy", [[1.0, 2.0]])
    target = tmp_path / "g.npz"
    assert run("build", tmp_path / "x.npy", "-o", target).code == 0
    shown = json.loads(run("info", target, "--json").out)
    assert (shown["nodes"], shown["edges"], shown["isolated"]) == (1, 0, 1)


def test_c07_copies_make_no_loops_and_the_same_graph_again():
    x = np.repeat(np.random.default_rng(0).integers(0, 4, (12, 2)), 9, axis=0)
    for duplicates in ("merge", "keep"):
        graphs = [build_graph(x, k=4, duplicates=duplicates) for _ in range(2)]
        first, second = (graph.adjacency for graph in graphs)
        assert not first.diagonal().any()
        assert (first != first.T).nnz == 0
        assert (first != second).nnz == 0


@pytest.mark.parametrize("value", [1e300, 1e-300, 5e-324])
def test_c12_squares_never_leave_the_range(run, tmp_path, value):
    x = np.random.default_rng(0).integers(1, 9, (20, 3)) * value
    np.save(tmp_path / "x.npy", x)
    result = run("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz")
    assert result.code == 3
    assert_one_line(result.err, "leave the range of squared distances")
    x[0] = 1.0  # tiny values beside ordinary ones are ordinary zeros
    if value < 1:
        np.save(tmp_path / "x.npy", x)
        target = tmp_path / "g.npz"
        assert run("build", tmp_path / "x.npy", "-o", target, "--sigma", 1).code == 0
        assert np.isfinite(scipy.sparse.load_npz(target).data).all()


def test_c13_offsets_that_leave_the_data_exact_change_nothing():
    x = np.random.default_rng(0).integers(0, 50, (80, 5)).astype(float)
    graph = build_graph(x, k=9)
    for moved in (x + 1e6, (x + 1e6).astype(np.int64), x + 1e9):
        other = build_graph(moved, k=9)
        assert np.array_equal(graph.adjacency.indices, other.adjacency.indices)
        assert np.array_equal(graph.adjacency.data, other.adjacency.data)


def test_c16_hubs_cost_recall_which_is_reported_and_gated(run, tmp_path, monkeypatch):
    import pynndescent

    x = np.random.default_rng(0).normal(size=(400, 200))
    truth, _ = brute_force(x, 10)
    hubs = np.argsort(-np.bincount(truth.ravel(), minlength=400))[:20]
    found = [
        [*row[:4], *[h for h in hubs if h != i and h not in row[:4]][:6]]
        for i, row in enumerate(truth.tolist())
    ]

    class Hubs:
        """A search that finds the hubs for everybody, and little else."""

        def __init__(self, data, *, n_neighbors, **_):
            index = np.column_stack([np.arange(400), found])
            self.neighbor_graph = index[:, :n_neighbors], None

    monkeypatch.setattr(pynndescent, "NNDescent", Hubs)
    np.save(tmp_path / "x.npy", x)
    call = ("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz", "-k", 10)
    options = ("--search", "pynndescent:threads=1", "--report", tmp_path / "r.json")
    result = run(*call, *options, "--min-recall", 0.9, "-q")
    assert result.code == 6, result.err
    assert "recall of the search" in result.lines[-1]
    reported = json.loads((tmp_path / "r.json").read_text())["search"]["recall"]
    kept = read_graph(tmp_path / "g.npz").candidates  # what others saw was added
    true = np.mean(
        [len(set(a) & set(b)) / 10 for a, b in zip(truth, kept, strict=True)]
    )
    assert reported == pytest.approx(true, abs=0.05)
    assert (tmp_path / "g.npz").exists()
    assert run(*call, *options, "--min-recall", 0.1, "-q").code == 0
