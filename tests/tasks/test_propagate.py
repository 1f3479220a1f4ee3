"""Label propagation: harmonic functions, unreached nodes, errors, files."""

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp

from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.data import Graph
from nnkgraph.data.labels import Labels, folds_of
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.tasks.laplacian import can_factor, fill
from nnkgraph.tasks.propagate import Propagator, errors, propagate, sample
from paper.inverse import InversePropagator


def propagated(graph, codes, classes, *, solver, **options):
    """Propagate, also with the paper's solver: an inverse kept for many labelings."""
    if solver == "inverse":
        return InversePropagator(graph)(codes, classes, **options)
    return Propagator(graph)(codes, classes, solver=solver, **options)


def graph_of(weights, **more):
    matrix = sp.csr_array(np.asarray(weights, float))
    matrix.sort_indices()
    return Graph(matrix, **more)


def path(n, **more):
    return graph_of(np.eye(n, k=1) + np.eye(n, k=-1), **more)


@pytest.fixture(scope="module")
def blobs():
    """500 points in three groups, a graph on them, and their classes."""
    rng = np.random.default_rng(3)
    classes = rng.integers(0, 3, 500)
    x = 2.5 * np.eye(3, 5)[classes] + rng.normal(size=(500, 5))
    return build_graph(x, k=12, min_degree=1, connect="mst"), classes


def dense_harmonic(graph, codes, classes, laplacian):
    """The definition, with dense matrices."""
    w = graph.adjacency.toarray()
    np.fill_diagonal(w, 0.0)
    degree = w.sum(axis=1)
    full = np.diag(degree) - w
    if laplacian == "normalized":
        full = full / np.sqrt(np.outer(degree, degree))
    u, known = np.flatnonzero(codes < 0), np.flatnonzero(codes >= 0)
    given = np.eye(classes)[codes[known]]
    y = np.zeros((len(codes), classes))
    y[known] = given
    y[u] = -np.linalg.solve(full[np.ix_(u, u)], full[np.ix_(u, known)] @ given)
    return y


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize("solver", ["factor", "cg", "amg", "auto", "inverse"])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_weights_are_those_of_a_dense_solve(
    blobs, laplacian, solver, share, monkeypatch
):
    monkeypatch.setattr("nnkgraph.tasks.propagate._FEW", 10)
    graph, truth = blobs
    codes = sample(truth, share, 1)
    expected = dense_harmonic(graph, codes, 3, laplacian)
    found = propagated(graph, codes, 3, laplacian=laplacian, solver=solver)
    np.testing.assert_allclose(found.weights, expected, rtol=0, atol=1e-8)
    assert found.facts["error_bound"] < 1e-8
    stepped = found.facts["predicted"] if solver in {"cg", "amg"} else 0
    assert found.facts["cg_nodes"] == stepped
    assert found.codes.tolist() == expected.argmax(axis=1).tolist()
    winner = expected.max(axis=1) / expected.sum(axis=1)
    np.testing.assert_allclose(found.confidence, winner, atol=1e-8)


def test_both_laplacians_differ_where_degrees_do(blobs):
    graph, truth = blobs
    codes = sample(truth, 0.05, 0)
    ready = Propagator(graph)
    plain = ready(codes, 3, laplacian="combinatorial").weights
    normal = ready(codes, 3, laplacian="normalized").weights
    np.testing.assert_allclose(plain.sum(axis=1), 1, atol=1e-10)
    assert np.abs(normal - plain).max() > 0.01


def test_the_bound_holds_where_a_weak_edge_makes_it_hard():
    weights = np.eye(60, k=1) + np.eye(60, k=-1)
    weights[20, 21] = weights[21, 20] = 1e-6
    weights[40, 41] = weights[41, 40] = 1e-4
    codes = np.full(60, -1)
    codes[[0, 59]] = 0, 1
    # On a path the function is linear in the resistance.
    ohm = np.concatenate([[0], np.cumsum(1 / np.diag(weights, 1))])
    for solver in ("factor", "cg", "amg", "inverse"):
        found = propagated(graph_of(weights), codes, 2, solver=solver)
        wrong = np.abs(found.weights[:, 1] - ohm / ohm[-1]).max()
        assert wrong <= max(found.facts["error_bound"], 1e-15)
        assert wrong < 1e-8


def test_multigrid_takes_few_steps_and_gives_the_same():
    x = np.random.default_rng(0).random((4000, 3))
    graph = build_graph(x, k=10, connect="mst")
    codes = np.full(4000, -1)
    codes[:4] = 0, 1, 0, 1
    steps, coarse = (
        propagated(graph, codes, 2, solver=one).facts for one in ("cg", "amg")
    )
    assert coarse["cg_steps"] < steps["cg_steps"] / 5
    assert coarse["error_bound"] < 1e-9
    each = [
        propagate(graph, Labels.of(codes, minus_one=True), solver=one, check=True)
        for one in ("cg", "amg")
    ]
    np.testing.assert_allclose(each[1].weights, each[0].weights, atol=1e-8)
    np.testing.assert_allclose(
        each[1].checked.confidence, each[0].checked.confidence, atol=1e-8
    )


def test_self_loops_do_not_count():
    weights = np.eye(5, k=1) + np.eye(5, k=-1)
    codes = np.array([0, -1, -1, -1, 1])
    plain = Propagator(graph_of(weights))(codes, 2).weights
    loops = Propagator(graph_of(weights + np.diag([0, 3, 0, 1, 2])))(codes, 2).weights
    np.testing.assert_allclose(loops, plain, atol=1e-14)


@pytest.mark.parametrize("solver", ["factor", "cg", "inverse"])
def test_nodes_without_a_way_to_a_label_stay_empty(solver):
    weights = np.zeros((7, 7))
    for a, b in [(0, 1), (1, 2), (3, 4)]:
        weights[a, b] = weights[b, a] = 1
    codes = np.array([0, -1, 1, -1, -1, -1, 1])
    found = propagated(graph_of(weights), codes, 2, solver=solver)
    assert found.unreached.tolist() == [False] * 3 + [True] * 3 + [False]
    assert found.codes.tolist() == [0, 0, 1, -1, -1, -1, 1]
    assert np.isnan(found.confidence[3:6]).all()
    assert np.isnan(found.weights[3:6]).all()
    assert found.confidence[1] == pytest.approx(0.5)
    facts = found.facts
    assert facts["unreached"] == 3
    assert facts["unreached_components"] == 2
    assert facts["labelled"] + facts["predicted"] + facts["unreached"] == 7


def test_all_labels_given_is_no_work_at_all():
    codes = np.array([0, 1, 1])
    for solver in ("auto", "cg", "inverse"):
        found = propagated(path(3), codes, 2, solver=solver)
        assert found.codes.tolist() == [0, 1, 1]
        assert found.facts["predicted"] == 0


def test_errors_are_counted_with_and_without_the_unreached():
    weights = np.zeros((6, 6))
    for a, b in [(0, 1), (1, 2)]:
        weights[a, b] = weights[b, a] = 1
    found = Propagator(graph_of(weights))(np.array([0, -1, -1, -1, -1, 1]), 2)
    truth = np.array([0, 0, 1, 1, -1, 0])
    counts = errors(found, truth, np.array([1, 1, 1, 1, 0, 1], bool))
    assert counts == {
        "checked": 3,
        "right": 1,
        "wrong": 1,
        "unreached": 1,
        "of_reached": 0.5,
        "of_all": pytest.approx(2 / 3),
    }
    assert errors(found, truth, np.zeros(6, bool)) is None
    # A class that no label has is never right, not even for an unreached node.
    none = errors(found, np.full(6, -1), np.ones(6, bool))
    assert none["right"] == 0
    assert none["right"] + none["wrong"] + none["unreached"] == none["checked"] == 4


def test_a_sample_keeps_the_share_of_each_class_and_one_at_least():
    codes = np.repeat([0, 1, 2, -1], [100, 40, 3, 10])
    kept = sample(codes, 0.1, 7)
    assert np.bincount(kept[kept >= 0]).tolist() == [10, 4, 1]
    assert (kept[kept >= 0] == codes[kept >= 0]).all()
    assert sample(codes, 0.1, 7).tolist() == kept.tolist()
    assert sample(codes, 0.1, 8).tolist() != kept.tolist()
    with pytest.raises(ParameterError, match="between 0 and 1"):
        sample(codes, 1.0, 0)


def test_ids_bring_labels_into_the_order_of_the_nodes():
    graph = path(4, ids=("a", "b", "c", "d"))
    labels = Labels.of(["right", "left"], ids=["d", "a"])
    found = propagate(graph, labels)
    assert [labels.classes[one] for one in found.codes] == ["left"] * 2 + ["right"] * 2


def test_what_cannot_be_propagated_is_refused():
    labels = Labels.of(["x", "", "y"])
    with pytest.raises(InputError, match="directed"):
        propagate(graph_of(np.eye(3, k=1), directed=True), labels)
    with pytest.raises(InputError, match="3 labels, but graph has 4 nodes"):
        propagate(path(4), labels)
    with pytest.raises(InputError, match="all 3 labels are missing"):
        propagate(path(3), Labels.of(["", "NA", ""]))
    with pytest.raises(ParameterError, match="combinatorial"):
        propagate(path(3), labels, laplacian="other")


def test_only_narrow_graphs_are_factored():
    side = 60
    line = sp.diags_array([np.ones(side - 1)] * 2, offsets=[1, -1])
    eye = sp.eye_array(side)
    sheet = sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))
    assert can_factor(sheet)
    rng = np.random.default_rng(0)
    n = 20_000
    ends = np.array([np.tile(np.arange(n), 8), rng.integers(0, n, 8 * n)])
    tangle = sp.csr_array((np.ones(8 * n), tuple(ends)), (n, n))
    tangle = sp.csr_array(tangle + tangle.T)
    assert not can_factor(tangle)
    star = sp.csr_array((np.ones(n - 1), (np.zeros(n - 1, int), np.arange(1, n))))
    star.resize((n, n))
    assert fill(sp.csr_array(star + star.T)) < 10 * n


@pytest.fixture
def files(tmp_path, blobs):
    graph, truth = blobs
    formats.write_graph(tmp_path / "g.npz", graph)
    np.save(tmp_path / "y.npy", truth)
    np.save(tmp_path / "some.npy", sample(truth, 0.1, 0))
    return tmp_path


def test_the_command_writes_tables_that_read_back_as_labels(run, files, blobs):
    graph, truth = blobs
    call = ("propagate", files / "g.npz", "--labels", files / "some.npy")
    result = run(*call, "--truth", files / "y.npy", "--json", "-o", files / "a.csv")
    assert result.code == 0, result.err
    about = json.loads(result.out)
    given = sample(truth, 0.1, 0)
    expected = dense_harmonic(graph, given, 3, "combinatorial")
    predicted = expected.argmax(axis=1)
    assert about["error"]["wrong"] == (predicted != truth).sum()
    assert about["error"]["of_all"] == about["error"]["wrong"] / (given < 0).sum()
    assert "error" in result.err
    with (files / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:4] == ["id", "label", "confidence", "given"]
    assert [int(row["label"]) for row in rows] == predicted.tolist()
    assert [row["given"] == "yes" for row in rows] == (given >= 0).tolist()
    weights = [[float(row[f"weight_{c}"]) for c in range(3)] for row in rows]
    np.testing.assert_allclose(weights, expected, atol=1e-8)
    back = formats.read_labels(f"{files / 'a.csv'}::label")
    assert back.codes.tolist() == predicted.tolist()
    assert run(*call, "-o", files / "a.npz").code == 0
    with np.load(files / "a.npz") as archive:
        assert archive["labels"].tolist() == predicted.astype(str).tolist()
        np.testing.assert_allclose(archive["weights"], expected, atol=1e-8)


def test_a_sample_of_the_labels_is_checked_against_the_others(run, files):
    call = ("propagate", files / "g.npz", "--labels", files / "y.npy", "--json")
    call += ("--sample", "0.1", "-o", files / "a.csv")
    first, second, other = (run(*call, "--seed", seed).out for seed in (3, 3, 4))
    assert first == second != other
    about = json.loads(first)
    assert about["sample"] == 0.1
    assert about["error"]["checked"] == about["nodes"] - about["labelled"]
    assert 0 < about["error"]["of_reached"] < 0.5


def test_the_command_says_which_nodes_labels_do_not_reach(run, tmp_path):
    weights = np.zeros((5, 5))
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 1
    formats.write_graph(tmp_path / "g.npz", graph_of(weights))
    (tmp_path / "y.csv").write_text("label\nx\nNA\nNA\n?\nx\n")
    call = ("propagate", tmp_path / "g.npz", "--labels", tmp_path / "y.csv")
    result = run(*call, "-o", "-")
    assert result.code == 0, result.err
    assert result.out.splitlines() == [
        "id,label,confidence,given,weight_x",
        "0,x,1.0,yes,1.0",
        "1,x,1.0,no,1.0",
        "2,,,no,",
        "3,,,no,",
        "4,x,1.0,yes,1.0",
    ]
    assert "2 of 5 nodes get no label" in result.err
    assert "only one class" in result.err


def left_out(graph, codes, classes, laplacian):
    """The share of a label's own class, and the heaviest, by propagating without it."""
    ready, shares, best = Propagator(graph), [], []
    for node in np.flatnonzero(codes >= 0):
        rest = codes.copy()
        rest[node] = -1
        found = ready(rest, classes, laplacian=laplacian, solver="factor")
        weights = found.weights[node]
        shares.append(weights[codes[node]] / weights.sum())
        best.append(found.codes[node])
    return np.array(shares), np.array(best)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 1.0])
def test_a_check_is_what_propagation_without_each_label_says(blobs, share, laplacian):
    graph, classes = blobs
    drawn = np.random.default_rng(7)
    codes = np.where(drawn.random(500) < share, classes, -1)
    labels = Labels.of(codes.astype(float), minus_one=True)
    codes = labels.codes
    shares, best = left_out(graph, codes, len(labels.classes), laplacian)
    # Few labels are within what steps may cost.
    for solver in ("factor", "auto") + ("cg",) * (share < 0.1):
        how = {"laplacian": laplacian, "solver": solver, "check": True}
        found = propagate(graph, labels, **how).checked
        assert found.facts["how"] == "exact"
        np.testing.assert_allclose(found.confidence, shares, atol=1e-9)
        np.testing.assert_array_equal(found.suggested, best)
        np.testing.assert_array_equal(found.nodes, np.flatnonzero(codes >= 0))
        assert found.facts["others"] == (best != found.codes).sum()


def test_a_check_finds_labels_that_were_flipped(blobs):
    graph, classes = blobs
    codes = classes.copy()
    flipped = np.random.default_rng(0).choice(500, 20, replace=False)
    codes[flipped] = (codes[flipped] + 1) % 3
    found = propagate(graph, Labels.of(codes), check=True).checked
    least = np.argsort(found.confidence, kind="stable")[:20]
    assert len(np.intersect1d(least, flipped)) >= 10
    assert (found.suggested[flipped] == classes[flipped]).mean() > 0.7


def test_labels_that_no_other_reaches_are_not_checked():
    w = np.zeros((7, 7))
    w[[0, 2, 3, 5], [1, 3, 4, 6]] = 1.0
    labels = Labels.of(["a", "", "a", "", "b", "a", "a"])
    found = propagate(graph_of(w + w.T), labels, check=True).checked
    assert found.suggested.tolist() == [-1, 1, 0, 0, 0]
    np.testing.assert_array_equal(found.confidence, [np.nan, 0, 0, 1, 1])
    assert found.facts["unreached"] == 1


def test_a_check_sees_other_labels_through_the_weakest_edges():
    # All but a hair of what leaves node 0 comes back to it.
    weak = np.array([[0, 1, 0, 0], [1, 0, 1e-17, 3e-17], [0, 1e-17, 0, 0]])
    weak = np.vstack([weak, [0, 3e-17, 0, 0]])
    found = propagate(graph_of(weak), Labels.of(["a", "", "a", "b"]), check=True)
    np.testing.assert_allclose(found.checked.confidence, [0.25, 1, 0], atol=1e-6)


def test_a_check_by_folds_leaves_out_a_tenth_of_every_class_at_a_time(
    blobs, monkeypatch
):
    graph, classes = blobs
    codes = np.where(np.arange(500) % 2, classes, -1)
    labels = Labels.of(codes.astype(float), minus_one=True)
    monkeypatch.setattr("nnkgraph.tasks.propagate._MOST_WORK", 0)
    found = propagate(graph, labels, check=True, seed=4).checked
    assert found.facts["how"] == "folds"
    nodes = np.flatnonzero(codes >= 0)
    fold = folds_of(codes[nodes], 10, 4)
    for one in range(10):
        rest = codes.copy()
        rest[nodes[fold == one]] = -1
        weights = Propagator(graph)(rest, 3).weights[nodes[fold == one]]
        own = weights[np.arange(len(weights)), codes[nodes[fold == one]]]
        np.testing.assert_allclose(
            found.confidence[fold == one], own / weights.sum(axis=1)
        )
    exact = left_out(graph, codes, 3, "combinatorial")[0]
    assert np.abs(found.confidence - exact).mean() < 0.1


@pytest.mark.parametrize("name", ["k.csv", "k.npz"])
def test_the_command_writes_what_known_labels_would_be(run, files, name):
    call = ("propagate", files / "g.npz", "--labels", files / "y.npy", "--check")
    result = run(*call, "--sample", "0.5", "--json", "-o", files / name)
    assert result.code == 0, result.err
    facts = json.loads(result.out)["check"]
    assert f"{facts['labels']} labels, each left out by itself" in result.err
    if name == "k.csv":
        with (files / name).open() as file:
            table = list(csv.DictReader(file))
        assert list(table[0]) == ["id", "label", "confidence", "suggested"]
        other = [one for one in table if one["label"] != one["suggested"]]
        assert all(0 <= float(one["confidence"]) <= 1 for one in table)
    else:
        with np.load(files / name) as table:
            other = np.flatnonzero(table["label"] != table["suggested"])
    assert len(other) == facts["others"]


def test_a_check_with_one_class_says_nothing(run, files):
    np.save(files / "one.npy", np.zeros(500, int))
    call = ("propagate", files / "g.npz", "--labels", files / "one.npy", "--check")
    result = run(*call, "-o", files / "k.csv")
    assert result.code == 0
    assert "only one class: a check says nothing" in result.err


MISTAKES = [
    ("--labels y.npy --check --truth y.npy -o a.csv", 2, "leave out --truth"),
    ("--labels short.npy --check -o a.csv", 3, "short.npy: 3 labels, but"),
    ("--labels none.csv --check -o a.csv", 3, "all 500 labels are missing"),
    ("--labels short.npy -o a.csv", 3, "short.npy: 3 labels, but"),
    ("--labels none.csv -o a.csv", 3, "none.csv: all 500 labels are missing"),
    ("--labels y.npy --truth short.npy -o a.csv", 3, "short.npy: 3 labels"),
    ("--labels y.npy --truth y.npy --sample 0.5 -o a.csv", 2, "leave out --truth"),
    ("--labels y.npy --sample 1.5 -o a.csv", 2, "--sample"),
    ("--labels y.npy -o a.xlsx", 2, ".csv, .tsv, .npz"),
    ("--labels y.npy -o - --json", 2, "not both"),
    ("--labels y.npy -o y.npy", 2, "also an input"),
    ("--labels gone.npy -o a.csv", 3, "gone.npy: no such file"),
    ("--labels y.npy -o no/a.csv", 4, "no directory"),
    ("-o a.csv", 2, "--labels"),
]


@pytest.mark.parametrize(("words", "code", "message"), MISTAKES)
def test_mistakes_have_their_code_and_leave_no_file(
    run, files, monkeypatch, words, code, message
):
    monkeypatch.chdir(files)
    np.save("short.npy", np.array([0, 1, 1]))
    (files / "none.csv").write_text("label\n" + "NA\n" * 500)
    result = run("propagate", "g.npz", *words.split())
    assert result.code == code, result.err
    assert message in result.err
    assert not (files / "a.csv").exists()


def test_negative_weights_are_refused():
    from nnkgraph.tasks.embed import embed

    graph = graph_of([[0, 1, 0], [1, 0, -1], [0, -1, 0]])
    with pytest.raises(InputError, match="negative weights"):
        embed(graph)
    with pytest.raises(InputError, match="negative weights"):
        propagate(graph, Labels.of(["a", "", "b"]))


def test_tiny_weights_are_solved_as_others_are():
    labels = Labels.of(["a", "", "", "", "b"])
    tiny = graph_of(path(5).adjacency.toarray() * 1e-310)
    assert propagate(tiny, labels).codes.tolist() == [0, 0, 0, 1, 1]


def test_groups_that_hang_by_hardly_anything_get_the_label_of_what_they_hang_on():
    # Two pairs: each far nearer to itself than to the labels, by 40 and 200 powers.
    edges = {(0, 2): 1e-40, (2, 3): 1.0, (1, 4): 1e-200, (4, 5): 1.0, (3, 4): 1e-120}
    dense = np.zeros((6, 6))
    for (i, j), weight in edges.items():
        dense[i, j] = dense[j, i] = weight
    found = propagate(graph_of(dense), Labels.of(["a", "b", "", "", "", ""]))
    assert found.codes.tolist() == [0, 1, 0, 0, 0, 0]
