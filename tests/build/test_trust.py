"""No silent gaps: bridges, candidates that grow, rounding, and gates."""

import itertools
import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from nnkgraph.build.graph import build_graph, find_candidates, rounded
from nnkgraph.cli.outcome import check_quality
from nnkgraph.errors import ParameterError, QualityError
from nnkgraph.formats import read_graph, write_graph


@pytest.fixture(scope="module")
def digits():
    with h5py.File(SAMPLES / "digits.h5") as file:
        return file["features"][:].astype(float)


def without_bridges(graph):
    adjacency = graph.adjacency.tolil()
    for i, j in graph.bridges:
        adjacency[i, j] = adjacency[j, i] = 0
    adjacency = adjacency.tocsr()
    adjacency.eliminate_zeros()
    return adjacency


def islands(seed=0, count=6, size=30):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(count, 3)) * 40
    return np.concatenate([c + rng.normal(size=(size, 3)) for c in centers])


@pytest.mark.parametrize("method", ["nnk", "knn", "kstar"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cosine"])
def test_bridges_join_all_components_and_can_be_taken_out(method, kernel):
    x = islands()
    options = {"k": 5, "method": method, "kernel": kernel}
    plain = build_graph(x, **options)
    joined = build_graph(x, connect="mst", **options)
    assert plain.report["components"] > 1
    assert joined.report["components"] == 1
    assert len(joined.bridges) == plain.report["components"] - 1
    assert (without_bridges(joined) != plain.adjacency).nnz == 0
    assert (joined.adjacency != joined.adjacency.T).nnz == 0
    assert joined.adjacency.data.min() >= 1e-8


def test_bridges_are_a_minimum_spanning_tree_of_the_components():
    x = islands(seed=3)
    plain = build_graph(x, k=5)
    joined = build_graph(x, k=5, connect="mst")
    _, label = connected_components(plain.adjacency)
    distance = np.sqrt(np.square(x[:, None] - x).sum(-1))
    count = label.max() + 1
    between = np.full((count, count), np.inf)
    for a in range(count):
        for b in range(count):
            between[a, b] = distance[np.ix_(label == a, label == b)].min()
    between[np.arange(count), np.arange(count)] = 0
    tree = minimum_spanning_tree(between)
    length = distance[joined.bridges[:, 0], joined.bridges[:, 1]]
    assert np.sort(length) == pytest.approx(np.sort(tree.data))


def test_bridges_that_tie_are_those_of_the_lowest_nodes():
    # Two ladders side by side, in an order that has nothing to do with place.
    x = np.array([[y, side] for side in (0.0, 9.0) for y in range(6)])
    order = np.array([7, 3, 10, 1, 8, 5, 0, 11, 4, 2, 9, 6])
    joined = build_graph(x[order], k=2, connect="mst")
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(12), 2)
        if np.square(x[order[i]] - x[order[j]]).sum() == 81
    ]
    assert len(pairs) == 6
    assert joined.bridges.tolist() == [list(min(pairs))]


def test_of_bridges_that_tie_the_lower_end_counts_first():
    # The smaller side asks, and finds row 0 with the highest of the others first.
    x = [[y, 0.0] for y in range(5)] + [[y, 9.0] for y in (5, 4, 3, 2, 1, 0)]
    assert build_graph(np.array(x), k=2, connect="mst").bridges.tolist() == [[0, 10]]


def test_stored_candidates_of_a_copy_are_its_first_row(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    both = np.concatenate([x, x[[5, 5, 7]]])
    found = find_candidates(both, k=6)
    np.savez(tmp_path / "knn.npz", neighbors=found.index)
    search = f"precomputed:path={tmp_path / 'knn.npz'}"
    stored = build_graph(both, k=6, search=search).candidates
    assert stored[40:].tolist() == [[5, *[-1] * 5], [5, *[-1] * 5], [7, *[-1] * 5]]
    alone = find_candidates(x, k=6).index
    assert np.sort(stored[:40]).tolist() == np.sort(alone).tolist()


def test_copies_hang_on_connected_rows():
    x = islands()
    joined = build_graph(np.concatenate([x, x[::3]]), k=5, connect="mst")
    assert joined.report["components"] == 1
    assert joined.bridges.max() < len(x)


@pytest.mark.parametrize("name", ["g.npz", "g.tsv", "g.graphml", "g.mtx"])
def test_every_format_remembers_the_bridges(tmp_path, name):
    graph = build_graph(islands(), k=5, connect="mst")
    write_graph(tmp_path / name, graph)
    again = read_graph(tmp_path / name)
    assert np.array_equal(again.bridges, graph.bridges)
    assert (again.adjacency != graph.adjacency).nnz == 0


def test_bridges_of_local_bandwidths_weigh_by_their_mean():
    x = islands()
    graph = build_graph(x, k=5, sigma="local", connect="mst", min_weight=0)
    low, high = graph.bridges.T
    square = np.square(x[low] - x[high]).sum(-1)
    expected = np.exp(-square / (2 * graph.report["sigma"] ** 2))
    weights = graph.adjacency.tocsr()[low, high]
    assert weights == pytest.approx(expected, rel=1e-12)


def test_what_cannot_be_connected():
    with pytest.raises(ParameterError, match="directed"):
        build_graph(islands(), connect="mst", symmetrize="none")
    with pytest.raises(ParameterError, match="function"):
        build_graph(islands(), connect="mst", kernel="numpy:dot")
    with pytest.raises(ParameterError, match="choose from"):
        build_graph(islands(), connect="tree")


def largest_outside(x, sigma, graph_rows, candidates):
    """Return each node's largest residual over all points that are no candidates."""
    gram = np.exp(-np.square(x[:, None] - x).sum(-1) / (2 * sigma**2))
    residual = gram - graph_rows @ gram
    for i, row in enumerate(candidates):
        residual[i, row[row >= 0]] = -np.inf
        residual[i, i] = -np.inf
    return residual.max(axis=1)


@pytest.mark.parametrize("method", ["nnk", "omp"])
def test_candidates_grow_until_nothing_outside_matters(digits, method):
    x = np.unique(digits[:500], axis=0)
    sigma = build_graph(x, k=30).report["sigma"]
    options = {"k": 5, "sigma": sigma, "symmetrize": "none", "min_weight": 0}
    graph = build_graph(x, grow=0.01, max_k=len(x) - 1, method=method, **options)
    outside = graph.report["outside"]
    assert graph.report["candidates_grown"] > 100
    assert outside["nodes_bounded"] == 0
    found = largest_outside(x, sigma, graph.adjacency, graph.candidates)
    assert found.max() <= 0.01 + 1e-12
    assert (found <= np.array(outside["nodes"]) + 1e-12).all()
    fixed = build_graph(x, **options)
    missed = largest_outside(x, sigma, fixed.adjacency, build_graph_candidates(x, 5))
    assert (missed > 0.01).any()  # there was something to find


def build_graph_candidates(x, k):
    distance = np.square(x[:, None] - x).sum(-1)
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1, kind="stable")[:, :k]


def test_a_bound_on_k_is_kept_and_reported(digits):
    x = digits[:400]
    graph = build_graph(x, k=5, sigma=20.0, grow=0.01, max_k=11)
    assert graph.candidates.shape[1] <= 11
    assert graph.report["outside"]["nodes_bounded"] > 0


def test_the_check_bounds_what_is_outside(digits):
    x = np.unique(digits[:300], axis=0)
    how = {"k": 10, "symmetrize": "none", "min_weight": 0}
    graph = build_graph(x, **how, k_check=True, sigma="auto")
    bound = np.array(graph.report["outside"]["nodes"])
    sigma = graph.report["sigma"]
    found = largest_outside(x, sigma, graph.adjacency, build_graph_candidates(x, 10))
    assert (found <= bound + 1e-12).all()
    plain = build_graph(x, **how, sigma="auto")
    assert (plain.adjacency != graph.adjacency).nnz == 0
    own = build_graph(x, **how, k_check=True)  # a third of the distance to the last
    assert own.report["outside"]["nodes"] == pytest.approx(
        np.full(len(x), np.exp(-4.5))
    )
    assert (own.adjacency != build_graph(x, **how).adjacency).nnz == 0
    assert graph.candidates is None


@pytest.mark.parametrize("method", ["nnk", "omp"])
def test_candidates_that_grow_to_all_rows_are_those_of_the_largest_k(method):
    x = np.random.default_rng(4).normal(size=(23, 2))
    options = {"method": method, "sigma": 1.0, "min_weight": 0, "symmetrize": "none"}
    grown = build_graph(x, k=1, grow=1e-12, max_k=100, **options)
    whole = build_graph(x, k=22, **options)
    assert grown.report["candidates_grown"] == 23
    assert grown.report["outside"]["nodes"] == [0.0] * 23
    assert (grown.adjacency != whole.adjacency).nnz == 0
    assert grown.errors.tolist() == whole.errors.tolist()
    assert grown.report["certificate"] == whole.report["certificate"]


def test_candidates_double_until_they_are_enough(digits):
    x = np.unique(digits[:200], axis=0)
    graph = build_graph(x, k=5, sigma=16.0, grow=0.03, max_k=len(x) - 1)
    counts = set((graph.candidates >= 0).sum(axis=1))
    assert counts == {5, 10, 20, 40}


def test_what_a_method_leaves_of_its_own_candidates_is_no_reason_to_grow():
    # All that is near is a candidate: a pursuit leaves residuals where it was.
    x = 1e3 * np.arange(9)[:, None] + np.array([0, 1, 1.5, 2.1, 2.3])
    x = x.reshape(-1, 1)
    graph = build_graph(x, k=4, method="mp", sigma=1.0, grow=1e-6, max_k=20)
    assert graph.report["candidates_grown"] == 0
    assert graph.report["outside"]["nodes"] == [0.0] * 45


@pytest.mark.parametrize(("k", "outside"), [(4, 2), (5, 1), (6, 0)])
def test_nothing_is_outside_only_where_all_rows_are_candidates(k, outside):
    x = np.random.default_rng(8).normal(size=(7, 2))
    bounds = build_graph(x, k=k, sigma=1.0, k_check=True).report["outside"]["nodes"]
    distance = np.sort(np.square(x[:, None] - x).sum(-1), axis=1)[:, k]
    expected = np.exp(-distance / 2) if outside else np.zeros(7)
    assert bounds == pytest.approx(expected, rel=1e-12)


def test_k_itself_may_be_the_most(digits):
    graph = build_graph(digits[:50], k=5, sigma=20.0, grow=0.01, max_k=5)
    assert graph.report["candidates_grown"] == 0
    assert graph.report["outside"]["nodes_bounded"] > 0


def test_what_cannot_grow():
    x = islands()
    with pytest.raises(ParameterError, match="max_k is 3"):
        build_graph(x, k=5, grow=0.1, max_k=3)
    with pytest.raises(ParameterError, match="with grow only"):
        build_graph(x, k=5, max_k=30)
    for options in ({"kernel": "linear"}, {"method": "knn"}, {"sigma": "local"}):
        with pytest.raises(ParameterError):
            build_graph(x, grow=0.1, **options)
    for wrong in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(ParameterError, match="above 0"):
            build_graph(x, grow=wrong)


def test_weights_are_rounded_to_significant_digits(run, tmp_path):
    out = tmp_path / "g.tsv"
    roll = SAMPLES / "swiss_roll.npy"
    assert run("build", roll, "-o", out, "--round", 5).code == 0
    weights = [
        line.split("\t")[2]
        for line in out.read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(float(w) == float(f"{float(w):.5g}") for w in weights)
    exact = build_graph(np.load(roll))
    graph = read_graph(out)
    assert graph.adjacency.data == pytest.approx(exact.adjacency.data, rel=1e-4)
    assert graph.provenance["digits"] == 5


@pytest.mark.parametrize("digits", [1, 3, 15])
def test_rounding_is_what_printing_does(digits):
    rng = np.random.default_rng(0)
    values = np.concatenate([10 ** rng.uniform(-279, 290, 500), [0.0, 1.0]])
    expected = [float(f"{v:.{digits - 1}e}") for v in values]
    assert rounded(values, digits) == pytest.approx(expected, rel=1e-14, abs=0)


def test_a_missed_recall_fails_after_the_graph_was_written(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 3))
    np.save(tmp_path / "x.npy", x)
    wrong = np.random.default_rng(1).integers(0, 200, (200, 8))
    np.savez(tmp_path / "knn.npz", neighbors=wrong)
    call = ("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz", "-k", 8)
    search = ("--search", f"precomputed:path={tmp_path / 'knn.npz'}")
    result = run(*call, *search, "--min-recall", 0.9)
    assert result.code == 6
    assert "recall" in result.lines[-1]
    assert sparse.load_npz(tmp_path / "g.npz").shape == (200, 200)
    assert run(*call, "--min-recall", 0.9).code == 0


def test_a_recall_that_nobody_knows_does_not_pass():
    known = {"failure": "", "certificate": None, "search": {"recall": None}}
    check_quality("g.npz", known, None)
    with pytest.raises(QualityError, match=r"g\.npz: .*unknown"):
        check_quality("g.npz", known, 0.0)


def test_the_command_says_what_grew_and_what_was_joined(run, tmp_path):
    np.save(tmp_path / "x.npy", islands())
    result = run(
        *("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz", "-k", 4),
        *("--grow", 0.05, "--max-k", 40, "--connect", "mst"),
        *("--report", tmp_path / "r.json"),
    )
    assert result.code == 0, result.err
    report = json.loads((tmp_path / "r.json").read_text())
    assert f"connected: {report['bridges']} bridges" in result.err
    assert f"{report['candidates_grown']} nodes grew" in result.err
    assert len(report["outside"]["nodes"]) == 180


@pytest.mark.parametrize("duplicates", ["merge", "keep"])
def test_copies_that_see_only_each_other_are_counted(duplicates):
    # A far row is a candidate of nobody: the rule isolates it, with its copies.
    x = np.concatenate([islands(count=1, size=60), np.full((3, 3), 500.0)])
    options = {"k": 8, "duplicates": duplicates}
    graph = build_graph(x, **options, preset="paper")
    assert graph.report["copies_apart"] == 1
    assert any("copies of one row" in line for line in graph.report["warnings"])
    for mended in ({"min_degree": 3}, {"connect": "mst"}):
        if duplicates == "merge":
            graph = build_graph(x, sigma=100.0, **options, **mended)
            assert graph.report["copies_apart"] == 0


@pytest.mark.parametrize(
    ("options", "said", "unsaid"),
    [
        ({}, ["`min_degree=3`", "`symmetrize='error-union'`", "`sigma='local'`"], []),
        ({"method": "eps:radius=0.01"}, ["`connect='mst'`"], ["error-union"]),
        ({"kernel": "linear", "scale": "unit"}, ["cosine"], ["`scale", "`sigma"]),
        ({"kernel": "linear"}, ["`scale='unit'`"], ["`sigma"]),
    ],
)
def test_advice_names_what_was_not_tried(options, said, unsaid):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 60)) ** 3
    lines = build_graph(x, k=3, preset="paper", **options).report["warnings"]
    line = next(line for line in lines if "isolated" in line)
    assert all(word in line for word in said)
    assert not any(word in line for word in unsaid)


def test_nothing_about_edges_is_advised_where_each_nodes_heaviest_stay():
    x = np.random.default_rng(0).normal(size=(300, 60)) ** 3
    (line,) = build_graph(x, k=3, sigma=0.1, min_degree=1).report["warnings"][1:]
    assert "isolated; try `sigma='local'` or `connect='mst'`" in line


def test_info_shows_how_many_candidates_nodes_kept(run, tmp_path):
    graph = build_graph(islands(), k=9)
    kept = (build_graph(islands(), k=9, symmetrize="none").adjacency > 0).sum(axis=1)
    for name in ("g.npz", "g.tsv", "g.graphml"):
        write_graph(tmp_path / name, graph)
        shown = json.loads(run("info", tmp_path / name, "--json").out)["support"]
        assert shown["mean"] == pytest.approx(kept.mean())
        assert shown["max"] == kept.max()


@pytest.mark.parametrize("damaged", [5, "x", [1.5], [-1, 2], [10**9], {"a": 1}])
def test_info_survives_odd_provenance(run, tmp_path, damaged):
    graph = build_graph(islands(), k=9)
    known = {**graph.provenance, "support_sizes": damaged}
    write_graph(tmp_path / "g.npz", replace(graph, provenance=known))
    result = run("info", tmp_path / "g.npz", "--json")
    assert result.code == 0
    assert json.loads(result.out)["support"] == {}
