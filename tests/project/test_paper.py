"""The paper's experiments run on small data, and go on where they stopped."""

import csv
import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from nnkgraph.errors import InputError
from nnkgraph.tasks.classify import classify
from paper import __main__ as command
from paper import (
    angles,
    classification,
    data,
    eigenmaps,
    example,
    graphs,
    many,
    propagation,
    published,
    runtime,
    sparsity,
)
from paper.results import Table
from paper.setting import GRID, Setting

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a set with a split, one without, and one without classes."""
    home = tmp_path_factory.mktemp("data")
    draw = np.random.default_rng(0)
    for name, n, split in (("usps_tiny", 520, True), ("other", 600, False)):
        y = np.arange(n) % 3
        x = draw.normal(size=(3, 6))[y] + 0.9 * draw.normal(size=(n, 6))
        arrays = {"X": x, "y": y + 5}
        if split:
            arrays["split"] = (np.arange(n) >= 300).astype(np.int8)
        np.savez(home / f"{name}.npz", **arrays)
    np.savez(home / "no_classes.npz", X=np.ones((3, 2)))
    return home


@pytest.fixture
def setting(tmp_path, folder):
    return Setting(tmp_path, folder, quick=True, scale=0.1)


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def drop(path, row):
    lines = path.read_text().splitlines()
    del lines[row + 1]
    path.write_text("\n".join(lines) + "\n")


def test_a_table_computes_only_what_it_has_not_and_keeps_values(tmp_path):
    asked = []

    def squares(cases):
        asked.extend(case["x"] for case in cases)
        return [{"y": case["x"] ** 2, "z": None} for case in cases]

    cases = [{"x": 0.5 * one} for one in range(4)]
    first = Table(tmp_path / "t.csv", ["x"], ["y", "z"]).fill(cases, squares)
    assert asked == [0.0, 0.5, 1.0, 1.5]
    drop(tmp_path / "t.csv", 2)
    again = Table(tmp_path / "t.csv", ["x"], ["y", "z"]).fill(cases, squares)
    assert asked[4:] == [1.0]
    assert again == first


def test_a_table_is_written_after_every_group(tmp_path):
    def once(cases):
        if cases[0]["a"] == 2:
            raise KeyboardInterrupt
        return [{"y": 1} for _ in cases]

    cases = [{"a": a, "b": b} for a in range(3) for b in range(2)]
    table = Table(tmp_path / "t.csv", ["a", "b"], ["y"])
    with pytest.raises(KeyboardInterrupt):
        table.fill(cases, once, group=["a"])
    assert [row["a"] for row in read(tmp_path / "t.csv")] == ["0", "0", "1", "1"]


def test_rows_of_other_columns_are_not_overwritten(tmp_path):
    (tmp_path / "t.csv").write_text("x,old\n1,2\n")
    with pytest.raises(InputError, match="other columns"):
        Table(tmp_path / "t.csv", ["x"], ["y"])


def test_table_1_is_the_choice_over_all_parameters_at_once(setting):
    classification.run(setting)
    lines = read(setting.out / "table1.csv")
    own = data.load(setting, "usps_tiny")
    expected = [
        classify(
            *(own.x, own.y),
            split=own.split,
            k=setting.numbers,
            sigma=GRID,
            lc=GRID,
            scale="standard",
            seed=seed,
        ).lines
        for seed in range(2)
    ]
    for at, line in enumerate(lines):
        errors = [100 * found[at]["error"] for found in expected]
        assert line["method"] == expected[0][at]["method"]
        assert float(line["error"]) == pytest.approx(np.mean(errors), abs=0.006)
        assert float(line["published"]) == published.TABLE_1["usps"][line["method"]]
        assert str(expected[0][at]["k"]) in line["k"].split()
    rows = read(setting.out / "sigma.csv")
    assert [float(row["sigma"]) for row in rows] == list(GRID)
    assert all(
        (float(row["nnk"]) <= float(row["knn"]) + 1)
        == bool(int(row["within_one_point"]))
        for row in rows
    )
    assert (setting.out / "ablation.png").stat().st_size > 10_000
    folds = {
        (row["method"], int(row["k"]), float(row["value"])): float(row["cv_error"])
        for row in read(setting.out / "ablation.csv")
    }
    assert len(folds) == 3 * 3 * len(GRID)
    for at, line in enumerate(expected[0]):
        which = "lc" if "lc" in line else "sigma"
        other = expected[1][at]["tried"]
        for one, two in zip(line["tried"], other, strict=True):
            found = folds[line["method"], one["k"], one[which]]
            assert found == pytest.approx(50 * (one["error"] + two["error"]), abs=1e-3)
    assert (setting.out / "ablation_folds.png").stat().st_size > 10_000


def test_table_2_counts_and_ranks(setting):
    many.run(setting)
    sets, lines = (read(setting.out / f"table2{end}.csv") for end in ("_sets", ""))
    assert [one["data"] for one in sets] == ["other", "usps_tiny"]
    for method in many.METHODS:
        (line,) = (one for one in lines if one["method"] == method)
        errors = [float(one[f"error_{method}"]) for one in sets]
        assert float(line["error"]) == pytest.approx(np.mean(errors), abs=0.006)
        assert sum(int(line[one]) for one in ("wins", "ties", "losses")) == 2
    ranks = [
        scipy.stats.rankdata([float(one[f"error_{m}"]) for m in many.METHODS])
        for one in sets
    ]
    found = [float(line["rank"]) for line in lines]
    assert found == pytest.approx(np.mean(ranks, axis=0), abs=1e-3)
    assert lines[2]["published_wtl"] == "44/9/17"


def test_the_best_wins_near_ones_tie_and_equal_ones_do_too():
    spreads = {"knn": 1.0, "kstar": 5.0, "nnk": 2.0}
    found = many.judge({"knn": 10.0, "kstar": 10.9, "nnk": 11.1}, spreads)
    assert found == {"knn": "win", "kstar": "tie", "nnk": "loss"}
    found = many.judge({"knn": 10.0, "kstar": 12.0, "nnk": 10.0}, spreads)
    assert found == {"knn": "tie", "kstar": "loss", "nnk": "tie"}


def test_a_lost_row_is_computed_again_and_no_other(setting, monkeypatch):
    example.run(setting)
    sparsity.run(setting)
    table = setting.out / "sparsity.csv"
    before, built = read(table), []
    drop(table, 3)

    def watch(kind, x, seed=0):
        built.append((kind.name, kind.k))
        return graphs.build(kind, x, seed)

    monkeypatch.setattr(sparsity, "build", watch)
    sparsity.run(setting)
    assert built == [(before[3]["graph"], int(before[3]["k"]))]
    after = {tuple(row[k] for k in ("data", "k", "graph", "edges")) for row in before}
    assert after == {
        tuple(row[k] for k in ("data", "k", "graph", "edges")) for row in read(table)
    }
    by_graph = {(r["data"], r["k"], r["graph"]): int(r["edges"]) for r in before}
    for name, k, graph in by_graph:
        if graph == "omp":  # the same problem, solved in another order
            assert by_graph[name, k, "omp"] == by_graph[name, k, "nnk"]


def test_labels_are_propagated_on_all_graphs_by_both_laplacians(tmp_path):
    setting = Setting(tmp_path, None, quick=True, scale=0.3)
    propagation.run(setting)
    rows = read(tmp_path / "propagation.csv")
    means = read(tmp_path / "propagation_means.csv")
    names = {kind.name for kind in (*graphs.published(), *graphs.fair())}
    assert {row["graph"] for row in rows} == names
    assert {row["laplacian"] for row in rows} == {"combinatorial", "normalized"}
    for row in rows:
        assert 0 <= float(row["of_reached"]) <= 100
        if float(row["unreached"]) == 0:
            assert row["of_all"] == row["of_reached"]
    one = [row for row in rows if row["graph"] == "knn" and row["share"] == "0.1"]
    one = [r for r in one if r["laplacian"] == "normalized" and r["k"] == "30"]
    (mean,) = (
        row
        for row in means
        if (row["graph"], row["share"], row["laplacian"], row["k"])
        == ("knn", "0.1", "normalized", "30")
    )
    expected = np.mean([float(row["of_all"]) for row in one])
    assert float(mean["of_all"]) == pytest.approx(expected, abs=1e-3)
    assert len(one) == int(mean["subsets"]) == 2
    boxes = read(tmp_path / "propagation_box.csv")
    assert {box["graph"] for box in boxes} == {
        "knn mutual",
        *(kind.name for kind in graphs.published()),
    }
    for box in boxes:
        own = [row for row in rows if row["share"] == "0.1"]
        own = [r for r in own if all(r[c] == box[c] for c in ("graph", "laplacian"))]
        assert len(own) == int(box["count"]) == 3 * 2
        found = np.percentile(
            [float(row["of_all"]) for row in own], [0, 25, 50, 75, 100]
        )
        parts = ("least", "lower", "median", "upper", "most")
        assert [float(box[c]) for c in parts] == pytest.approx(found, abs=1e-3)
    assert (tmp_path / "propagation_box.png").read_bytes()[:4] == b"\x89PNG"


def test_runtimes_are_divided_by_those_of_the_same_run(setting, monkeypatch):
    runtime.run(setting)
    table = setting.out / "runtime.csv"
    before, built = read(table), set()
    assert {row["data"] for row in before} == {"noisy_swiss_roll", "usps"}
    assert len(before) == 2 * 3 * 7
    for row in before:
        for other in ("knn", "nnk"):
            same = [one for one in before if one["graph"] == other]
            (base,) = (
                r for r in same if (r["data"], r["k"]) == (row["data"], row["k"])
            )
            ratio = float(row["seconds"]) / float(base["seconds"])
            assert float(row[f"ratio_to_{other}"]) == pytest.approx(ratio, abs=0.01)
    assert before[1]["graph"] == "lle"
    drop(table, 1)

    def watch(kind, x, seed=0):
        built.add((kind.name, kind.k))
        return graphs.build(kind, x, seed)

    monkeypatch.setattr(runtime, "build", watch)
    runtime.run(setting)
    assert built == {("knn", 10), ("lle", 10), ("nnk", 10)}
    after = read(table)
    assert [row for row in after if row["graph"] != "lle"] == [
        row for row in before if row["graph"] != "lle"
    ]


def test_angles_are_those_of_vectors_in_feature_space():
    x, _ = data.swiss_roll(60, 0.5)
    k = 8
    found = angles.angles_of(x, k)
    squared = ((x[:, np.newaxis] - x) ** 2).sum(axis=2)
    order = np.argsort(squared, axis=1)[:, 1 : k + 1]
    sigma = np.sqrt(np.take_along_axis(squared, order, 1)[:, -1]).mean() / 3
    # Rows with the inner products of the kernel: as good as any feature space.
    phi = np.linalg.cholesky(np.exp(-squared / (2 * sigma**2)))
    expected = {"knn": [], "nnk": [], "nnk of two": []}
    for q, near in enumerate(order):
        theta = dict(
            zip(near, scipy.optimize.nnls(phi[near].T, phi[q])[0], strict=True)
        )
        for i, j in itertools.combinations(near, 2):
            a, b = phi[i] - phi[q], phi[j] - phi[q]
            cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            alone = scipy.optimize.nnls(phi[[i, j]].T, phi[q])[0]
            chosen = {
                "knn": True,
                "nnk": theta[i] > 1e-8 and theta[j] > 1e-8,
                "nnk of two": (alone > 0).all(),
            }
            for name, both in chosen.items():
                if both:
                    expected[name].append(np.rad2deg(np.arccos(cosine)))
    for name, known in expected.items():
        row = found[name]
        assert row["pairs"] == len(known)
        assert row["smallest"] == pytest.approx(min(known), abs=1e-3)
        assert row["median"] == pytest.approx(np.median(known), abs=1e-3)
        bins = np.histogram(known, np.arange(0, 181, 5))[0] / len(known)
        shares = [float(one) / 100 for one in row["histogram"].split()]
        assert shares == pytest.approx(bins, abs=1e-4)


def test_two_candidates_never_violate_the_bound_of_their_angles(setting):
    angles.run(setting)
    rows = read(setting.out / "angles.csv")
    assert [row["neighbors"] for row in rows] == 2 * ["knn", "nnk", "nnk of two"]
    for row in rows:
        shares = float(row["share_violating"]), float(row["share_left_out"])
        if row["proven"] == "1":
            assert shares == (0, 0)
            assert float(row["largest_at_neighbor"]) < 90
        elif row["neighbors"] == "nnk":  # more candidates: no theorem
            assert shares[1] > 0
        else:  # all are neighbors, whatever their angles are
            assert shares[0] > 0
            assert shares[1] == 0
    assert (setting.out / "angles.png").read_bytes()[:4] == b"\x89PNG"


def test_a_graph_as_sparse_as_nnk_has_nearly_its_edges():
    x, _ = data.swiss_roll(300, 0.5)
    nnk, _ = graphs.build(graphs.Kind("nnk", "nnk", 15), x)
    kind = graphs.Kind("knn", "knn", 15, "mutual", matched=True)
    found, _ = graphs.build(kind, x)
    near = [
        abs(
            graphs.build(graphs.Kind("", "knn", k, "mutual"), x)[0].n_edges
            - nnk.n_edges
        )
        for k in range(1, 16)
    ]
    assert abs(found.n_edges - nnk.n_edges) == min(near)


def test_eigenmaps_unroll_and_are_kept(setting, monkeypatch):
    setting = replace(setting, scale=0.5)
    eigenmaps.run(setting)
    rows = read(setting.out / "eigenmaps.csv")
    assert len(rows) == 2 * 3 * 3
    nnk = [row for row in rows if row["method"] == "nnk"]
    assert all(float(row["rank_correlation_first"]) > 0.95 for row in nnk)
    assert all(1 < float(row["edges_per_node"]) < 4 for row in nnk)
    monkeypatch.setattr(eigenmaps, "build", None)  # not called again
    eigenmaps.run(setting)


def test_the_severed_sphere_is_one_without_poles_and_with_a_slit():
    x, longitude = data.severed_sphere(2000)
    assert np.linalg.norm(x, axis=1) == pytest.approx(1)
    assert np.abs(x[:, 2]).max() < np.cos(np.pi / 8)
    angle = np.arctan2(x[:, 1], x[:, 0]) % (2 * np.pi)
    assert angle == pytest.approx(longitude, abs=1e-9)
    assert angle.max() < 2 * np.pi - 0.55


def test_the_node_in_the_middle_of_seven_has_three_neighbors(tmp_path):
    example.run(Setting(tmp_path))
    rows = {
        (r["data"], r["method"]): int(r["edges"])
        for r in read(tmp_path / "example.csv")
    }
    assert rows["seven", "nnk"] == 6
    assert rows["seven", "nnk"] < rows["seven", "lle"] < rows["seven", "knn"]
    for name in ("seven", "circles", "center"):
        assert (tmp_path / f"example_{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_downloads_fill_gaps_and_keep_what_is_there(tmp_path, monkeypatch):
    asked = []

    def fetch(*, data_id, return_X_y, as_frame, parser):
        asked.append(data_id)
        if data_id == 554:
            raise OSError("offline")
        x = np.arange(20.0).reshape(10, 2)
        x[3, 1] = np.nan
        return x, np.array(list("ababababab"), object)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    monkeypatch.setattr(
        data, "OPENML", {"mnist": (554, 7), "isolet": (300, 7), "pc3": (1050, 0)}
    )
    np.savez(tmp_path / "pc3.npz", X=np.ones((2, 2)), y=[0, 1])
    data.download(tmp_path)
    assert asked == [554, 300]
    own = data.load(Setting(tmp_path, tmp_path), "isolet")
    assert own.split.tolist() == [0] * 7 + [1] * 3
    assert own.y.tolist() == [0, 1] * 5
    assert own.x[3, 1] == np.median(np.delete(np.arange(1, 20, 2), 3))
    assert not (tmp_path / "mnist.npz").exists()


def test_mistakes_end_with_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["table1", "--data", str(tmp_path / "no"), "--out", str(tmp_path)])
    assert ended.value.code == InputError.exit_code
    assert capsys.readouterr().err.count("\n") == 1
    for wrong in (["nothing"], ["--download"]):
        with pytest.raises(SystemExit) as ended:
            command.main(wrong)
        assert ended.value.code == 2


def test_help_names_every_experiment():
    done = subprocess.run(
        [sys.executable, "-m", "paper", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    text = (ROOT / "paper" / "README.md").read_text()
    for name in command.EXPERIMENTS:
        assert name in done.stdout
        assert f"`{name}`" in text
