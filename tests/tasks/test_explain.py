"""Explanations: why candidates were kept or dropped, as a table and as a picture."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy.optimize import nnls
from scipy.sparse import csr_array, save_npz

from nnkgraph.build.graph import build_graph
from nnkgraph.cli.commands.explain import table_of
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats import read_features, write_graph
from nnkgraph.tasks.explain import explain, explain_built, find_node
from nnkgraph.tasks.explain.picture import (
    draw_explanation,
    has_planes,
    projected,
    region,
    view,
)

MOONS = SAMPLES / "two_moons.csv"
WIDE = f"{SAMPLES / 'digits.h5'}::features"
ROLL = np.load(SAMPLES / "swiss_roll.npy")
with h5py.File(SAMPLES / "digits.h5") as file:
    DIGITS = np.asarray(file["features"], np.float64)
SMALL = np.random.default_rng(3).normal(size=(80, 4))
KERNELS = ["gaussian", "laplacian", "cosine", "polynomial", "linear", "lle"]


@pytest.fixture
def seven():
    """The paper's example: a center, and two points in each of three directions."""
    angle = np.deg2rad([0, 120, 240])
    ways = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([[[0.0, 0.0]], ways, 2 * ways])


def similarities(kernel, x, q, index, sigma):
    """Similarities by their definitions: of candidates, with the node, of the node."""
    s, p = x[index], x[q]
    if kernel == "lle":
        u = (s - p) / np.linalg.norm(s - p, axis=1, keepdims=True)
        gram = 0.5 + 0.5 * u @ u.T
        return gram + 1e-8 * np.eye(len(s)), np.ones(len(s)), 2.0
    rows = np.vstack([p, s])
    if kernel == "cosine":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    apart, product = rows[:, np.newaxis] - rows, rows @ rows.T
    full = {
        "gaussian": np.exp(-0.5 * (apart**2).sum(axis=2) / (sigma or 1) ** 2),
        "laplacian": np.exp(-np.abs(apart).sum(axis=2) / (sigma or 1)),
        "cosine": 0.5 + 0.5 * product,
        "polynomial": (product + 1) ** 2,
        "linear": product,
    }[kernel]
    gram = full[1:, 1:].copy()
    if kernel in {"polynomial", "linear"}:
        gram += 1e-8 * gram.diagonal().max() * np.eye(len(s))
    return gram, full[0, 1:], full[0, 0]


def column(found, name):
    return np.array([entry[name] for entry in found.candidates])


def test_the_center_of_seven_nodes_keeps_one_neighbor_in_each_direction(seven):
    found = explain(seven, 0, k=6)
    kept = {entry["node"] for entry in found.candidates if entry["kept"]}
    assert kept == {1, 2, 3}
    dropped = {e["node"]: e for e in found.candidates if not e["kept"]}
    assert {j: e["redundant_to"] for j, e in dropped.items()} == {4: 1, 5: 2, 6: 3}
    assert all(e["pairwise"] for e in dropped.values())
    assert {j: e["pairwise_by"] for j, e in dropped.items()} == {
        4: [1],
        5: [2],
        6: [3],
    }
    assert all(e["residual"] < 0 for e in dropped.values())
    assert found.facts["kept"] == 3
    assert found.facts["effective_neighbors"] == pytest.approx(3)
    assert found.facts["kept_against_pairwise"] == 0


@pytest.mark.parametrize("method", ["nnk", "omp", "l1:eta=0.02", "mp"])
@pytest.mark.parametrize(
    ("x", "sigma"), [(ROLL, "auto"), (DIGITS, "auto"), (ROLL, None)]
)
def test_weights_and_error_are_those_of_build(x, sigma, method):
    options = {"k": 20, "sigma": sigma, "method": method}
    graph = build_graph(x, symmetrize="none", min_weight=0.0, **options)
    for node in (0, 17, 500, len(x) - 1):
        found = explain(x, node, **options)
        weights = np.zeros(len(x))
        weights[column(found, "node")] = column(found, "weight")
        np.testing.assert_array_equal(graph.adjacency[[node]].toarray()[0], weights)
        assert found.facts["error"] == graph.errors[node]
        if sigma == "auto":
            assert found.facts["sigma"] == graph.report["sigma"]
        else:
            last = found.candidates[-1]["distance"]
            assert found.facts["sigma"] == pytest.approx(last / 3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_residuals_terms_and_pairs_are_what_plain_numpy_says(kernel):
    for node in (0, 7, 41, 79):
        found = explain(SMALL, node, k=15, kernel=kernel)
        facts = found.facts
        index, theta = column(found, "node"), column(found, "weight")
        gram, cross, own = similarities(kernel, SMALL, node, index, facts["sigma"])
        terms = theta[:, np.newaxis] * gram
        unit = np.abs(cross).max()
        assert facts["own_similarity"] == pytest.approx(own)
        np.testing.assert_allclose(column(found, "similarity"), cross, rtol=1e-9)
        np.testing.assert_allclose(
            column(found, "residual") / unit,
            (cross - terms.sum(axis=0)) / unit,
            atol=1e-10,
        )
        value = 0.5 * theta @ gram @ theta - cross @ theta + 0.5 * own
        assert facts["error"] == pytest.approx(value, abs=1e-9 * own)
        assert facts["effective_neighbors"] == pytest.approx(
            theta.sum() ** 2 / (theta**2).sum()
        )
        assert facts["weight_sum"] == pytest.approx(theta.sum())
        assert facts["certificate"] < 1e-9
        for j, entry in enumerate(found.candidates):
            assert entry["kept"] == (theta[j] > 0)
            if entry["kept"]:
                assert entry["redundant_to"] is None
                continue
            assert entry["residual"] <= 1e-9 * unit
            assert entry["redundant_to"] == index[terms[:, j].argmax()]
            assert entry["term"] == pytest.approx(terms[:, j].max())
            assert set(entry["pairwise_by"]) == excluders(j, theta, gram, cross, index)


def excluders(j, theta, gram, cross, index):
    """Neighbors that leave nothing to j in the problem that the two have alone."""
    found = set()
    for i in np.flatnonzero(theta > 0):
        pair = [i, j]
        factor = np.linalg.cholesky(gram[np.ix_(pair, pair)])
        weights, _ = nnls(factor.T, np.linalg.solve(factor, cross[pair]))
        if weights[0] > 0 and weights[1] <= 1e-9 * weights[0]:  # ties are excluded
            found.add(int(index[i]))
    return found


def test_a_single_neighbor_does_not_always_explain_a_dropped_candidate():
    found = explain(DIGITS, 17)
    reasons = [entry["pairwise"] for entry in found.candidates if not entry["kept"]]
    assert True in reasons
    assert False in reasons
    assert found.facts["dropped_pairwise"] == sum(reasons)


def test_a_candidate_on_a_plane_counts_as_beyond_it():
    grid = np.array([[x, y] for x in range(-2, 3) for y in range(-2, 3)], float)
    found = explain(grid, 12, k=8)  # the center: four neighbors, four on their corners
    kept = {entry["node"] for entry in found.candidates if entry["kept"]}
    assert kept == {7, 11, 13, 17}
    corners = [entry for entry in found.candidates if not entry["kept"]]
    assert all(len(entry["pairwise_by"]) == 2 for entry in corners)


def test_a_penalty_drops_what_is_not_similar_enough_on_its_own():
    found = explain(ROLL, 3, k=20, method="l1:eta=0.1", preset="paper")
    for entry in found.candidates:
        assert entry["unwanted"] == (entry["similarity"] <= 0.1)
        if entry["kept"]:
            assert entry["residual"] == pytest.approx(0.1)
    assert any(entry["unwanted"] for entry in found.candidates)


@pytest.mark.parametrize("sparse", [False, True])
def test_similarities_from_a_file(run, tmp_path, sparse):
    square = ((SMALL[:, np.newaxis] - SMALL) ** 2).sum(axis=2)
    gram = np.exp(-square / 2)
    path = tmp_path / ("gram.npz" if sparse else "gram.npy")
    if sparse:
        gram[gram < 1e-3] = 0.0
        save_npz(path, csr_array(gram))
    else:
        np.save(path, gram)
    call = ("explain", path, "--node", "5", "-k", "10", "--kernel", "precomputed")
    result = run(*call, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert [e["distance"] for e in found["candidates"]] == [None] * 10
    index = [e["node"] for e in found["candidates"]]
    theta = np.array([e["weight"] for e in found["candidates"]])
    cross = gram[5, index]
    np.testing.assert_allclose([e["similarity"] for e in found["candidates"]], cross)
    np.testing.assert_allclose(
        [e["residual"] for e in found["candidates"]],
        cross - gram[np.ix_(index, index)] @ theta,
        atol=1e-14,
    )
    place = tmp_path / "fig.png"
    refused = run(*call, "-o", place)
    assert refused.code == 3
    assert "--coords" in refused.err
    np.save(tmp_path / "xy.npy", SMALL[:, :2])
    assert run(*call, "-o", place, "--coords", tmp_path / "xy.npy").code == 0
    assert place.read_bytes().startswith(b"\x89PNG")


def test_a_copy_is_explained_by_its_first_row():
    x = np.vstack([ROLL[:50], ROLL[[4]], ROLL[50:100]])
    found = explain(x, 50, k=10)
    assert found.node == found.facts["node"] == 4
    assert found.facts["asked"] == 50
    assert any("50 is a copy of node 4" in note for note in found.notes)
    later = explain(x, 51, k=10)  # numbers are those of the input, copies counted
    graph = build_graph(x, k=10, symmetrize="none")
    kept = {e["node"] for e in later.candidates if e["weight"] >= 1e-8}
    assert kept == set(graph.adjacency[[51]].nonzero()[1])
    assert not any("copy" in note for note in later.notes)


def test_nodes_by_id_and_by_number(run):
    call = ("explain", MOONS, "--id-column", "id", "-k", "15", "--json", "-q")
    by_id = json.loads(run(*call, "--node", "a6").out)
    assert by_id["id"] == "a6"
    assert by_id == json.loads(run(*call, "--node", by_id["node"]).out)
    assert by_id == json.loads(run(*call, "--node", "a6", "-j", "2").out)
    ids = read_features(MOONS, id_column="id").ids
    for entry in by_id["candidates"]:
        assert entry["id"] == ids[entry["node"]]
        if not entry["kept"]:
            assert entry["redundant_to_id"] == ids[entry["redundant_to"]]


def test_an_id_goes_before_a_row_number(points, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("id,x\n1,0.0\n2,1.0\n3,3.0\n")
    features = read_features(path, id_column="id")
    row, notes = find_node(features, "1")
    assert row == 0
    assert "not row 1" in notes[0]
    assert find_node(features, 1) == (1, [])
    assert find_node(features, "0") == (0, [])
    for wrong in ("4", -1, 3, "-1", "x"):
        with pytest.raises(InputError, match="3 rows"):
            find_node(features, wrong)


def test_the_table_and_what_is_below_it(run):
    result = run("explain", SAMPLES / "swiss_roll.npy", "--node", "17", "-k", "12")
    assert result.code == 0, result.err
    table, below = result.out.split("\n\n")
    lines = table.splitlines()
    head = "# node distance K weight residual behind term pairwise"
    assert lines[0].split() == head.split()
    assert [line.split()[0] for line in lines[1:]] == [str(i) for i in range(1, 13)]
    found = explain(ROLL, 17, k=12)
    for line, entry in zip(lines[1:], found.candidates, strict=True):
        node, weight, behind = (line.split()[at] for at in (1, 4, 6))
        assert node == str(entry["node"])
        assert weight == (f"{entry['weight']:.3g}" if entry["kept"] else "dropped")
        assert behind == ("-" if entry["kept"] else str(entry["redundant_to"]))
    assert f"kept                 {found.facts['kept']} of 12" in below
    for word in ("J ", "K_qq", "sum of weights", "effective", "sigma", "certificate"):
        assert word in below


@pytest.mark.parametrize("prefix", ["", "a_name_of_some_length_"])
def test_the_table_fits_a_terminal_and_long_ids_come_last(prefix):
    entries = explain(DIGITS, 7, k=30).candidates
    for entry in entries:
        entry |= {"id": f"{prefix}{entry['node']}", "distance": 1.23456e-5}
        if entry["redundant_to"] is not None:
            entry["redundant_to_id"] = f"{prefix}{entry['redundant_to']}"
        entry["pairwise_by_ids"] = [f"{prefix}{i}" for i in entry["pairwise_by"]]
    lines = table_of(entries).splitlines()
    assert max(len(line.removesuffix(entries[0]["id"])) for line in lines[:2]) <= 80
    if prefix:
        assert [line.split()[-1] for line in lines[1:]] == [e["id"] for e in entries]
        assert max(line.find(prefix) for line in lines[1:]) <= 80
    else:
        assert max(map(len, lines)) <= 80


def test_similarities_that_vanish_are_said_to():
    found = explain(ROLL, 5, k=8, sigma=1e-3)
    assert found.facts["kept"] == 0
    assert any("sigma is too small" in note for note in found.notes)
    assert json.dumps(found.facts, allow_nan=False)
    one = explain(np.zeros((1, 2)), 0)
    assert one.candidates == []
    assert draw_explanation(one, read_one(np.zeros((1, 2))))


def read_one(x):
    from nnkgraph.data import Features

    return Features.of(x)


def test_the_region_lies_before_all_planes_and_ends_with_the_view():
    node = np.array([0.0, 0.0])
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    low, high = np.full(2, -3.0), np.full(2, 3.0)
    assert area(region(node, cross, low, high)) == pytest.approx(4)
    assert area(region(node, cross[:2], low, high)) == pytest.approx(12)
    assert area(region(node, cross[:0], low, high)) == pytest.approx(36)
    rng = np.random.default_rng(1)
    neighbors = rng.normal(size=(6, 2))
    corners = region(node, neighbors, low, high)
    inside = ((corners[:, np.newaxis] - neighbors) * neighbors).sum(axis=2)
    assert inside.max() < 1e-12
    points = rng.uniform(-3, 3, size=(20000, 2))
    share = (((points[:, np.newaxis] - neighbors) * neighbors).sum(axis=2) <= 0).all(1)
    assert area(corners) == pytest.approx(36 * share.mean(), rel=0.1)


def area(corners):
    x, y = corners.T
    return 0.5 * abs(x @ np.roll(y, 1) - y @ np.roll(x, 1))


def test_the_picture_has_what_it_names(seven):
    found = explain(seven, 0, k=6, preset="paper")
    figure = draw_explanation(found, read_one(seven))
    axes = figure.axes[0]
    names = [text.get_text() for text in axes.texts]
    assert sorted(names) == ["1", "2", "3", "4", "5", "6"]
    assert axes.get_title().startswith("node 0: 3 of 6 kept, J = 0.1323")
    planes = [line for line in axes.lines if line.get_color() == "#56b4e9"]
    for line, neighbor in zip(planes, (2, 1, 3), strict=True):  # nearest first
        start, other = np.array(line.get_xy1()), np.array(line.get_xy2())
        np.testing.assert_allclose(start, seven[neighbor])
        assert (other - start) @ seven[neighbor] == pytest.approx(0)
    low, high = view(seven)
    assert (low < seven).all()
    assert (high > seven).all()
    assert not has_planes(explain(seven, 0, k=6, kernel="laplacian"), 2)
    assert not has_planes(explain(seven, 0, k=6, method="l1"), 2)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures_over_features_and_coordinates(run, tmp_path, suffix):
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    call = ("explain", MOONS, "--id-column", "id", "--node", "a0", "-k", "9", "-q")
    for path in (first, second):
        assert run(*call, "-o", path, "--scale", "standard").code == 0
    assert first.read_bytes() == second.read_bytes()
    np.save(tmp_path / "xyz.npy", np.tile(DIGITS[:, [20]], 3) + np.eye(3)[0])
    call = ("explain", WIDE, "--node", "3", "-o", second)
    assert run(*call, "--coords", tmp_path / "xyz.npy").code == 0
    call = ("explain", SAMPLES / "swiss_roll.npy", "--node", "3", "-o", second)
    assert run(*call).code == 0
    with (tmp_path / "c.csv").open("w") as table:
        table.write("id,x,y\n")
        table.writelines(f"r{i},{row[0]},{row[1]}\n" for i, row in enumerate(ROLL))
    assert run(*call, "--coords", tmp_path / "c.csv", "--id-column", "id").code == 0


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--node", "1000"), 3, "1000 rows"),
        (("--node", "a"), 3, "1000 rows"),
        (("--node", "-1"), 3, "1000 rows"),
        ((), 2, "--node"),
        (("--node", "1", "--method", "knn"), 2, "use nnk"),
        (("--node", "1", "--method", "aew"), 2, "use nnk"),
        (("--node", "1", "-k", "5000"), 3, "at most"),
        (("--node", "1", "--kernel", "linear", "--sigma", "1"), 2, "no bandwidth"),
        (("--node", "1", "-o", "x.txt"), 2, ".png"),
        (("--node", "1", "--coords", MOONS), 2, "-o"),
        (("--node", "1", "-o", "x.png", "--coords", "no.npy"), 3, "no.npy"),
        (
            ("--node", "1", "-o", "x.png", "--coords", MOONS, "--id-column", "id"),
            3,
            "400",
        ),
        (("--node", "1", "-o", "x.png", "--coords", WIDE), 3, "2 or 3"),
    ],
)
def test_mistakes(run, tmp_path, monkeypatch, options, code, words):
    monkeypatch.chdir(tmp_path)
    result = run("explain", SAMPLES / "swiss_roll.npy", *options, "-q")
    assert result.code == code, result.err
    assert words in result.err
    assert len(result.lines) == 1
    assert result.out == ""
    assert not list(tmp_path.iterdir())


SETTINGS = [
    {},
    {"k": 9, "sigma": "local", "scale": "standard", "search": "kdtree"},
    {"k": 9, "sigma": "kth-max", "grow": 0.01},
    {"k": 9, "kernel": "cosine", "method": "omp"},
    {"k": 9, "duplicates": "keep"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_graph_is_explained_as_it_was_built(settings):
    x = np.vstack([SMALL, SMALL[:3], SMALL[:1]])
    graph = build_graph(x, symmetrize="none", min_weight=0, **settings)
    for node in (2, 40, 82):
        found = explain_built(x, graph, node)
        first = found.node
        index = column(found, "node")
        expected = np.asarray(graph.adjacency[[first]].todense()).ravel()
        np.testing.assert_allclose(column(found, "weight"), expected[index], rtol=1e-12)
        assert found.facts["error"] == pytest.approx(graph.errors[first], rel=1e-12)
        assert found.facts["edges"] == (expected > 0).sum()
        assert not [note for note in found.notes if "holds J" in note]


def test_stored_candidates_are_the_ones_that_are_explained(tmp_path):
    far = np.argsort(((SMALL[:, None] - SMALL) ** 2).sum(axis=2))[:, 5:13]
    np.savez(tmp_path / "far.npz", neighbors=far)
    search = f"precomputed:path={tmp_path / 'far.npz'}"
    graph = build_graph(SMALL, k=8, search=search)
    found = explain_built(SMALL, graph, 3)
    assert column(found, "node").tolist() == far[3].tolist()
    assert found.facts["error"] == pytest.approx(graph.errors[3], rel=1e-12)
    lost = replace(graph, candidates=None)
    with pytest.raises(InputError, match="does not hold the candidates"):
        explain_built(SMALL, lost, 3)


def test_what_is_not_the_graph_is_said():
    graph = build_graph(SMALL, k=9)
    with pytest.raises(InputError, match="not what g was built from: other values"):
        explain_built(SMALL + 1, graph, 3, name="g")
    with pytest.raises(InputError, match="the same `drop` and `id_column` as to build"):
        explain_built(SMALL[:, :-1], graph, 3, name="g")
    with pytest.raises(InputError, match="does not say how it was built"):
        explain_built(SMALL, replace(graph, provenance={}), 3)
    with pytest.raises(ParameterError, match="no error J"):
        explain_built(SMALL, build_graph(SMALL, k=9, method="knn"), 3)
    other = replace(graph, errors=graph.errors + 0.1)
    assert any("holds J" in note for note in explain_built(SMALL, other, 3).notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", ""),
        ("-k 9 --kernel gaussian --sigma local --search auto --scale none", ""),
        ("--kernel gaussian:sigma=local --method nnk --search exact --seed 0", ""),
        ("-k 10", "--k 10 contradicts g.npz, which was built with k 9"),
        ("--sigma auto", "--sigma auto contradicts g.npz, which was built with sigma"),
        ("--sigma 2", "built with sigma local"),
        ("--kernel gaussian:sigma=auto", "built with kernel gaussian:sigma=local"),
        ("--kernel cosine", "built with kernel gaussian:sigma=local"),
        ("--method l1", "--method l1 contradicts g.npz, which was built with method"),
        ("--search kdtree", "built with search exact"),
        ("--scale unit", "built with scale none"),
    ],
)
def test_options_beside_a_graph_agree_with_it(
    run, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", SMALL)
    write_graph("g.npz", build_graph(SMALL, k=9, sigma="local"))
    call = ("explain", "x.npy", "--graph", "g.npz", "--node", "3", *options.split())
    result = run(*call)
    assert result.code == (2 if words else 0), result.err
    assert words in result.err
    assert bool(result.out) is not bool(words)


def test_more_columns_are_drawn_in_the_plane_of_most_spread(run, tmp_path):
    result = run("explain", WIDE, "--node", "3", "-k", "9", "-o", tmp_path / "a.png")
    assert result.code == 0, result.err
    assert "in the plane where its candidates spread most (of 64 columns)" in result.err
    assert "dropped" in result.out
    flat = (
        np.random.default_rng(0).normal(size=(30, 2))
        @ np.ones((2, 5))
        * [1, 2, 3, 4, 5]
    )
    at, share = projected(flat)
    apart = [np.linalg.norm(x[:, np.newaxis] - x, axis=2) for x in (flat, at)]
    np.testing.assert_allclose(*apart, atol=1e-9)
    assert share == pytest.approx(1)
    for columns in (1, 5):
        found = explain(flat[:, :columns], 0, k=5)
        axes = draw_explanation(found, read_one(flat[:, :columns])).axes[0]
        assert "the plane with 100% of the spread" in axes.get_title()


def test_numbers_along_the_picture_have_no_offset(seven):
    moved = seven + 1e5
    figure = draw_explanation(explain(moved, 0, k=6), read_one(moved))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    for axis in (axes.xaxis, axes.yaxis):
        assert axis.get_offset_text().get_text() == ""


def test_a_method_without_an_error_is_refused():
    with pytest.raises(ParameterError, match="no error J"):
        explain(SMALL, 0, method="kstar")


def test_a_graph_names_the_rows_and_angles_have_a_cosine(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 4))
    np.save(tmp_path / "x.npy", x)
    graph = build_graph(x, ids=[f"n{i}" for i in range(50)], k=6, kernel="cosine")
    write_graph(tmp_path / "g.npz", graph)
    how = "explain", tmp_path / "x.npy", "--graph", tmp_path / "g.npz", "--node", "n9"
    known = json.loads(run(*how, "--json").out)
    assert (known["node"], known["metric"]) == (9, "chord")
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    for entry in known["candidates"]:
        assert entry["id"] == f"n{entry['node']}"
        assert entry["cosine"] == pytest.approx(unit[9] @ unit[entry["node"]])
        chord = np.linalg.norm(unit[9] - unit[entry["node"]])
        assert entry["distance"] == pytest.approx(chord)
    table = run(*how).out
    assert table.split()[:4] == ["#", "node", "distance", "cosine"]
    assert table.splitlines()[1].split()[1] == known["candidates"][0]["id"]
    assert "chord c between rows of length 1" in table
