"""Comparisons: methods side by side."""

import csv
import json

import numpy as np
import pytest
from conftest import SAMPLES

from nnkgraph.build.graph import build_graph
from nnkgraph.tasks.compare import compare

ROLL = SAMPLES / "swiss_roll.npy"


@pytest.fixture(scope="module")
def roll():
    return compare(np.load(ROLL), k=range(10, 51, 5), preset="paper")


def curve(found, method, rule=None):
    return {
        line["k"]: line["edges_per_node"]
        for line in found.lines
        if line["method"] == method and rule in {None, line["rule"]}
    }


def test_regressions_saturate_and_knn_grows(roll):
    for method in ("nnk", "omp", "mp"):
        edges = curve(roll, method)
        assert edges[50] == pytest.approx(edges[25], rel=0.1)
    for rule in ("max", "mutual"):
        edges = curve(roll, "knn", rule)
        assert edges[50] / edges[10] > 4
        assert np.diff(list(edges.values())) == pytest.approx(
            np.diff(list(edges.values())).mean(), rel=0.25
        )
    assert curve(roll, "nnk") == curve(roll, "omp")


def test_lines_are_what_build_gives(roll):
    line = next(x for x in roll.lines if x["method"] == "nnk" and x["k"] == 20)
    graph = build_graph(np.load(ROLL), k=20, sigma=roll.sigma, preset="paper")
    assert line["edges"] == graph.n_edges
    assert line["components"] == graph.report["components"]
    assert line["isolated"] == graph.report["isolated"]
    assert line["mean_error"] == graph.report["error"]["mean"]
    assert roll.sigma == build_graph(np.load(ROLL), k=30, sigma="auto").report["sigma"]


def test_tables_csv_json_and_a_picture(run, tmp_path):
    out = tmp_path / "lines.csv", tmp_path / "curve.png"
    call = ("compare", ROLL, "-k", "5,10", "--method", "nnk", "--method", "knn")
    result = run(*call, "-o", out[0], "-o", out[1])
    assert result.code == 0, result.err
    assert f"{out[0]}: 6 graphs in a table" in result.err
    assert f"{out[1]}: 6 graphs drawn as edges per node over k" in result.err
    table = result.out.splitlines()
    assert table[0].split()[:3] == ["method", "rule", "k"]
    assert len(table) == 1 + 2 + 4
    with out[0].open() as file:
        lines = list(csv.DictReader(file))
    assert [line["k"] for line in lines] == ["5", "10", "5", "5", "10", "10"]
    assert out[1].read_bytes().startswith(b"\x89PNG")
    found = json.loads(run(*call, "--json", "-q").out)
    assert [line["method"] for line in found["lines"]] == ["nnk"] * 2 + ["knn"] * 4


@pytest.mark.parametrize("rows", ["1,2\n", "1,2\n1,2\n"])
def test_one_row_is_nothing_to_compare(run, tmp_path, rows):
    (tmp_path / "x.csv").write_text(rows)
    result = run("compare", tmp_path / "x.csv")
    assert result.code == 3
    assert len(result.lines) == 1


def test_copies_are_left_out_and_counted():
    x = np.random.default_rng(0).normal(size=(60, 3))
    found = compare(np.concatenate([x, x[:5]]), k=[5])
    assert found.notes[-1] == "5 copies of rows are left out"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("-k", "0,5"), 2, "at least 1"),
        (("-k", "5:a"), 2, "neither"),
        (("-k", "5000"), 3, "at most"),
        (("--method", "forest"), 2, "forest"),
        (("--method", "l1:eta=x"), 2, "eta"),
        (("-o", "x.txt"), 2, ".csv"),
    ],
)
def test_mistakes(run, tmp_path, monkeypatch, options, code, words):
    monkeypatch.chdir(tmp_path)
    result = run("compare", ROLL, *options)
    assert result.code == code
    assert words in result.err
    assert len(result.lines) == 1
    assert not list(tmp_path.iterdir())
